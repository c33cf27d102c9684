/* A program that uses GLib's D-Bus: serves kitchen.dbus.xml, or checks whoever serves it.
 *
 *   glib_peer serve bus ADDRESS NAME CONTRACT     glib_peer serve peer ADDRESS CONTRACT
 *   glib_peer call bus ADDRESS NAME PATH          glib_peer call peer ADDRESS PATH
 *   glib_peer manager ADDRESS NAME PATH           prints the objects, and those that come and go
 *   glib_peer watch ADDRESS NAME                  prints who owns a name, until it has an owner no more
 */
#include <errno.h>
#include <gio/gio.h>
#include <gio/gunixfdlist.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INTERFACE "org.example.Kitchen"
#define PATH "/org/example/Kitchen"
#define ERROR_NAME "org.example.Error.DivisionByZero"
#define TIMEOUT 300000

static GMainLoop *loop;

static void die(const char *what, GError *error)
{
    fprintf(stderr, "glib_peer: %s: %s\n", what, error ? error->message : "?");
    exit(1);
}

static void say(const char *text)
{
    puts(text);
    fflush(stdout);
}

static GDBusConnection *join(const char *address, gboolean bus)
{
    GError *error = NULL;
    GDBusConnectionFlags flags = G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT;
    if (bus)
        flags |= G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION;
    GDBusConnection *connection = g_dbus_connection_new_for_address_sync(address, flags, NULL, NULL, &error);
    if (!connection)
        die("cannot connect", error);
    g_dbus_connection_set_exit_on_close(connection, FALSE);
    return connection;
}

/* ---- serving ---- */

static char *title;
static guint32 changes;
static gint64 silent = -1;
static GVariant *facts;
static GPtrArray *remembered;

static void emit(GDBusConnection *connection, const char *interface, const char *signal, GVariant *body)
{
    GError *error = NULL;
    if (!g_dbus_connection_emit_signal(connection, NULL, PATH, interface, signal, body, &error))
        die(signal, error);
}

static char *read_all(int fd)
{
    GString *text = g_string_new(NULL);
    char piece[4096];
    ssize_t n;
    while ((n = read(fd, piece, sizeof piece)) > 0)
        g_string_append_len(text, piece, n);
    return g_string_free(text, FALSE);
}

