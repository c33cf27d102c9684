/* A program that uses sd-bus, peer to peer: serves a part of kitchen.dbus.xml, or checks whoever serves it.
 *
 *   sdbus_peer serve PATH     one client after the other, at a socket of its own
 *   sdbus_peer call PATH
 *   sdbus_peer tell PATH      emits signals of its own, and asks until all came, in order
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#define INTERFACE "org.example.Kitchen"
#define OBJECT "/org/example/Kitchen"
#define ERROR_NAME "org.example.Error.DivisionByZero"

static void check(int result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "sdbus_peer: %s: %s\n", what, strerror(-result));
        exit(1);
    }
}

static void wanted(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "sdbus_peer: not as expected: %s\n", what);
        exit(1);
    }
}

static int nothing(sd_bus_message *call, void *data, sd_bus_error *error)
{
    (void)data, (void)error;
    return sd_bus_reply_method_return(call, "");
}

/* Answers with the arguments. */
static int echo(sd_bus_message *call, void *data, sd_bus_error *error)
{
    (void)data, (void)error;
    sd_bus_message *reply = NULL;
    int result = sd_bus_message_new_method_return(call, &reply);
    if (result >= 0)
        result = sd_bus_message_copy(reply, call, 1);
    if (result >= 0)
        result = sd_bus_send(NULL, reply, NULL);
    sd_bus_message_unref(reply);
    return result < 0 ? result : 1;
}

static int divide(sd_bus_message *call, void *data, sd_bus_error *error)
{
    (void)data;
    int32_t a, b;
    int result = sd_bus_message_read(call, "ii", &a, &b);
    if (result < 0)
        return result;
    if (b == 0)
        return sd_bus_error_set(error, ERROR_NAME, "division by zero");
    return sd_bus_reply_method_return(call, "ii", a / b, a % b);
}

static int total(sd_bus_message *call, void *data, sd_bus_error *error)
{
    (void)data, (void)error;
    const void *items;
    size_t size;
    int64_t sum = 0;
    int result = sd_bus_message_read_array(call, 'i', &items, &size);
    if (result < 0)
        return result;
    for (size_t at = 0; at < size / sizeof(int32_t); at++)
        sum += ((const int32_t *)items)[at];
    return sd_bus_reply_method_return(call, "x", sum);
}

static int fire(sd_bus_message *call, void *data, sd_bus_error *error)
{
    (void)data, (void)error;
    uint32_t count;
    int result = sd_bus_message_read(call, "u", &count);
    for (uint32_t at = 0; result >= 0 && at < count; at++) {
        char text[32];
        snprintf(text, sizeof(text), "tick %u", at);
        result = sd_bus_emit_signal(sd_bus_message_get_bus(call), OBJECT, INTERFACE, "Tick", "us", at, text);
    }
    return result < 0 ? result : sd_bus_reply_method_return(call, "");
}

static char *title;

static int get_title(sd_bus *bus, const char *path, const char *interface, const char *property,
                     sd_bus_message *reply, void *data, sd_bus_error *error)
{
    (void)bus, (void)path, (void)interface, (void)property, (void)data, (void)error;
    return sd_bus_message_append(reply, "s", title);
}

static int set_title(sd_bus *bus, const char *path, const char *interface, const char *property,
                     sd_bus_message *value, void *data, sd_bus_error *error)
{
    (void)data, (void)error;
    const char *text;
    int result = sd_bus_message_read(value, "s", &text);
    if (result < 0)
        return result;
    free(title);
    title = strdup(text);
    return sd_bus_emit_properties_changed(bus, path, interface, property, NULL);
}

/* Signals of whoever calls. */
static uint32_t told;

static int hear(sd_bus_message *signal, void *data, sd_bus_error *error)
{
    (void)data, (void)error;
    uint32_t number;
    if (sd_bus_message_read(signal, "u", &number) >= 0 && number == told)
        told++;
    return 0;
}

static int heard(sd_bus_message *call, void *data, sd_bus_error *error)
{
    (void)data, (void)error;
    return sd_bus_reply_method_return(call, "u", told);
}

