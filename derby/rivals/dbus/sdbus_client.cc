// sd-bus calling bench.dbus.xml.
#include "sdbus.h"

namespace {

class Client {
public:
  explicit Client(Place place) : place_(std::move(place)), bus_(open_bus(place_.address, !place_.name.empty())) {}

  void void_call() { done(call("void_call", "")); }
  void in_int_call(std::int32_t v) { done(call("in_int_call", "i", v)); }
  std::int32_t out_int_call() { return number(call("out_int_call", "")); }
  std::int32_t in_out_int_call(std::int32_t v) { return number(call("in_out_int_call", "i", v)); }
  void in_string_call(const char* v) { done(call("in_string_call", "s", v)); }
  std::string out_string_call() { return text(call("out_string_call", "")); }
  std::string in_out_string_call(const char* v) { return text(call("in_out_string_call", "s", v)); }

  std::size_t get_bytes(std::int32_t n) {
    sd_bus_message* reply = call("get_bytes", "i", n);
    const void* bytes = nullptr;
    std::size_t size = 0;
    check(sd_bus_message_read_array(reply, 'y', &bytes, &size), "get_bytes");
    done(reply);
    return size;
  }

  void subscribe() {
    const std::string rule = std::string("type='signal',path='") + kPath + "',interface='" + kInterface + "',member='Hello'";
    check(sd_bus_add_match(bus_, nullptr, rule.c_str(), heard, this), "AddMatch");
  }

  // Has so many signals fired, and waits for them.
  void hear(std::uint64_t n) {
    heard_ = 0;
    sd_bus_message* message = nullptr;
    check(sd_bus_message_new_method_call(bus_, &message, place_.destination(), place_.path.c_str(), kInterface, "fire"), "fire");
    check(sd_bus_message_append(message, "u", std::uint32_t(n)), "fire");
    check(sd_bus_message_set_expect_reply(message, 0), "fire");
    check(sd_bus_send(bus_, message, nullptr), "fire");
    sd_bus_message_unref(message);
    while (heard_ < n) {
      const int worked = check(sd_bus_process(bus_, nullptr), "sd_bus_process");
      if (worked == 0) check(sd_bus_wait(bus_, UINT64_MAX), "sd_bus_wait");
    }
  }

private:
  template <class... Arguments> sd_bus_message* call(const char* member, const char* types, Arguments... arguments) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message* reply = nullptr;
    const int result = sd_bus_call_method(bus_, place_.destination(), place_.path.c_str(), kInterface, member, &error, &reply, types, arguments...);
    if (result < 0) throw std::runtime_error(std::string(member) + ": " + (error.message ? error.message : std::strerror(-result)));
    return reply;
  }

  static void done(sd_bus_message* reply) { sd_bus_message_unref(reply); }

  static std::int32_t number(sd_bus_message* reply) {
    std::int32_t v = 0;
    check(sd_bus_message_read(reply, "i", &v), "a number");
    done(reply);
    return v;
  }

  static std::string text(sd_bus_message* reply) {
    const char* v = nullptr;
    check(sd_bus_message_read(reply, "s", &v), "a string");
    std::string copy(v);
    done(reply);
    return copy;
  }

  static int heard(sd_bus_message* message, void* self, sd_bus_error*) {
    std::uint32_t i = 0;
    if (sd_bus_message_read(message, "u", &i) > 0) ++static_cast<Client*>(self)->heard_;
    return 0;
  }

  Place place_;
  sd_bus* bus_;
  std::uint64_t heard_ = 0;
};

}  // namespace

int main(int argc, char** argv) { return client_main<Client>(argc, argv); }