static void call(GDBusConnection *connection, const char *sender, const char *path, const char *interface,
                 const char *method, GVariant *arguments, GDBusMethodInvocation *invocation, gpointer data)
{
    (void)sender; (void)path; (void)interface; (void)data;
    GUnixFDList *fds = g_dbus_message_get_unix_fd_list(g_dbus_method_invocation_get_message(invocation));
    if (g_str_has_prefix(method, "Echo")) {
        g_dbus_method_invocation_return_value_with_unix_fd_list(invocation, arguments, fds);
    } else if (g_str_equal(method, "Nothing")) {
        g_dbus_method_invocation_return_value(invocation, NULL);
    } else if (g_str_equal(method, "Divide")) {
        gint32 a, b;
        g_variant_get(arguments, "(ii)", &a, &b);
        if (b == 0)
            g_dbus_method_invocation_return_dbus_error(invocation, ERROR_NAME, "division by zero");
        else
            g_dbus_method_invocation_return_value(invocation, g_variant_new("(ii)", a / b, a % b));
    } else if (g_str_equal(method, "Total")) {
        GVariant *list = g_variant_get_child_value(arguments, 0);
        gsize n, i;
        const gint32 *items = g_variant_get_fixed_array(list, &n, sizeof *items);
        gint64 total = 0;
        for (i = 0; i < n; i++)
            total += items[i];
        g_dbus_method_invocation_return_value(invocation, g_variant_new("(x)", total));
        g_variant_unref(list);
    } else if (g_str_equal(method, "Bytes")) {
        guint32 n, i;
        g_variant_get(arguments, "(u)", &n);
        guint8 *bytes = g_malloc(n ? n : 1);
        for (i = 0; i < n; i++)
            bytes[i] = (guint8)i;
        GVariant *all = g_variant_new_from_data(G_VARIANT_TYPE("ay"), bytes, n, TRUE, g_free, bytes);
        g_dbus_method_invocation_return_value(invocation, g_variant_new_tuple(&all, 1));
    } else if (g_str_equal(method, "Open")) {
        const char *text;
        int ends[2];
        GError *error = NULL;
        g_variant_get(arguments, "(&s)", &text);
        if (pipe(ends) != 0 || write(ends[1], text, strlen(text)) != (ssize_t)strlen(text))
            die("a pipe", NULL);
        close(ends[1]);
        GUnixFDList *list = g_unix_fd_list_new();
        int handle = g_unix_fd_list_append(list, ends[0], &error);
        close(ends[0]);
        g_dbus_method_invocation_return_value_with_unix_fd_list(invocation, g_variant_new("(h)", handle), list);
        g_object_unref(list);
    } else if (g_str_equal(method, "ReadAll")) {
        gint32 first, handle;
        GVariantIter *others;
        GString *text = g_string_new(NULL);
        g_variant_get(arguments, "(hah)", &first, &others);
        int fd = g_unix_fd_list_get(fds, first, NULL);
        char *part = read_all(fd);
        g_string_append(text, part);
        g_free(part);
        close(fd);
        while (g_variant_iter_next(others, "h", &handle)) {
            fd = g_unix_fd_list_get(fds, handle, NULL);
            part = read_all(fd);
            g_string_append(text, part);
            g_free(part);
            close(fd);
        }
        g_dbus_method_invocation_return_value(invocation, g_variant_new("(s)", text->str));
        g_string_free(text, TRUE);
    } else if (g_str_equal(method, "Remember")) {
        char *what;
        g_variant_get(arguments, "(s)", &what);
        g_ptr_array_add(remembered, what);
        g_dbus_method_invocation_return_value(invocation, NULL);
    } else if (g_str_equal(method, "Remembered")) {
        GVariant *list = g_variant_new_strv((const char *const *)remembered->pdata, remembered->len);
        g_dbus_method_invocation_return_value(invocation, g_variant_new_tuple(&list, 1));
    } else if (g_str_equal(method, "Fire")) {
        guint32 n, i;
        g_variant_get(arguments, "(u)", &n);
        for (i = 0; i < n; i++) {
            char *text = g_strdup_printf("tick %u", i);
            emit(connection, INTERFACE, "Tick", g_variant_new("(us)", i, text));
            g_free(text);
        }
        g_dbus_method_invocation_return_value(invocation, NULL);
    } else if (g_str_equal(method, "FireRich")) {
        emit(connection, INTERFACE, "Rich", arguments);
        g_dbus_method_invocation_return_value(invocation, NULL);
    } else {
        g_dbus_method_invocation_return_dbus_error(invocation, "org.freedesktop.DBus.Error.UnknownMethod", method);
    }
}

static GVariant *get(GDBusConnection *connection, const char *sender, const char *path, const char *interface,
                     const char *property, GError **error, gpointer data)
{
    (void)connection; (void)sender; (void)path; (void)interface; (void)error; (void)data;
    if (g_str_equal(property, "Title"))
        return g_variant_new_string(title);
    if (g_str_equal(property, "Changes"))
        return g_variant_new_uint32(changes);
    if (g_str_equal(property, "Fixed"))
        return g_variant_new("(su)", "fixed", 7);
    if (g_str_equal(property, "Silent"))
        return g_variant_new_int64(silent);
    return g_variant_ref(facts);
}

static gboolean set(GDBusConnection *connection, const char *sender, const char *path, const char *interface,
                    const char *property, GVariant *value, GError **error, gpointer data)
{
    (void)sender; (void)path; (void)interface; (void)error; (void)data;
    GVariantBuilder changed, invalidated;
    g_variant_builder_init(&changed, G_VARIANT_TYPE("a{sv}"));
    g_variant_builder_init(&invalidated, G_VARIANT_TYPE("as"));
    if (g_str_equal(property, "Title")) {
        g_free(title);
        title = g_variant_dup_string(value, NULL);
        changes++;
        g_variant_builder_add(&invalidated, "s", "Changes");
    } else if (g_str_equal(property, "Silent")) {
        silent = g_variant_get_int64(value);
        return TRUE;
    } else {
        g_variant_unref(facts);
        facts = g_variant_ref(value);
    }
    g_variant_builder_add(&changed, "{sv}", property, value);
    emit(connection, "org.freedesktop.DBus.Properties", "PropertiesChanged",
         g_variant_new("(sa{sv}as)", INTERFACE, &changed, &invalidated));
    return TRUE;
}

