//! Arguments that callers by name may leave out, in MIDL.

use crate::midl::{methods, operation};
use everywire_idl::midl;

/// They say nothing about bytes, but callers by name leave out what they may.
#[test]
fn what_callers_may_leave_out_is_kept_and_printed() {
    let contract = methods(
        "typedef enum Pace { SLOW = 1, FAST = 2 } Pace;",
        "HRESULT Open([in] BSTR name, [in, optional] VARIANT mode, [in, defaultvalue(-5)] long wait,\n\
         [in, optional, defaultvalue(\"a (b)\")] BSTR how, [in, defaultvalue(FAST)] Pace pace);\n\
         [id(7), vararg] HRESULT Print([in] SAFEARRAY(VARIANT) all, [out, retval] long *count);",
    );
    let open = operation(&contract, "Open");
    let defaults = ["name", "mode", "wait", "how", "pace"].map(|name| midl::default_of(open, name));
    assert_eq!(defaults, [None, None, Some("-5"), Some("\"a (b)\""), Some("FAST")]);
    let optional = ["name", "mode", "wait", "how", "pace"].map(|name| midl::is_optional(open, name));
    assert_eq!(optional, [false, true, true, true, true]);
    let printed = midl::print(&contract).expect("MIDL has all of it");
    for expected in [
        "[in, optional] VARIANT mode, [in, defaultvalue(-5)] long wait",
        "[in, optional, defaultvalue(\"a (b)\")] BSTR how, [in, defaultvalue(FAST)] Pace pace",
        "[id(7), vararg] HRESULT Print(",
    ] {
        assert!(printed.contains(expected), "{printed}");
    }
    let again = midl::parse(&printed, "again.idl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(midl::print(&again).expect("MIDL has all of it"), printed);
}
