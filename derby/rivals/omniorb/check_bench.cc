// What the objects of bench.idl must answer.
#include "bench_servants.h"
#include "check.h"
#include "refs.h"

#include <memory>

namespace {

void activate(CORBA::ORB_ptr orb) {
  CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(object);
  PortableServer::POAManager_var manager = poa->the_POAManager();
  manager->activate();
}

void seven_functions(Checks& check, const Refs& refs) {
  benchmarking_var object = refs.get<benchmarking>("benchmarking");
  object->void_call();
  object->in_int_call(-2147483647 - 1);
  CORBA::Long v = 0;
  object->out_int_call(v);
  check.that(v == 42, "out_int_call answers 42");
  for (CORBA::Long start : {0, 41, -1, 2147483646}) {
    v = start;
    object->in_out_int_call(v);
    check.that(v == start + 1, "in_out_int_call increments " + std::to_string(start));
  }
  object->in_string_call(kText);
  object->in_string_call("");
  CORBA::String_var text;
  object->out_string_call(text.out());
  check.that(std::strcmp(text.in(), kText) == 0, "out_string_call answers the text");
  for (const std::string& start : {std::string(kText), std::string(), std::string(100000, 'x')}) {
    text = start.c_str();
    object->in_out_string_call(text.inout());
    check.that(start == text.in(), "in_out_string_call keeps " + std::to_string(start.size()) + " characters");
  }
  check.that(object->_is_a("IDL:benchmarking:1.0"), "_is_a knows the interface");
  check.that(!object->_is_a("IDL:Sink:1.0"), "_is_a refuses another");
  check.that(!object->_non_existent(), "the object exists");
}

void bytes(Checks& check, const Refs& refs, std::uint64_t largest) {
  IRemoteObject_var object = refs.get<IRemoteObject>("IRemoteObject");
  for (std::uint64_t n : {std::uint64_t(0), std::uint64_t(1), std::uint64_t(100), std::uint64_t(65536), std::uint64_t(1000000), largest}) {
    if (n > largest) continue;
    OctetSeq_var got = object->GetBytes(CORBA::Long(n));
    check.that(got->length() == n, "GetBytes answers " + std::to_string(n) + " bytes");
  }
}

void callbacks(Checks& check, CORBA::ORB_ptr orb, const Refs& refs) {
  activate(orb);
  FiringSource_var source = refs.get<FiringSource>("Source");
  auto* servant = new SinkServant;
  Sink_var sink = servant->_this();
  const CORBA::ULong first = source->Advise(sink), second = source->Advise(sink);
  check.that(first != second, "cookies differ");
  source->Unadvise(second);
  for (CORBA::ULong n : {1u, 7u, 500u}) {
    const auto hellos = servant->hellos(), syncs = servant->syncs();
    source->Fire(n);
    check.that(servant->hellos() - hellos == n, std::to_string(n) + " oneways arrived before Fire returned");
    check.that(servant->syncs() - syncs == 1, "one HelloSync for " + std::to_string(n));
  }
  source->Unadvise(first);
  const auto hellos = servant->hellos();
  source->Fire(3);
  check.that(servant->hellos() == hellos, "nothing comes after Unadvise");

  Sink_var theirs = refs.get<Sink>("Sink");
  theirs->Hello();
  theirs->HelloSync();
  const CORBA::ULong own = source->Advise(theirs);   // an object of the server, handed back to it
  source->Fire(2);
  source->Unadvise(own);
}

}  // namespace

int check_bench(CORBA::ORB_ptr orb, const Refs& refs, std::uint64_t largest) {
  Checks check;
  check.group("the seven functions", [&] { seven_functions(check, refs); });
  check.group("bytes", [&] { bytes(check, refs, largest); });
  check.group("callbacks", [&] { callbacks(check, orb, refs); });
  return check.conclude("bench.idl");
}
