// GDBus serving bench.dbus.xml.
#include "bench.h"

#include <gio/gio.h>

namespace {

const char* const kIntrospection = R"(<node><interface name="benchmarking.dbus.interface">
  <method name="void_call"/>
  <method name="in_int_call"><arg type="i" direction="in"/></method>
  <method name="out_int_call"><arg type="i" direction="out"/></method>
  <method name="in_out_int_call"><arg type="i" direction="in"/><arg type="i" direction="out"/></method>
  <method name="in_string_call"><arg type="s" direction="in"/></method>
  <method name="out_string_call"><arg type="s" direction="out"/></method>
  <method name="in_out_string_call"><arg type="s" direction="in"/><arg type="s" direction="out"/></method>
  <method name="get_bytes"><arg type="i" direction="in"/><arg type="ay" direction="out"/></method>
  <method name="fire"><arg type="u" direction="in"/></method>
  <signal name="Hello"><arg type="u"/></signal>
</interface></node>)";

void bytes(GVariant* arguments, GDBusMethodInvocation* call) {
  gint32 n = 0;
  g_variant_get(arguments, "(i)", &n);
  if (n < 0 || std::size_t(n) > kLargest) {
    g_dbus_method_invocation_return_dbus_error(call, "org.freedesktop.DBus.Error.InvalidArgs", "no such number of bytes");
    return;
  }
  GVariant* all = g_variant_new_from_data(G_VARIANT_TYPE_BYTESTRING, payload().data(), gsize(n), TRUE, nullptr, nullptr);
  g_dbus_method_invocation_return_value(call, g_variant_new_tuple(&all, 1));
}

void called(GDBusConnection* connection, const gchar*, const gchar*, const gchar*, const gchar* method, GVariant* arguments,
            GDBusMethodInvocation* call, gpointer) {
  const auto is = [&](const char* name) { return std::strcmp(method, name) == 0; };
  gint32 v = 0;
  const gchar* s = nullptr;
  if (is("get_bytes")) return bytes(arguments, call);
  GVariant* results = nullptr;
  if (is("in_int_call")) {
    g_variant_get(arguments, "(i)", &v);
  } else if (is("out_int_call")) {
    results = g_variant_new("(i)", 42);
  } else if (is("in_out_int_call")) {
    g_variant_get(arguments, "(i)", &v);
    results = g_variant_new("(i)", v + 1);
  } else if (is("in_string_call")) {
    g_variant_get(arguments, "(&s)", &s);
  } else if (is("out_string_call")) {
    results = g_variant_new("(s)", kText);
  } else if (is("in_out_string_call")) {
    g_variant_get(arguments, "(&s)", &s);
    results = g_variant_new("(s)", s);
  } else if (is("fire")) {
    guint32 n = 0;
    g_variant_get(arguments, "(u)", &n);
    for (guint32 i = 0; i < n; ++i) g_dbus_connection_emit_signal(connection, nullptr, kPath, kInterface, "Hello", g_variant_new("(u)", i), nullptr);
  }
  g_dbus_method_invocation_return_value(call, results);
}

void held(GError* error) {
  if (error != nullptr) throw std::runtime_error(error->message);
}

void offer(GDBusConnection* connection) {
  static const GDBusInterfaceVTable table = {called, nullptr, nullptr, {nullptr}};
  static GDBusNodeInfo* node = g_dbus_node_info_new_for_xml(kIntrospection, nullptr);
  GError* error = nullptr;
  g_dbus_connection_register_object(connection, kPath, node->interfaces[0], &table, nullptr, nullptr, &error);
  held(error);
}

gboolean accepted(GDBusServer*, GDBusConnection* connection, gpointer) {
  g_object_ref(connection);
  offer(connection);
  g_signal_connect(connection, "closed", G_CALLBACK(+[](GDBusConnection* gone, gboolean, GError*, gpointer) { g_object_unref(gone); }), nullptr);
  return TRUE;
}

void serve(const Stand& stand) {
  GMainLoop* loop = g_main_loop_new(nullptr, FALSE);
  GError* error = nullptr;
  if (!stand.bus.empty()) {
    const auto flags = GDBusConnectionFlags(unsigned(G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT) | unsigned(G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION));
    GDBusConnection* connection = g_dbus_connection_new_for_address_sync(stand.bus.c_str(), flags, nullptr, nullptr, &error);
    held(error);
    offer(connection);
    GVariant* reply = g_dbus_connection_call_sync(connection, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "RequestName",
                                                  g_variant_new("(su)", kName, 0u), nullptr, G_DBUS_CALL_FLAGS_NONE, -1, nullptr, &error);
    held(error);
    g_variant_unref(reply);
  } else {
    gchar* guid = g_dbus_generate_guid();
    GDBusServer* server = g_dbus_server_new_sync(("unix:path=" + stand.listen).c_str(), G_DBUS_SERVER_FLAGS_NONE, guid, nullptr, nullptr, &error);
    g_free(guid);
    held(error);
    g_signal_connect(server, "new-connection", G_CALLBACK(accepted), nullptr);
    g_dbus_server_start(server);
  }
  ready(stand);
  g_main_loop_run(loop);
}

}  // namespace

int main(int argc, char** argv) { return server_main(argc, argv, serve); }
