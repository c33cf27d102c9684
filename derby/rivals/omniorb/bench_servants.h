// Servants of bench.idl: what every race and every foreign client calls.
#pragma once
#include "bench.hh"

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

inline const char* const kText = "Hello, World! 0123456789";

class Benchmarking : public POA_benchmarking {
public:
  void void_call() override {}
  void in_int_call(CORBA::Long) override {}
  void out_int_call(CORBA::Long& v) override { v = 42; }
  void in_out_int_call(CORBA::Long& v) override { v = v + 1; }
  void in_string_call(const char*) override {}
  void out_string_call(CORBA::String_out v) override { v = CORBA::string_dup(kText); }
  void in_out_string_call(char*&) override {}
};

class RemoteObject : public POA_IRemoteObject {
public:
  explicit RemoteObject(std::uint32_t largest) : bytes_(largest) {
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<CORBA::Octet>(i);
  }
  // The sequence borrows the bytes: nothing is copied before the ORB sends them.
  OctetSeq* GetBytes(CORBA::Long n) override {
    if (n < 0 || static_cast<std::size_t>(n) > bytes_.size()) throw CORBA::BAD_PARAM(1, CORBA::COMPLETED_NO);
    auto length = static_cast<CORBA::ULong>(n);
    return new OctetSeq(length, length, bytes_.data(), 0);
  }

private:
  std::vector<CORBA::Octet> bytes_;
};

class SinkServant : public POA_Sink {
public:
  void Hello() override { std::lock_guard<std::mutex> held(lock_); ++hellos_; }
  void HelloSync() override { std::lock_guard<std::mutex> held(lock_); ++syncs_; }
  std::uint64_t hellos() { std::lock_guard<std::mutex> held(lock_); return hellos_; }
  std::uint64_t syncs() { std::lock_guard<std::mutex> held(lock_); return syncs_; }

private:
  std::mutex lock_;
  std::uint64_t hellos_ = 0, syncs_ = 0;
};

class FiringSourceServant : public POA_FiringSource {
public:
  CORBA::ULong Advise(Sink_ptr sink) override {
    if (CORBA::is_nil(sink)) throw CORBA::BAD_PARAM(2, CORBA::COMPLETED_NO);
    std::lock_guard<std::mutex> held(lock_);
    sinks_[++last_] = Sink::_duplicate(sink);
    return last_;
  }
  void Unadvise(CORBA::ULong cookie) override {
    std::lock_guard<std::mutex> held(lock_);
    if (sinks_.erase(cookie) == 0) throw CORBA::BAD_PARAM(3, CORBA::COMPLETED_NO);
  }
  // Calls out without the lock, so that a sink may advise or unadvise meanwhile.
  void Fire(CORBA::ULong n) override {
    std::vector<Sink_var> sinks;
    {
      std::lock_guard<std::mutex> held(lock_);
      for (auto& entry : sinks_) sinks.push_back(entry.second);
    }
    for (auto& sink : sinks) {
      for (CORBA::ULong i = 0; i < n; ++i) sink->Hello();
      sink->HelloSync();
    }
  }

private:
  std::mutex lock_;
  std::map<CORBA::ULong, Sink_var> sinks_;
  CORBA::ULong last_ = 0;
};
