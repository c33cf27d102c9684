// sd-bus serving bench.dbus.xml.
#include "sdbus.h"

#include <map>
#include <memory>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>

namespace {

int void_call(sd_bus_message* m, void*, sd_bus_error*) { return sd_bus_reply_method_return(m, ""); }

int in_int_call(sd_bus_message* m, void*, sd_bus_error*) {
  std::int32_t v = 0;
  const int r = sd_bus_message_read(m, "i", &v);
  return r < 0 ? r : sd_bus_reply_method_return(m, "");
}

int out_int_call(sd_bus_message* m, void*, sd_bus_error*) { return sd_bus_reply_method_return(m, "i", 42); }

int in_out_int_call(sd_bus_message* m, void*, sd_bus_error*) {
  std::int32_t v = 0;
  const int r = sd_bus_message_read(m, "i", &v);
  return r < 0 ? r : sd_bus_reply_method_return(m, "i", v + 1);
}

int in_string_call(sd_bus_message* m, void*, sd_bus_error*) {
  const char* v = nullptr;
  const int r = sd_bus_message_read(m, "s", &v);
  return r < 0 ? r : sd_bus_reply_method_return(m, "");
}

int out_string_call(sd_bus_message* m, void*, sd_bus_error*) { return sd_bus_reply_method_return(m, "s", kText); }

int in_out_string_call(sd_bus_message* m, void*, sd_bus_error*) {
  const char* v = nullptr;
  const int r = sd_bus_message_read(m, "s", &v);
  return r < 0 ? r : sd_bus_reply_method_return(m, "s", v);
}

int get_bytes(sd_bus_message* m, void*, sd_bus_error* error) {
  std::int32_t n = 0;
  int r = sd_bus_message_read(m, "i", &n);
  if (r < 0) return r;
  if (n < 0 || std::size_t(n) > kLargest) return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "no such number of bytes");
  sd_bus_message* reply = nullptr;
  r = sd_bus_message_new_method_return(m, &reply);
  if (r >= 0) r = sd_bus_message_append_array(reply, 'y', payload().data(), std::size_t(n));
  if (r >= 0) r = sd_bus_send(sd_bus_message_get_bus(m), reply, nullptr);
  sd_bus_message_unref(reply);
  return r;
}

int fire(sd_bus_message* m, void*, sd_bus_error*) {
  std::uint32_t n = 0;
  int r = sd_bus_message_read(m, "u", &n);
  sd_bus* bus = sd_bus_message_get_bus(m);
  for (std::uint32_t i = 0; r >= 0 && i < n; ++i) r = sd_bus_emit_signal(bus, kPath, kInterface, "Hello", "u", i);
  return r < 0 ? r : sd_bus_reply_method_return(m, "");
}

