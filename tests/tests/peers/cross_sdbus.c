/* A service on sd-bus that knows of no other system: bench.idl and a part of interop.idl, as `everywire describe --as dbus` prints
 * them.
 *
 *   cross_sdbus ADDRESS NAME     serves on a bus under a name; prints `ready`
 *
 * Objects: /benchmarking, /IRemoteObject, /Sink, /Source, /Kitchen. A reference among the values is text, `dbus:ADDRESS#NAME/PATH`: whom
 * the source calls back is at NAME and PATH on this bus.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>

#define TEXT "Hello, World! 0123456789"
#define SINK "everywire.Sink"
#define SINKS 16

static void check(int result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "cross_sdbus: %s: %s\n", what, strerror(-result));
        exit(1);
    }
}

static int done(sd_bus_message *call)
{
    return sd_bus_message_get_expect_reply(call) ? sd_bus_reply_method_return(call, "") : 1;
}

/* ---- the seven functions, and bytes ---- */

static int nothing(sd_bus_message *call, void *data, sd_bus_error *error)
{
    (void)data, (void)error;
    return done(call);
}

static int answer_int(sd_bus_message *call, void *data, sd_bus_error *error)
{
    (void)data, (void)error;
    return sd_bus_reply_method_return(call, "i", 42);
}

static int add_one(sd_bus_message *call, void *data, sd_bus_error *error)
{
    (void)data, (void)error;
    int32_t v;
    int result = sd_bus_message_read(call, "i", &v);
    return result < 0 ? result : sd_bus_reply_method_return(call, "i", v + 1);
}

static int answer_text(sd_bus_message *call, void *data, sd_bus_error *error)
{
    (void)data, (void)error;
    return sd_bus_reply_method_return(call, "s", TEXT);
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

static int bytes(sd_bus_message *call, void *data, sd_bus_error *error)
{
    (void)data;
    int32_t n;
    void *room;
    sd_bus_message *reply = NULL;
    int result = sd_bus_message_read(call, "i", &n);
    if (result < 0)
        return result;
    if (n < 0)
        return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "fewer than none");
    result = sd_bus_message_new_method_return(call, &reply);
    if (result >= 0)
        result = sd_bus_message_append_array_space(reply, 'y', (size_t)n, &room);
    for (int32_t at = 0; result >= 0 && at < n; at++)
        ((unsigned char *)room)[at] = (unsigned char)at;
    if (result >= 0)
        result = sd_bus_send(NULL, reply, NULL);
    sd_bus_message_unref(reply);
    return result < 0 ? result : 1;
}