static GDBusNodeInfo *contract;

static void offer(GDBusConnection *connection)
{
    static const GDBusInterfaceVTable table = { call, get, set, { 0 } };
    GError *error = NULL;
    GDBusInterfaceInfo *info = g_dbus_node_info_lookup_interface(contract, INTERFACE);
    if (!g_dbus_connection_register_object(connection, PATH, info, &table, NULL, NULL, &error))
        die("cannot register the object", error);
}

static void owned(GDBusConnection *connection, const char *name, gpointer data)
{
    (void)connection; (void)name; (void)data;
    say("ready");
}

static void unowned(GDBusConnection *connection, const char *name, gpointer data)
{
    (void)connection; (void)data;
    fprintf(stderr, "glib_peer: %s is lost\n", name);
    exit(1);
}

static gboolean arrived(GDBusServer *server, GDBusConnection *connection, gpointer data)
{
    (void)server; (void)data;
    offer(g_object_ref(connection));
    return TRUE;
}

static void serve(int argc, char **argv)
{
    gboolean bus = g_str_equal(argv[2], "bus");
    const char *file = argv[argc - 1];
    GError *error = NULL;
    char *xml;
    if (!g_file_get_contents(file, &xml, NULL, &error))
        die(file, error);
    contract = g_dbus_node_info_new_for_xml(xml, &error);
    if (!contract)
        die(file, error);
    title = g_strdup("kitchen");
    facts = g_variant_ref_sink(g_variant_new_parsed("{'answer': <42>}"));
    remembered = g_ptr_array_new();
    if (bus) {
        GDBusConnection *connection = join(argv[3], TRUE);
        offer(connection);
        g_bus_own_name_on_connection(connection, argv[4], G_BUS_NAME_OWNER_FLAGS_NONE, owned, unowned, NULL, NULL);
    } else {
        char *guid = g_dbus_generate_guid();
        GDBusServer *server = g_dbus_server_new_sync(argv[3], G_DBUS_SERVER_FLAGS_NONE, guid, NULL, NULL, &error);
        if (!server)
            die("cannot listen", error);
        g_signal_connect(server, "new-connection", G_CALLBACK(arrived), NULL);
        g_dbus_server_start(server);
        say("ready");
    }
    g_main_loop_run(loop);
}

/* ---- calling ---- */

static GDBusConnection *peer;
static const char *peer_name, *peer_path;
static int checks;

static void check(gboolean right, const char *what)
{
    checks++;
    if (!right)
        die(what, NULL);
}

static GVariant *ask_with(const char *interface, const char *method, GVariant *arguments, GUnixFDList *fds,
                          GUnixFDList **out, GError **error)
{
    return g_dbus_connection_call_with_unix_fd_list_sync(peer, peer_name, peer_path, interface, method, arguments, NULL,
                                                         G_DBUS_CALL_FLAGS_NONE, TIMEOUT, fds, out, NULL, error);
}

static GVariant *ask(const char *method, GVariant *arguments)
{
    GError *error = NULL;
    GVariant *answer = ask_with(INTERFACE, method, arguments, NULL, NULL, &error);
    if (!answer)
        die(method, error);
    return answer;
}

/* What the method answers to these arguments, as text. */
static void expect(const char *method, const char *arguments, const char *expected)
{
    GError *error = NULL;
    GVariant *given = g_variant_parse(NULL, arguments, NULL, NULL, &error);
    if (!given)
        die(arguments, error);
    GVariant *answer = ask(method, given);
    GVariant *wanted = g_variant_parse(g_variant_get_type(answer), expected, NULL, NULL, &error);
    if (!wanted)
        die(expected, error);
    if (!g_variant_equal(answer, wanted)) {
        fprintf(stderr, "glib_peer: %s answers %s, not %s\n", method, g_variant_print(answer, TRUE), expected);
        exit(1);
    }
    checks++;
    g_variant_unref(answer);
    g_variant_unref(wanted);
}

