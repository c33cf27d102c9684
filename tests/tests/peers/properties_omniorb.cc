// Both sides of `properties.idl` with omniORB:
//
// properties_omniorb serve FILE   serves a desk, and writes its reference into FILE
// properties_omniorb REFERENCE    calls a desk with properties and without, and prints what it is told, a line for each call
#include "properties.hh"
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

class Desk : public POA_properties::Desk {
public:
  char *brought(const char *greeting, CORBA::Octet odd, CORBA::Context_ptr context) override
  {
    std::vector<std::string> lines;
    CORBA::NVList_var values;
    try {
      context->get_values("", 0, "*", values.out());
    } catch (const CORBA::BAD_CONTEXT &) {
      // That is what it says where there are none.
    }
    for (CORBA::ULong i = 0; !CORBA::is_nil(values) && i < values->count(); i++) {
      CORBA::NamedValue_ptr held = values->item(i);
      const char *text = "?";
      *held->value() >>= text;
      lines.push_back(std::string(held->name()) + "=" + text);
    }
    std::sort(lines.begin(), lines.end());
    std::string all = std::string(greeting) + " " + std::to_string(int(odd));
    for (const std::string &line : lines) all += " " + line;
    return CORBA::string_dup(all.c_str());
  }

  char *who(CORBA::Boolean, CORBA::Context_ptr context) override
  {
    CORBA::NVList_var values;
    try {
      context->get_values("", 0, "user", values.out());
    } catch (const CORBA::BAD_CONTEXT &) {
      throw properties::Unknown("nobody");
    }
    const char *text = "?";
    *values->item(0)->value() >>= text;
    return CORBA::string_dup(text);
  }

  CORBA::Long plain(CORBA::Long number) override { return number + 1; }
};

static void serve(CORBA::ORB_ptr orb, const char *file)
{
  CORBA::Object_var root = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(root);
  Desk *desk = new Desk;
  PortableServer::ObjectId_var id = poa->activate_object(desk);
  CORBA::Object_var object = desk->_this();
  PortableServer::POAManager_var manager = poa->the_POAManager();
  manager->activate();
  CORBA::String_var text = orb->object_to_string(object);
  std::ofstream(file) << text << std::flush;
  std::cout << "ready" << std::endl;
  orb->run();
}

static void ask(properties::Desk_ptr desk, CORBA::Context_ptr context)
{
  CORBA::String_var told = desk->brought("hello", 7, context);
  std::cout << told << std::endl;
  try {
    CORBA::String_var user = desk->who(true, context);
    std::cout << user << std::endl;
  } catch (const properties::Unknown &unknown) {
    std::cout << "unknown: " << unknown.name << std::endl;
  }
  // What a message holds beside its arguments must not be taken for the next message.
  std::cout << desk->plain(41) << std::endl;
}

int main(int argc, char **argv)
{
  try {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    if (argc == 3 && !strcmp(argv[1], "serve")) {
      serve(orb, argv[2]);
      return 0;
    }
    CORBA::Object_var object = orb->string_to_object(argv[1]);
    properties::Desk_var desk = properties::Desk::_unchecked_narrow(object);
    CORBA::Context_var root, context;
    orb->get_default_context(root.out());
    ask(desk, root);
    root->create_child("caller", context.out());
    CORBA::Any text;
    const char *held[][2] = {{"user", "Ada"}, {"app.name", "ledger"}, {"app.version", "3"}, {"kept", "here"}};
    for (auto &each : held) {
      text <<= each[1];
      context->set_one_value(each[0], text);
    }
    ask(desk, context);
    return 0;
  } catch (const CORBA::SystemException &failed) {
    const char *minor = failed.NP_minorString();
    std::cerr << failed._name() << " " << (minor ? minor : "?") << std::endl;
  }
  return 1;
}
