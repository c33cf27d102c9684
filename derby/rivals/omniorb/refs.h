// References by name, from a file of NAME<TAB>REFERENCE lines.
#pragma once
#include <omniORB4/CORBA.h>

#include <fstream>
#include <map>
#include <stdexcept>
#include <string>

class Refs {
public:
  Refs(CORBA::ORB_ptr orb, const std::string& path) : orb_(CORBA::ORB::_duplicate(orb)), path_(path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read " + path);
    for (std::string line; std::getline(file, line);) {
      const auto tab = line.find('\t');
      if (tab != std::string::npos) text_[line.substr(0, tab)] = line.substr(tab + 1);
    }
  }
  template <class Interface> typename Interface::_var_type get(const char* name) const {
    const auto found = text_.find(name);
    if (found == text_.end()) throw std::runtime_error(std::string("no ") + name + " in " + path_);
    CORBA::Object_var object = orb_->string_to_object(found->second.c_str());
    typename Interface::_var_type typed = Interface::_narrow(object);
    if (CORBA::is_nil(typed)) throw std::runtime_error(std::string(name) + " is of another type");
    return typed;
  }

private:
  CORBA::ORB_var orb_;
  std::string path_;
  std::map<std::string, std::string> text_;
};