static void echo(const char *method, const char *arguments)
{
    expect(method, arguments, arguments);
}

/* Libraries differ in some names: `names` are joined by `|`. */
static void expect_error(const char *interface, const char *method, GVariant *arguments, const char *names)
{
    GError *error = NULL;
    GVariant *answer = ask_with(interface, method, arguments, NULL, NULL, &error);
    check(answer == NULL, method);
    char *remote = g_dbus_error_get_remote_error(error);
    char **right = g_strsplit(names, "|", 0);
    if (!remote || !g_strv_contains((const char *const *)right, remote)) {
        fprintf(stderr, "glib_peer: %s fails with %s (%s), not %s\n", method, remote, error->message, names);
        exit(1);
    }
    checks++;
    g_strfreev(right);
    g_free(remote);
    g_error_free(error);
}

static GVariant *heard[64];
static int heard_count, heard_wanted;

static void hear(GDBusConnection *connection, const char *sender, const char *path, const char *interface,
                 const char *signal, GVariant *body, gpointer data)
{
    (void)connection; (void)sender; (void)interface; (void)signal; (void)data;
    check(g_str_equal(path, peer_path), "the path of a signal");
    if (heard_count < 64)
        heard[heard_count++] = g_variant_ref(body);
    if (heard_count == heard_wanted)
        g_main_loop_quit(loop);
}

static gboolean too_late(gpointer data)
{
    (void)data;
    fprintf(stderr, "glib_peer: %d signals came, not %d\n", heard_count, heard_wanted);
    exit(1);
}

static void wait_for(int signals)
{
    heard_wanted = signals;
    if (heard_count < signals) {
        guint timer = g_timeout_add(TIMEOUT, too_late, NULL);
        g_main_loop_run(loop);
        g_source_remove(timer);
    }
    check(heard_count == signals, "the number of signals");
    heard_count = 0;
}

static guint listen_to(const char *interface, const char *signal)
{
    guint id = g_dbus_connection_signal_subscribe(peer, peer_name, interface, signal, peer_path, NULL,
                                                  G_DBUS_SIGNAL_FLAGS_NONE, hear, NULL, NULL);
    /* A bus has the rule when it has answered something behind it. */
    g_variant_unref(ask("Nothing", NULL));
    return id;
}

