//! The dialect of MIDL that Samba's compiler, pidl, reads.

use everywire_idl::midl;
use everywire_model::contract::left_out;
use everywire_model::{Contract, Definition, Interface, Operation, Shape};

const MILL: &str = r#"[uuid("5d36b0c0-2f53-4c36-8c5b-2e51c6c2b230"), version(1.0), pointer_default(unique), pyhelper("mill.c"), helper("mill.h")]
interface mill
{
    typedef bitmap mill_Flags mill_Flags;
    typedef enum mill_Later mill_Later;
    typedef [public,bitmap16bit] bitmap { MILL_OPEN = 0x01, MILL_FULL = 0x8000 } mill_Flags;
    typedef [enum8bit] enum { MILL_RYE = 1, MILL_OATS } mill_Grain;
    typedef [v1_enum] enum { MILL_SOON, MILL_NEVER } mill_Later;
    typedef [public,gensize] struct {
        mill_Flags flags;
        mill_Grain grain;
        mill_Later when;
        [value(strlen(name))] uint32 length;
        [string,charset(UTF16)] uint16 *name;
        [size_is(length),flag(LIBNDR_PRINT_ARRAY_HEX)] uint8 *data;
        NTTIME since;
    } mill_Info;
    typedef struct { uint32 count; [relative] mill_Info *info; } mill_Relative;
    typedef [nodiscriminant,flag(NDR_LITTLE_ENDIAN)] union { [case(1)] nstring a; [case(2)] nstring a; } mill_Value;
    typedef struct { uint32 count; uint16 sizes[count]; } mill_Inline;
    WERROR mill_Ask([in,unique,string,charset(UTF16)] uint16 *name, [out,ref] mill_Info *info);
    [noopnum] void mill_Local([in] uint32 a);
    NTSTATUS mill_Relative_([in,ref] mill_Relative *r);
    void mill_Value_([in,switch_is(mill_level(level))] mill_Value *v, [in] uint32 level);
    void mill_Blob([in] DATA_BLOB blob);
    void mill_Inline_([in,ref] mill_Inline *i);
    [todo] WERROR mill_Last([in] mill_Flags flags);
}
"#;

fn read(text: &str) -> Contract {
    midl::parse(text, "mill.idl").unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn mill(contract: &Contract) -> &Interface {
    contract.interface("mill").unwrap()
}

fn operation<'c>(contract: &'c Contract, name: &str) -> &'c Operation {
    mill(contract).operations.iter().find(|operation| operation.name == name).unwrap()
}

#[test]
fn what_changes_nothing_on_the_wire_is_read() {
    let contract = read(MILL);
    // Each keeps its number, but the one that has none.
    let names: Vec<&str> =
        mill(&contract).operations.iter().map(|operation| operation.name.as_ref()).collect();
    assert_eq!(
        names,
        ["mill_Ask", "mill_Relative_", "mill_Value_", "mill_Blob", "mill_Inline_", "mill_Last"]
    );
    let info = contract.definitions.iter().find_map(|definition| match definition {
        Definition::Type(Shape::Struct(info)) if info.name == "mill_Info" => Some(info.clone()),
        _ => None,
    });
    let info = info.unwrap();
    let kinds: Vec<&Shape> = info.fields.iter().map(|field| field.shape.resolved()).collect();
    assert!(
        matches!(
            kinds[..],
            [
                Shape::U16,
                Shape::U8,
                Shape::Enum(_),
                Shape::U32,
                Shape::Optional(_),
                Shape::Optional(_),
                Shape::Struct(_)
            ]
        ),
        "{kinds:?}"
    );
    let constants: Vec<&str> = contract.constants().map(|constant| constant.name.as_ref()).collect();
    assert_eq!(constants, ["MILL_OPEN", "MILL_FULL", "MILL_RYE", "MILL_OATS"]);
    let text = midl::print(&contract).unwrap();
    assert_eq!(midl::print(&read(&text)).unwrap(), text);
    assert_eq!(operation(&contract, "mill_Last").arguments.fields().len(), 1);
}

/// An interface that only groups types may be called as one of them, and two files may have one constant.
#[test]
fn interfaces_without_functions_and_constants_of_two_files_are_read() {
    let group = "[pointer_default(unique), pyhelper(\"a.c\")] interface sack { const int MOST = 5; typedef [public] struct { uint32 kilos; } sack; }";
    let contract = read(&format!(
        "{group}\n{}",
        MILL.replace("interface\n", "interface ").replacen('{', "{ const int MOST = 5;", 1)
    ));
    assert_eq!(contract.interfaces().count(), 1);
    assert_eq!(contract.constants().filter(|constant| constant.name == "MOST").count(), 1);
}

