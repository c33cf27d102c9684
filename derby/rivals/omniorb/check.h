// Functional checks: every comparison is counted, every failure is named.
#pragma once
#include <omniORB4/CORBA.h>

#include <cstdio>
#include <cstring>
#include <cstdint>
#include <functional>
#include <string>

class Checks {
public:
  void that(bool held, const std::string& what) {
    ++done_;
    if (held) return;
    ++failed_;
    std::printf("FAILED %s\n", what.c_str());
  }
  // Runs one group; an exception nobody expected fails it.
  void group(const char* name, const std::function<void()>& body) {
    try {
      body();
    } catch (const CORBA::SystemException& e) {
      that(false, std::string(name) + ": system exception " + e._name() + " minor " + std::to_string(e.minor()));
    } catch (const CORBA::Exception& e) {
      that(false, std::string(name) + ": exception " + e._name());
    }
  }
  // The body must raise E, and `judge` must like it.
  template <class E> void raises(const std::string& what, const std::function<void()>& body, const std::function<bool(const E&)>& judge) {
    try {
      body();
      that(false, what + ": nothing was raised");
    } catch (const E& e) {
      that(judge(e), what + ": its content differs");
    } catch (const CORBA::Exception& e) {
      that(false, what + ": raised " + e._name() + " instead");
    }
  }
  int conclude(const char* name) const {
    std::printf("%s: %d checks, %d failed\n", name, done_, failed_);
    return failed_ == 0 && done_ > 0 ? 0 : 1;
  }

private:
  int done_ = 0, failed_ = 0;
};

class Refs;
int check_bench(CORBA::ORB_ptr orb, const Refs& refs, std::uint64_t largest);
int check_interop(CORBA::ORB_ptr orb, const Refs& refs, bool pantry);
