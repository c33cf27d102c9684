// What the objects of interop.idl must answer; the rules are written there.
#include "check.h"
#include "interop_servants.h"
#include "refs.h"

#include <cmath>
#include <limits>

namespace {

using namespace interop;

class ListenerServant : public POA_interop::Listener {
public:
  void heard(const char* what) override { std::lock_guard<std::mutex> held(lock_); heard_ += what; heard_ += ' '; }
  CORBA::Long ask(CORBA::Long n) override { return n * 2; }
  std::string all() { std::lock_guard<std::mutex> held(lock_); return heard_; }

private:
  std::mutex lock_;
  std::string heard_;
};

template <class List, class Item> void push(List& list, const Item& item) {
  list.length(list.length() + 1);
  list[list.length() - 1] = item;
}

bool same(const Point& a, const Point& b) { return a.x == b.x && a.y == b.y; }

bool same(const Everything& a, const Everything& b) {
  return a.flag == b.flag && a.letter == b.letter && a.small == b.small && a.s == b.s && a.us == b.us && a.l == b.l &&
         a.ul == b.ul && a.ll == b.ll && a.ull == b.ull && a.f == b.f && a.d == b.d && std::strcmp(a.text, b.text) == 0 &&
         a.tint == b.tint && same(a.place, b.place);
}

bool same(const Tree& a, const Tree& b) {
  if (std::strcmp(a.name, b.name) != 0 || a.children.length() != b.children.length()) return false;
  for (CORBA::ULong i = 0; i < a.children.length(); ++i) {
    if (!same(a.children[i], b.children[i])) return false;
  }
  return true;
}

Everything extremes(bool low) {
  Everything v;
  v.flag = !low;
  v.letter = low ? 'a' : '~';
  v.small = low ? 0 : 255;
  v.s = low ? -32768 : 32767;
  v.us = low ? 0 : 65535;
  v.l = low ? std::numeric_limits<CORBA::Long>::min() : std::numeric_limits<CORBA::Long>::max();
  v.ul = low ? 0 : 4294967295u;
  v.ll = low ? std::numeric_limits<CORBA::LongLong>::min() : std::numeric_limits<CORBA::LongLong>::max();
  v.ull = low ? 0 : std::numeric_limits<CORBA::ULongLong>::max();
  v.f = low ? -0.5f : std::numeric_limits<float>::max();
  v.d = low ? std::numeric_limits<double>::min() : std::numeric_limits<double>::infinity();
  v.text = CORBA::string_dup(low ? "" : "text of 16 chars");
  v.tint = low ? red : blue;
  v.place.x = low ? -1 : 1;
  v.place.y = low ? 2 : -2;
  return v;
}

void values(Checks& check, Kitchen_ptr kitchen) {
  for (bool low : {true, false}) {
    const Everything v = extremes(low);
    Everything_var back = kitchen->echo_everything(v);
    check.that(same(v, back.in()), low ? "echo_everything, lowest values" : "echo_everything, highest values");
  }
  for (CORBA::ULong n : {0u, 1u, 1000u}) {
    Points points;
    Doubles doubles;
    Octets octets;
    Names names;
    points.length(n), doubles.length(n), octets.length(n), names.length(n);
    for (CORBA::ULong i = 0; i < n; ++i) {
      points[i].x = CORBA::Long(i), points[i].y = -CORBA::Long(i);
      doubles[i] = i / 3.0, octets[i] = CORBA::Octet(i), names[i] = CORBA::string_dup(std::string(i % 7, 'n').c_str());
    }
    Points_var p = kitchen->echo_points(points);
    Doubles_var d = kitchen->echo_doubles(doubles);
    Octets_var o = kitchen->echo_octets(octets);
    Names_var t = kitchen->echo_names(names);
    bool held = p->length() == n && d->length() == n && o->length() == n && t->length() == n;
    for (CORBA::ULong i = 0; held && i < n; ++i) {
      held = same(p[i], points[i]) && d[i] == doubles[i] && o[i] == octets[i] && std::strcmp(t[i], names[i]) == 0;
    }
    check.that(held, "sequences of " + std::to_string(n));
  }
  Few few;
  for (CORBA::Long n : {5, 6, 7, 8}) push(few, n);
  Few_var few_back = kitchen->echo_few(few);
  check.that(few_back->length() == 4 && few_back[3] == 8, "a bounded sequence that is full");
  Table table;
  table.length(3);
  table[0].length(2);
  table[0][0] = 1.5, table[0][1] = -2.5;
  table[2].length(1);
  table[2][0] = 3.5;
  Table_var table_back = kitchen->echo_table(table);
  check.that(table_back->length() == 3 && table_back[0].length() == 2 && table_back[0][1] == -2.5 &&
                 table_back[1].length() == 0 && table_back[2][0] == 3.5, "a sequence of sequences");
  Grid grid = {{1, 2, 3}, {4, 5, 6}};
  Grid_var grid_back = kitchen->echo_grid(grid);
  check.that(std::memcmp(grid, grid_back.in(), sizeof grid) == 0, "an array of two dimensions");
  CORBA::String_var brief = kitchen->echo_brief("12345678");
  check.that(std::strcmp(brief, "12345678") == 0, "a bounded string that is full");
  Tree tree;
  tree.name = CORBA::string_dup("root");
  tree.children.length(2);
  tree.children[0].name = CORBA::string_dup("leaf");
  tree.children[1].name = CORBA::string_dup("branch");
  tree.children[1].children.length(1);
  tree.children[1].children[0].name = CORBA::string_dup("twig");
  Tree_var tree_back = kitchen->echo_tree(tree);
  check.that(same(tree, tree_back.in()), "a recursive structure");
  check.that(kitchen->next_colour(red) == green && kitchen->next_colour(blue) == red, "enumerators");
  CORBA::Double sum = 0;
  Point both = {3, 4};
  CORBA::String_var text = kitchen->mix(-7, 0.25, sum, both);
  check.that(sum == -6.75 && both.x == 4 && both.y == 3 && std::strcmp(text, "-7") == 0, "in, out, inout and a result");
}

void exceptions(Checks& check, Kitchen_ptr kitchen) {
  check.that(kitchen->judge(1) == 2, "judge(1)");
  check.raises<Refused>("judge(-5)", [&] { kitchen->judge(-5); }, [](const Refused& e) {
    return std::strcmp(e.why, "negative") == 0 && e.code == -5 && e.mood == blue;
  });
  check.raises<Empty>("judge(0)", [&] { kitchen->judge(0); }, [](const Empty&) { return true; });
  check.raises<CORBA::NO_PERMISSION>("judge(13)", [&] { kitchen->judge(13); }, [](const CORBA::NO_PERMISSION& e) {
    return e.completed() == CORBA::COMPLETED_NO;
  });
  check.that(kitchen->judge(2) == 3, "the connection survives exceptions");
}

void attributes(Checks& check, Both_ptr object) {
  const CORBA::Long changes = object->changes();
  object->name("somebody");
  CORBA::String_var name = object->name();
  check.that(std::strcmp(name, "somebody") == 0, "an attribute is set");
  check.that(object->changes() == changes + 1, "a readonly attribute follows");
  CORBA::String_var greeted = object->greet("world");
  check.that(std::strcmp(greeted, "Hello, world") == 0, "an inherited operation");
  object->shade(blue);
  check.that(object->shade() == blue, "an attribute of the other parent");
  const CORBA::Long before = object->add(0);
  check.that(object->add(5) == before + 5, "an operation of the first parent");
  CORBA::String_var summary = object->summary();
  check.that("somebody " + std::to_string(before + 5) + " 2" == summary.in(), "an own operation");
  Named_var base = Named::_narrow(object);
  Painter_var painter = Painter::_narrow(object);
  check.that(!CORBA::is_nil(base) && !CORBA::is_nil(painter), "narrowing to the parents");
  for (const char* id : {"IDL:interop/Named:1.0", "IDL:interop/Counter:1.0", "IDL:interop/Painter:1.0", "IDL:interop/Both:1.0",
                         "IDL:omg.org/CORBA/Object:1.0"}) {
    check.that(object->_is_a(id), std::string("_is_a ") + id);
  }
  check.that(!object->_is_a("IDL:interop/Kitchen:1.0"), "_is_a refuses a stranger");
}

void references(Checks& check, Kitchen_ptr kitchen) {
  Both_var made = kitchen->make("fresh");
  CORBA::String_var summary = made->summary();
  check.that(std::strcmp(summary, "fresh 0 1") == 0, "a new object begins as it should");
  Named_var nothing = kitchen->find("");
  check.that(CORBA::is_nil(nothing), "nil comes back");
  Named_var found = kitchen->find("found");
  CORBA::String_var name = found->name();
  check.that(std::strcmp(name, "found") == 0, "a found object answers");
  auto* servant = new BothServant("mine");
  Both_var mine = servant->_this();
  NamedList objects;
  objects.length(4);
  objects[0] = Named::_duplicate(made);
  objects[1] = Named::_nil();
  objects[2] = Named::_duplicate(mine);
  objects[3] = Named::_duplicate(found);
  Names_var names = kitchen->names_of(objects);
  check.that(names->length() == 4 && std::strcmp(names[0u], "fresh") == 0 && std::strcmp(names[1u], "nil") == 0 &&
                 std::strcmp(names[2u], "mine") == 0 && std::strcmp(names[3u], "found") == 0,
             "objects of both sides in one list");
  Card_var card = kitchen->card_for("label");
  CORBA::String_var owner = card->owner->name();
  check.that(std::strcmp(card->label, "label") == 0 && std::strcmp(owner, "label") == 0, "a reference inside a structure");
  owner = kitchen->owner_of(card);
  check.that(std::strcmp(owner, "label") == 0, "and back inside one");
}

void callbacks(Checks& check, Kitchen_ptr kitchen) {
  auto* servant = new ListenerServant;
  Listener_var listener = servant->_this();
  check.that(kitchen->tell(listener, 5) == 10, "the answer of a callback");
  check.that(servant->all() == "0 1 2 3 4 ", "oneways arrive in order");
  const CORBA::Long noted = kitchen->noted();
  for (int i = 0; i < 50; ++i) kitchen->note("x");
  check.that(kitchen->noted() == noted + 50, "oneways to the server arrive before the next call");
}

void pantry_values(Checks& check, Pantry_ptr pantry) {
  const CORBA::WChar wide[] = {L'W', 0xe4, 0x20ac, 0x4e2d, 0};
  check.that(pantry->echo_wchar(0x20ac) == 0x20ac, "a wide character");
  CORBA::WString_var back = pantry->echo_wstring(wide);
  check.that(std::memcmp(back.in(), wide, sizeof wide) == 0, "a wide string");
  Choice choice;
  choice.number(7);
  Choice_var c = pantry->echo_choice(choice);
  check.that(c->_d() == red && c->number() == 7, "a union by enumerator");
  choice.text("words");
  c = pantry->echo_choice(choice);
  check.that(c->_d() == green && std::strcmp(c->text(), "words") == 0, "its second branch");
  choice.place(Point{1, 2});
  c = pantry->echo_choice(choice);
  check.that(c->_d() == blue && c->place().y == 2, "its default branch");
  Maybe maybe;
  maybe.value("there");
  Maybe_var m = pantry->echo_maybe(maybe);
  check.that(m->_d() && std::strcmp(m->value(), "there") == 0, "a union by boolean");
  maybe._default();
  m = pantry->echo_maybe(maybe);
  check.that(!m->_d(), "a union without a branch");
  Many many;
  many.big(1LL << 60);
  many._d(2);
  Many_var y = pantry->echo_many(many);
  check.that(y->_d() == 2 && y->big() == 1LL << 60, "a branch with two labels");
  Names names;
  push(names, CORBA::string_dup("one"));
  many.list(names);
  y = pantry->echo_many(many);
  check.that(y->_d() == -7 && std::strcmp(y->list()[0], "one") == 0, "a sequence in a union");
}

void anys(Checks& check, Pantry_ptr pantry) {
  CORBA::Any any;
  any <<= CORBA::Long(7);
  CORBA::String_var text = pantry->describe(any);
  check.that(std::strcmp(text, "long 7") == 0, "any of long is understood");
  any <<= "hi";
  text = pantry->describe(any);
  check.that(std::strcmp(text, "string hi") == 0, "any of string is understood");
  any <<= Point{1, 2};
  text = pantry->describe(any);
  check.that(std::strcmp(text, "Point 1 2") == 0, "any of a structure is understood");
  CORBA::Any_var back = pantry->echo_any(any);
  const Point* point = nullptr;
  check.that((back.in() >>= point) && point->y == 2, "any of a structure comes back");
  Tree tree;
  tree.name = CORBA::string_dup("root");
  tree.children.length(1);
  tree.children[0].name = CORBA::string_dup("leaf");
  any <<= tree;
  back = pantry->echo_any(any);
  const Tree* tree_back = nullptr;
  check.that((back.in() >>= tree_back) && same(tree, *tree_back), "any of a recursive structure comes back");
  Anys list;
  list.length(2);
  list[0] <<= CORBA::Any::from_boolean(true);
  list[1] <<= any;
  Anys_var list_back = pantry->echo_anys(list);
  const CORBA::Any* inner = nullptr;
  CORBA::Boolean flag = false;
  check.that(list_back->length() == 2 && (list_back[0] >>= CORBA::Any::to_boolean(flag)) && flag && (list_back[1] >>= inner),
             "any inside any");
  CORBA::TypeCode_ptr codes[] = {CORBA::_tc_null, CORBA::_tc_void, CORBA::_tc_long, CORBA::_tc_string, CORBA::_tc_TypeCode,
                                 CORBA::_tc_Object, interop::_tc_Point, interop::_tc_Tree, interop::_tc_Choice,
                                 interop::_tc_Many, interop::_tc_Colour, interop::_tc_Doubles, interop::_tc_Refused};
  interop::Codes some;
  some.length(sizeof codes / sizeof *codes);
  for (CORBA::ULong i = 0; i < some.length(); ++i) {
    some[i] = CORBA::TypeCode::_duplicate(codes[i]);
    CORBA::TypeCode_var code = pantry->echo_code(codes[i]);
    check.that(code->equal(codes[i]), ("type code " + std::to_string(i) + " comes back").c_str());
    any <<= codes[i];
    back = pantry->echo_any(any);
    CORBA::TypeCode_ptr held = nullptr;
    check.that((back.in() >>= held) && held->equal(codes[i]), ("type code " + std::to_string(i) + " in an any").c_str());
  }
  interop::Codes_var some_back = pantry->echo_codes(some);
  for (CORBA::ULong i = 0; i < some.length(); ++i)
    check.that(some_back->length() == some.length() && some_back[i]->equal(codes[i]), "type codes in a sequence");
  interop::Described described;
  described.before = 1;
  described.code = CORBA::TypeCode::_duplicate(interop::_tc_Tree);
  described.after = -7;
  interop::Described_var described_back = pantry->echo_described(described);
  check.that(described_back->code->equal(interop::_tc_Tree) && described_back->after == -7, "a type code in a structure");
  text = pantry->identify(interop::_tc_Tree);
  check.that(std::strcmp(text, "IDL:interop/Tree:1.0") == 0, "a type code is understood");
  text = pantry->identify(CORBA::_tc_long);
  check.that(std::strcmp(text, "3") == 0, "a simple type code is understood");
  text = pantry->describe(CORBA::Any());
  check.that(std::strcmp(text, "other") == 0, "an empty any");
}

}  // namespace

int check_interop(CORBA::ORB_ptr orb, const Refs& refs, bool pantry) {
  Checks check;
  CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(object);
  PortableServer::POAManager_var manager = poa->the_POAManager();
  manager->activate();
  Kitchen_var kitchen = refs.get<Kitchen>("Kitchen");
  Both_var both = refs.get<Both>("Both");
  check.group("values", [&] { values(check, kitchen); });
  check.group("exceptions", [&] { exceptions(check, kitchen); });
  check.group("attributes", [&] { attributes(check, both); });
  check.group("references", [&] { references(check, kitchen); });
  check.group("callbacks", [&] { callbacks(check, kitchen); });
  if (pantry) {
    Pantry_var p = refs.get<Pantry>("Pantry");
    check.group("values of the pantry", [&] { pantry_values(check, p); });
    check.group("anys", [&] { anys(check, p); });
  }
  return check.conclude("interop.idl");
}
