// omniORB's client of an object that may be of another system: values, several results, exceptions, oneways.
//
//   cross_omniorb REFERENCE             prints `ok`
//   cross_omniorb REFERENCE narrow      the same of a family::Home, whose objects it narrows
#include "crosswise.hh"

#include <cstring>
#include <iostream>
#include <stdexcept>
#include <string>

namespace {

void wanted(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("not as expected: " + what);
}

void check(interop::Kitchen_ptr kitchen) {
  interop::Names names;
  names.length(3);
  names[0] = "";
  names[1] = "a";
  names[2] = "more";
  interop::Names_var same = kitchen->echo_names(names);
  wanted(same->length() == 3 && *same[0u].in() == 0 && std::strcmp(same[2u], "more") == 0, "echo_names");
  wanted(kitchen->next_colour(interop::blue) == interop::red, "next_colour");
  CORBA::Double sum = 0;
  interop::Point both = {3, 4};
  CORBA::String_var text = kitchen->mix(-7, 0.25, sum, both);
  wanted(sum == -6.75 && both.x == 4 && both.y == 3 && std::strcmp(text, "-7") == 0, "mix");
  wanted(kitchen->judge(1) == 2, "judge(1)");
  try {
    kitchen->judge(-5);
    wanted(false, "judge(-5): nothing was raised");
  } catch (const interop::Refused& e) {
    wanted(std::strcmp(e.why, "negative") == 0 && e.code == -5 && e.mood == interop::blue, "the content of Refused");
  }
  try {
    kitchen->judge(0);
    wanted(false, "judge(0): nothing was raised");
  } catch (const interop::Empty&) {
  }
  try {
    kitchen->judge(13);
    wanted(false, "judge(13): nothing was raised");
  } catch (const CORBA::NO_PERMISSION&) {
  }
  wanted(kitchen->judge(2) == 3, "the connection survives exceptions");
  const CORBA::Long noted = kitchen->noted();
  for (int i = 0; i < 50; ++i) kitchen->note("x");
  wanted(kitchen->noted() == noted + 50, "oneways arrive before the next call");
}

// Each object is what it is, whatever the reference to it says.
void narrow(family::Home_ptr home) {
  for (const char* what : {"leaf itself", "leaf bare"}) {
    family::Base_var found = home->find(what);
    wanted(!CORBA::is_nil(found) && found->one() == 1, what);
    family::Middle_var middle = family::Middle::_narrow(found);
    wanted(!CORBA::is_nil(middle) && middle->two() == 2, "it is a Middle");
    family::Other_var other = family::Other::_narrow(found);
    wanted(CORBA::is_nil(other), "it is no Other");
  }
  family::Base_var found = home->find("other bare");
  family::Other_var other = family::Other::_narrow(found);
  wanted(!CORBA::is_nil(other) && other->four() == 4, "it is an Other");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    if (argc != 2 && argc != 3) return 2;
    CORBA::Object_var object = orb->string_to_object(argv[1]);
    if (argc == 3) {
      family::Home_var home = family::Home::_narrow(object);
      wanted(!CORBA::is_nil(home), "the type of the object");
      narrow(home);
      std::cout << "ok" << std::endl;
      return 0;
    }
    interop::Kitchen_var kitchen = interop::Kitchen::_narrow(object);
    wanted(!CORBA::is_nil(kitchen), "the type of the object");
    check(kitchen);
    std::cout << "ok" << std::endl;
    return 0;
  } catch (const CORBA::Exception& e) {
    std::cerr << "cross_omniorb: " << e._name() << std::endl;
  } catch (const std::exception& e) {
    std::cerr << "cross_omniorb: " << e.what() << std::endl;
  }
  return 1;
}