static void check_values(void)
{
    g_variant_unref(ask("Nothing", NULL));
    echo("EchoBasics", "(byte 0x00, false, int16 -32768, uint16 0, -2147483648, uint32 0, int64 -9223372036854775808, "
                       "uint64 0, 0.0, '', objectpath '/', signature '')");
    echo("EchoBasics", "(byte 0xff, true, int16 32767, uint16 65535, 2147483647, uint32 4294967295, "
                       "int64 9223372036854775807, uint64 18446744073709551615, 1.7976931348623157e308, "
                       "'Gr\303\274\303\237e, \342\202\254 \360\237\230\200', objectpath '/a/b_c/D9', "
                       "signature 'a{s(ias)}v')");
    echo("EchoBytes", "(@ay [],)");
    echo("EchoBytes", "([byte 0x01, 0x02, 0xff],)");
    echo("EchoTexts", "(@as [], @ao [])");
    echo("EchoTexts", "(['', 'a', 'bc', 'def', 'ghij'], [objectpath '/', '/x'])");
    echo("EchoNumbers", "([true, false, true], [int16 1, -2, 3], [int64 -1, 2], [0.5, -0.25])");
    echo("EchoNumbers", "(@ab [], @an [], @ax [], @ad [])");
    echo("EchoStruct", "((1, 'two', (byte 0x03, [4.0, 5.5]), {'k': <'v'>, 'n': <[1, 2]>}),)");
    echo("EchoStruct", "((-1, '', (byte 0x00, @ad []), @a{sv} {}),)");
    echo("EchoDicts", "(@a{ys} {}, @a{oas} {}, @a{sa{sv}} {})");
    echo("EchoDicts", "({byte 0x01: 'one', 0xfe: 'two'}, {objectpath '/a': ['x', 'y'], '/b': []}, "
                      "{'in': {'deep': <{'er': <(1, 's', [byte 0x05])>}>}, 'out': @a{sv} {}})");
    const char *variants[] = { "byte 0x07", "true", "int16 -1", "uint16 1", "-1", "uint32 1", "int64 -1", "uint64 1",
                               "2.5", "'text'", "objectpath '/p'", "signature 'ai'", "@ay []", "@a{sv} {}",
                               "(1, (2, ('x',)))", "<<<'deep'>>>", "[(1, 'a'), (2, 'b')]",
                               "{uint64 5: [{'x': <1.5>}]}", "[<1>, <'two'>]" };
    for (gsize i = 0; i < G_N_ELEMENTS(variants); i++) {
        char *text = g_strdup_printf("(<%s>,)", variants[i]);
        echo("EchoVariant", text);
        g_free(text);
    }
    echo("EchoVariants", "([<1>, <'two'>, <[3.0]>, <{'four': <(uint64 5,)>}>],)");
    echo("EchoDeep", "([[[[([byte 0x01, 0x02], {uint64 3: (4, [('x', <5.5>), ('y', <'z'>)]), 9: (1, @a(sv) [])})], "
                     "@a(aya{t(ia(sv))}) []]], @aaa(aya{t(ia(sv))}) []],)");
    expect("Divide", "(17, 5)", "(3, 2)");
    expect("Divide", "(-17, 5)", "(-3, -2)");
    expect("Total", "([1, -2, 2147483647, 2147483647],)", "(int64 4294967293,)");
    expect_error(INTERFACE, "Divide", g_variant_new("(ii)", 1, 0), ERROR_NAME);
    expect_error(INTERFACE, "NoSuchMethod", NULL, "org.freedesktop.DBus.Error.UnknownMethod");
    expect_error("org.example.NoSuchInterface", "Nothing", NULL, "org.freedesktop.DBus.Error.UnknownInterface|org.freedesktop.DBus.Error.UnknownMethod");
    expect_error(INTERFACE, "Divide", g_variant_new("(s)", "x"), "org.freedesktop.DBus.Error.InvalidArgs");
}

static void check_large(guint32 n)
{
    GVariant *answer = ask("Bytes", g_variant_new("(u)", n)), *bytes = g_variant_get_child_value(answer, 0);
    gsize length, i;
    const guint8 *data = g_variant_get_fixed_array(bytes, &length, 1);
    check(length == n, "the length of bytes");
    for (i = 0; i < length; i++)
        if (data[i] != (guint8)i)
            die("the content of bytes", NULL);
    GVariant *given = g_variant_new_fixed_array(G_VARIANT_TYPE_BYTE, data, length, 1);
    GVariant *back = ask("EchoBytes", g_variant_new_tuple(&given, 1));
    check(g_variant_equal(back, answer), "bytes there and back");
    g_variant_unref(back);
    g_variant_unref(bytes);
    g_variant_unref(answer);
}

static int pipe_with(const char *text)
{
    int ends[2];
    if (pipe(ends) != 0 || write(ends[1], text, strlen(text)) != (ssize_t)strlen(text))
        die("a pipe", NULL);
    close(ends[1]);
    return ends[0];
}