#[test]
fn what_changes_the_bytes_is_left_out_and_named_with_its_line() {
    let contract = read(MILL);
    let missing: Vec<&str> = left_out(&mill(&contract).notes).collect();
    for (name, why) in [
        ("mill_Relative_", "`relative` in line 18"),
        ("mill_Value_", "`switch_is(mill_level(level))` in line 24"),
        ("mill_Blob", "code of Samba writes `DATA_BLOB`"),
        ("mill_Inline_", "the size `count` of an array is no constant"),
    ] {
        assert!(missing.iter().any(|said| said.contains(name) && said.contains(why)), "{name}: {missing:#?}");
    }
    assert_eq!(missing.len(), 4);
}

/// In a file of MIDL such names and sizes are what they were: types that nobody has defined.
#[test]
fn other_files_have_no_names_of_the_dialect() {
    let text =
        MILL.split_once("interface").unwrap().0.replace(", pyhelper(\"mill.c\"), helper(\"mill.h\")", "");
    let text = text + "interface mill { void f([in] nstring a); };";
    let mistakes = midl::parse(&text, "mill.idl").unwrap_err();
    assert!(mistakes.to_string().contains("there is no type `nstring`"), "{mistakes}");
}

/// One of its words at a field is enough, at whatever depth.
#[test]
fn words_of_the_dialect_at_fields_tell_it() {
    let head = "[uuid(\"5d36b0c0-2f53-4c36-8c5b-2e51c6c2b230\"), version(1.0)] interface mill {";
    for (fields, word) in [
        ("[relative] long *a;", "relative"),
        ("[flag(NDR_BIG_ENDIAN)] long a, b;", "flag(NDR_BIG_ENDIAN)"),
        ("struct { [subcontext(4)] long a; } inner;", "subcontext(4)"),
        ("[switch_is(1)] union { [case(1)] [obfuscation(1)] long a; } inner;", "obfuscation(1)"),
    ] {
        let text = format!(
            "{head} typedef struct {{ {fields} }} Sack; void Carry([in,ref] Sack *sack); void Rest([in] long a); }}"
        );
        let contract = read(&text);
        let missing: Vec<&str> = left_out(&mill(&contract).notes).collect();
        assert!(
            matches!(missing[..], [said] if said.contains("Carry") && said.contains(&format!("`{word}`"))),
            "{fields}: {missing:?}"
        );
    }
    // MIDL has the word as well.
    let text =
        format!("{head} typedef struct {{ [ignore] long *a; }} Sack; void Carry([in,ref] Sack *sack); }}");
    assert!(left_out(&mill(&read(&text)).notes).next().is_none());
}

/// Words that change the bytes count at a struct without a typedef, and at a typedef of anything.
#[test]
fn types_of_any_kind_may_travel_otherwise() {
    let contract = read(
        "[uuid(\"5d36b0c0-2f53-4c36-8c5b-2e51c6c2b230\"), version(1.0)] interface mill {
            [flag(NDR_NOALIGN)] struct sack { uint32 kilos; };
            typedef [flag(NDR_BIG_ENDIAN)] uint32 be32;
            typedef [nopush,nopull] enum { RYE, OATS } grain;
            typedef [nopush,nopull] enum later { SOON } later;
            typedef struct { uint32 a; } Plain;
            typedef [relative] Plain *Far;
            void Sack([in,ref] struct sack *a);
            void Big([in] be32 a);
            void Grain([in] grain a);
            void Later([in] enum later a);
            void Far_([in] Far a);
            void Plain_([in,ref] Plain *a); }",
    );
    let missing: Vec<&str> = left_out(&mill(&contract).notes).collect();
    assert_eq!(missing.len(), 5, "{missing:#?}");
    for (said, (name, word)) in missing.iter().zip([
        ("Sack", "flag(NDR_NOALIGN)"),
        ("Big", "flag(NDR_BIG_ENDIAN)"),
        ("Grain", "nopush"),
        ("Later", "nopush"),
        ("Far_", "relative"),
    ]) {
        assert!(said.contains(&format!("`{name}`")) && said.contains(&format!("`{word}`")), "{missing:#?}");
    }
    assert_eq!(operation(&contract, "Plain_").arguments.fields().len(), 1);
}

/// Arms of one name are told apart by their numbers, which another arm may have in its name.
#[test]
fn arms_with_one_name_get_names_that_are_free() {
    let contract = read(
        "[uuid(\"5d36b0c0-2f53-4c36-8c5b-2e51c6c2b230\"), version(1.0), helper(\"mill.h\")] interface mill {
            typedef [switch_type(uint32)] union {
                [case(1)] uint32 a; [case(2)] uint32 a_2; [case(3)] uint32 a; } Grain;
            void Grind([in] uint32 level, [in,switch_is(level)] Grain *grain); }",
    );
    let names: Vec<&str> = contract
        .definitions
        .iter()
        .find_map(|definition| match definition {
            Definition::Type(Shape::Union(grain)) => {
                Some(grain.arms.iter().map(|arm| arm.field.name.as_ref()))
            }
            _ => None,
        })
        .unwrap()
        .collect();
    assert_eq!(names, ["a", "a_2", "a_2_2"]);
}

