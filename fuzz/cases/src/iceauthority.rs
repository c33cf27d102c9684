//! The ICE authority file: any bytes are entries that are written as they were read, or end in the middle of one.

use everywire_auth::ice::{MAX_ENTRIES, NotEntries, parse, print};

/// Gives the octets to this case.
pub fn iceauthority(data: &[u8]) {
    match parse(data) {
        Ok(entries) => assert_eq!(print(&entries).as_deref(), Some(data)),
        Err(NotEntries::Truncated { offset }) => {
            let whole = parse(&data[..offset]).expect("what stands before the broken entry reads");
            assert_eq!(print(&whole).as_deref(), Some(&data[..offset]));
        }
        // Ten bytes are the least that an entry takes.
        Err(NotEntries::TooMany) => assert!(data.len() > 10 * MAX_ENTRIES),
    }
}
