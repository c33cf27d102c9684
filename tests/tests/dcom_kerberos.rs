//! DCOM by Kerberos, in a realm of our own: our programs with each other, and other implementations with ours.

#![allow(clippy::unwrap_used)]

use crate::common::dcom::{Samba, alone, impacket};
use crate::common::dcom_pantry::{self, CLASS};
use crate::common::foreign::{Beside, Said, everywire, run, run_with, until};
use crate::common::kdc::{PASSWORD, REALM, Realm, SERVICE, USER, realm};
use everywire::Node;
use everywire_tests::peers::root;
use std::fs;
use std::process::Command;
use std::sync::atomic::Ordering::SeqCst;

/// The class served by a program, as users have it; the program ends with this value.
struct Served {
    program: Beside,
    address: String,
}

const CONTRACT: &str = "tests/contracts/pantry.midl";

/// Turns octets around.
const IMPLEMENTATION: &str = "
import base64, json, sys
for line in sys.stdin:
    call = json.loads(line)
    octets = base64.b64decode(call['arguments']['load']['base64'])
    answer = {'reversed': {'base64': base64.b64encode(octets[::-1]).decode()}}
    print(json.dumps({'id': call['id'], 'results': answer}), flush=True)
";

fn serve(realm: &Realm, options: &str) -> Served {
    let script = realm.dir().join("scales.py");
    fs::write(&script, IMPLEMENTATION).expect("a file");
    let mut program = everywire();
    realm.move_in(&mut program);
    program.arg("serve").arg(root().join(CONTRACT)).args(["--interface", "IScales", "--key", CLASS]);
    program.args(["--exec", &format!("python3 '{}'", script.display())]);
    program.args(["--on", &format!("dcom://127.0.0.1:0?{options}")]);
    let program = Beside::start(&mut program);
    let said = program.hear("dcom://");
    let place = said.last().expect("an address").trim_start_matches("dcom://127.0.0.1:");
    let port = place.split('/').next().expect("a port");
    Served { address: format!("localhost:{port}/{CLASS}"), program }
}

impl Served {
    /// Calls it: octets go there and come back. The server is known as `localhost`, and tells addresses as numbers.
    fn call(&self, realm: &Realm, who: &str, options: &str, octets: &[u8]) -> Said {
        let load = realm.dir().join("load");
        fs::write(&load, octets).expect("a file");
        let mut program = everywire();
        realm.move_in(&mut program);
        program.args(["call", &format!("dcom://{who}{}?{options}", self.address), "Reverse"]);
        program.args([&octets.len().to_string(), &format!("@{}", load.display())]);
        program.arg("-c").arg(root().join(CONTRACT)).args(["--interface", "IScales", "--json"]);
        run_with(&mut program, b"")
    }

    /// It answers as it should.
    fn answers(&self, realm: &Realm, who: &str, options: &str, octets: &[u8]) {
        let said = self.call(realm, who, options, octets);
        assert!(said.success, "{who} {options}: {}\n{}", said.err, self.program.errors());
        let turned: Vec<u8> = octets.iter().rev().copied().collect();
        let file = realm.dir().join("turned");
        fs::write(&file, turned).expect("a file");
        let expected = run(Command::new("base64").arg("-w0").arg(&file));
        assert!(said.out.contains(&format!("{expected:?}")), "{who} {options}: {:.300}", said.out);
    }

    /// It does not, for this reason.
    fn refuses(&self, realm: &Realm, who: &str, options: &str, why: &str) {
        let said = self.call(realm, who, options, &[1, 2, 3]);
        let told = said.out + &said.err;
        assert!(!said.success && told.contains(why), "{who} {options}: `{why}` is not in {told}");
    }
}

/// The user with the password, as addresses have it.
const KNOWN: &str = "cook:salt%20%26%20pepper@";

#[test]
fn programs_call_each_other_with_tickets_and_with_passwords() {
    let Some(realm) = realm("programs_call_each_other_with_tickets_and_with_passwords") else { return };
    let served = serve(&realm, &format!("keytab={}", realm.keytab().display()));
    // More than a fragment has, in both directions.
    let large: Vec<u8> = (0..150_000_u32).map(|number| (number % 251) as u8).collect();
    for mechanism in ["kerberos", "negotiate"] {
        for level in ["packet", "integrity", "privacy"] {
            let options = format!("mech={mechanism}&level={level}");
            served.answers(&realm, KNOWN, &options, &[1, 2, 3]);
            served.answers(&realm, KNOWN, &options, &large);
        }
    }
    realm.log_in("10h");
    for who in ["", "cook@", "KITCHEN.TEST;cook@", "KITCHEN;cook@"] {
        for options in ["mech=kerberos", "mech=negotiate&level=privacy"] {
            served.answers(&realm, who, options, &[1, 2, 3]);
        }
    }
    served.answers(&realm, "", &format!("mech=kerberos&target={SERVICE}"), &[1]);
    served.answers(&realm, "", &format!("mech=kerberos&target={SERVICE}@{REALM}"), &[1]);
    // By itself the server wants integrity.
    served.refuses(&realm, "", "mech=kerberos&level=connect", "does not let this caller in");
    served.refuses(&realm, "", "mech=kerberos&level=none", "does not let this caller in");
}

