// Asks an object for its interface and reads the repository that its server keeps, by omniORB's stubs of the Interface Repository.
// Prints what it was told, a line for each definition, and fails where two ways to the same answer differ.
//
// corba_repository REFERENCE [omniORB options]

// The stubs of the Interface Repository.
#define ENABLE_CLIENT_IR_SUPPORT
#include <omniORB4/CORBA.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

using namespace std;

namespace {

void check(bool holds, const char *what) {
  if (!holds) {
    cerr << "wrong: " << what << endl;
    exit(1);
  }
}

// A type code in the words of IDL, without what is inside types with a name.
string word(CORBA::TypeCode_ptr code) {
  switch (code->kind()) {
    case CORBA::tk_void: return "void";
    case CORBA::tk_short: return "short";
    case CORBA::tk_long: return "long";
    case CORBA::tk_ushort: return "unsigned short";
    case CORBA::tk_ulong: return "unsigned long";
    case CORBA::tk_longlong: return "long long";
    case CORBA::tk_ulonglong: return "unsigned long long";
    case CORBA::tk_float: return "float";
    case CORBA::tk_double: return "double";
    case CORBA::tk_boolean: return "boolean";
    case CORBA::tk_char: return "char";
    case CORBA::tk_wchar: return "wchar";
    case CORBA::tk_octet: return "octet";
    case CORBA::tk_any: return "any";
    case CORBA::tk_TypeCode: return "TypeCode";
    case CORBA::tk_string: return code->length() ? "string<" + to_string(code->length()) + ">" : "string";
    case CORBA::tk_wstring: return code->length() ? "wstring<" + to_string(code->length()) + ">" : "wstring";
    case CORBA::tk_sequence: {
      CORBA::TypeCode_var element = code->content_type();
      string bound = code->length() ? "," + to_string(code->length()) : "";
      return "sequence<" + word(element) + bound + ">";
    }
    case CORBA::tk_array: {
      CORBA::TypeCode_var element = code->content_type();
      return word(element) + "[" + to_string(code->length()) + "]";
    }
    default: return code->id();
  }
}

// What is inside a type with a name.
string inside(CORBA::TypeCode_ptr code) {
  string text;
  switch (code->kind()) {
    case CORBA::tk_struct:
    case CORBA::tk_except:
      for (CORBA::ULong i = 0; i < code->member_count(); i++) {
        CORBA::TypeCode_var type = code->member_type(i);
        text += " " + word(type) + " " + code->member_name(i);
      }
      return text;
    case CORBA::tk_union: {
      CORBA::TypeCode_var type = code->discriminator_type();
      text = " switch " + word(type);
      for (CORBA::ULong i = 0; i < code->member_count(); i++) {
        CORBA::TypeCode_var type = code->member_type(i);
        text += " " + word(type) + " " + code->member_name(i);
      }
      return text;
    }
    case CORBA::tk_enum:
      for (CORBA::ULong i = 0; i < code->member_count(); i++) text += string(" ") + code->member_name(i);
      return text;
    case CORBA::tk_alias: {
      CORBA::TypeCode_var target = code->content_type();
      return " " + word(target);
    }
    default: return "";
  }
}

// A definition of a type tells the same by its attributes as by its type code.
void compare(CORBA::IDLType_ptr definition, CORBA::TypeCode_ptr code) {
  CORBA::TypeCode_var told = definition->type();
  check(told->equal(code), "the type code of a definition is that of its user");
  switch (definition->def_kind()) {
    case CORBA::dk_Struct: {
      CORBA::StructDef_var type = CORBA::StructDef::_narrow(definition);
      CORBA::StructMemberSeq_var members = type->members();
      check(members->length() == code->member_count(), "a struct has as many members");
      for (CORBA::ULong i = 0; i < members->length(); i++) {
        CORBA::TypeCode_var member = code->member_type(i);
        check(!strcmp(members[i].name, code->member_name(i)), "members have their names");
        check(members[i].type->equivalent(member), "members have their types");
        CORBA::TypeCode_var again = members[i].type_def->type();
        check(again->equivalent(member), "definitions of members have their types");
      }
      break;
    }
    case CORBA::dk_Union: {
      CORBA::UnionDef_var type = CORBA::UnionDef::_narrow(definition);
      CORBA::UnionMemberSeq_var members = type->members();
      check(members->length() == code->member_count(), "a union has as many members");
      CORBA::TypeCode_var discriminator = type->discriminator_type();
      CORBA::TypeCode_var other = code->discriminator_type();
      check(discriminator->equal(other), "a union has its discriminator");
      for (CORBA::ULong i = 0; i < members->length(); i++) {
        CORBA::Any_var label = code->member_label(i);
        CORBA::TypeCode_var mine = members[i].label.type(), theirs = label->type();
        check(mine->equal(theirs), "labels are of the same type");
      }
      break;
    }
    case CORBA::dk_Enum: {
      CORBA::EnumDef_var type = CORBA::EnumDef::_narrow(definition);
      CORBA::EnumMemberSeq_var members = type->members();
      check(members->length() == code->member_count(), "an enum has as many members");
      break;
    }
    case CORBA::dk_Alias: {
      CORBA::AliasDef_var type = CORBA::AliasDef::_narrow(definition);
      CORBA::IDLType_var original = type->original_type_def();
      CORBA::TypeCode_var target = code->content_type();
      compare(original, target);
      break;
    }
    case CORBA::dk_Sequence: {
      CORBA::SequenceDef_var type = CORBA::SequenceDef::_narrow(definition);
      check(type->bound() == code->length(), "a sequence has its bound");
      CORBA::TypeCode_var element = type->element_type(), other = code->content_type();
      check(element->equal(other), "a sequence has its element");
      break;
    }
    case CORBA::dk_Array: {
      CORBA::ArrayDef_var type = CORBA::ArrayDef::_narrow(definition);
      check(type->length() == code->length(), "an array has its length");
      CORBA::IDLType_var element = type->element_type_def();
      CORBA::TypeCode_var other = code->content_type();
      compare(element, other);
      break;
    }
    case CORBA::dk_String: {
      CORBA::StringDef_var type = CORBA::StringDef::_narrow(definition);
      check(type->bound() == code->length(), "a string has its bound");
      break;
    }
    case CORBA::dk_Primitive: {
      CORBA::PrimitiveDef_var type = CORBA::PrimitiveDef::_narrow(definition);
      check(type->kind() != CORBA::pk_null, "a primitive type is something");
      break;
    }
    case CORBA::dk_Interface: break;
    default: check(false, "a parameter has a type");
  }
}

// The definitions in a container, and in those inside.
void walk(CORBA::Container_ptr container, CORBA::Repository_ptr repository) {
  CORBA::ContainedSeq_var all = container->contents(CORBA::dk_all, true);
  for (CORBA::ULong i = 0; i < all->length(); i++) {
    CORBA::String_var name = all[i]->absolute_name(), id = all[i]->id();
    CORBA::Contained_var by_id = repository->lookup_id(id), by_name = repository->lookup(name);
    check(!CORBA::is_nil(by_id) && !CORBA::is_nil(by_name), "what is contained is found");
    CORBA::String_var again = by_id->absolute_name();
    check(!strcmp(name, again), "what is found by id has that name");
    CORBA::Contained::Description_var told = all[i]->describe();
    check(told->kind == all[i]->def_kind(), "a description is of its kind");
    CORBA::Container_var around = all[i]->defined_in();
    check(around->_is_equivalent(container) || around->def_kind() == container->def_kind(), "it is where it is defined");
    CORBA::IDLType_var type = CORBA::IDLType::_narrow(all[i]);
    string text;
    if (!CORBA::is_nil(type)) {
      CORBA::TypeCode_var code = type->type();
      text = inside(code);
      compare(type, code);
    }
    CORBA::ConstantDef_var constant = CORBA::ConstantDef::_narrow(all[i]);
    if (!CORBA::is_nil(constant)) {
      CORBA::TypeCode_var code = constant->type();
      CORBA::Any_var value = constant->value();
      CORBA::IDLType_var definition = constant->type_def();
      compare(definition, code);
      const CORBA::ConstantDescription *description;
      check(told->value >>= description, "a constant is described");
      CORBA::TypeCode_var held = value->type(), described = description->value.type();
      check(held->equal(code) && described->equal(code), "the value of a constant has its type");
      text = " " + word(code) + " =";
      CORBA::Long number;
      CORBA::Double fraction;
      const char *letters;
      if (value.in() >>= number) text += " " + to_string(number);
      if (value.in() >>= fraction) text += " " + to_string(fraction);
      if (value.in() >>= letters) text += string(" ") + letters;
    }
    cout << "definition " << name << " " << id << text << endl;
    CORBA::Container_var inner = CORBA::Container::_narrow(all[i]);
    if (!CORBA::is_nil(inner)) walk(inner, repository);
  }
}

void read(CORBA::Object_ptr object) {
  CORBA::InterfaceDef_var interface = object->_get_interface();
  check(!CORBA::is_nil(interface), "the object has an interface");
  check(!interface->_non_existent(), "the definition is there");
  CORBA::InterfaceDef::FullInterfaceDescription_var told = interface->describe_interface();
  CORBA::String_var name = interface->absolute_name();
  cout << "interface " << name << " " << told->id << " version " << told->version << endl;
  check(object->_is_a(told->id) && interface->is_a(told->id), "the object is of its interface");
  check(interface->is_a("IDL:omg.org/CORBA/Object:1.0") && !interface->is_a("IDL:no/such:1.0"), "is_a");
  for (CORBA::ULong i = 0; i < told->base_interfaces.length(); i++) {
    check(object->_is_a(told->base_interfaces[i]), "the object is of the bases");
    cout << "base " << told->base_interfaces[i] << endl;
  }
  for (CORBA::ULong i = 0; i < told->operations.length(); i++) {
    const CORBA::OperationDescription &operation = told->operations[i];
    cout << "operation " << (operation.mode == CORBA::OP_ONEWAY ? "oneway " : "") << word(operation.result) << " "
         << operation.name << "(";
    for (CORBA::ULong j = 0; j < operation.parameters.length(); j++) {
      const CORBA::ParameterDescription &parameter = operation.parameters[j];
      static const char *const modes[] = {"in", "out", "inout"};
      cout << (j ? ", " : "") << modes[parameter.mode] << " " << word(parameter.type) << " " << parameter.name;
      compare(parameter.type_def, parameter.type);
    }
    cout << ")";
    for (CORBA::ULong j = 0; j < operation.exceptions.length(); j++) {
      cout << " raises " << operation.exceptions[j].id << inside(operation.exceptions[j].type);
    }
    cout << " of " << operation.defined_in << endl;
  }
  for (CORBA::ULong i = 0; i < told->attributes.length(); i++) {
    const CORBA::AttributeDescription &attribute = told->attributes[i];
    cout << "attribute " << (attribute.mode == CORBA::ATTR_READONLY ? "readonly " : "") << word(attribute.type) << " "
         << attribute.name << " of " << attribute.defined_in << endl;
  }
  CORBA::Repository_var repository = interface->containing_repository();
  walk(repository, repository);
  CORBA::Container::DescriptionSeq_var some = interface->describe_contents(CORBA::dk_Operation, false, 2);
  check(some->length() <= 2, "no more are described than were asked for");
  CORBA::ContainedSeq_var all = interface->contents(CORBA::dk_Operation, false);
  check(all->length() == told->operations.length(), "contents with what is inherited are all operations");
  for (CORBA::ULong i = 0; i < all->length(); i++) {
    CORBA::OperationDef_var operation = CORBA::OperationDef::_narrow(all[i]);
    CORBA::TypeCode_var result = operation->result();
    CORBA::IDLType_var definition = operation->result_def();
    compare(definition, result);
    CORBA::ParDescriptionSeq_var parameters = operation->params();
    CORBA::ExceptionDefSeq_var exceptions = operation->exceptions();
    for (CORBA::ULong j = 0; j < exceptions->length(); j++) {
      CORBA::StructMemberSeq_var members = exceptions[j]->members();
      CORBA::TypeCode_var type = exceptions[j]->type();
      check(members->length() == type->member_count(), "an exception has its members");
    }
  }
}

}  // namespace

int main(int argc, char **argv) {
  try {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    CORBA::Object_var object = orb->string_to_object(argv[1]);
    read(object);
    orb->destroy();
    return 0;
  } catch (const CORBA::SystemException &raised) {
    cerr << raised._name() << " minor " << hex << raised.minor() << endl;
  } catch (const CORBA::Exception &raised) {
    cerr << raised._name() << endl;
  }
  return 1;
}