static void check_handles(void)
{
    GError *error = NULL;
    GUnixFDList *out = NULL;
    GVariant *answer = ask_with(INTERFACE, "Open", g_variant_new("(s)", "by a pipe"), NULL, &out, &error);
    if (!answer)
        die("Open", error);
    gint32 handle;
    g_variant_get(answer, "(h)", &handle);
    int fd = g_unix_fd_list_get(out, handle, &error);
    char *text = read_all(fd);
    check(g_str_equal(text, "by a pipe"), "what a pipe has");
    close(fd);
    g_free(text);
    g_object_unref(out);

    GUnixFDList *fds = g_unix_fd_list_new();
    const char *texts[] = { "one ", "two ", "three" };
    GVariantBuilder others;
    g_variant_builder_init(&others, G_VARIANT_TYPE("ah"));
    for (int i = 0; i < 3; i++) {
        fd = pipe_with(texts[i]);
        g_unix_fd_list_append(fds, fd, &error);
        close(fd);
    }
    /* Indices need not come in order. */
    g_variant_builder_add(&others, "h", 1);
    g_variant_builder_add(&others, "h", 0);
    answer = ask_with(INTERFACE, "ReadAll", g_variant_new("(hah)", 2, &others), fds, NULL, &error);
    if (!answer)
        die("ReadAll", error);
    const char *all;
    g_variant_get(answer, "(&s)", &all);
    check(g_str_equal(all, "threetwo one "), "what several pipes have");
    g_variant_unref(answer);
    g_object_unref(fds);

    fds = g_unix_fd_list_new();
    fd = pipe_with("echo");
    g_unix_fd_list_append(fds, fd, &error);
    close(fd);
    answer = ask_with(INTERFACE, "EchoHandles", g_variant_new_parsed("(handle 0, [('a', handle 0)])"), fds, &out, &error);
    if (!answer)
        die("EchoHandles", error);
    GVariant *first = g_variant_get_child_value(answer, 0);
    fd = g_unix_fd_list_get(out, g_variant_get_handle(first), &error);
    text = read_all(fd);
    check(g_str_equal(text, "echo"), "a descriptor there and back");
    close(fd);
}

static GVariant *property(const char *name)
{
    GError *error = NULL;
    GVariant *answer = ask_with("org.freedesktop.DBus.Properties", "Get", g_variant_new("(ss)", INTERFACE, name), NULL,
                                NULL, &error);
    if (!answer)
        die(name, error);
    GVariant *value;
    g_variant_get(answer, "(v)", &value);
    g_variant_unref(answer);
    return value;
}

static void set_property(const char *name, GVariant *value)
{
    GError *error = NULL;
    if (!ask_with("org.freedesktop.DBus.Properties", "Set", g_variant_new("(ssv)", INTERFACE, name, value), NULL, NULL,
                  &error))
        die(name, error);
}

static void check_properties(void)
{
    const char *properties = "org.freedesktop.DBus.Properties";
    guint id = listen_to(properties, "PropertiesChanged");
    GVariant *value = property("Changes");
    guint32 before = g_variant_get_uint32(value);
    set_property("Title", g_variant_new_string("Küche"));
    value = property("Title");
    check(g_str_equal(g_variant_get_string(value, NULL), "Küche"), "a title");
    check(g_variant_get_uint32(property("Changes")) == before + 1, "a number of changes");
    check(g_variant_equal(property("Fixed"), g_variant_new_parsed("('fixed', uint32 7)")), "a constant");
    set_property("Silent", g_variant_new_int64(-5));
    check(g_variant_get_int64(property("Silent")) == -5, "a silent property");
    set_property("Facts", g_variant_new_parsed("{'a': <1>, 'b': <{'c': <'d'>}>}"));
    check(g_variant_equal(property("Facts"), g_variant_new_parsed("{'a': <1>, 'b': <{'c': <'d'>}>}")), "facts");
    expect_error(properties, "Set", g_variant_new("(ssv)", INTERFACE, "Changes", g_variant_new_uint32(1)),
                 "org.freedesktop.DBus.Error.PropertyReadOnly|org.freedesktop.DBus.Error.InvalidArgs");
    GError *error = NULL;
    GVariant *all = ask_with(properties, "GetAll", g_variant_new("(s)", INTERFACE), NULL, NULL, &error);
    if (!all)
        die("GetAll", error);
    GVariant *dict = g_variant_get_child_value(all, 0);
    check(g_variant_n_children(dict) == 5, "the number of properties");
    /* Title (new value), Changes (name only), Facts; servers may put the first two into one signal. */
    gboolean title_seen = FALSE, changes_seen = FALSE, facts_seen = FALSE;
    gint64 end = g_get_monotonic_time() + TIMEOUT * 1000LL;
    while (!(title_seen && changes_seen && facts_seen)) {
        for (int i = 0; i < heard_count; i++) {
            const char *of;
            GVariant *changed, *invalidated, *one;
            g_variant_get(heard[i], "(&s@a{sv}@as)", &of, &changed, &invalidated);
            check(g_str_equal(of, INTERFACE), "whose property changed");
            one = g_variant_lookup_value(changed, "Title", NULL);
            title_seen |= one && g_str_equal(g_variant_get_string(one, NULL), "Küche");
            check(!g_variant_lookup_value(changed, "Silent", NULL), "a silent property changed loudly");
            one = g_variant_lookup_value(changed, "Facts", NULL);
            facts_seen |= one != NULL;
            const char **names = g_variant_get_strv(invalidated, NULL);
            changes_seen |= g_strv_contains(names, "Changes");
        }
        heard_count = 0;
        if (g_get_monotonic_time() > end)
            die("changes of properties", NULL);
        g_main_context_iteration(NULL, FALSE);
        g_usleep(1000);
    }
    checks++;
    g_dbus_connection_signal_unsubscribe(peer, id);
}

