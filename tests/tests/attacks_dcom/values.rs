//! VARIANTs and SAFEARRAYs that lie, nest, or say that they are very large: by number, and by name through Invoke.

use super::attacker::*;
use super::pantry::PANTRY;
use super::target::Target;
use everywire_dcom::standard::activation::REMOTE_SCM_ACTIVATOR_ID as ACTIVATOR;
use everywire_dcom::{IDISPATCH, iid_of};
use everywire_tests::peers::peak;
use uuid::Uuid;

/// Same and Invoke.
const SAME: u16 = 9;
const INVOKE: u16 = 6;

/// What begins a VARIANT: `size` is in units of 8 octets.
fn head(size: u32, vt: u16, discriminant: u32) -> Vec<u8> {
    let mut out = b"User\0\0\0\0".to_vec();
    out.extend(words(&[size, 0]));
    out.extend(vt.to_le_bytes());
    out.extend([0; 6]);
    out.extend(discriminant.to_le_bytes());
    out
}

fn number(value: u32) -> Vec<u8> {
    [head(3, 3, 3), words(&[value])].concat()
}

/// VARIANTs by reference in one another.
fn nested(depth: usize) -> Vec<u8> {
    let mut all = number(7);
    for _ in 0..depth {
        let size = u32::try_from(all.len() / 8 + 4).expect("small");
        let mut outer = [head(size, 0x400c, 0x400c), words(&[1])].concat();
        outer.resize(outer.len().next_multiple_of(8), 0);
        outer.extend(&all);
        all = outer;
        all.resize(all.len().next_multiple_of(8), 0);
    }
    all
}

/// A SAFEARRAY of 32-bit numbers in a VARIANT, with any dimensions.
fn array(conformance: u32, dims: u16, bounds: &[(u32, u32)], elements: u32) -> Vec<u8> {
    let mut out = [head(0x20, 0x2003, 0x2000), words(&[1, 2, conformance])].concat();
    out.extend(dims.to_le_bytes());
    out.extend(0x80_u16.to_le_bytes());
    out.extend(words(&[4, 0x0003_0000, 3, elements, 3]));
    bounds.iter().for_each(|(len, lower)| out.extend(words(&[*len, *lower])));
    out.extend(words(&[elements]));
    out.extend([1; 256]);
    out
}

/// Everything that is bad as a VARIANT.
fn bombs() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for depth in [17, 100, 1000, 20_000] {
        all.push((format!("nested {depth}"), nested(depth)));
    }
    for (name, conformance, dims, bounds, elements) in [
        ("no dimensions", 0, 0, vec![], 1),
        ("very many dimensions", 0xffff, 0xffff, vec![(1, 0); 8], 1),
        ("a product beyond 32 bits", 2, 2, vec![(0x1_0000, 0), (0x1_0000, 0)], 0),
        ("a product of 2^64", 4, 4, vec![(0x1_0000, 0); 4], 0),
        ("very many elements", 1, 1, vec![(0x7fff_ffff, 0)], 0x7fff_ffff),
        ("another number of dimensions", 3, 1, vec![(4, 0)], 4),
    ] {
        all.push((name.to_owned(), array(conformance, dims, &bounds, elements)));
    }
    for vt in [0x24_u16, 0x4000, 0x4001, 0x600c, 0xffff, 0x2024, 0x200e, 0x6024] {
        all.push((format!("type {vt:#x}"), [head(3, vt, vt.into()), words(&[1, 2, 3])].concat()));
    }
    for (max, bytes, chars) in
        [(u32::MAX, 0xffff_fffe, u32::MAX), (2, 4, 0x7fff_ffff), (0x4000_0000, 0x8000_0000, 2)]
    {
        let bstr = [head(8, 8, 8), words(&[0x0072_6573, max, bytes, chars]), vec![0x41; 32]].concat();
        all.push((format!("text of {chars} characters"), bstr));
    }
    all
}

