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
