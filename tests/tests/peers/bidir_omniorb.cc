// Both sides of `FiringSource` in `bench.idl` with omniORB, whose objects may all be called over the connection of their process:
//
// bidir_omniorb serve FILE     serves a source, and writes its reference into a file
// bidir_omniorb REFERENCE      has a sink of its own advised, is fired at, and prints what it heard
//
// Invariants: a sink counts; the source keeps those that advised, by number. Which connections are used is a matter of the options of the
// broker, which stand behind these words.
#include "bench.hh"
#include <atomic>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <vector>

class OwnSink : public POA_Sink {
public:
  void Hello() override { hellos++; }
  void HelloSync() override { syncs++; }
  std::atomic<int> hellos{0}, syncs{0};
};

class OwnSource : public POA_FiringSource {
public:
  CORBA::ULong Advise(Sink_ptr sink) override
  {
    std::lock_guard<std::mutex> held(lock);
    sinks[++last] = Sink::_duplicate(sink);
    return last;
  }
  void Unadvise(CORBA::ULong cookie) override
  {
    std::lock_guard<std::mutex> held(lock);
    if (!sinks.erase(cookie)) throw CORBA::BAD_PARAM();
  }
  void Fire(CORBA::ULong n) override
  {
    std::vector<Sink_var> all;
    {
      std::lock_guard<std::mutex> held(lock);
      for (auto &sink : sinks) all.push_back(sink.second);
    }
    for (Sink_var &sink : all) {
      for (CORBA::ULong i = 0; i < n; i++) sink->Hello();
      sink->HelloSync();
    }
  }

private:
  std::mutex lock;
  CORBA::ULong last = 0;
  std::map<CORBA::ULong, Sink_var> sinks;
};

// Objects here may be called over connections that their process has made.
static PortableServer::POA_ptr both_ways(CORBA::ORB_ptr orb)
{
  CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var root = PortableServer::POA::_narrow(object);
  PortableServer::POAManager_var manager = root->the_POAManager();
  manager->activate();
  CORBA::Any both;
  both <<= BiDirPolicy::BOTH;
  CORBA::PolicyList policies;
  policies.length(1);
  policies[0] = orb->create_policy(BiDirPolicy::BIDIRECTIONAL_POLICY_TYPE, both);
  return root->create_POA("both ways", manager, policies);
}

int main(int argc, char **argv)
try {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  PortableServer::POA_var poa = both_ways(orb);
  if (argc > 2 && !strcmp(argv[1], "serve")) {
    OwnSource *source = new OwnSource;
    PortableServer::ObjectId_var id = poa->activate_object(source);
    CORBA::Object_var object = poa->id_to_reference(id);
    CORBA::String_var reference = orb->object_to_string(object);
    std::string fresh = std::string(argv[2]) + ".new";
    std::ofstream(fresh) << reference.in();
    rename(fresh.c_str(), argv[2]);
    std::cout << "ready" << std::endl;
    orb->run();
    return 0;
  }
  CORBA::Object_var object = orb->string_to_object(argv[1]);
  FiringSource_var source = FiringSource::_narrow(object);
  OwnSink *own = new OwnSink;
  PortableServer::ObjectId_var id = poa->activate_object(own);
  CORBA::Object_var there = poa->id_to_reference(id);
  Sink_var sink = Sink::_narrow(there);
  CORBA::ULong cookie = source->Advise(sink);
  source->Fire(20);
  source->Unadvise(cookie);
  std::cout << "heard " << own->hellos << " and " << own->syncs << std::endl;
  orb->destroy();
  return 0;
} catch (const CORBA::SystemException &raised) {
  std::cerr << raised._name() << " " << raised.NP_minorString() << std::endl;
  return 1;
}
