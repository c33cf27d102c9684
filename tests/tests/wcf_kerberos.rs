//! Windows authentication on net.tcp by Kerberos, with a key distribution centre of MIT's.

use crate::common::hello::bench::IRemoteObject;
use crate::common::hello::{Remote, use_bench};
use crate::common::kdc::{PASSWORD, REALM, USER, realm};
use everywire::{Kind, Node, Ref};
use std::sync::Arc;

/// For messages of 65,536 octets and their envelopes.
const ROOM: &str = "MaxReceivedMessageSize=100000";

#[test]
fn callers_are_known_by_their_tickets() {
    let Some(realm) = realm("callers_are_known_by_their_tickets") else { return };
    for protection in ["None", "Sign", "EncryptAndSign"] {
        let node = Node::new();
        let keys = realm.keytab();
        let at = format!("net.tcp://127.0.0.1:0?keytab={}&protection={protection}&{ROOM}", keys.display());
        let at = node.listen(&at).unwrap_or_else(|failure| panic!("{at}: {failure}"));
        let port = at.split(['/', '?']).find_map(|part| part.rsplit_once(':')?.1.parse::<u16>().ok());
        let port = port.unwrap_or_else(|| panic!("no port in {at}"));
        let _ = node.export::<dyn IRemoteObject>("bench", Arc::new(Remote));
        let call = |who: &str, options: &str| {
            let caller = Node::new();
            let to = format!(
                "net.tcp://{who}localhost:{port}/bench?security=windows&protection={protection}&{ROOM}{options}"
            );
            let remote: Ref<dyn IRemoteObject> = caller.connect(&to).expect("an address");
            let answer = remote.in_out_int(41);
            answer.map(|answer| {
                assert_eq!(answer, 42, "{to}");
                use_bench(&*remote, 60_000);
            })
        };
        // With the name and the password themselves, with a realm and without.
        let password = PASSWORD.replace(' ', "%20");
        call(&format!("{USER}:{password}@"), "").expect("a user of the realm");
        call(&format!("{REALM};{USER}:{password}@"), "&mech=kerberos").expect("a user of the realm");
        // With the tickets that are there, and nobody named.
        // There are none before the first round.
        let _ = std::fs::remove_file(realm.tickets());
        let failure = call("", "&mech=kerberos").expect_err("no ticket");
        assert!(failure.kind() == Kind::Refused && failure.to_string().contains("ticket"), "{failure:?}");
        let failure = call("", "").expect_err("nobody");
        assert!(failure.kind() == Kind::Refused && failure.to_string().contains("ticket"), "{failure:?}");
        realm.log_in("10h");
        call("", "&mech=kerberos").expect("a ticket");
        call("", "").expect("a ticket");
        call(&format!("{USER}@"), "&mech=kerberos").expect("a ticket of this user");
        assert!(call("", "&mech=ntlm").is_err());
    }
}
