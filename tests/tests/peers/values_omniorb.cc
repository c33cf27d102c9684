// Both sides of `stock.idl` with omniORB:
//
// values_omniorb serve FILE    serves a store, and writes its reference into a file
// values_omniorb narrow FILE   the same by a program that cannot make packed wares, so it cuts them down
// values_omniorb REFERENCE     calls a store, and prints what it is answered, a line for each call
//
// Invariants: the lines are those of `values_JacORB.java`. Who gets a value as an argument does not let it go; who gets one as a result does.
#include "stock.hh"
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>

using namespace stock;

// Values of these are made and counted; whoever holds one in a `_var` lets it go.
struct OwnWare : virtual OBV_stock::Ware, virtual CORBA::DefaultValueRefCountBase {};
struct OwnPacked : virtual OBV_stock::Packed, virtual OwnWare {};
struct OwnCooled : virtual OBV_stock::Cooled, virtual OwnPacked {};
struct OwnChain : virtual OBV_stock::Chain, virtual CORBA::DefaultValueRefCountBase {};
struct OwnPair : virtual OBV_stock::Pair, virtual CORBA::DefaultValueRefCountBase {};

template <class Own> struct Made : CORBA::ValueFactoryBase {
  CORBA::ValueBase *create_for_unmarshal() override { return new Own; }
};

// The same value once more, for somebody else to let go.
template <class T> T *again(T *value)
{
  CORBA::add_ref(value);
  return value;
}

static Ware *ware(int code)
{
  Ware *made = new OwnWare;
  made->code(code);
  return made;
}

static Packed *packed(Packed *made, int code, int seal, Ware *inner, double weight)
{
  Ware_var held(inner);
  made->code(code);
  made->seal(seal);
  made->inner(inner);
  made->weight(weight);
  return made;
}

static Pair *pair(Ware *left, Ware *right)
{
  Pair *made = new OwnPair;
  made->left(left);
  made->right(right);
  return made;
}

static std::string show(Ware *ware)
{
  if (!ware) return "null";
  std::ostringstream line;
  Packed *more = Packed::_downcast(ware);
  if (!more) {
    line << "W(" << ware->code() << ")";
    return line.str();
  }
  line << "P(" << more->code() << "," << int(more->seal()) << "," << show(more->inner()) << "," << more->weight();
  if (Cooled *most = Cooled::_downcast(ware)) line << "," << most->by();
  return line.str() + ")";
}

static std::string show(const Wares &wares)
{
  std::string line;
  for (CORBA::ULong i = 0; i < wares.length(); i++) line += (i ? " " : "") + show(wares[i].in());
  return line;
}

static std::string show(Pair *pair)
{
  return pair ? show(pair->left()) + " " + show(pair->right()) : "null";
}

// A ware, a packed one, the first again, null, the packed one again.
static Wares *mixture(Ware *one, Ware *two)
{
  Wares *wares = new Wares;
  wares->length(5);
  Ware *all[] = {one, two, one, nullptr, two};
  for (CORBA::ULong i = 0; i < 5; i++) (*wares)[i] = again(all[i]);
  return wares;
}

class Own : public POA_stock::Store {
  static void grow(char *&behind)
  {
    std::string longer = std::string(behind) + "!";
    CORBA::string_free(behind);
    behind = CORBA::string_dup(longer.c_str());
  }

  template <class T> static T *back(T *what, char *&behind)
  {
    grow(behind);
    return again(what);
  }

public:
  Ware *pass_ware(Ware *what, char *&behind) override { return back(what, behind); }
  Packed *pass_packed(Packed *what, char *&behind) override { return back(what, behind); }
  Cooled *pass_cooled(Cooled *what, char *&behind) override { return back(what, behind); }
  Note *pass_note(Note *what, char *&behind) override { return back(what, behind); }
  Sizes *pass_sizes(Sizes *what, char *&behind) override { return back(what, behind); }
  Chain *pass_chain(Chain *what, char *&behind) override { return back(what, behind); }
  Pair *pass_pair(Pair *what, char *&behind) override { return back(what, behind); }

  Wares *pass_wares(const Wares &what, char *&behind) override
  {
    grow(behind);
    return new Wares(what);
  }

  Shelf *pass_shelf(const Shelf &what, char *&behind) override
  {
    grow(behind);
    return new Shelf(what);
  }

  Ware *best(CORBA::String_out behind) override
  {
    behind = CORBA::string_dup("behind");
    return packed(new OwnPacked, 1, 2, ware(3), 1.5);
  }

  Pair *twins(CORBA::String_out behind) override
  {
    behind = CORBA::string_dup("behind");
    Ware_var one(ware(7));
    return pair(one, one);
  }

  Wares *mixed(CORBA::String_out behind) override
  {
    behind = CORBA::string_dup("behind");
    Ware_var one(ware(7)), two(packed(new OwnPacked, 1, 2, ware(3), 1.5));
    return mixture(one, two);
  }
};

static void serve(CORBA::ORB_ptr orb, const char *file)
{
  CORBA::Object_var root = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(root);
  Own *store = new Own;
  PortableServer::ObjectId_var id = poa->activate_object(store);
  CORBA::Object_var object = store->_this();
  PortableServer::POAManager_var manager = poa->the_POAManager();
  manager->activate();
  CORBA::String_var text = orb->object_to_string(object);
  std::ofstream(file) << text << std::flush;
  std::cout << "ready" << std::endl;
  orb->run();
}