/// The name by which one of them is refused.
fn refusal(bomb: &str) -> &'static str {
    match bomb {
        nested if nested.starts_with("nested") => "E_OUTOFMEMORY",
        // What is read, and unknown on this side, is told as a failure of the call: references to nothing.
        "type 0x4000" | "type 0x4001" => "E_NOTIMPL",
        _ => "NCA_FAULT_NDR",
    }
}

pub fn at_the_pantry(target: &Target) -> (Attacker, Uuid) {
    let pantry = iid_of(&PANTRY);
    let mut cook = Attacker::cook(target, &[ACTIVATOR, pantry, IDISPATCH]);
    let (_, objrefs) = cook.activate(&[pantry]);
    (cook, objrefs[0].ipid)
}

#[test]
fn the_variant_of_these_tests_is_a_good_one() {
    let target = Target::new();
    let (mut cook, ipid) = at_the_pantry(&target);
    let stub = cook.orpc(iid_of(&PANTRY), SAME, Some(ipid), &number(0x5eed)).results();
    assert!(stub.windows(4).any(|part| part == 0x5eed_u32.to_le_bytes()), "{stub:x?}");
    // As deep as it may be, and as wide.
    for good in [nested(10), array(2, 2, &[(2, 0), (2, 0)], 4)] {
        let answer = cook.orpc(iid_of(&PANTRY), SAME, Some(ipid), &good);
        assert_eq!(answer.hresult(), 0);
    }
    drop(cook);
    target.recovers();
}

#[test]
fn o6_variants_that_lie_are_refused() {
    let target = Target::new();
    let (mut cook, ipid) = at_the_pantry(&target);
    let before = peak(target.pid());
    let mut refusals = Vec::new();
    for (name, bomb) in bombs() {
        let answer = cook.orpc(iid_of(&PANTRY), SAME, Some(ipid), &bomb);
        refusals.push((answer.refusal(), name));
    }
    let expected: Vec<_> = bombs().into_iter().map(|(name, _)| (refusal(&name), name)).collect();
    assert_eq!(refusals, expected);
    cook.orpc(iid_of(&PANTRY), SAME, Some(ipid), &number(1)).results();
    let grown = peak(target.pid()).saturating_sub(before);
    assert!(grown < 32 << 20, "the server grew by {grown} bytes");
    drop(cook);
    target.recovers();
}

/// What stands before the arguments of Invoke: the member and flags.
fn invoke(member: u32, parameters: &[u32], rest: &[u8]) -> Vec<u8> {
    let mut out = words(&[member]);
    out.extend([0; 16]);
    out.extend(words(&[0x409, 1]));
    out.extend(words(parameters));
    out.extend(rest);
    out
}