static void check_signals(void)
{
    guint id = listen_to(INTERFACE, "Tick");
    g_variant_unref(ask("Fire", g_variant_new("(u)", 50)));
    wait_for(50);
    for (guint i = 0; i < 50; i++) {
        char *text = g_strdup_printf("(uint32 %u, 'tick %u')", i, i);
        check(g_variant_equal(heard[i], g_variant_new_parsed(text)), text);
        g_free(text);
    }
    g_dbus_connection_signal_unsubscribe(peer, id);
    id = listen_to(INTERFACE, NULL);
    const char *rich = "({'a': <1>, 'b': <[<'x'>]>}, (7, 'seven'), [objectpath '/a', '/b'], <('any', 2.5)>)";
    g_variant_unref(ask("FireRich", g_variant_new_parsed(rich)));
    wait_for(1);
    check(g_variant_equal(heard[0], g_variant_new_parsed(rich)), rich);
    g_dbus_connection_signal_unsubscribe(peer, id);
}

static void check_standard(void)
{
    GError *error = NULL;
    GVariant *answer = ask_with("org.freedesktop.DBus.Peer", "Ping", NULL, NULL, NULL, &error);
    if (!answer)
        die("Ping", error);
    answer = ask_with("org.freedesktop.DBus.Peer", "GetMachineId", NULL, NULL, NULL, &error);
    if (!answer)
        die("GetMachineId", error);
    answer = ask_with("org.freedesktop.DBus.Introspectable", "Introspect", NULL, NULL, NULL, &error);
    if (!answer)
        die("Introspect", error);
    const char *xml;
    g_variant_get(answer, "(&s)", &xml);
    GDBusNodeInfo *node = g_dbus_node_info_new_for_xml(xml, &error);
    if (!node)
        die("introspection data", error);
    GDBusInterfaceInfo *info = g_dbus_node_info_lookup_interface(node, INTERFACE);
    check(info != NULL, "introspection data has the interface");
    GDBusMethodInfo *deep = g_dbus_interface_info_lookup_method(info, "EchoDeep");
    check(deep && deep->in_args[0] && g_str_equal(deep->in_args[0]->signature, "aaaa(aya{t(ia(sv))})"), "a signature");
    GDBusPropertyInfo *title = g_dbus_interface_info_lookup_property(info, "Title");
    check(title && title->flags == (G_DBUS_PROPERTY_INFO_FLAGS_READABLE | G_DBUS_PROPERTY_INFO_FLAGS_WRITABLE), "Title");
    check(g_dbus_interface_info_lookup_signal(info, "Rich") != NULL, "introspection data has the signal");
}

