//! The MIDL reader: any text yields a contract or diagnostics; what it prints reads again.

use everywire_idl::midl;

/// Gives the octets to this case.
pub fn midl(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = midl::is_midl(&text);
    match midl::parse(&text, "fuzz.midl") {
        Ok(contract) => {
            let Ok(printed) = midl::print(&contract) else { return };
            if let Err(diagnostics) = midl::parse(&printed, "printed.midl") {
                panic!("what was printed does not read:\n{printed}\n{diagnostics}");
            }
        }
        Err(diagnostics) => assert!(!diagnostics.to_string().is_empty()),
    }
}
