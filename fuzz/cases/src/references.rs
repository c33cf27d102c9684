//! References in all notations: any text yields a reference or a failure; what is printed reads the same.

use everywire_giop::GIOP;
use everywire_model::Wire;

/// Gives the octets to this case.
pub fn references(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(reference) = GIOP.parse(&text) else { return };
    let printed = GIOP.print(&reference);
    let again = GIOP.parse(&printed).unwrap_or_else(|failure| panic!("{printed}: {failure}"));
    assert_eq!(GIOP.print(&again), printed);
    // Friendly text is for people; it only must not panic.
    assert!(!GIOP.print_friendly(&reference).is_empty());
}
