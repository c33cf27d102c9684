//! Programs that use other libraries of DCOM: impacket for Python, j-Interop for Java, node-dcom for Node. tshark looks on.

use crate::common::dcom::{
    OURS, OURS_TO_PEERS, PASSWORD, address, alone, impacket, j_interop, judged, listening, node_dcom, serving,
};
use crate::common::dcom_pantry::contract::{Pantry, PantryNoted, PantryTicked};
use crate::common::dcom_pantry::serve_one;
use crate::common::foreign::{Beside, PATIENCE, run, until};
use crate::common::scratch;
use everywire::Node;
use everywire::model::object::Remote;
use everywire_dcom::iid_of;
use everywire_tests::dbus_kitchen::org::example::Kitchen;
use everywire_tests::servants::dbus::Galley;
use std::process::Command;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::channel;

/// What a listener says that takes old clients: no protection of the messages, and a session key in the old way.
const OLD: &str = "&level=connect&ntlm1=session";

fn succeeds(command: &mut Command) -> String {
    let said = run(command);
    assert!(said.lines().last() == Some("ok"), "{command:?}: {said}");
    said
}

#[test]
fn impacket_calls_us_at_integrity_and_at_privacy() {
    let test = "impacket_calls_us_at_integrity_and_at_privacy";
    let Some(impacket) = impacket(test) else { return };
    if !alone(test) {
        return;
    }
    let (_node, living) = serving("");
    for level in ["integrity", "privacy"] {
        let said = succeeds(impacket("pantry").arg(level));
        assert!(said.contains("called by number") && said.contains("called by name"), "{said}");
    }
    until("the objects that were let go end", || living.load(SeqCst) == 0);
}

#[test]
fn impacket_calls_us_at_lower_levels_where_we_allow_it() {
    let test = "impacket_calls_us_at_lower_levels_where_we_allow_it";
    let Some(impacket) = impacket(test) else { return };
    if !alone(test) {
        return;
    }
    let (_node, _) = serving("&level=connect");
    // At level packet it protects nothing, whatever it says, so we refuse it.
    for level in ["connect", "integrity"] {
        succeeds(impacket("pantry").arg(level));
    }
}

#[test]
fn impacket_is_refused_with_a_wrong_password() {
    let test = "impacket_is_refused_with_a_wrong_password";
    let Some(impacket) = impacket(test) else { return };
    if !alone(test) {
        return;
    }
    let (_node, living) = serving("&level=connect");
    let said = succeeds(impacket("wrong").args(["connect", "integrity", "privacy"]));
    assert_eq!(said.matches("refused at").count(), 3, "{said}");
    assert_eq!(living.load(SeqCst), 0);
}

#[test]
fn impacket_reads_our_endpoint_mapper_and_our_management_interface() {
    let test = "impacket_reads_our_endpoint_mapper_and_our_management_interface";
    let Some(impacket) = impacket(test) else { return };
    if !alone(test) {
        return;
    }
    let (_node, _) = serving("");
    succeeds(impacket("endpoints").args(["99fcfec4-5260-101b-bbcb-00aa0021347a", "0.0"]));
    succeeds(impacket("level").args(["integrity", "privacy"]));
}

/// A contract of D-Bus on DCOM: a client that knows what is printed of it as MIDL reads and writes sequences and maps.
#[test]
fn impacket_calls_an_object_of_another_contract_language() {
    const CLASS: &str = "6f3a1c10-8d5e-4b7a-9c21-5b2d8e0f4a77";
    let test = "impacket_calls_an_object_of_another_contract_language";
    let Some(impacket) = impacket(test) else { return };
    if !alone(test) {
        return;
    }
    let node = listening("");
    let _kitchen = Galley::export(&node, CLASS);
    let iid = iid_of(<dyn Kitchen as Remote>::interface()).to_string();
    succeeds(impacket("kitchen").args(["integrity", CLASS, &iid]));
}

#[test]
fn impacket_finds_our_resolver_alive() {
    let test = "impacket_finds_our_resolver_alive";
    let Some(impacket) = impacket(test) else { return };
    if !alone(test) {
        return;
    }
    let (_node, _) = serving("");
    let said = succeeds(&mut impacket("alive"));
    assert!(said.contains("binding 7 127.0.0.1"), "{said}");
}

