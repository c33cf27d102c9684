// omniORB calling bench.idl and interop.idl.
//
//   client REF-FILE race calls|bytes|callbacks [--calls N] [--warmup N] [--budget-ms N] [--large-divisor N] [--server-pid PID] [--operation NAME]
//   client REF-FILE check [--largest BYTES]          the objects of bench.idl answer as they should
//   client REF-FILE check-interop [--without-pantry] those of interop.idl do
//
// Options for the ORB (-ORB...) may follow. Exit status 0: all is well.
#include "bench_servants.h"
#include "callbacks_servants.h"
#include "check.h"
#include "measure.h"
#include "refs.h"

#include <iostream>

namespace {

void require(bool held, const char* what) {
  if (!held) throw std::runtime_error(std::string("wrong answer: ") + what);
}

void race_calls(const Refs& refs, const Plan& plan) {
  benchmarking_var object = refs.get<benchmarking>("benchmarking");
  measure(plan, "void_call", plan.calls, [&] { object->void_call(); });
  measure(plan, "in_int_call", plan.calls, [&] { object->in_int_call(42); });
  measure(plan, "out_int_call", plan.calls, [&] {
    CORBA::Long v = 0;
    object->out_int_call(v);
    require(v == 42, "out_int_call");
  });
  measure(plan, "in_out_int_call", plan.calls, [&] {
    CORBA::Long v = 42;
    object->in_out_int_call(v);
    require(v == 43, "in_out_int_call");
  });
  measure(plan, "in_string_call", plan.calls, [&] { object->in_string_call(kText); });
  measure(plan, "out_string_call", plan.calls, [&] {
    CORBA::String_var v;
    object->out_string_call(v.out());
    require(v.in()[0] == 'H', "out_string_call");
  });
  measure(plan, "in_out_string_call", plan.calls, [&] {
    CORBA::String_var v = kText;
    object->in_out_string_call(v.inout());
    require(v.in()[0] == 'H', "in_out_string_call");
  });
}

void race_bytes(const Refs& refs, const Plan& plan) {
  IRemoteObject_var object = refs.get<IRemoteObject>("IRemoteObject");
  const auto get = [&](CORBA::Long n) {
    OctetSeq_var bytes = object->GetBytes(n);
    require(bytes->length() == CORBA::ULong(n), "GetBytes");
  };
  measure(plan, "GetBytes 100 B", plan.calls, [&] { get(100); });
  measure(plan, "GetBytes 1 MB", std::max<std::uint64_t>(1, plan.calls / plan.large_divisor), [&] { get(1000000); });
}

// A factory makes the server object, which keeps the reference of a sink that is made for each cycle.
void race_callbacks(CORBA::ORB_ptr orb, const Refs& refs, const Plan& plan) {
  CORBA::Object_var root = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(root);
  PortableServer::POAManager_var manager = poa->the_POAManager();
  manager->activate();
  derby::CallbackFactory_var factory = refs.get<derby::CallbackFactory>("Factory");
  const auto cycle = [&](bool prove) {
    ListenerServant* servant = new ListenerServant;
    PortableServer::ServantBase_var held = servant;
    PortableServer::ObjectId_var id = poa->activate_object(servant);
    derby::Listener_var sink = servant->_this();
    derby::Callback_var source = factory->create();
    const CORBA::ULong cookie = source->attach(sink);
    if (prove) {
      source->fire();
      require(servant->hellos() == 1, "fire");
    }
    source->detach(cookie);
    source->destroy();
    poa->deactivate_object(id);
  };
  if (plan.warmup > 0) cycle(true);
  measure(plan, "callback", plan.calls, [&] { cycle(false); });
}

int run(CORBA::ORB_ptr orb, int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: client REF-FILE race calls|bytes|callbacks | check | check-interop\n";
    return 2;
  }
  const std::string mode = argv[2];
  Plan plan;
  std::uint64_t largest = 1000000;
  bool pantry = true;
  std::string race;
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&]() -> const char* {
      if (i + 1 >= argc) throw std::runtime_error(word + " wants a value");
      return argv[++i];
    };
    const auto number = [&] { return std::strtoull(value(), nullptr, 10); };
    if (word == "--calls") plan.calls = number();
    else if (word == "--warmup") plan.warmup = number();
    else if (word == "--budget-ms") plan.budget_ms = number();
    else if (word == "--large-divisor") plan.large_divisor = std::max(1ULL, number());
    else if (word == "--server-pid") plan.server_pids.push_back(int(number()));
    else if (word == "--operation") plan.only = value();
    else if (word == "--pause-ms") plan.pause_ms = number();
    else if (word == "--largest") largest = number();
    else if (word == "--without-pantry") pantry = false;
    else if (race.empty() && word[0] != '-') race = word;
    else throw std::runtime_error("unknown option " + word);
  }
  const Refs refs(orb, argv[1]);
  if (mode == "race" && race == "calls") race_calls(refs, plan);
  else if (mode == "race" && race == "bytes") race_bytes(refs, plan);
  else if (mode == "race" && race == "callbacks") race_callbacks(orb, refs, plan);
  else if (mode == "check") return check_bench(orb, refs, largest);
  else if (mode == "check-interop") return check_interop(orb, refs, pantry);
  else throw std::runtime_error("unknown mode " + mode + " " + race);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int status = 1;
  try {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    status = run(orb, argc, argv);
    orb->destroy();
  } catch (const CORBA::SystemException& e) {
    std::cerr << "client: system exception " << e._name() << " minor " << e.minor() << "\n";
  } catch (const CORBA::Exception& e) {
    std::cerr << "client: exception " << e._name() << "\n";
  } catch (const std::exception& e) {
    std::cerr << "client: " << e.what() << "\n";
  }
  return status;
}
