// omniORB serving bench.idl, callbacks.idl and interop.idl.
//
//   server --ref-file FILE [--largest BYTES] [-ORBendPoint giop:tcp:127.0.0.1:] [-ORBgiopMaxMsgSize N] ...
//
// FILE gets one line NAME<TAB>IOR for each object, and appears only when it is whole. Runs until it is killed.
#include "bench_servants.h"
#include "callbacks_servants.h"
#include "interop_servants.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

namespace {

class References {
public:
  References(CORBA::ORB_ptr orb, PortableServer::POA_ptr poa)
      : orb_(CORBA::ORB::_duplicate(orb)), poa_(PortableServer::POA::_duplicate(poa)) {}

  template <class Servant> void add(const char* name, Servant* servant, const char* alias = nullptr) {
    PortableServer::ObjectId_var id = poa_->activate_object(servant);
    CORBA::Object_var object = poa_->id_to_reference(id);
    servant->_remove_ref();
    CORBA::String_var text = orb_->object_to_string(object);
    lines_ += std::string(name) + "\t" + text.in() + "\n";
    if (alias != nullptr) lines_ += std::string(alias) + "\t" + text.in() + "\n";
  }

  bool write(const std::string& path) const {
    if (path.empty()) {
      std::cout << lines_ << std::flush;
      return true;
    }
    const std::string partial = path + ".partial";
    std::FILE* file = std::fopen(partial.c_str(), "w");
    if (file == nullptr) return false;
    bool written = std::fwrite(lines_.data(), 1, lines_.size(), file) == lines_.size();
    written = std::fclose(file) == 0 && written;
    return written && std::rename(partial.c_str(), path.c_str()) == 0;
  }

private:
  CORBA::ORB_var orb_;
  PortableServer::POA_var poa_;
  std::string lines_;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    std::string path;
    unsigned long largest = 64UL << 20;
    for (int i = 1; i + 1 < argc; i += 2) {
      if (std::strcmp(argv[i], "--ref-file") == 0) path = argv[i + 1];
      else if (std::strcmp(argv[i], "--largest") == 0) largest = std::strtoul(argv[i + 1], nullptr, 10);
      else { std::cerr << "unknown option " << argv[i] << "\n"; return 2; }
    }
    CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var poa = PortableServer::POA::_narrow(object);

    References references(orb, poa);
    references.add("benchmarking", new Benchmarking);
    references.add("IRemoteObject", new RemoteObject(static_cast<std::uint32_t>(largest)));
    references.add("Sink", new SinkServant);
    references.add("Source", new FiringSourceServant, "FiringSource");
    references.add("Factory", new FactoryServant(poa));
    references.add("Both", new BothServant("nobody"));
    references.add("Kitchen", new KitchenServant);
    references.add("Pantry", new PantryServant);

    PortableServer::POAManager_var manager = poa->the_POAManager();
    manager->activate();
    if (!references.write(path)) {
      std::cerr << "cannot write " << path << "\n";
      return 1;
    }
    orb->run();
    return 0;
  } catch (const CORBA::Exception& e) {
    std::cerr << "server: CORBA exception " << e._name() << "\n";
    return 1;
  }
}
