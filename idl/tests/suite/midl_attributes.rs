//! Attributes of MIDL that decide bytes and stand at a place that is no parameter of its own.

use crate::midl::{comes_back, methods, operation, parameters};
use everywire_idl::midl::{parse, print};
use everywire_model::shape::{Alias, Field, Struct, Text, TextKind};
use everywire_model::{Contract, Definition, Hold, Shape};

#[test]
fn full_pointers_are_printed_as_such_wherever_they_are() {
    // Behind another pointer and as an element: only a name says it there.
    let contract = methods(
        "typedef [ptr] long *FPL; typedef struct N { [ptr] long *at; FPL each[2]; FPL *behind; } N; typedef [ptr] N *FPN;
         typedef [ptr, string] wchar_t *FPS;",
        "HRESULT a([out] FPL *out, [in, out] FPL *both, [in, ptr] long *in_place, [in, unique] FPL *behind);
         HRESULT b([in] long n, [in, size_is(n)] FPL *many, [out] FPN *node, [out, string] FPS *text, [in, ptr, size_is(n)] BYTE *bytes);",
    );
    assert_eq!(
        parameters(operation(&contract, "a")),
        ["out out: full i32", "inout both: full i32", "in in_place: full i32", "in behind: ?full i32"]
    );
    let printed = comes_back(&contract);
    assert_eq!(printed.matches("typedef [ptr] long *full_long;").count(), 1, "{printed}");
    // With `pointer_default(ptr)` all pointers but the outermost ones of parameters are full.
    let text =
        "[object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B009), pointer_default(ptr)] interface X : IUnknown {
         typedef struct M { long key; struct M *next; long **two; struct M *some[2]; } M;
         HRESULT a([in] M *m, [out] M **out); };";
    comes_back(&parse(text, "x.midl").unwrap());
}

#[test]
fn a_string_in_an_array_of_a_fixed_size_is_text() {
    let contract = methods(
        "typedef [string] char NAME[20]; typedef struct tagC { [string] char one[20]; [string] wchar_t many[3][8]; NAME named; } C;",
        "HRESULT a([in, string] char name[8], [out, string] wchar_t wide[4], [in, out] C *c);
         HRESULT b([in] long n, [in, size_is(n)] NAME *names, [in, length_is(n)] char some[9]);",
    );
    assert_eq!(
        parameters(operation(&contract, "a")),
        ["in name: string(8)=narrow", "out wide: string(4)=wide", "inout c: C"]
    );
    assert_eq!(parameters(operation(&contract, "b"))[2], "in some: length_is(n)=v9[]character");
    let name = operation(&contract, "a").parameters[0].field.shape.resolved();
    assert!(matches!(name, Shape::Text(text) if text.bound == Some(7)), "{name:?}");
    let printed = comes_back(&contract);
    for line in [
        "[string] char one[20];",
        "[string] wchar_t many[3][8];",
        "typedef [string] char NAME[20];",
        "[in, string] char name[8]",
    ] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
    // Without a name of its own it is in a struct behind a pointer, which adds no octets.
    let text = Shape::Text(Text { kind: TextKind::Narrow, bound: Some(4) });
    let alias = Alias { name: "string(5)".into(), id: "".into(), target: text };
    let field = Field { name: "p".into(), shape: Shape::Optional(Hold::new(Shape::Alias(Hold::new(alias)))) };
    let holder = Struct { name: "H".into(), id: "".into(), fields: vec![field].into() };
    let contract = Contract { definitions: vec![Definition::Type(Shape::Struct(Hold::new(holder)))] };
    let printed = print(&contract).unwrap();
    assert!(printed.contains("typedef struct text\n{\n    [string] char items[5];\n} text;"), "{printed}");
    assert!(printed.contains("    text *p;"), "{printed}");
}