#[test]
fn an_object_ends_when_impacket_lets_go() {
    let test = "an_object_ends_when_impacket_lets_go";
    let Some(impacket) = impacket(test) else { return };
    if !alone(test) {
        return;
    }
    let (_node, living) = serving("");
    let signal = scratch("hold").join("let-go");
    let holder = Beside::start(impacket("hold").arg("integrity").arg(&signal));
    holder.hear("held");
    assert_eq!(living.load(SeqCst), 1);
    std::fs::write(&signal, "").expect("a file");
    holder.hear("released");
    until("the object ends", || living.load(SeqCst) == 0);
    assert!(holder.wait());
}

#[test]
fn j_interop_calls_us() {
    let test = "j_interop_calls_us";
    let Some(j_interop) = j_interop(test) else { return };
    if !alone(test) {
        return;
    }
    let (_node, living) = serving(OLD);
    for ntlm in ["session", "ntlmv2"] {
        let said = succeeds(&mut j_interop("calls", ntlm));
        assert!(said.contains("called by number") && said.contains("called by name"), "{said}");
    }
    until("the objects that were let go end", || living.load(SeqCst) == 0);
}

#[test]
fn j_interop_hears_our_events() {
    let test = "j_interop_hears_our_events";
    let Some(j_interop) = j_interop(test) else { return };
    if !alone(test) {
        return;
    }
    let (_node, _) = serving(OLD);
    let said = succeeds(&mut j_interop("events", "session"));
    assert!(said.contains("called back"), "{said}");
}

#[test]
fn we_call_objects_of_j_interop() {
    let test = "we_call_objects_of_j_interop";
    let Some(j_interop) = j_interop(test) else { return };
    if !alone(test) {
        return;
    }
    let (_node, _) = serving(OLD);
    let said = succeeds(&mut j_interop("serves", "session"));
    assert!(said.contains("was called"), "{said}");
}

#[test]
fn j_interop_is_refused_with_a_wrong_way_or_a_wrong_password() {
    let test = "j_interop_is_refused_with_a_wrong_way_or_a_wrong_password";
    let Some(j_interop) = j_interop(test) else { return };
    if !alone(test) {
        return;
    }
    {
        // By default calls must be protected, as on Windows since 2023, and j-Interop's are not.
        let (_node, living) = serving("");
        succeeds(&mut j_interop("wrong", "ntlmv2"));
        assert_eq!(living.load(SeqCst), 0);
    }
    {
        let (_node, living) = serving("&level=connect");
        succeeds(&mut j_interop("wrong", "session"));
        succeeds(&mut j_interop("calls", "ntlmv2"));
        until("the objects that were let go end", || living.load(SeqCst) == 0);
    }
}

#[test]
fn node_dcom_calls_us() {
    let test = "node_dcom_calls_us";
    let Some(mut node_dcom) = node_dcom(test) else { return };
    if !alone(test) {
        return;
    }
    let (_node, _) = serving(OLD);
    succeeds(&mut node_dcom);
}

#[test]
fn tshark_reads_what_we_send() {
    let test = "tshark_reads_what_we_send";
    let Some(impacket) = impacket(test) else { return };
    let Some(j_interop) = j_interop(test) else { return };
    if !alone(test) {
        return;
    }
    let (_node, _) = serving(OLD);
    judged(test, OURS_TO_PEERS, Some(PASSWORD), || {
        succeeds(impacket("pantry").arg("integrity"));
        succeeds(impacket("pantry").arg("privacy"));
        succeeds(impacket("endpoints").args(["99fcfec4-5260-101b-bbcb-00aa0021347a", "0.0"]));
        succeeds(&mut j_interop("calls", "session"));
        succeeds(&mut j_interop("events", "session"));
        succeeds(&mut j_interop("serves", "session"));
    });
}

