// What both sides do with sd-bus.
#pragma once
#include "bench.h"

#include <systemd/sd-bus.h>

inline int check(int result, const char* what) {
  if (result < 0) throw std::runtime_error(std::string(what) + ": " + std::strerror(-result));
  return result;
}

// As a member of a bus, or of two peers.
inline sd_bus* open_bus(const std::string& address, bool member) {
  sd_bus* bus = nullptr;
  check(sd_bus_new(&bus), "sd_bus_new");
  check(sd_bus_set_address(bus, address.c_str()), "sd_bus_set_address");
  if (member) check(sd_bus_set_bus_client(bus, 1), "sd_bus_set_bus_client");
  check(sd_bus_start(bus), address.c_str());
  return bus;
}
