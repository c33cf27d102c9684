// Servants of interop.idl. What each operation does is written there.
#pragma once
#include "interop.hh"

#include <cstdio>
#include <mutex>
#include <string>

class BothServant : public POA_interop::Both {
public:
  explicit BothServant(std::string name) : name_(std::move(name)) {}
  char* name() override { Held h(lock_); return CORBA::string_dup(name_.c_str()); }
  void name(const char* v) override { Held h(lock_); name_ = v; ++changes_; }
  CORBA::Long changes() override { Held h(lock_); return changes_; }
  char* greet(const char* who) override { return CORBA::string_dup((std::string(interop::greeting) + who).c_str()); }
  CORBA::Long add(CORBA::Long n) override { Held h(lock_); return sum_ += n; }
  interop::Colour shade() override { Held h(lock_); return shade_; }
  void shade(interop::Colour v) override { Held h(lock_); shade_ = v; }
  char* summary() override {
    Held h(lock_);
    return CORBA::string_dup((name_ + " " + std::to_string(sum_) + " " + std::to_string(int(shade_))).c_str());
  }

private:
  using Held = std::lock_guard<std::mutex>;
  std::mutex lock_;
  std::string name_;
  CORBA::Long changes_ = 0, sum_ = 0;
  interop::Colour shade_ = interop::green;
};

class KitchenServant : public POA_interop::Kitchen {
public:
  interop::Everything* echo_everything(const interop::Everything& v) override { return new interop::Everything(v); }
  interop::Points* echo_points(const interop::Points& v) override { return new interop::Points(v); }
  interop::Names* echo_names(const interop::Names& v) override { return new interop::Names(v); }
  interop::Doubles* echo_doubles(const interop::Doubles& v) override { return new interop::Doubles(v); }
  interop::Octets* echo_octets(const interop::Octets& v) override { return new interop::Octets(v); }
  interop::Few* echo_few(const interop::Few& v) override { return new interop::Few(v); }
  interop::Table* echo_table(const interop::Table& v) override { return new interop::Table(v); }
  interop::Grid_slice* echo_grid(const interop::Grid v) override { return interop::Grid_dup(v); }
  char* echo_brief(const char* v) override { return CORBA::string_dup(v); }
  interop::Tree* echo_tree(const interop::Tree& v) override { return new interop::Tree(v); }
  interop::Colour next_colour(interop::Colour v) override { return interop::Colour((int(v) + 1) % 3); }

  char* mix(CORBA::Long a, CORBA::Double b, CORBA::Double& sum, interop::Point& both) override {
    sum = a + b;
    std::swap(both.x, both.y);
    return CORBA::string_dup(std::to_string(a).c_str());
  }
  CORBA::Long judge(CORBA::Long code) override {
    if (code < 0) throw interop::Refused("negative", code, interop::blue);
    if (code == 0) throw interop::Empty();
    if (code == 13) throw CORBA::NO_PERMISSION(13, CORBA::COMPLETED_NO);
    return code + 1;
  }

  interop::Both_ptr make(const char* name) override {
    auto* servant = new BothServant(name);
    PortableServer::POA_var poa = _default_POA();
    PortableServer::ObjectId_var id = poa->activate_object(servant);
    servant->_remove_ref();
    return servant->_this();
  }
  interop::Named_ptr find(const char* name) override {
    if (*name == 0) return interop::Named::_nil();
    return make(name);
  }
  interop::Names* names_of(const interop::NamedList& objects) override {
    auto* names = new interop::Names;
    names->length(objects.length());
    for (CORBA::ULong i = 0; i < objects.length(); ++i) {
      (*names)[i] = CORBA::is_nil(objects[i]) ? CORBA::string_dup("nil") : objects[i]->name();
    }
    return names;
  }
  interop::Card* card_for(const char* label) override {
    auto* card = new interop::Card;
    card->label = CORBA::string_dup(label);
    card->owner = make(label);
    return card;
  }
  char* owner_of(const interop::Card& v) override { return v.owner->name(); }

  CORBA::Long tell(interop::Listener_ptr l, CORBA::Long n) override {
    for (CORBA::Long i = 0; i < n; ++i) l->heard(std::to_string(i).c_str());
    return l->ask(n);
  }
  void note(const char*) override { std::lock_guard<std::mutex> held(lock_); ++noted_; }
  CORBA::Long noted() override { std::lock_guard<std::mutex> held(lock_); return noted_; }

private:
  std::mutex lock_;
  CORBA::Long noted_ = 0;
};

class PantryServant : public POA_interop::Pantry {
public:
  CORBA::WChar echo_wchar(CORBA::WChar v) override { return v; }
  CORBA::WChar* echo_wstring(const CORBA::WChar* v) override { return CORBA::wstring_dup(v); }
  interop::Choice* echo_choice(const interop::Choice& v) override { return new interop::Choice(v); }
  interop::Maybe* echo_maybe(const interop::Maybe& v) override { return new interop::Maybe(v); }
  interop::Many* echo_many(const interop::Many& v) override { return new interop::Many(v); }
  CORBA::Any* echo_any(const CORBA::Any& v) override { return new CORBA::Any(v); }
  interop::Anys* echo_anys(const interop::Anys& v) override { return new interop::Anys(v); }
  char* describe(const CORBA::Any& v) override {
    CORBA::Long number;
    const char* text;
    const interop::Point* point;
    std::string what = "other";
    if (v >>= number) what = "long " + std::to_string(number);
    else if (v >>= text) what = std::string("string ") + text;
    else if (v >>= point) what = "Point " + std::to_string(point->x) + " " + std::to_string(point->y);
    return CORBA::string_dup(what.c_str());
  }
  CORBA::TypeCode_ptr echo_code(CORBA::TypeCode_ptr v) override { return CORBA::TypeCode::_duplicate(v); }
  interop::Codes* echo_codes(const interop::Codes& v) override { return new interop::Codes(v); }
  interop::Described* echo_described(const interop::Described& v) override { return new interop::Described(v); }
  char* identify(CORBA::TypeCode_ptr v) override {
    try {
      return CORBA::string_dup(v->id());
    } catch (const CORBA::TypeCode::BadKind&) {
      return CORBA::string_dup(std::to_string(int(v->kind())).c_str());
    }
  }
};
