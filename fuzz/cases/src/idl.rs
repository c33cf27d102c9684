//! The OMG IDL reader: any text yields a contract or diagnostics; what it prints reads again.

use everywire_idl::omg;

/// Gives the octets to this case.
pub fn idl(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match omg::parse(&text, "fuzz.idl") {
        Ok(contract) => {
            let printed = omg::print(&contract);
            if let Err(diagnostics) = omg::parse(&printed, "printed.idl") {
                panic!("what was printed does not read:\n{printed}\n{diagnostics}");
            }
        }
        Err(diagnostics) => assert!(!diagnostics.to_string().is_empty()),
    }
}
