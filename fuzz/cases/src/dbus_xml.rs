//! The readers of introspection XML and of signatures: any text yields a contract or diagnostics; what is printed reads
//! again and means the same.

use everywire_idl::{dbus_xml, signature};

/// Gives the octets to this case.
pub fn dbus_xml(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(shapes) = signature::parse(&text) {
        let mut out = String::new();
        for shape in &shapes {
            signature::of(shape, &mut out).expect("a shape that was read has a signature");
        }
        assert_eq!(out, text);
    }
    match dbus_xml::parse(&text, "fuzz.xml") {
        Ok(contract) => {
            let printed = dbus_xml::print(&contract).expect("what was read can be printed");
            let again = dbus_xml::parse(&printed, "printed.xml")
                .unwrap_or_else(|mistakes| panic!("what was printed does not read:\n{printed}\n{mistakes}"));
            assert_eq!(dbus_xml::print(&again).as_deref(), Ok(printed.as_str()));
        }
        Err(diagnostics) => assert!(!diagnostics.to_string().is_empty()),
    }
    if let Ok(node) = dbus_xml::parse_node(&text) {
        let interfaces: Vec<_> = node.contract.interfaces().map(|interface| &**interface).collect();
        let printed = dbus_xml::print_node(&interfaces, &node.children);
        let again = dbus_xml::parse_node(&printed)
            .unwrap_or_else(|mistakes| panic!("what was printed does not read:\n{printed}\n{mistakes}"));
        assert_eq!(again.children, node.children);
    }
}