static const sd_bus_vtable table[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("Nothing", "", "", nothing, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("EchoBasics", "ybnqiuxtdsog", "ybnqiuxtdsog", echo, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("EchoBytes", "ay", "ay", echo, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("EchoTexts", "asao", "asao", echo, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("EchoNumbers", "abanaxad", "abanaxad", echo, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("EchoStruct", "(is(yad)a{sv})", "(is(yad)a{sv})", echo, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("EchoDicts", "a{ys}a{oas}a{sa{sv}}", "a{ys}a{oas}a{sa{sv}}", echo, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("EchoVariant", "v", "v", echo, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("EchoVariants", "av", "av", echo, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("EchoDeep", "aaaa(aya{t(ia(sv))})", "aaaa(aya{t(ia(sv))})", echo, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("EchoHandles", "ha(sh)", "ha(sh)", echo, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Divide", "ii", "ii", divide, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Heard", "", "u", heard, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Total", "ai", "x", total, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Fire", "u", "", fire, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_SIGNAL("Tick", "us", 0),
    SD_BUS_WRITABLE_PROPERTY("Title", "s", get_title, set_title, 0,
                             SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE | SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

static void serve(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    wanted(listener >= 0 && strlen(path) < sizeof(address.sun_path), "a socket");
    strcpy(address.sun_path, path);
    wanted(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0, "bind");
    wanted(listen(listener, 16) == 0, "listen");
    title = strdup("sd-bus");
    puts("ready");
    fflush(stdout);
    for (;;) {
        int client = accept(listener, NULL, NULL);
        wanted(client >= 0, "accept");
        if (fork() != 0) {
            close(client);
            continue;
        }
        sd_bus *bus = NULL;
        sd_id128_t id;
        check(sd_id128_randomize(&id), "an identity");
        check(sd_bus_new(&bus), "new");
        check(sd_bus_set_fd(bus, client, client), "set_fd");
        check(sd_bus_set_server(bus, 1, id), "set_server");
        check(sd_bus_negotiate_fds(bus, 1), "negotiate_fds");
        check(sd_bus_start(bus), "start");
        check(sd_bus_add_object_vtable(bus, NULL, OBJECT, INTERFACE, table, NULL), "vtable");
        check(sd_bus_add_match(bus, NULL, "type='signal',interface='" INTERFACE ".Caller',member='Told'", hear, NULL), "a match");
        for (;;) {
            int result = sd_bus_process(bus, NULL);
            if (result == 0)
                result = sd_bus_wait(bus, UINT64_MAX);
            if (result < 0)
                exit(0);
        }
    }
}

static uint32_t ticks;

static int tick(sd_bus_message *signal, void *data, sd_bus_error *error)
{
    (void)data, (void)error;
    uint32_t number;
    const char *text;
    char expected[32];
    check(sd_bus_message_read(signal, "us", &number, &text), "a tick");
    snprintf(expected, sizeof(expected), "tick %u", ticks);
    wanted(number == ticks && strcmp(text, expected) == 0, "ticks in order");
    ticks++;
    return 0;
}

static int fired(sd_bus_message *answer, void *data, sd_bus_error *error);

static void call(const char *path)
{
    char address[256];
    sd_bus *bus = NULL;
    sd_bus_message *reply = NULL;
    sd_bus_error error = SD_BUS_ERROR_NULL;
    snprintf(address, sizeof(address), "unix:path=%s", path);
    check(sd_bus_new(&bus), "new");
    check(sd_bus_set_address(bus, address), "address");
    check(sd_bus_negotiate_fds(bus, 1), "negotiate_fds");
    check(sd_bus_start(bus), "start");

    int32_t number;
    const char *text, *key, *value;
    uint8_t octet;
    check(sd_bus_call_method(bus, NULL, OBJECT, INTERFACE, "Nothing", &error, NULL, ""), "Nothing");
    check(sd_bus_call_method(bus, NULL, OBJECT, INTERFACE, "EchoStruct", &error, &reply, "(is(yad)a{sv})", -7,
                             "Grüße", 3, 2, 0.5, -0.25, 1, "key", "s", "value"),
          "EchoStruct");
    check(sd_bus_message_enter_container(reply, 'r', "is(yad)a{sv}"), "a struct");
    check(sd_bus_message_read(reply, "is", &number, &text), "its beginning");
    wanted(number == -7 && strcmp(text, "Grüße") == 0, "its beginning");
    check(sd_bus_message_enter_container(reply, 'r', "yad"), "a struct in it");
    const void *items;
    size_t size;
    check(sd_bus_message_read(reply, "y", &octet), "an octet");
    check(sd_bus_message_read_array(reply, 'd', &items, &size), "numbers");
    wanted(octet == 3 && size == 16 && ((const double *)items)[1] == -0.25, "numbers");
    check(sd_bus_message_exit_container(reply), "the end of a struct");
    check(sd_bus_message_read(reply, "a{sv}", 1, &key, "s", &value), "a table");
    wanted(strcmp(key, "key") == 0 && strcmp(value, "value") == 0, "a table");
    reply = sd_bus_message_unref(reply);

    check(sd_bus_call_method(bus, NULL, OBJECT, INTERFACE, "Divide", &error, &reply, "ii", 17, 5), "Divide");
    int32_t rest;
    check(sd_bus_message_read(reply, "ii", &number, &rest), "two numbers");
    wanted(number == 3 && rest == 2, "Divide");
    reply = sd_bus_message_unref(reply);
    wanted(sd_bus_call_method(bus, NULL, OBJECT, INTERFACE, "Divide", &error, &reply, "ii", 1, 0) < 0, "an error");
    wanted(strcmp(error.name, ERROR_NAME) == 0 && strlen(error.message) > 0, error.name);
    sd_bus_error_free(&error);
    wanted(sd_bus_call_method(bus, NULL, OBJECT, INTERFACE, "Missing", &error, &reply, "") < 0, "an error");
    wanted(strcmp(error.name, "org.freedesktop.DBus.Error.UnknownMethod") == 0, error.name);
    sd_bus_error_free(&error);

    int pipes[2], handle;
    wanted(pipe(pipes) == 0 && write(pipes[1], "piped", 5) == 5, "a pipe");
    check(sd_bus_call_method(bus, NULL, OBJECT, INTERFACE, "EchoHandles", &error, &reply, "ha(sh)", pipes[0], 1, "a",
                             pipes[0]),
          "EchoHandles");
    check(sd_bus_message_read(reply, "h", &handle), "a handle");
    char heard[8] = "";
    wanted(read(handle, heard, 5) == 5 && strcmp(heard, "piped") == 0, "what was put into the pipe");
    reply = sd_bus_message_unref(reply);

    /* The standard interfaces are the backend's. */
    check(sd_bus_call_method(bus, NULL, OBJECT, "org.freedesktop.DBus.Peer", "Ping", &error, NULL, ""), "Ping");
    check(sd_bus_call_method(bus, NULL, OBJECT, "org.freedesktop.DBus.Introspectable", "Introspect", &error, &reply,
                             ""),
          "Introspect");
    check(sd_bus_message_read(reply, "s", &text), "a description");
    wanted(strstr(text, "EchoDeep") != NULL, "a description");
    reply = sd_bus_message_unref(reply);
    check(sd_bus_set_property(bus, NULL, OBJECT, INTERFACE, "Title", &error, "s", "other"), "a property");
    char *got = NULL;
    check(sd_bus_get_property_string(bus, NULL, OBJECT, INTERFACE, "Title", &error, &got), "a property");
    wanted(strcmp(got, "other") == 0, "a property");

    check(sd_bus_add_match(bus, NULL, "type='signal',interface='" INTERFACE "',member='Tick'", tick, NULL), "a match");
    for (int round = 0; round < 20; round++) {
        int done = 0;
        ticks = 0;
        check(sd_bus_call_method_async(bus, NULL, NULL, OBJECT, INTERFACE, "Fire", fired, &done, "u", 100), "Fire");
        while (!done) {
            int result = sd_bus_process(bus, NULL);
            check(result, "signals");
            if (result == 0)
                check(sd_bus_wait(bus, 20000000), "signals");
        }
    }
    puts("ok sd-bus");
}

/* The answer to what emits signals before it answers. */
static int fired(sd_bus_message *answer, void *data, sd_bus_error *error)
{
    (void)error;
    wanted(!sd_bus_message_is_method_error(answer, NULL), "Fire");
    wanted(ticks == 100, "signals before the answer that was sent behind them");
    *(int *)data = 1;
    return 0;
}

static void tell(const char *path)
{
    char address[256];
    sd_bus *bus = NULL;
    sd_bus_message *reply = NULL;
    uint32_t number = 0;
    snprintf(address, sizeof(address), "unix:path=%s", path);
    check(sd_bus_new(&bus), "new");
    check(sd_bus_set_address(bus, address), "address");
    check(sd_bus_start(bus), "start");
    for (uint32_t at = 0; at < 100; at++)
        check(sd_bus_emit_signal(bus, "/org/example/Caller", INTERFACE ".Caller", "Told", "u", at), "a signal");
    /* A hop may still be on its way to the service. */
    for (int times = 0; times < 10000; times++) {
        check(sd_bus_call_method(bus, NULL, OBJECT, INTERFACE, "Heard", NULL, &reply, ""), "Heard");
        check(sd_bus_message_read(reply, "u", &number), "a number");
        reply = sd_bus_message_unref(reply);
        if (number == 100)
            break;
        usleep(1000);
    }
    if (number != 100)
        fprintf(stderr, "sdbus_peer: %u of 100 signals were heard in order\n", number);
    wanted(number == 100, "all signals in order");
    puts("ok");
}

int main(int count, char **arguments)
{
    wanted(count == 3, "arguments");
    if (strcmp(arguments[1], "serve") == 0)
        serve(arguments[2]);
    else if (strcmp(arguments[1], "tell") == 0)
        tell(arguments[2]);
    else
        call(arguments[2]);
    return 0;
}