#[test]
fn programs_are_told_what_is_wrong() {
    let Some(realm) = realm("programs_are_told_what_is_wrong") else { return };
    let served = serve(&realm, &format!("keytab={}", realm.other_keytab().display()));
    // Keys of another service.
    served.refuses(&realm, KNOWN, "mech=kerberos", "the ticket is wrong");
    served.answers(&realm, KNOWN, "mech=kerberos&target=host/other", &[1, 2]);
    served.refuses(&realm, KNOWN, "mech=kerberos&target=host/nowhere", "host/nowhere@KITCHEN.TEST not found");
    served.refuses(&realm, "cook:pepper@", "mech=kerberos", "a ticket for cook: ");
    served.refuses(&realm, "", "mech=kerberos", "No Kerberos credentials available");
    served.refuses(&realm, "", "mech=negotiate", "kinit");
    // It knows no users but the realm's.
    served.refuses(&realm, KNOWN, "mech=ntlm", "does not let this caller in");
    realm.let_ticket_expire();
    served.refuses(&realm, "", "mech=kerberos&target=host/other", "expired");
    let mut keyless = everywire();
    realm.move_in(&mut keyless);
    keyless.arg("serve").arg(root().join(CONTRACT)).args(["--interface", "IScales", "--exec", "true"]);
    keyless.args(["--on", "dcom://127.0.0.1:0?keytab=/no/such/keys"]);
    let said = run_with(&mut keyless, b"");
    assert!(!said.success && said.err.contains("/no/such/keys"), "{}", said.err);
}

#[test]
fn a_server_without_keys_is_called_with_ntlm() {
    let Some(realm) = realm("a_server_without_keys_is_called_with_ntlm") else { return };
    // Its own password, so that it is clear whose is believed.
    let served = serve(&realm, &format!("users={}", realm.users(PASSWORD).display()));
    served.answers(&realm, KNOWN, "mech=negotiate", &[1, 2, 3]);
    served.answers(&realm, KNOWN, "mech=negotiate&level=privacy", &[1, 2, 3]);
    served.refuses(&realm, KNOWN, "mech=kerberos", "try another mech=");
    let both = serve(
        &realm,
        &format!("users={}&keytab={}", realm.users("word").display(), realm.keytab().display()),
    );
    both.answers(&realm, KNOWN, "mech=negotiate", &[1]);
    both.answers(&realm, KNOWN, "mech=kerberos", &[1]);
    both.answers(&realm, "cook:word@", "mech=ntlm", &[1]);
    both.answers(&realm, "cook:word@", "mech=negotiate", &[1]);
}

#[test]
fn a_program_that_waits_for_its_ticket_need_not_be_started_again() {
    let Some(realm) = realm("a_program_that_waits_for_its_ticket_need_not_be_started_again") else { return };
    let server = Node::new();
    let place = server.listen(&format!("dcom://127.0.0.1:0?keytab={}", realm.keytab().display())).unwrap();
    let _living = dcom_pantry::serve(&server);
    let port = place.rsplit(':').next().unwrap().split('/').next().unwrap().to_owned();
    let client = Node::new();
    let list = || client.list(&format!("dcom://localhost:{port}?mech=kerberos"));
    for _ in 0..3 {
        let refused = list().expect_err("there is no ticket");
        assert!(refused.message().contains("No Kerberos credentials"), "{refused}");
    }
    realm.log_in("10h");
    let found = list().unwrap();
    assert!(!found.is_empty());
    drop(client);
}

#[test]
fn impacket_calls_us_by_kerberos() {
    let test = "impacket_calls_us_by_kerberos";
    let Some(_) = impacket(test) else { return };
    // Its own network first: the realm is made anew in it.
    if !alone(test) {
        return;
    }
    let Some(realm) = realm(test) else { return };
    let Some(impacket) = impacket(test) else { return };
    let server = Node::new();
    // It looks among the addresses of an object for the host that it named.
    server.listen(&format!("dcom://localhost:135?keytab={}", realm.keytab().display())).unwrap();
    let living = dcom_pantry::serve(&server);
    realm.log_in("10h");
    realm.get_ticket(SERVICE);
    for level in ["integrity", "privacy"] {
        let mut program = impacket("pantry");
        realm.move_in(&mut program);
        // It knows no kinds of caches.
        program.arg(level).env("KRB5CCNAME", realm.tickets()).env("EVERYWIRE_PEER_KERBEROS", REALM);
        let said = run(&mut program);
        assert!(said.contains("called by number") && said.contains("called by name"), "{said}");
    }
    until("the objects that were let go end", || living.load(SeqCst) == 0);
}

#[test]
fn samba_calls_us_by_kerberos() {
    let test = "samba_calls_us_by_kerberos";
    if Samba::find(test).is_none() || !alone(test) {
        return;
    }
    let Some(realm) = realm(test) else { return };
    let Some(samba) = Samba::find(test) else { return };
    let server = Node::new();
    server.listen(&format!("dcom://127.0.0.1:135?keytab={}", realm.keytab().display())).unwrap();
    for options in [",sign,krb5", ",seal,krb5", ",sign,spnego", ",seal,spnego", ",seal,krb5,bigendian"] {
        for deed in
            ["rpc.epmapper.epmapper.Map_simple", "rpc.oxidresolve.oxidresolver.ServerAlive2", "rpc.mgmt.mgmt"]
        {
            let mut program = samba.program("usr/bin/smbtorture");
            realm.move_in(&mut program);
            program.arg(format!("ncacn_ip_tcp:127.0.0.1[135{options},target_hostname=localhost]"));
            program.args(["--use-kerberos=required", &format!("--option=realm={REALM}")]);
            program.args(["-U", &format!("{USER}@{REALM}%{PASSWORD}"), deed]);
            let said = run_with(&mut program, b"");
            let succeeded = said.out.lines().any(|line| line.starts_with("success: "));
            let failed =
                said.out.lines().any(|line| line.starts_with("failure: ") || line.starts_with("error: "));
            assert!(succeeded && !failed, "{deed}{options}:\n{}\n{}", said.out, said.err);
        }
    }
}
