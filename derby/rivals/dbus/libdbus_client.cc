// libdbus calling bench.dbus.xml.
#include "bench.h"

#include <dbus/dbus.h>

namespace {

class Client {
public:
  explicit Client(Place place) : place_(std::move(place)) {
    DBusError error = DBUS_ERROR_INIT;
    connection_ = dbus_connection_open_private(place_.address.c_str(), &error);
    if (connection_ != nullptr && !place_.name.empty()) dbus_bus_register(connection_, &error);
    held(error);
    dbus_connection_set_exit_on_disconnect(connection_, FALSE);
  }

  void void_call() { done(call("void_call", DBUS_TYPE_INVALID)); }
  void in_int_call(dbus_int32_t v) { done(call("in_int_call", DBUS_TYPE_INT32, &v, DBUS_TYPE_INVALID)); }
  dbus_int32_t out_int_call() { return number(call("out_int_call", DBUS_TYPE_INVALID)); }
  dbus_int32_t in_out_int_call(dbus_int32_t v) { return number(call("in_out_int_call", DBUS_TYPE_INT32, &v, DBUS_TYPE_INVALID)); }
  void in_string_call(const char* v) { done(call("in_string_call", DBUS_TYPE_STRING, &v, DBUS_TYPE_INVALID)); }
  std::string out_string_call() { return text(call("out_string_call", DBUS_TYPE_INVALID)); }
  std::string in_out_string_call(const char* v) { return text(call("in_out_string_call", DBUS_TYPE_STRING, &v, DBUS_TYPE_INVALID)); }

  std::size_t get_bytes(dbus_int32_t n) {
    DBusMessage* reply = call("get_bytes", DBUS_TYPE_INT32, &n, DBUS_TYPE_INVALID);
    const std::uint8_t* bytes = nullptr;
    int size = 0;
    DBusError error = DBUS_ERROR_INIT;
    dbus_message_get_args(reply, &error, DBUS_TYPE_ARRAY, DBUS_TYPE_BYTE, &bytes, &size, DBUS_TYPE_INVALID);
    held(error);
    done(reply);
    return std::size_t(size);
  }

  void subscribe() {
    if (!place_.name.empty()) {
      DBusError error = DBUS_ERROR_INIT;
      const std::string rule = std::string("type='signal',path='") + kPath + "',interface='" + kInterface + "',member='Hello'";
      dbus_bus_add_match(connection_, rule.c_str(), &error);
      held(error);
    }
    dbus_connection_add_filter(connection_, heard, this, nullptr);
  }

  // Has so many signals fired, and waits for them.
  void hear(std::uint64_t n) {
    heard_ = 0;
    DBusMessage* message = dbus_message_new_method_call(place_.destination(), place_.path.c_str(), kInterface, "fire");
    const dbus_uint32_t count = dbus_uint32_t(n);
    dbus_message_append_args(message, DBUS_TYPE_UINT32, &count, DBUS_TYPE_INVALID);
    dbus_message_set_no_reply(message, TRUE);
    dbus_connection_send(connection_, message, nullptr);
    dbus_connection_flush(connection_);
    dbus_message_unref(message);
    while (heard_ < n)
      if (!dbus_connection_read_write_dispatch(connection_, -1)) throw std::runtime_error("disconnected");
  }

  void callbacks(const Plan&) { throw std::runtime_error("the race of callbacks is not for this client"); }

private:
  static void held(DBusError& error) {
    if (dbus_error_is_set(&error)) throw std::runtime_error(std::string(error.name) + ": " + error.message);
  }

  DBusMessage* call(const char* member, int first, ...) {
    DBusMessage* message = dbus_message_new_method_call(place_.destination(), place_.path.c_str(), kInterface, member);
    va_list arguments;
    va_start(arguments, first);
    dbus_message_append_args_valist(message, first, arguments);
    va_end(arguments);
    DBusError error = DBUS_ERROR_INIT;
    DBusMessage* reply = dbus_connection_send_with_reply_and_block(connection_, message, -1, &error);
    dbus_message_unref(message);
    held(error);
    return reply;
  }

  static void done(DBusMessage* reply) { dbus_message_unref(reply); }

  static dbus_int32_t number(DBusMessage* reply) {
    dbus_int32_t v = 0;
    DBusError error = DBUS_ERROR_INIT;
    dbus_message_get_args(reply, &error, DBUS_TYPE_INT32, &v, DBUS_TYPE_INVALID);
    held(error);
    done(reply);
    return v;
  }

  static std::string text(DBusMessage* reply) {
    const char* v = "";
    DBusError error = DBUS_ERROR_INIT;
    dbus_message_get_args(reply, &error, DBUS_TYPE_STRING, &v, DBUS_TYPE_INVALID);
    held(error);
    std::string copy(v);
    done(reply);
    return copy;
  }

  static DBusHandlerResult heard(DBusConnection*, DBusMessage* message, void* self) {
    if (!dbus_message_is_signal(message, kInterface, "Hello")) return DBUS_HANDLER_RESULT_NOT_YET_HANDLED;
    dbus_uint32_t i = 0;
    if (dbus_message_get_args(message, nullptr, DBUS_TYPE_UINT32, &i, DBUS_TYPE_INVALID)) ++static_cast<Client*>(self)->heard_;
    return DBUS_HANDLER_RESULT_HANDLED;
  }

  Place place_;
  DBusConnection* connection_ = nullptr;
  std::uint64_t heard_ = 0;
};

}  // namespace

int main(int argc, char** argv) { return client_main<Client>(argc, argv); }
