// libdbus serving bench.dbus.xml.
#include "bench.h"

#include <dbus/dbus.h>
#include <poll.h>
#include <thread>

namespace {

DBusMessage* refused(DBusMessage* m) { return dbus_message_new_error(m, DBUS_ERROR_INVALID_ARGS, "other arguments are wanted"); }

DBusMessage* done(DBusMessage* m) { return dbus_message_new_method_return(m); }

DBusMessage* number(DBusMessage* m, dbus_int32_t v) {
  DBusMessage* reply = done(m);
  dbus_message_append_args(reply, DBUS_TYPE_INT32, &v, DBUS_TYPE_INVALID);
  return reply;
}

DBusMessage* text(DBusMessage* m, const char* v) {
  DBusMessage* reply = done(m);
  dbus_message_append_args(reply, DBUS_TYPE_STRING, &v, DBUS_TYPE_INVALID);
  return reply;
}

DBusMessage* bytes(DBusMessage* m, dbus_int32_t n) {
  if (n < 0 || std::size_t(n) > kLargest) return refused(m);
  DBusMessage* reply = done(m);
  const std::uint8_t* data = payload().data();
  dbus_message_append_args(reply, DBUS_TYPE_ARRAY, DBUS_TYPE_BYTE, &data, int(n), DBUS_TYPE_INVALID);
  return reply;
}

DBusMessage* fire(DBusConnection* connection, DBusMessage* m, dbus_uint32_t n) {
  for (dbus_uint32_t i = 0; i < n; ++i) {
    DBusMessage* signal = dbus_message_new_signal(kPath, kInterface, "Hello");
    dbus_message_append_args(signal, DBUS_TYPE_UINT32, &i, DBUS_TYPE_INVALID);
    dbus_connection_send(connection, signal, nullptr);
    dbus_message_unref(signal);
  }
  return done(m);
}

DBusMessage* answered(DBusConnection* connection, DBusMessage* m) {
  const auto is = [&](const char* member) { return dbus_message_is_method_call(m, kInterface, member); };
  dbus_int32_t v = 0;
  dbus_uint32_t n = 0;
  const char* s = nullptr;
  const auto takes_number = [&] { return dbus_message_get_args(m, nullptr, DBUS_TYPE_INT32, &v, DBUS_TYPE_INVALID) != 0; };
  const auto takes_text = [&] { return dbus_message_get_args(m, nullptr, DBUS_TYPE_STRING, &s, DBUS_TYPE_INVALID) != 0; };
  if (is("void_call")) return done(m);
  if (is("in_int_call")) return takes_number() ? done(m) : refused(m);
  if (is("out_int_call")) return number(m, 42);
  if (is("in_out_int_call")) return takes_number() ? number(m, v + 1) : refused(m);
  if (is("in_string_call")) return takes_text() ? done(m) : refused(m);
  if (is("out_string_call")) return text(m, kText);
  if (is("in_out_string_call")) return takes_text() ? text(m, s) : refused(m);
  if (is("get_bytes")) return takes_number() ? bytes(m, v) : refused(m);
  if (is("fire"))
    return dbus_message_get_args(m, nullptr, DBUS_TYPE_UINT32, &n, DBUS_TYPE_INVALID) ? fire(connection, m, n) : refused(m);
  return nullptr;
}

DBusHandlerResult handle(DBusConnection* connection, DBusMessage* message, void*) {
  DBusMessage* reply = answered(connection, message);
  if (reply == nullptr) return DBUS_HANDLER_RESULT_NOT_YET_HANDLED;
  if (!dbus_message_get_no_reply(message)) dbus_connection_send(connection, reply, nullptr);
  dbus_message_unref(reply);
  return DBUS_HANDLER_RESULT_HANDLED;
}

void offer(DBusConnection* connection) {
  static const DBusObjectPathVTable table = {nullptr, handle, nullptr, nullptr, nullptr, nullptr};
  dbus_connection_set_exit_on_disconnect(connection, FALSE);
  if (!dbus_connection_register_object_path(connection, kPath, &table, nullptr)) throw std::runtime_error("out of memory");
}

// Until the other side is gone.
void answer(DBusConnection* connection) {
  while (dbus_connection_read_write_dispatch(connection, -1)) {
  }
}

void accepted(DBusServer*, DBusConnection* connection, void*) {
  dbus_connection_ref(connection);
  offer(connection);
  std::thread([connection] {
    answer(connection);
    dbus_connection_unref(connection);
  }).detach();
}

dbus_bool_t add_watch(DBusWatch* watch, void* place) {
  *static_cast<DBusWatch**>(place) = watch;
  return TRUE;
}

void serve(const Stand& stand) {
  dbus_threads_init_default();
  DBusError error = DBUS_ERROR_INIT;
  if (!stand.bus.empty()) {
    DBusConnection* connection = dbus_connection_open_private(stand.bus.c_str(), &error);
    if (connection == nullptr || !dbus_bus_register(connection, &error)) throw std::runtime_error(error.message);
    offer(connection);
    if (dbus_bus_request_name(connection, kName, 0, &error) < 0) throw std::runtime_error(error.message);
    ready(stand);
    answer(connection);
    throw std::runtime_error("the bus is gone");
  }
  DBusServer* server = dbus_server_listen(("unix:path=" + stand.listen).c_str(), &error);
  if (server == nullptr) throw std::runtime_error(error.message);
  dbus_server_set_new_connection_function(server, accepted, nullptr, nullptr);
  // A server that listens on one socket has one watch.
  DBusWatch* watch = nullptr;
  dbus_server_set_watch_functions(server, add_watch, [](DBusWatch*, void*) {}, nullptr, &watch, nullptr);
  if (watch == nullptr) throw std::runtime_error("nothing to watch");
  ready(stand);
  for (;;) {
    pollfd descriptor{dbus_watch_get_unix_fd(watch), POLLIN, 0};
    if (poll(&descriptor, 1, -1) == 1) dbus_watch_handle(watch, DBUS_WATCH_READABLE);
  }
}

}  // namespace

int main(int argc, char** argv) { return server_main(argc, argv, serve); }