/// Uses everything that the class has.
fn use_up(address: &str) {
    let node = Node::new();
    let pantry = node.connect::<dyn Pantry>(address).unwrap_or_else(|failure| panic!("{address}: {failure}"));
    let (tell, told) = channel();
    let listening = pantry.signals().on(move |ticked: PantryTicked| {
        let _ = tell.send(ticked.number);
    });
    let listening = listening.unwrap_or_else(|failure| panic!("{address}: {failure}"));
    let (tell, noted) = channel();
    let noting = pantry
        .signals()
        .on(move |noted: PantryNoted| {
            let _ = tell.send(noted.text);
        })
        .expect("by name");
    assert_eq!(pantry.add(40, 2).expect("a sum"), 42);
    assert_eq!(pantry.echo("Käse").expect("an echo"), "Käse");
    assert_eq!(pantry.weigh(4, 1_000_000).expect("a weight"), (2_000_000, 250_000.0));
    let load: Vec<u8> = (0..100_000_u32).map(|i| i.to_le_bytes()[1]).collect();
    let reversed = pantry.reverse(load.clone().into()).expect("octets");
    assert!(reversed.iter().eq(load.iter().rev()));
    let refused = pantry.refuse(0x8007_000e_u32.cast_signed()).expect_err("it refuses");
    assert_eq!(refused.code(), Some("0x8007000e"));
    pantry.fire(2).expect("events");
    let heard: Vec<_> = (0..2).map(|_| told.recv_timeout(PATIENCE).expect("an event")).collect();
    assert_eq!(heard, [0, 1]);
    assert_eq!(noted.recv_timeout(PATIENCE).as_deref(), Ok("Noted 0"));
    drop((listening, noting));
}

#[test]
fn tshark_reads_what_our_client_and_our_server_say() {
    let test = "tshark_reads_what_our_client_and_our_server_say";
    if !alone(test) {
        return;
    }
    let (_node, living) = serving("&level=connect");
    let at = |levels: &[&str]| {
        for level in levels {
            for mechanism in ["ntlm", "negotiate"] {
                use_up(&address(&format!("?level={level}&mech={mechanism}")));
            }
        }
    };
    judged(test, OURS, Some(PASSWORD), || at(&["connect", "packet", "integrity"]));
    judged(test, OURS, None, || at(&["privacy"]));
    until("the objects that were let go end", || living.load(SeqCst) == 0);
}

#[test]
fn tshark_reads_what_is_said_without_names() {
    let test = "tshark_reads_what_is_said_without_names";
    if !alone(test) {
        return;
    }
    let (_node, living) = serving("&level=none");
    judged(test, OURS, None, || use_up(&address("?level=none")));
    until("the objects that were let go end", || living.load(SeqCst) == 0);
}

#[test]
fn a_listener_that_died_holds_up_nobody() {
    let test = "a_listener_that_died_holds_up_nobody";
    let Some(j_interop) = j_interop(test) else { return };
    if !alone(test) {
        return;
    }
    let node = listening(OLD);
    let shelf = serve_one(&node);
    let listener = Beside::start(&mut j_interop("dies", "session"));
    listener.hear("listening");
    let ours = Node::new();
    let pantry = ours.connect::<dyn Pantry>(&address("?level=connect")).expect("a class");
    let (tell, told) = channel();
    let _listening = pantry
        .signals()
        .on(move |ticked: PantryTicked| {
            let _ = tell.send(ticked.number);
        })
        .expect("a listener");
    listener.kill();
    for number in 0..100 {
        shelf.fire(1).expect("nobody is waited for");
        let heard = told.recv_timeout(PATIENCE).expect("an event");
        assert_eq!(heard, 0, "{number}");
    }
}

#[test]
fn an_object_ends_with_the_client_that_died() {
    let test = "an_object_ends_with_the_client_that_died";
    let Some(j_interop) = j_interop(test) else { return };
    if !alone(test) {
        return;
    }
    // Its own pings come every few minutes, so it has three periods of ours to say that it listens.
    let (_node, living) = serving(&format!("{OLD}&ping=10"));
    let client = Beside::start(&mut j_interop("dies", "session"));
    client.hear("listening");
    assert_eq!(living.load(SeqCst), 1);
    client.kill();
    // After three periods of pings, and the one under way.
    until("the object ends", || living.load(SeqCst) == 0);
}
