// GDBus calling bench.dbus.xml.
#include "bench.h"

#include <gio/gio.h>

namespace {

class Client {
public:
  explicit Client(Place place) : place_(std::move(place)) {
    auto flags = unsigned(G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT);
    if (!place_.name.empty()) flags |= G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION;
    GError* error = nullptr;
    connection_ = g_dbus_connection_new_for_address_sync(place_.address.c_str(), GDBusConnectionFlags(flags), nullptr, nullptr, &error);
    held(error);
  }

  void void_call() { done(call("void_call", nullptr, nullptr)); }
  void in_int_call(gint32 v) { done(call("in_int_call", g_variant_new("(i)", v), nullptr)); }
  gint32 out_int_call() { return number(call("out_int_call", nullptr, "(i)")); }
  gint32 in_out_int_call(gint32 v) { return number(call("in_out_int_call", g_variant_new("(i)", v), "(i)")); }
  void in_string_call(const char* v) { done(call("in_string_call", g_variant_new("(s)", v), nullptr)); }
  std::string out_string_call() { return text(call("out_string_call", nullptr, "(s)")); }
  std::string in_out_string_call(const char* v) { return text(call("in_out_string_call", g_variant_new("(s)", v), "(s)")); }

  std::size_t get_bytes(gint32 n) {
    GVariant* reply = call("get_bytes", g_variant_new("(i)", n), "(ay)");
    GVariant* bytes = g_variant_get_child_value(reply, 0);
    gsize size = 0;
    g_variant_get_fixed_array(bytes, &size, 1);
    g_variant_unref(bytes);
    done(reply);
    return size;
  }

  void subscribe() {
    g_dbus_connection_signal_subscribe(connection_, place_.destination(), kInterface, "Hello", kPath, nullptr, G_DBUS_SIGNAL_FLAGS_NONE, heard, this, nullptr);
    // The match rule is sent without waiting: the answer to a later call says that it is there.
    void_call();
  }

  // Has so many signals fired, and waits for them.
  void hear(std::uint64_t n) {
    heard_ = 0;
    g_dbus_connection_call(connection_, place_.destination(), place_.path.c_str(), kInterface, "fire", g_variant_new("(u)", guint32(n)), nullptr,
                           G_DBUS_CALL_FLAGS_NONE, -1, nullptr, nullptr, nullptr);
    while (heard_ < n) g_main_context_iteration(nullptr, TRUE);
  }

  void callbacks(const Plan&) { throw std::runtime_error("the race of callbacks is not for this client"); }

private:
  static void held(GError* error) {
    if (error != nullptr) throw std::runtime_error(error->message);
  }

  GVariant* call(const char* member, GVariant* arguments, const char* results) {
    GError* error = nullptr;
    const GVariantType* type = results == nullptr ? nullptr : reinterpret_cast<const GVariantType*>(results);
    GVariant* reply = g_dbus_connection_call_sync(connection_, place_.destination(), place_.path.c_str(), kInterface, member, arguments, type,
                                                  G_DBUS_CALL_FLAGS_NONE, -1, nullptr, &error);
    held(error);
    return reply;
  }

  static void done(GVariant* reply) { g_variant_unref(reply); }

  static gint32 number(GVariant* reply) {
    gint32 v = 0;
    g_variant_get(reply, "(i)", &v);
    done(reply);
    return v;
  }

  static std::string text(GVariant* reply) {
    const char* v = "";
    g_variant_get(reply, "(&s)", &v);
    std::string copy(v);
    done(reply);
    return copy;
  }

  static void heard(GDBusConnection*, const gchar*, const gchar*, const gchar*, const gchar*, GVariant* arguments, gpointer self) {
    guint32 i = 0;
    g_variant_get(arguments, "(u)", &i);
    ++static_cast<Client*>(self)->heard_;
  }

  Place place_;
  GDBusConnection* connection_ = nullptr;
  std::uint64_t heard_ = 0;
};

}  // namespace

int main(int argc, char** argv) { return client_main<Client>(argc, argv); }
