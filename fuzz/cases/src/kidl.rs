//! The kidl reader and the type names of DCOP: any text yields a contract or diagnostics; what is printed reads again.

use everywire_idl::kidl::{self, types};

/// Gives the octets to this case.
pub fn kidl(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(shape) = types::shape(&text) {
        let name = types::name(&shape).expect("a type that was read has a name");
        assert_eq!(name, types::normal(&text));
    }
    if let Ok(document) = kidl::parse_document(&text, "fuzz.kidl") {
        let printed = document.to_string();
        let again = kidl::parse_document(&printed, "printed.kidl")
            .unwrap_or_else(|mistakes| panic!("what was printed does not read:\n{printed}\n{mistakes}"));
        assert_eq!(again.to_string(), printed);
    }
    match kidl::parse(&text, "fuzz.kidl") {
        Ok(contract) => {
            let printed = kidl::print(&contract).expect("what was read can be printed");
            if let Err(diagnostics) = kidl::parse(&printed, "printed.kidl") {
                panic!("what was printed does not read:\n{printed}\n{diagnostics}");
            }
        }
        Err(diagnostics) => assert!(!diagnostics.to_string().is_empty()),
    }
}