const sd_bus_vtable kTable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("void_call", "", "", void_call, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("in_int_call", "i", "", in_int_call, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("out_int_call", "", "i", out_int_call, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("in_out_int_call", "i", "i", in_out_int_call, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("in_string_call", "s", "", in_string_call, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("out_string_call", "", "s", out_string_call, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("in_out_string_call", "s", "s", in_out_string_call, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("get_bytes", "i", "ay", get_bytes, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("fire", "u", "", fire, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_SIGNAL("Hello", "u", 0),
    SD_BUS_VTABLE_END,
};

// callbacks.dbus.xml, on one connection: the objects that were made, and what they were given.
struct Source {
  std::string path;
  sd_bus_slot* slot = nullptr;
  std::map<std::uint32_t, std::string> sinks;
  std::uint32_t last = 0;
};

struct Factory {
  std::map<std::string, std::unique_ptr<Source>> sources;
  std::uint64_t last = 0;
};

int attach(sd_bus_message* m, void* self, sd_bus_error*) {
  auto* source = static_cast<Source*>(self);
  const char* sink = nullptr;
  const int r = sd_bus_message_read(m, "o", &sink);
  if (r < 0) return r;
  source->sinks[++source->last] = sink;
  return sd_bus_reply_method_return(m, "u", source->last);
}

int detach(sd_bus_message* m, void* self, sd_bus_error* error) {
  std::uint32_t cookie = 0;
  const int r = sd_bus_message_read(m, "u", &cookie);
  if (r < 0) return r;
  if (static_cast<Source*>(self)->sinks.erase(cookie) == 0) return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "no such cookie");
  return sd_bus_reply_method_return(m, "");
}

int fire_source(sd_bus_message* m, void* self, sd_bus_error*) {
  const int r = sd_bus_emit_signal(sd_bus_message_get_bus(m), static_cast<Source*>(self)->path.c_str(), kSourceInterface, "Hello", "");
  return r < 0 ? r : sd_bus_reply_method_return(m, "");
}

const sd_bus_vtable kSource[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("Attach", "o", "u", attach, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Detach", "u", "", detach, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Fire", "", "", fire_source, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_SIGNAL("Hello", "", 0),
    SD_BUS_VTABLE_END,
};

int create(sd_bus_message* m, void* self, sd_bus_error*) {
  auto* factory = static_cast<Factory*>(self);
  auto source = std::make_unique<Source>();
  source->path = std::string(kFactory) + "/" + std::to_string(factory->last++);
  const int r = sd_bus_add_object_vtable(sd_bus_message_get_bus(m), &source->slot, source->path.c_str(), kSourceInterface, kSource, source.get());
  if (r < 0) return r;
  const std::string path = source->path;
  factory->sources[path] = std::move(source);
  return sd_bus_reply_method_return(m, "o", path.c_str());
}

int destroy(sd_bus_message* m, void* self, sd_bus_error* error) {
  auto* factory = static_cast<Factory*>(self);
  const char* path = nullptr;
  const int r = sd_bus_message_read(m, "o", &path);
  if (r < 0) return r;
  const auto found = factory->sources.find(path);
  if (found == factory->sources.end()) return sd_bus_error_set(error, SD_BUS_ERROR_INVALID_ARGS, "no such object");
  sd_bus_slot_unref(found->second->slot);
  factory->sources.erase(found);
  return sd_bus_reply_method_return(m, "");
}

const sd_bus_vtable kFactoryTable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("Create", "", "o", create, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Destroy", "o", "", destroy, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

int add_factory(sd_bus* bus, Factory* factory) {
  return sd_bus_add_object_vtable(bus, nullptr, kFactory, kFactoryInterface, kFactoryTable, factory);
}

// Until the other side is gone.
void answer(sd_bus* bus) {
  for (;;) {
    const int worked = sd_bus_process(bus, nullptr);
    if (worked < 0) return;
    if (worked == 0 && sd_bus_wait(bus, UINT64_MAX) < 0) return;
  }
}

void answer_peer(int fd) {
  sd_bus* bus = nullptr;
  sd_id128_t id;
  Factory factory;
  if (sd_bus_new(&bus) >= 0 && sd_bus_set_fd(bus, fd, fd) >= 0 && sd_id128_randomize(&id) >= 0 && sd_bus_set_server(bus, 1, id) >= 0 &&
      sd_bus_start(bus) >= 0 && sd_bus_add_object_vtable(bus, nullptr, kPath, kInterface, kTable, nullptr) >= 0 && add_factory(bus, &factory) >= 0)
    answer(bus);
  sd_bus_unref(bus);
}

void serve(const Stand& stand) {
  if (!stand.bus.empty()) {
    sd_bus* bus = open_bus(stand.bus, true);
    check(sd_bus_add_object_vtable(bus, nullptr, kPath, kInterface, kTable, nullptr), "sd_bus_add_object_vtable");
    static Factory factory;
    check(add_factory(bus, &factory), "sd_bus_add_object_vtable");
    check(sd_bus_request_name(bus, kName, 0), "RequestName");
    ready(stand);
    answer(bus);
    throw std::runtime_error("the bus is gone");
  }
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, stand.listen.c_str(), sizeof address.sun_path - 1);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(listener, 64) != 0)
    throw std::runtime_error("cannot listen on " + stand.listen);
  ready(stand);
  for (;;) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) std::thread(answer_peer, fd).detach();
  }
}

}  // namespace

int main(int argc, char** argv) { return server_main(argc, argv, serve); }
