// Fixed-point numbers with omniORB: `serve FILE` serves a till and writes its reference; with a reference it calls one, and prints what it hears.
#include <cstring>
#include <fstream>
#include <iostream>

#include "price.hh"

using namespace desk;

static std::string text(const CORBA::Fixed &number)
{
  return CORBA::String_var(number.NP_asString()).in();
}

class OwnTill : public POA_desk::Till {
public:
  Price twice(const Price &what) { return Price(what + what); }

  Item pass(const Item &what, Prices_out both)
  {
    Prices *made = new Prices;
    made->length(2);
    (*made)[0] = what.cost;
    (*made)[1] = Price(-what.cost);
    both = made;
    return what;
  }

  CORBA::Any *more(const CORBA::Any &what)
  {
    CORBA::Fixed number;
    CORBA::Any *made = new CORBA::Any;
    if (what >>= CORBA::Any::to_fixed(number, 7, 2))
      *made <<= CORBA::Any::from_fixed(number + CORBA::Fixed("0.01"), 7, 2);
    return made;
  }
};

static void serve(CORBA::ORB_ptr orb, const char *file)
{
  CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(object);
  PortableServer::Servant_var<OwnTill> own = new OwnTill;
  PortableServer::ObjectId_var id = poa->activate_object(own);
  Till_var served = own->_this();
  poa->the_POAManager()->activate();
  std::ofstream(file) << CORBA::String_var(orb->object_to_string(served)).in() << std::endl;
  std::cout << "ready" << std::endl;
  orb->run();
}

static void ask(Till_ptr served)
{
  std::cout << "twice: " << text(served->twice(Price("123.45"))) << " " << text(served->twice(Price("-0.01"))) << std::endl;
  Item item;
  item.before = 1;
  item.cost = Price("-99999.99");
  item.pieces = Count("1234");
  item.behind = 5;
  Prices_var both;
  item = served->pass(item, both.out());
  std::cout << "pass: " << text(item.cost) << " " << text(item.pieces) << " " << item.behind << " " << both->length() << " "
            << text(both[1]) << std::endl;
  CORBA::Any given;
  given <<= CORBA::Any::from_fixed(CORBA::Fixed("5.25"), 7, 2);
  CORBA::Any_var told = served->more(given);
  CORBA::Fixed number;
  bool known = told.in() >>= CORBA::Any::to_fixed(number, 7, 2);
  std::cout << "more: " << (known ? text(number) : "no number") << std::endl;
}

int main(int argc, char **argv)
{
  try {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    if (argc == 3) {
      serve(orb, argv[2]);
      return 0;
    }
    CORBA::Object_var object = orb->string_to_object(argv[1]);
    Till_var served = Till::_unchecked_narrow(object);
    ask(served);
    return 0;
  } catch (const CORBA::SystemException &failed) {
    const char *minor = failed.NP_minorString();
    std::cerr << failed._name() << " " << (minor ? minor : "?") << std::endl;
  }
  return 1;
}