#[test]
fn ms_union_is_kept_of_interfaces_and_types() {
    use everywire_model::ms_union;
    let read = |attributes: &str, own: &str| {
        let text = format!(
            "[uuid(12345678-0001-0002-0003-1234567890ab), version(1.0){attributes}] interface msu {{
             typedef [switch_type(long){own}] union U {{ [case(2)] long a; [case(3)] hyper b; }} U;
             typedef union OWN switch (short kind) choice {{ case 1: long a; default: hyper b; }} OWN;
             typedef struct S {{ long k; [switch_is(k)] union {{ [case(2)] long a; [case(3)] hyper b; }} in_place; }} S;
             long put([in] long k, [in, switch_is(k)] U *u, [in] OWN *own, [in] S *s); }}"
        );
        parse(&text, "x.idl").unwrap_or_else(|e| panic!("{e}"))
    };
    let aligned = |contract: &Contract| -> Vec<bool> {
        let unions = contract.definitions.iter().filter_map(|definition| match definition {
            Definition::Type(Shape::Union(union)) => Some(ms_union::is(union)),
            _ => None,
        });
        unions.collect()
    };
    // A union that holds its discriminator is none of those that it speaks of.
    for (attributes, own, expected) in [
        ("", "", [false, false, false]),
        (", ms_union", "", [true, false, true]),
        ("", ", ms_union", [true, false, false]),
    ] {
        let contract = read(attributes, own);
        assert_eq!(aligned(&contract), expected, "{attributes}{own}");
        let printed = comes_back(&contract);
        assert_eq!(aligned(&parse(&printed, "printed.midl").unwrap()), expected, "{printed}");
    }
    // A method's own would need another type for the same name.
    let text = "[uuid(12345678-0001-0002-0003-1234567890ab)] interface msu { [ms_union] long put([in] long k); long get(); }";
    let contract = parse(text, "x.idl").unwrap();
    let notes = &contract.interface("msu").unwrap().notes;
    assert!(notes.iter().any(|(_, why)| why.contains("`put`: `ms_union` is only supported")), "{notes:?}");
}

/// Callers by name know the property alone, so a method `get_Item` would be another member.
#[test]
fn accessors_of_properties_with_parameters_or_without_a_getter_come_back_as_such() {
    let text = r#"import "oaidl.idl";
[object, uuid(7a1d3c20-0b4e-4a11-9c55-0123456789ab), dual, oleautomation]
interface IPlant : IDispatch
{
    [id(4), propget] HRESULT Item([in] long i, [out, retval] BSTR *v);
    [id(4), propput] HRESULT Item([in] long i, [in] BSTR v);
    [id(11), propputref] HRESULT Target([in] IDispatch *p);
    [id(12), propput] HRESULT Limit([in] double v);
    [id(13), propget] HRESULT Held([out, retval] VARIANT *v);
    [id(13), propput] HRESULT Held([in] VARIANT v);
    [id(13), propputref] HRESULT Held([in] IDispatch *p);
    [id(14)] HRESULT get_Plain([in] long i, [out, retval] BSTR *v);
    [id(15), propget] HRESULT Level([out, retval] double *v);
    [id(16)] HRESULT put_Level([in] double v);
}
[uuid(7a1d3c20-0b4e-4a11-9c55-0123456789ac)]
dispinterface DPlant
{
    properties:
    methods:
    [id(4), propget] BSTR Item([in] long i);
    [id(4), propput] void Item([in] long i, [in] BSTR v);
}
"#;
    let printed = comes_back(&parse(text, "plant.midl").unwrap());
    for line in [
        "[id(4), propget] HRESULT Item([in] long i, [out, retval] BSTR *",
        "[id(4), propput] HRESULT Item([in] long i, [in] BSTR v)",
        "[id(11), propputref] HRESULT Target(",
        "[id(12), propput] HRESULT Limit([in] double v)",
        "[id(13), propputref] HRESULT Held(",
        "[id(14)] HRESULT get_Plain(",
        "[id(16)] HRESULT put_Level(",
        "[id(4), propget] BSTR Item([in] long i)",
        "[id(4), propput] void Item([in] long i, [in] BSTR v)",
    ] {
        assert!(printed.contains(line), "{line}\n{printed}");
    }
}