/// `typedef enum X X;` announces an enumeration. With a pointer or a size it is a definition, and the name is taken: what has it
/// never travels as the bare enumeration.
#[test]
fn names_for_pointers_and_arrays_of_an_enumeration_are_no_announcements() {
    let with = |typedef: &str| {
        let text = format!(
            "[uuid(\"5d36b0c0-2f53-4c36-8c5b-2e51c6c2b230\"), version(1.0)] interface mill {{
                enum Kind {{ RYE, OATS }}; typedef {typedef}; void Grind([in] Kind kind); }}"
        );
        midl::parse(&text, "mill.idl")
    };
    assert_eq!(operation(&with("enum Kind Kind").unwrap(), "Grind").arguments.fields().len(), 1);
    for typedef in ["enum Kind *Kind", "enum Kind Kind[4]"] {
        let mistakes = with(typedef).unwrap_err();
        assert!(mistakes.to_string().contains("`Kind` is defined twice"), "{typedef}: {mistakes}");
    }
}

/// What a file defines itself goes before the types that pidl knows, and in MIDL `bitmap` is a word as any other.
#[test]
fn own_types_may_be_called_as_those_of_the_dialect() {
    let contract = read(
        "[uuid(\"5d36b0c0-2f53-4c36-8c5b-2e51c6c2b230\"), version(1.0)] interface mill {
            struct int64 { long lo; long hi; };
            typedef struct { long w; } bitmap;
            typedef bitmap mine;
            typedef struct { bitmap map; bitmap maps[2], other; } Tile;
            void Wide([in] int64 a);
            void Map([in] bitmap b);
            void Tile_([in,ref] Tile *a, [in] mine m); }",
    );
    for (name, of) in [("Wide", "int64"), ("Map", "bitmap"), ("Tile_", "Tile")] {
        let shape = &operation(&contract, name).arguments.fields()[0].shape;
        assert!(matches!(shape.resolved(), Shape::Struct(held) if held.name == of), "{name}: {shape:?}");
    }
    let unknown =
        "[uuid(\"5d36b0c0-2f53-4c36-8c5b-2e51c6c2b230\")] interface mill { void f([in] time_t a); }";
    let mistakes = midl::parse(unknown, "mill.idl").unwrap_err();
    assert!(mistakes.to_string().contains("there is no type `time_t`"), "{mistakes}");
}

/// `iid_is` says what the reference is, whatever type is written.
#[test]
fn a_reference_with_an_identity_beside_it_has_no_other_type() {
    let text = "import \"oaidl.idl\"; [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B231)] interface IThing : IUnknown { HRESULT Do(); }
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B232)] interface IMill : IUnknown {
            HRESULT Make([in] REFIID riid, [out, iid_is(riid)] IThing **found);
            HRESULT Find([in] REFIID riid, [out, retval, iid_is(riid)] IThing **found); }";
    let contract = read(text);
    for operation in contract.interface("IMill").unwrap().operations.iter() {
        let shape = &operation.results.fields()[0].shape;
        assert!(matches!(shape.resolved(), Shape::Reference(held) if held.name.is_empty()), "{shape:?}");
    }
}

/// Files of Samba import one another in circles, so a name may be defined further down.
#[test]
fn names_are_found_further_down() {
    let text = r#"[uuid("5d36b0c0-2f53-4c36-8c5b-2e51c6c2b231"), version(1.0), helper("mill.h")] interface sieve {
        typedef struct { mill_Handle *handle; mill_Mesh mesh; uint8 holes[MILL_HOLES]; } sieve_Info;
        void sieve_Ask([in, ref] sieve_Info *info);
        typedef [public] bitmap { MILL_FINE = 1, MILL_COARSE = MILL_FINE + 1 } mill_Mesh;
        typedef struct { uint32 number; GUID guid; } mill_Handle;
        const int MILL_HOLES = MILL_COARSE;
    }
    [uuid("mill-sieve-0001")] interface grouped { typedef struct { mill_Handle handle; } grouped_Info; }"#;
    let contract = read(text);
    assert_eq!(contract.interface("sieve").unwrap().operations.len(), 1);
    assert!(left_out(&contract.interface("sieve").unwrap().notes).next().is_none());
    let printed = midl::print(&contract).unwrap();
    assert_eq!(printed, midl::print(&midl::parse(&printed, "again.idl").unwrap()).unwrap());
    // What needs itself is still a mistake, and so is what nobody defines.
    for wrong in [
        "typedef struct { mill_B b; } mill_A; typedef struct { mill_A a; } mill_B;",
        "typedef struct { mill_C c; } mill_A;",
    ] {
        let text = format!(
            r#"[uuid("5d36b0c0-2f53-4c36-8c5b-2e51c6c2b231"), version(1.0), helper("mill.h")] interface m {{ {wrong} }}"#
        );
        let mistakes = midl::parse(&text, "mill.idl").unwrap_err().to_string();
        assert!(
            mistakes.contains("there is no type") || mistakes.contains("not complete here"),
            "{mistakes}"
        );
    }
}