static const sd_bus_vtable benchmarking[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("void_call", "", "", nothing, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("in_int_call", "i", "", nothing, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("out_int_call", "", "i", answer_int, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("in_out_int_call", "i", "i", add_one, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("in_string_call", "s", "", nothing, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("out_string_call", "", "s", answer_text, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("in_out_string_call", "s", "s", echo, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

static const sd_bus_vtable remote[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("GetBytes", "i", "ay", bytes, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

static const sd_bus_vtable sink[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("Hello", "", "", nothing, SD_BUS_VTABLE_METHOD_NO_REPLY | SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("HelloSync", "", "", nothing, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

/* ---- callbacks ---- */

static struct {
    uint32_t cookie;
    char *name, *path;
} sinks[SINKS];

static int advise(sd_bus_message *call, void *data, sd_bus_error *error)
{
    (void)data;
    static uint32_t last;
    const char *reference;
    int result = sd_bus_message_read(call, "s", &reference);
    if (result < 0)
        return result;
    const char *name = strrchr(reference, '#');
    const char *path = name ? strchr(name, '/') : NULL;
    for (int at = 0; path && at < SINKS; at++) {
        if (sinks[at].cookie != 0)
            continue;
        sinks[at].cookie = ++last;
        sinks[at].name = strndup(name + 1, (size_t)(path - name - 1));
        sinks[at].path = strndup(path, strcspn(path, "?"));
        return sd_bus_reply_method_return(call, "u", last);
    }
    return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "no sink on this bus, or one too many: %s", reference);
}

static int unadvise(sd_bus_message *call, void *data, sd_bus_error *error)
{
    (void)data;
    uint32_t cookie;
    int result = sd_bus_message_read(call, "u", &cookie);
    for (int at = 0; result >= 0 && at < SINKS; at++) {
        if (cookie == 0 || sinks[at].cookie != cookie)
            continue;
        sinks[at].cookie = 0;
        free(sinks[at].name);
        free(sinks[at].path);
        return done(call);
    }
    return result < 0 ? result : sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "no such cookie");
}

/* A call of `fire`, until every sink has answered: none of this service's objects may wait for another. */
struct fired {
    sd_bus_message *call;
    int left;
};

static int synced(sd_bus_message *answer, void *data, sd_bus_error *error)
{
    (void)error;
    struct fired *fired = data;
    const sd_bus_error *failed = sd_bus_message_get_error(answer);
    int result = 0;
    if (failed && fired->call) {
        result = sd_bus_reply_method_error(fired->call, failed);
        fired->call = sd_bus_message_unref(fired->call);
    }
    if (--fired->left > 0)
        return result;
    if (fired->call)
        result = done(fired->call);
    sd_bus_message_unref(fired->call);
    free(fired);
    return result;
}

static int fire(sd_bus_message *call, void *data, sd_bus_error *error)
{
    (void)data, (void)error;
    sd_bus *bus = sd_bus_message_get_bus(call);
    uint32_t n;
    int result = sd_bus_message_read(call, "u", &n);
    struct fired *fired = calloc(1, sizeof(*fired));
    for (int at = 0; result >= 0 && at < SINKS; at++) {
        if (sinks[at].cookie == 0)
            continue;
        for (uint32_t i = 0; result >= 0 && i < n; i++) {
            sd_bus_message *hello = NULL;
            result = sd_bus_message_new_method_call(bus, &hello, sinks[at].name, sinks[at].path, SINK, "Hello");
            if (result >= 0)
                result = sd_bus_message_set_expect_reply(hello, 0);
            if (result >= 0)
                result = sd_bus_send(bus, hello, NULL);
            sd_bus_message_unref(hello);
        }
        if (result >= 0)
            result = sd_bus_call_method_async(bus, NULL, sinks[at].name, sinks[at].path, SINK, "HelloSync", synced, fired, "");
        if (result >= 0)
            fired->left++;
    }
    check(result, "fire");
    if (fired->left > 0) {
        fired->call = sd_bus_message_ref(call);
        return 1;
    }
    free(fired);
    return done(call);
}

/* Callers name the interface that has an operation, or the one that inherits it. */
static const sd_bus_vtable source[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("Advise", "s", "u", advise, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Unadvise", "u", "", unadvise, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Fire", "u", "", fire, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

/* ---- the kitchen ---- */

static int next_colour(sd_bus_message *call, void *data, sd_bus_error *error)
{
    (void)data, (void)error;
    int32_t v;
    int result = sd_bus_message_read(call, "i", &v);
    return result < 0 ? result : sd_bus_reply_method_return(call, "i", (v + 1) % 3);
}

static int mix(sd_bus_message *call, void *data, sd_bus_error *error)
{
    (void)data, (void)error;
    int32_t a, x, y;
    double b;
    char text[16];
    int result = sd_bus_message_read(call, "id(ii)", &a, &b, &x, &y);
    if (result < 0)
        return result;
    snprintf(text, sizeof(text), "%d", a);
    return sd_bus_reply_method_return(call, "sd(ii)", text, a + b, y, x);
}

/* Exceptions of the contract are errors of these names, whose values are the fields. */
static int judge(sd_bus_message *call, void *data, sd_bus_error *error)
{
    (void)data;
    int32_t code;
    int result = sd_bus_message_read(call, "i", &code);
    if (result < 0)
        return result;
    if (code == 13)
        return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED, "not this one");
    if (code > 0)
        return sd_bus_reply_method_return(call, "i", code + 1);
    sd_bus_error said = SD_BUS_ERROR_MAKE_CONST(code < 0 ? "interop.Refused" : "interop.Empty", NULL);
    sd_bus_message *reply = NULL;
    result = sd_bus_message_new_method_error(call, &reply, &said);
    if (result >= 0 && code < 0)
        result = sd_bus_message_append(reply, "sii", "negative", code, 2);
    if (result >= 0)
        result = sd_bus_send(NULL, reply, NULL);
    sd_bus_message_unref(reply);
    return result < 0 ? result : 1;
}

static int32_t notes;

static int note(sd_bus_message *call, void *data, sd_bus_error *error)
{
    (void)data, (void)error;
    notes++;
    return done(call);
}

static int noted(sd_bus_message *call, void *data, sd_bus_error *error)
{
    (void)data, (void)error;
    return sd_bus_reply_method_return(call, "i", notes);
}

static const sd_bus_vtable kitchen[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("echo_names", "as", "as", echo, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("next_colour", "i", "i", next_colour, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("mix", "id(ii)", "sd(ii)", mix, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("judge", "i", "i", judge, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("note", "s", "", note, SD_BUS_VTABLE_METHOD_NO_REPLY | SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("noted", "", "i", noted, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

int main(int argc, char **argv)
{
    static const struct {
        const char *path, *interface;
        const sd_bus_vtable *table;
    } objects[] = {
        {"/benchmarking", "everywire.benchmarking", benchmarking}, {"/IRemoteObject", "everywire.IRemoteObject", remote},
        {"/Sink", SINK, sink},                                     {"/Source", "everywire.Source", source},
        {"/Source", "everywire.FiringSource", source},             {"/Kitchen", "interop.Kitchen", kitchen},
    };
    if (argc != 3)
        return 2;
    sd_bus *bus = NULL;
    check(sd_bus_new(&bus), "new");
    check(sd_bus_set_address(bus, argv[1]), "address");
    check(sd_bus_set_bus_client(bus, 1), "bus_client");
    check(sd_bus_start(bus), "start");
    for (size_t at = 0; at < sizeof(objects) / sizeof(*objects); at++)
        check(sd_bus_add_object_vtable(bus, NULL, objects[at].path, objects[at].interface, objects[at].table, NULL), objects[at].path);
    check(sd_bus_request_name(bus, argv[2], 0), "name");
    puts("ready");
    fflush(stdout);
    for (;;) {
        int result = sd_bus_process(bus, NULL);
        if (result == 0)
            result = sd_bus_wait(bus, UINT64_MAX);
        check(result, "the bus");
    }
}