static void check_all(int argc, char **argv)
{
    gboolean bus = g_str_equal(argv[2], "bus");
    peer = join(argv[3], bus);
    peer_name = bus ? argv[4] : NULL;
    peer_path = argv[argc - 1];
    check_values();
    check_large(1000000);
    check_large(8 << 20);
    check_handles();
    check_properties();
    check_signals();
    check_standard();
    g_variant_unref(ask("Nothing", NULL));
    g_dbus_connection_call(peer, peer_name, peer_path, INTERFACE, "Remember", g_variant_new("(s)", "glib"), NULL,
                           G_DBUS_CALL_FLAGS_NONE, TIMEOUT, NULL, NULL, NULL);
    GVariant *answer = ask("Remembered", NULL);
    const char **all;
    g_variant_get(answer, "(^a&s)", &all);
    check(g_strv_contains(all, "glib"), "what was remembered");
    printf("ok %d\n", checks);
}

/* ---- watching ---- */

static void print_object(const char *word, GDBusObject *object)
{
    GList *interfaces = g_dbus_object_get_interfaces(object), *item;
    GString *names = g_string_new(NULL);
    for (item = interfaces; item; item = item->next) {
        GDBusProxy *proxy = G_DBUS_PROXY(item->data);
        GVariant *value = g_dbus_proxy_get_cached_property(proxy, "Title");
        char *text = value ? g_variant_print(value, FALSE) : g_strdup("-");
        g_string_append_printf(names, " %s=%s", g_dbus_proxy_get_interface_name(proxy), text);
        g_free(text);
    }
    printf("%s %s%s\n", word, g_dbus_object_get_object_path(object), names->str);
    fflush(stdout);
    g_list_free_full(interfaces, g_object_unref);
    g_string_free(names, TRUE);
}

static void added(GDBusObjectManager *manager, GDBusObject *object, gpointer data)
{
    (void)manager; (void)data;
    print_object("added", object);
}

static void removed(GDBusObjectManager *manager, GDBusObject *object, gpointer data)
{
    (void)manager; (void)data;
    print_object("removed", object);
}

static void manage(char **argv)
{
    GError *error = NULL;
    GDBusConnection *connection = join(argv[2], TRUE);
    GDBusObjectManager *manager = g_dbus_object_manager_client_new_sync(
        connection, G_DBUS_OBJECT_MANAGER_CLIENT_FLAGS_DO_NOT_AUTO_START, argv[3], argv[4], NULL, NULL, NULL, NULL, &error);
    if (!manager)
        die("no object manager", error);
    GList *objects = g_dbus_object_manager_get_objects(manager), *item;
    for (item = objects; item; item = item->next)
        print_object("object", item->data);
    g_signal_connect(manager, "object-added", G_CALLBACK(added), NULL);
    g_signal_connect(manager, "object-removed", G_CALLBACK(removed), NULL);
    say("ready");
    g_main_loop_run(loop);
}

static gboolean appeared_before;

static void appeared(GDBusConnection *connection, const char *name, const char *owner, gpointer data)
{
    (void)connection; (void)data;
    printf("appeared %s %s\n", name, owner);
    fflush(stdout);
    appeared_before = TRUE;
}

static void vanished(GDBusConnection *connection, const char *name, gpointer data)
{
    (void)connection; (void)data;
    printf("vanished %s\n", name);
    fflush(stdout);
    if (appeared_before)
        exit(0);
}

static void watch(char **argv)
{
    GDBusConnection *connection = join(argv[2], TRUE);
    g_bus_watch_name_on_connection(connection, argv[3], G_BUS_NAME_WATCHER_FLAGS_NONE, appeared, vanished, NULL, NULL);
    g_main_loop_run(loop);
}

int main(int argc, char **argv)
{
    loop = g_main_loop_new(NULL, FALSE);
    if (argc >= 5 && g_str_equal(argv[1], "serve"))
        serve(argc, argv);
    else if (argc >= 5 && g_str_equal(argv[1], "call"))
        check_all(argc, argv);
    else if (argc == 5 && g_str_equal(argv[1], "manager"))
        manage(argv);
    else if (argc == 4 && g_str_equal(argv[1], "watch"))
        watch(argv);
    else
        return 2;
    return 0;
}
