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
    await(n);
  }

  // A factory makes the server object. Over a bus it is listened to by a match; anywhere it is passed the path of an object.
  void callbacks(const Plan& plan) {
    if (!place_.name.empty()) {
      if (plan.warmup > 0) match_cycle(true);
      measure(plan, "connection point", plan.calls, [&] { match_cycle(false); });
    }
    measure(plan, "callback", plan.calls, [&] { path_cycle(); });
  }

private:
  std::string create() {
    sd_bus_message* reply = call_at(kFactory, kFactoryInterface, "Create", "");
    const char* path = nullptr;
    check(sd_bus_message_read(reply, "o", &path), "a path");
    std::string copy(path);
    done(reply);
    return copy;
  }

  void destroy(const std::string& source) { done(call_at(kFactory, kFactoryInterface, "Destroy", "o", source.c_str())); }

  // The bus takes what one member says in order: when the object is gone, so is the match.
  void match_cycle(bool prove) {
    const std::string source = create();
    const std::string rule = "type='signal',sender='" + place_.name + "',path='" + source + "',interface='" + kSourceInterface + "',member='Hello'";
    sd_bus_slot* slot = nullptr;
    check(sd_bus_add_match(bus_, &slot, rule.c_str(), called, this), "AddMatch");
    if (prove) {
      heard_ = 0;
      done(call_at(source.c_str(), kSourceInterface, "Fire", ""));
      await(1);
    }
    sd_bus_slot_unref(slot);
    destroy(source);
  }

  void path_cycle() {
    static const sd_bus_vtable sink[] = {SD_BUS_VTABLE_START(0), SD_BUS_METHOD("Hello", "", "", quiet, SD_BUS_VTABLE_UNPRIVILEGED), SD_BUS_VTABLE_END};
    const std::string path = "/derby/sink/" + std::to_string(++sinks_);
    sd_bus_slot* slot = nullptr;
    check(sd_bus_add_object_vtable(bus_, &slot, path.c_str(), kSinkInterface, sink, this), "sd_bus_add_object_vtable");
    const std::string source = create();
    sd_bus_message* reply = call_at(source.c_str(), kSourceInterface, "Attach", "o", path.c_str());
    std::uint32_t cookie = 0;
    check(sd_bus_message_read(reply, "u", &cookie), "a cookie");
    done(reply);
    done(call_at(source.c_str(), kSourceInterface, "Detach", "u", cookie));
    destroy(source);
    sd_bus_slot_unref(slot);
  }

  void await(std::uint64_t n) {
    while (heard_ < n) {
      const int worked = check(sd_bus_process(bus_, nullptr), "sd_bus_process");
      if (worked == 0) check(sd_bus_wait(bus_, UINT64_MAX), "sd_bus_wait");
    }
  }

  template <class... Arguments> sd_bus_message* call(const char* member, const char* types, Arguments... arguments) {
    return call_at(place_.path.c_str(), kInterface, member, types, arguments...);
  }

  template <class... Arguments>
  sd_bus_message* call_at(const char* path, const char* interface, const char* member, const char* types, Arguments... arguments) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message* reply = nullptr;
    const int result = sd_bus_call_method(bus_, place_.destination(), path, interface, member, &error, &reply, types, arguments...);
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

  static int called(sd_bus_message*, void* self, sd_bus_error*) {
    ++static_cast<Client*>(self)->heard_;
    return 0;
  }

  static int quiet(sd_bus_message* message, void*, sd_bus_error*) { return sd_bus_reply_method_return(message, ""); }

  Place place_;
  sd_bus* bus_;
  std::uint64_t heard_ = 0, sinks_ = 0;
};

}  // namespace

int main(int argc, char** argv) { return client_main<Client>(argc, argv); }
