/* A client of GLib's D-Bus: `endings_gdbus ADDRESS`, or `endings_gdbus ADDRESS#NAME` for who has that name on a bus. Reads `call NUMBER SLOT` and `large NUMBER SLOT`, makes each call in a thread of its
 * own, and prints what it was told: `NUMBER WORD TEXT` (see tests/tests/endings/callers.rs). Two slots share a connection; GLib never
 * connects anew by itself, so this program does, before a call whose connection is closed. */
#include <gio/gio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *address, *name;
static GMutex locks[16], out;
static GDBusConnection *connections[16];

struct Call { long number; int slot; gboolean large; };

static void tell(long number, const char *word, const char *text)
{
    g_mutex_lock(&out);
    printf("%ld %s %s\n", number, word, text);
    fflush(stdout);
    g_mutex_unlock(&out);
}

static gpointer make(gpointer data)
{
    struct Call *call = data;
    GError *error = NULL;
    int at = call->slot / 2;
    g_mutex_lock(&locks[at]);
    if (connections[at] && g_dbus_connection_is_closed(connections[at]))
        g_clear_object(&connections[at]);
    if (!connections[at])
        connections[at] = g_dbus_connection_new_for_address_sync(
            address,
            G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT | (name ? G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION : 0),
            NULL, NULL, &error);
    GDBusConnection *connection = connections[at] ? g_object_ref(connections[at]) : NULL;
    g_mutex_unlock(&locks[at]);
    if (!connection) {
        /* The call was never sent. */
        tell(call->number, "no", error->message);
        return NULL;
    }
    g_dbus_connection_set_exit_on_close(connection, FALSE);
    GDBusMessage *message = g_dbus_message_new_method_call(name, "/counter", "test.Counter", call->large ? "large" : "count");
    if (call->large) {
        guint8 *octets = g_malloc0(100 << 10);
        GVariant *array = g_variant_new_fixed_array(G_VARIANT_TYPE_BYTE, octets, 100 << 10, 1);
        g_dbus_message_set_body(message, g_variant_new_tuple(&array, 1));
        g_free(octets);
    } else {
        g_dbus_message_set_body(message, g_variant_new("(i)", (gint32)call->number));
    }
    GDBusMessage *reply = g_dbus_connection_send_message_with_reply_sync(
        connection, message, G_DBUS_SEND_MESSAGE_FLAGS_NONE, G_MAXINT, NULL, NULL, &error);
    /* Neither an error of D-Bus nor a closed connection says whether the call was executed; but where nobody has the name, the bus itself
     * says so, and has given the message to nobody. */
    if (!reply || g_dbus_message_to_gerror(reply, &error)) {
        gboolean nobody = name && reply && !g_strcmp0(g_dbus_message_get_sender(reply), "org.freedesktop.DBus") &&
                          !g_strcmp0(g_dbus_message_get_error_name(reply), "org.freedesktop.DBus.Error.ServiceUnknown");
        tell(call->number, nobody ? "no" : "maybe", error->message);
    } else {
        gint32 sum = 0;
        g_variant_get(g_dbus_message_get_body(reply), "(i)", &sum);
        tell(call->number, sum == call->number + 1 ? "answered" : "no", "");
    }
    return NULL;
}

int main(int argc, char **argv)
{
    char word[16];
    long number;
    int slot;
    if (argc != 2)
        return 2;
    char **place = g_strsplit(argv[1], "#", 2);
    address = place[0];
    name = place[1];
    while (scanf("%15s %ld %d", word, &number, &slot) == 3) {
        struct Call *call = g_new0(struct Call, 1);
        call->number = number;
        call->slot = slot;
        call->large = !strcmp(word, "large");
        g_thread_unref(g_thread_new("call", make, call));
    }
    return 0;
}