#[test]
fn o6_invoke_with_parameters_that_lie_is_refused() {
    let target = Target::new();
    let (mut cook, ipid) = at_the_pantry(&target);
    let before = peak(target.pid());
    // rgvarg, rgdispidNamedArgs, cArgs, cNamedArgs; cVarRef, rgVarRefIdx, rgVarRef behind.
    let mut cases: Vec<(String, Vec<u8>)> = vec![
        ("no arguments but many".into(), invoke(3, &[0, 0, u32::MAX, u32::MAX], &words(&[0, 0, 0]))),
        ("more arguments than there are".into(), invoke(3, &[1, 0, u32::MAX, 0], &words(&[u32::MAX, 0, 0]))),
        ("names without end".into(), invoke(3, &[0, 1, 0, u32::MAX], &words(&[u32::MAX, 0, 0, 0]))),
        ("references without end".into(), invoke(3, &[0, 0, 0, 0], &words(&[u32::MAX, u32::MAX, 0, 0]))),
        ("a member that there is not".into(), invoke(u32::MAX, &[0, 0, 0, 0], &words(&[0, 0, 0]))),
    ];
    for (name, bomb) in bombs() {
        let argument = [words(&[1, 0x0002_0000]), bomb].concat();
        cases.push((format!("with {name}"), invoke(3, &[1, 0, 1, 0], &argument)));
    }
    // Cheap to send: pointers to nothing, or all to one.
    for referent in [0, 1] {
        let many = [words(&[900_000]), words(&vec![referent; 900_000]), words(&[0, 0, 0])].concat();
        cases.push((format!("900000 arguments {referent}"), invoke(3, &[1, 0, 900_000, 0], &many)));
    }
    let (mut refusals, mut expectations) = (Vec::new(), Vec::new());
    for (name, stub) in cases {
        let expected = match name.as_str() {
            "no arguments but many" => "E_INVALIDARG",
            "a member that there is not" => "DISP_E_MEMBERNOTFOUND",
            "900000 arguments 0" => "DISP_E_BADPARAMCOUNT",
            // Invoke says by itself which argument is wrong; what is no stub at all is said by a fault.
            "with no dimensions" | "with very many elements" => "E_INVALIDARG",
            nested if nested.starts_with("with nested") => "E_INVALIDARG",
            _ => "NCA_FAULT_NDR",
        };
        // By the object's own interface, and as IDispatch.
        for iid in [iid_of(&PANTRY), IDISPATCH] {
            let answer = cook.orpc(iid, INVOKE, Some(ipid), &stub);
            refusals.push((answer.refusal(), name.clone()));
            expectations.push((expected, name.clone()));
        }
    }
    assert_eq!(refusals, expectations);
    let grown = peak(target.pid()).saturating_sub(before);
    assert!(grown < 192 << 20, "the server grew by {grown} bytes");
    drop(cook);
    target.recovers();
}

/// Everything else that a client may say to IDispatch.
#[test]
fn o6_names_and_type_information_are_bounded() {
    let target = Target::new();
    let (mut cook, ipid) = at_the_pantry(&target);
    let name = |text: &str| {
        let units: Vec<u8> = text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
        let count = u32::try_from(units.len() / 2).expect("small");
        let mut out = [words(&[count, 0, count]), units].concat();
        out.resize(out.len().next_multiple_of(4), 0);
        out
    };
    let ask = |count: u32, conformance: u32, names: usize, text: &str| {
        let pointers: Vec<u32> = (1..=u32::try_from(names).expect("few")).collect();
        let all: Vec<u8> = (0..names).flat_map(|_| name(text)).collect();
        [vec![0; 16], words(&[conformance]), words(&pointers), all, words(&[count, 0x409])].concat()
    };
    let long = "x".repeat(100_000);
    let good = cook.orpc(iid_of(&PANTRY), 5, Some(ipid), &ask(1, 1, 1, "Add"));
    assert_eq!(good.hresult(), 0);
    let nothing = cook.orpc(iid_of(&PANTRY), 5, Some(ipid), &ask(0, 0, 0, "Add"));
    assert_eq!(nothing.hresult(), 0);
    for (what, stub, name) in [
        ("more names than there are", ask(u32::MAX, u32::MAX, 1, "Add"), "NCA_FAULT_NDR"),
        ("another count", ask(0x4000, 2, 2, "Add"), "E_INVALIDARG"),
        ("a long name", ask(1, 1, 1, &long), "DISP_E_UNKNOWNNAME"),
        ("many names", ask(20_000, 20_000, 20_000, "y"), "E_INVALIDARG"),
    ] {
        let answer = cook.orpc(iid_of(&PANTRY), 5, Some(ipid), &stub);
        assert_eq!(answer.refusal(), name, "{what}");
    }
    let good = cook.orpc(iid_of(&PANTRY), 4, Some(ipid), &words(&[0, 0x409]));
    assert_eq!(good.hresult(), 0);
    for number in [1, u32::MAX] {
        let answer = cook.orpc(iid_of(&PANTRY), 4, Some(ipid), &words(&[number, 0x409]));
        assert_eq!(answer.refusal(), "DISP_E_BADINDEX", "{number}");
    }
    drop(cook);
    target.recovers();
}
