//! Stubs of the system interfaces (activation, the OXID resolver, IRemUnknown): any bytes are read or refused, and what
//! was read survives being written and read again.

use everywire_dcom::activation::{remote, scm};
use everywire_dcom::stub::Get;
use everywire_dcom::{IDISPATCH, IUNKNOWN, remunknown, resolver};

/// Reads, writes, reads.
macro_rules! survives {
    ($get:expr, $read:expr, $write:expr) => {
        if let Ok(read) = $read($get) {
            let again = $write(&read);
            assert_eq!($read(Get::new(&again, true)), Ok(read));
        }
    };
}

/// Gives the octets to this case.
pub fn activation(data: &[u8]) {
    let [choice, flags, rest @ ..] = data else { return };
    let get = Get::after(rest, usize::from(flags >> 4), flags & 1 == 0);
    let iids = [IUNKNOWN, IDISPATCH];
    match choice % 12 {
        0 => survives!(get, |get| scm::parse_properties(get, 3), |read| scm::write_properties(read, 3)),
        1 => survives!(get, |get| scm::parse_properties(get, 4), |read| scm::write_properties(read, 4)),
        2 => survives!(get, scm::parse_reply, scm::write_reply),
        3 => survives!(get, |get| remote::parse_request(get, (5, 7)), remote::write_request),
        4 => drop(remote::parse_reply(get, &iids)),
        5 => {
            drop(resolver::parse_resolve_reply(get, true));
            drop(resolver::parse_resolve_reply(get, false));
            drop(resolver::parse_server_alive2_reply(get));
        }
        6 => survives!(get, resolver::parse_complex_ping_request, resolver::complex_ping_request),
        7 => drop(resolver::parse_resolve_oxid2_request(get)),
        8 => survives!(get, |get| remunknown::parse_query_request(get, false), remunknown::query_request),
        9 => survives!(get, remunknown::parse_refs_request, |read: &Vec<_>| remunknown::refs_request(read)),
        10 => drop(remunknown::parse_query_reply(get)),
        _ => drop(remunknown::parse_query2_reply(get)),
    }
}
