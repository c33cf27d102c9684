// Measuring calls, and telling the coordinator about them: one JSON object a line.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <time.h>
#ifdef _WIN32
#include <windows.h>
#else
#include <sys/resource.h>
#endif

struct Plan {
  std::uint64_t calls = 10000;
  std::uint64_t warmup = 500;
  std::uint64_t budget_ms = 0;   // ends an operation early; 0 = never
  std::uint64_t large_divisor = 1;
  std::vector<int> server_pids;  // whose CPU time is reported as the server's; none = unknown
  std::string only;              // one operation; empty = all of them
  std::uint64_t pause_ms = 0;    // rest before each call, and note when it begins
};

inline std::uint64_t now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec t;
  clock_gettime(clock, &t);
  return std::uint64_t(t.tv_sec) * 1000000000u + std::uint64_t(t.tv_nsec);
}

#ifdef _WIN32
// User and system time of this process.
inline double own_cpu_us() {
  FILETIME begun, ended, system, user;
  if (!GetProcessTimes(GetCurrentProcess(), &begun, &ended, &system, &user)) return 0;
  const auto us = [](const FILETIME& t) { return (double(t.dwHighDateTime) * 4294967296.0 + double(t.dwLowDateTime)) / 10; };
  return us(system) + us(user);
}

// Processes have other numbers there.
inline double cpu_us_of(int) { return -1; }
#else
// User and system time of this process.
inline double own_cpu_us() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  auto us = [](const timeval& t) { return double(t.tv_sec) * 1e6 + double(t.tv_usec); };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

// The same of another process, all of its threads; -1 if it cannot be told.
inline double cpu_us_of(int pid) {
  clockid_t clock;
  timespec t;
  if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) return -1;
  return double(t.tv_sec) * 1e6 + double(t.tv_nsec) / 1e3;
}
#endif

// The sum of the same of several; -1 if any of them cannot be told, or there is none.
inline double cpu_us_of(const std::vector<int>& pids) {
  double sum = pids.empty() ? -1 : 0;
  for (int pid : pids) {
    const double one = cpu_us_of(pid);
    if (one < 0) return -1;
    sum += one;
  }
  return sum;
}

// Times `call`, which does `batch` of what is counted. Between two calls the clock is read once.
template <class F> void measure(const Plan& plan, const char* operation, std::uint64_t calls, F&& call, std::uint64_t batch = 1) {
  if (!plan.only.empty() && plan.only != operation) return;
  const std::uint64_t budget = plan.budget_ms * 1000000u;
  const std::uint64_t begun = now_ns();
  for (std::uint64_t i = 0; i < std::min((plan.warmup + batch - 1) / batch, calls); ++i) {
    call();
    if (budget != 0 && now_ns() - begun > budget / 5) break;
  }
  std::vector<std::uint64_t> samples;   // picoseconds of one
  samples.reserve(calls);
  std::vector<std::uint64_t> began, ended;   // nanoseconds since 1970
  const double own = own_cpu_us(), server = cpu_us_of(plan.server_pids);
  const std::uint64_t start = now_ns();
  std::uint64_t last = start;
  for (std::uint64_t i = 0; i < calls; ++i) {
    if (plan.pause_ms != 0) {
      const timespec rest{time_t(plan.pause_ms / 1000), long(plan.pause_ms % 1000) * 1000000};
      nanosleep(&rest, nullptr);
      began.push_back(now_ns(CLOCK_REALTIME));
      last = now_ns();
    }
    call();
    const std::uint64_t now = now_ns();
    if (plan.pause_ms != 0) ended.push_back(now_ns(CLOCK_REALTIME));
    samples.push_back((now - last) * 1000u / batch);
    last = now;
    if (budget != 0 && now - start > budget) break;
  }
  const double own_after = own_cpu_us(), server_after = cpu_us_of(plan.server_pids);

  std::printf("{\"operation\":\"%s\",\"calls\":%zu,\"total_ns\":%llu,\"client_cpu_us\":%.3f,\"server_cpu_us\":", operation,
              samples.size() * std::size_t(batch), static_cast<unsigned long long>(last - start), own_after - own);
  if (server < 0 || server_after < 0) std::printf("null");
  else std::printf("%.3f", server_after - server);

  // Medians of consecutive blocks, in picoseconds: they tell a drift from a difference.
  std::printf(",\"blocks_ps\":[");
  const std::size_t blocks = std::min<std::size_t>(20, samples.size());
  for (std::size_t b = 0; b < blocks; ++b) {
    std::vector<std::uint64_t> part(samples.begin() + long(samples.size() * b / blocks),
                                    samples.begin() + long(samples.size() * (b + 1) / blocks));
    std::nth_element(part.begin(), part.begin() + long(part.size() / 2), part.end());
    std::printf("%s%llu", b ? "," : "", static_cast<unsigned long long>(part[part.size() / 2]));
  }
  std::printf("],\"histogram_ps\":[");
  std::sort(samples.begin(), samples.end());
  for (std::size_t i = 0; i < samples.size();) {
    std::size_t same = i;
    while (same < samples.size() && samples[same] == samples[i]) ++same;
    std::printf("%s[%llu,%zu]", i ? "," : "", static_cast<unsigned long long>(samples[i]), (same - i) * std::size_t(batch));
    i = same;
  }
  std::printf("],\"began_ns\":[");
  for (std::size_t i = 0; i < began.size(); ++i) std::printf("%s%llu", i ? "," : "", static_cast<unsigned long long>(began[i]));
  std::printf("],\"ended_ns\":[");
  for (std::size_t i = 0; i < ended.size(); ++i) std::printf("%s%llu", i ? "," : "", static_cast<unsigned long long>(ended[i]));
  std::printf("]}\n");
  std::fflush(stdout);
}