static void told(const char *what, const std::function<std::string(CORBA::String_var &)> &call)
{
  CORBA::String_var behind(CORBA::string_dup("behind"));
  std::string line;
  try {
    line = call(behind);
    line += std::string(" ") + behind.in();
  } catch (const CORBA::SystemException &failed) {
    line = failed._name();
  }
  std::cout << what << ": " << line << std::endl;
}

static void ask(Store_ptr store)
{
  Ware_var one(ware(7));
  Packed_var two(packed(new OwnPacked, 1, 2, ware(3), 1.5));
  Packed_var nested(packed(new OwnPacked, 6, 5, again(two.in()), 2.5));
  OwnCooled *coldest = new OwnCooled;
  packed(coldest, 4, 3, nullptr, 0.5);
  coldest->by("ice");
  Cooled_var cooled(coldest);
  typedef CORBA::String_var &Behind;

  auto of_ware = [&](const char *what, Ware *given) {
    told(what, [&](Behind b) { Ware_var back(store->pass_ware(given, b.inout())); return show(back.in()); });
  };
  auto of_packed = [&](const char *what, Packed *given) {
    told(what, [&](Behind b) { Packed_var back(store->pass_packed(given, b.inout())); return show(back.in()); });
  };
  of_ware("ware", one);
  of_ware("null", nullptr);
  of_ware("cut", two.in());
  of_packed("packed", two);
  of_packed("cut within", nested);
  of_ware("both cut", nested.in());
  of_packed("not cut", cooled.in());
  told("cooled", [&](Behind b) { Cooled_var back(store->pass_cooled(cooled, b.inout())); return show(back.in()); });
  for (const char *text : {"hi", "", (const char *)nullptr}) {
    told("note", [&](Behind b) {
      Note_var note(text ? new Note(text) : nullptr), back(store->pass_note(note, b.inout()));
      return std::string(back.in() ? back->_value() : "null");
    });
  }
  for (int length : {3, 0, -1}) {
    told("sizes", [&](Behind b) {
      Sizes_var sizes(length < 0 ? nullptr : new Sizes);
      if (sizes.in()) sizes->length(length);
      for (int i = 0; i < length; i++) (*sizes.in())[i] = i + 1;
      Sizes_var back(store->pass_sizes(sizes, b.inout()));
      if (!back.in()) return std::string("null");
      std::string line;
      for (CORBA::ULong i = 0; i < back->length(); i++) line += (i ? " " : "") + std::to_string((*back.in())[i]);
      return "[" + line + "]";
    });
  }
  told("chain", [&](Behind b) {
    Chain_var head;
    for (int i = 0; i < 5; i++) {
      Chain *next = new OwnChain;
      next->item(i);
      next->next(head);
      head = next;
    }
    Chain_var back(store->pass_chain(head, b.inout()));
    std::string line;
    for (Chain *at = back; at; at = at->next()) line += (at == back.in() ? "" : " ") + std::to_string(at->item());
    return line;
  });
  auto of_pair = [&](const char *what, Pair *given) {
    Pair_var held(given);
    told(what, [&](Behind b) { Pair_var back(store->pass_pair(given, b.inout())); return show(back.in()); });
  };
  of_pair("shared", pair(one, one));
  of_pair("shared and cut", pair(two.in(), two.in()));
  of_pair("half", pair(nullptr, one));
  of_pair("no pair", nullptr);
  told("wares", [&](Behind b) {
    Wares_var wares(mixture(one, two.in())), back(store->pass_wares(wares, b.inout()));
    return show(back.in());
  });
  told("shelf", [&](Behind b) {
    Shelf shelf;
    shelf.floor = 3;
    shelf.front = again<Ware>(two.in());
    shelf.label = CORBA::string_dup("label");
    Shelf_var back(store->pass_shelf(shelf, b.inout()));
    return std::to_string(int(back->floor)) + " " + show(back->front.in()) + " " + back->label.in();
  });
  told("best", [&](Behind b) { Ware_var back(store->best(b.out())); return show(back.in()); });
  told("twins", [&](Behind b) { Pair_var back(store->twins(b.out())); return show(back.in()); });
  told("mixed", [&](Behind b) { Wares_var back(store->mixed(b.out())); return show(back.in()); });
}

int main(int argc, char **argv)
{
  try {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    orb->register_value_factory("IDL:stock/Ware:1.0", new Made<OwnWare>);
    orb->register_value_factory("IDL:stock/Chain:1.0", new Made<OwnChain>);
    orb->register_value_factory("IDL:stock/Pair:1.0", new Made<OwnPair>);
    if (strcmp(argv[1], "narrow")) {
      orb->register_value_factory("IDL:stock/Packed:1.0", new Made<OwnPacked>);
      orb->register_value_factory("IDL:stock/Cooled:1.0", new Made<OwnCooled>);
    }
    if (argc == 3) {
      serve(orb, argv[2]);
      return 0;
    }
    CORBA::Object_var object = orb->string_to_object(argv[1]);
    Store_var store = Store::_unchecked_narrow(object);
    ask(store);
    return 0;
  } catch (const CORBA::SystemException &failed) {
    const char *minor = failed.NP_minorString();
    std::cerr << failed._name() << " " << (minor ? minor : "?") << std::endl;
  }
  return 1;
}
