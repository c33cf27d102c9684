// What the clients and servers of bench.dbus.xml have in common, whatever library they are made with.
#pragma once
#include "measure.h"

#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <stdexcept>

inline const char* const kText = "Hello, World! 0123456789";
inline const char* const kName = "benchmarking.dbus";
inline const char* const kPath = "/benchmarking/dbus";
inline const char* const kInterface = "benchmarking.dbus.interface";
inline const char* const kFactory = "/derby/callbacks";            // callbacks.dbus.xml
inline const char* const kFactoryInterface = "derby.callbacks.Factory";
inline const char* const kSourceInterface = "derby.callbacks.Source";
inline const char* const kSinkInterface = "derby.callbacks.Sink";
inline const std::uint64_t kSignals = 1000;   // in one burst
inline const std::size_t kLargest = 8u << 20;

inline void require(bool held, const char* what) {
  if (!held) throw std::runtime_error(std::string("wrong answer: ") + what);
}

// dbus:ADDRESS#NAME/PATH; without a name the address is that of a peer.
struct Place {
  std::string address, name, path;
  const char* destination() const { return name.empty() ? nullptr : name.c_str(); }
};

inline Place place_of(const std::string& ref_file) {
  std::ifstream file(ref_file);
  if (!file) throw std::runtime_error("cannot read " + ref_file);
  const std::string begin = "benchmarking\tdbus:";
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, begin.size(), begin) != 0) continue;
    const std::string rest = line.substr(begin.size());
    const auto mark = rest.find('#');
    const auto slash = mark == std::string::npos ? mark : rest.find('/', mark);
    if (slash == std::string::npos) break;
    return {rest.substr(0, mark), rest.substr(mark + 1, slash - mark - 1), rest.substr(slash)};
  }
  throw std::runtime_error("no benchmarking in " + ref_file);
}

// The file appears only when it is whole.
inline void write_refs(const std::string& path, const std::string& address, bool bus) {
  const std::string partial = path + ".partial";
  {
    std::ofstream file(partial);
    file << "benchmarking\tdbus:" << address << '#' << (bus ? kName : "") << kPath << '\n';
    if (!file.flush()) throw std::runtime_error("cannot write " + partial);
  }
  if (std::rename(partial.c_str(), path.c_str()) != 0) throw std::runtime_error("cannot write " + path);
}

inline std::vector<std::uint8_t>& payload() {
  static std::vector<std::uint8_t> bytes = [] {
    std::vector<std::uint8_t> all(kLargest);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::uint8_t(i);
    return all;
  }();
  return bytes;
}

//   client REF-FILE race calls|signals|bytes|callbacks [--calls N] [--warmup N] [--budget-ms N] [--large-divisor N] [--server-pid PID]... [--operation NAME]
template <class Client> int client_main(int argc, char** argv) {
  try {
    if (argc < 4 || std::strcmp(argv[2], "race") != 0) throw std::runtime_error("usage: client REF-FILE race calls|signals|bytes [PLAN]");
    const std::string race = argv[3];
    Plan plan;
    for (int i = 4; i + 1 < argc; i += 2) {
      const std::string word = argv[i];
      const auto number = [&] { return std::strtoull(argv[i + 1], nullptr, 10); };
      if (word == "--calls") plan.calls = number();
      else if (word == "--warmup") plan.warmup = number();
      else if (word == "--budget-ms") plan.budget_ms = number();
      else if (word == "--large-divisor") plan.large_divisor = std::max(1ULL, number());
      else if (word == "--server-pid") plan.server_pids.push_back(int(number()));
      else if (word == "--operation") plan.only = argv[i + 1];
      else if (word == "--pause-ms") plan.pause_ms = number();
      else throw std::runtime_error("unknown option " + word);
    }
    Client client(place_of(argv[1]));
    if (race == "calls") {
      measure(plan, "void_call", plan.calls, [&] { client.void_call(); });
      measure(plan, "in_int_call", plan.calls, [&] { client.in_int_call(42); });
      measure(plan, "out_int_call", plan.calls, [&] { require(client.out_int_call() == 42, "out_int_call"); });
      measure(plan, "in_out_int_call", plan.calls, [&] { require(client.in_out_int_call(42) == 43, "in_out_int_call"); });
      measure(plan, "in_string_call", plan.calls, [&] { client.in_string_call(kText); });
      measure(plan, "out_string_call", plan.calls, [&] { require(client.out_string_call()[0] == 'H', "out_string_call"); });
      measure(plan, "in_out_string_call", plan.calls, [&] { require(client.in_out_string_call(kText)[0] == 'H', "in_out_string_call"); });
    } else if (race == "signals") {
      client.subscribe();
      measure(plan, "Hello", std::max<std::uint64_t>(1, plan.calls / 100), [&] { client.hear(kSignals); }, kSignals);
    } else if (race == "bytes") {
      const auto get = [&](int n) { require(client.get_bytes(n) == std::size_t(n), "get_bytes"); };
      measure(plan, "GetBytes 100 B", plan.calls, [&] { get(100); });
      measure(plan, "GetBytes 1 MB", std::max<std::uint64_t>(1, plan.calls / plan.large_divisor), [&] { get(1000000); });
    } else if (race == "callbacks") {
      client.callbacks(plan);
    } else {
      throw std::runtime_error("unknown race " + race);
    }
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "client: " << e.what() << "\n";
    return 1;
  }
}

struct Stand {
  std::string ref_file;
  std::string bus;       // the address of a bus, or
  std::string listen;    // the Unix socket to be made for peers
  std::string publish;   // the Unix socket that is written to the file instead
};

//   server --ref-file FILE (--bus ADDRESS | --listen SOCKET) [--publish SOCKET]      runs until it is killed
inline int server_main(int argc, char** argv, const std::function<void(const Stand&)>& serve) {
  try {
    Stand stand;
    for (int i = 1; i + 1 < argc; i += 2) {
      const std::string word = argv[i];
      if (word == "--ref-file") stand.ref_file = argv[i + 1];
      else if (word == "--bus") stand.bus = argv[i + 1];
      else if (word == "--listen") stand.listen = argv[i + 1];
      else if (word == "--publish") stand.publish = argv[i + 1];
      else throw std::runtime_error("unknown option " + word);
    }
    if (stand.ref_file.empty() || stand.bus.empty() == stand.listen.empty())
      throw std::runtime_error("usage: server --ref-file FILE (--bus ADDRESS | --listen SOCKET) [--publish SOCKET]");
    payload();
    serve(stand);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "server: " << e.what() << "\n";
    return 1;
  }
}

inline void ready(const Stand& stand) {
  const std::string place = !stand.publish.empty() ? stand.publish : stand.listen;
  write_refs(stand.ref_file, place.empty() ? stand.bus : "unix:path=" + place, !stand.bus.empty());
}
