//! Programs that use other libraries of DCOM: impacket for Python, j-Interop for Java, node-dcom for Node. tshark looks on.

mod common;

use common::dcom::{alone, impacket, j_interop, judged, node_dcom, serving};
use common::foreign::{Beside, run, until};
use common::scratch;
use std::process::Command;
use std::sync::atomic::Ordering::SeqCst;

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
    judged(test, || {
        succeeds(impacket("pantry").arg("integrity"));
        succeeds(impacket("pantry").arg("privacy"));
        succeeds(impacket("endpoints").args(["99fcfec4-5260-101b-bbcb-00aa0021347a", "0.0"]));
        succeeds(&mut j_interop("calls", "session"));
        succeeds(&mut j_interop("events", "session"));
    });
}
