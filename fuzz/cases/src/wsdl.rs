//! The reader of WSDL: any text yields a contract or diagnostics; what is printed reads again and means the same.

use everywire_idl::wsdl;

/// Gives the octets to this case.
pub fn wsdl(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = wsdl::imports(&text);
    match wsdl::parse(&text, "fuzz.wsdl") {
        Ok(contract) => {
            let Ok(printed) = wsdl::print(&contract) else { return };
            if let Err(diagnostics) = wsdl::parse(&printed, "printed.wsdl") {
                panic!("what was printed does not read:\n{printed}\n{diagnostics}");
            }
        }
        Err(diagnostics) => assert!(!diagnostics.to_string().is_empty()),
    }
}
