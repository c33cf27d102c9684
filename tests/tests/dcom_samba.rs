//! Samba: its tests of our server, message by message and as a whole, and its servers for our client.

use crate::common::dcom::{DOMAIN, PASSWORD, SAMBA_DOMAIN, SAMBA_USER, Samba, USER, alone, serving};
use crate::common::dcom_torture;
use crate::common::foreign::{Beside, run_with, script};
use everywire::model::describe::*;
use everywire::{Failure, Interface, Kind, Node};
use std::collections::BTreeSet;
use std::process::Command;

/// What our server answers as Samba's tests want it; a name in here that fails is a step back.
const RAW: &str = include_str!("peers/dcom_samba_raw.txt");

/// All tests of these suites succeed, over this binding, and there are so many of them in each. Samba's program starts once for them.
fn torture(samba: &Samba, options: &str, suites: &[(&str, usize)]) {
    let names: Vec<&str> = suites.iter().map(|(name, _)| *name).collect();
    // Without being told so it makes no bindings at the same time.
    let said = run_with(samba.torture(options, &names).arg("--option=torture:async=yes"), b"");
    let count = |word: &str| said.out.lines().filter(|line| line.starts_with(word)).count();
    let wrong = count("failure: ") + count("error: ") + count("skip: ") + count("async bind test disabled");
    let tests = suites.iter().map(|(_, tests)| tests).sum();
    assert!(
        (count("success: "), wrong) == (tests, 0),
        "{names:?} with {options}:\n{}\n{}",
        said.out,
        said.err
    );
}

// Not among them: `Map_full` and `Insert_noreplace`, which put something into our table; `Lookup_simple`, which wants the last
// entries together with the status that there are no more, where impacket and Windows want success.
#[test]
fn smbtorture_finds_our_services_in_order() {
    let test = "smbtorture_finds_our_services_in_order";
    let Some(samba) = Samba::find(test) else { return };
    if !alone(test) {
        return;
    }
    let (_node, _) = serving("");
    // Without a name of a mechanism it is SPNEGO.
    for options in [",sign,ntlm", ",seal,ntlm", ",sign", ",seal", ",sign,ntlm,bigendian", ",seal,bigendian"] {
        torture(
            &samba,
            options,
            &[
                ("rpc.epmapper.epmapper.Map_simple", 1),
                ("rpc.epmapper.epmapper.Lookup_terminate_search", 1),
                ("rpc.oxidresolve.oxidresolver.ServerAlive", 1),
                ("rpc.oxidresolve.oxidresolver.ServerAlive2", 1),
                ("rpc.mgmt.mgmt", 1),
            ],
        );
    }
    // Who says nothing about himself may ask where things are.
    torture(&samba, "", &[("rpc.epmapper.epmapper.Lookup_terminate_search", 1)]);
}

// Not among them: `rpc.authcontext` and others of `rpc.samba3`, which test the sessions of SMB that named pipes are opened by;
// `rpc.altercontext` and `rpc.bind` are the same over pipes and over TCP. `rpc.handles` wants more of a domain controller.
#[test]
fn smbtorture_calls_procedures_of_a_contract() {
    let test = "smbtorture_calls_procedures_of_a_contract";
    let Some(samba) = Samba::find(test) else { return };
    if !alone(test) {
        return;
    }
    let (node, _) = serving("");
    dcom_torture::serve(&node);
    // It tries all mechanisms, levels and byte orders by itself.
    torture(&samba, "", &[("rpc.bind", 9)]);
    for options in ["", ",sign", ",seal", ",seal,bigendian"] {
        // With bare NTLM it says its last token once more in each alter_context, which Samba's server refuses as ours does.
        torture(&samba, options, &[("rpc.altercontext", 1), ("rpc.dssetup", 1), ("rpc.objectuuid", 1)]);
    }
    for options in [",sign,ntlm", ",seal,bigendian"] {
        // A hundred bindings at once.
        torture(&samba, options, &[("rpc.asyncbind", 1), ("rpc.echo", 10)]);
    }
}

#[test]
fn samba_agrees_with_our_messages() {
    let test = "samba_agrees_with_our_messages";
    if Samba::find(test).is_none() || !alone(test) {
        return;
    }
    let (_node, _) = serving("&level=connect");
    let mut raw = Command::new("/usr/bin/python3");
    raw.arg(script("dcom_samba_raw.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    for (name, value) in [
        ("SERVER", "127.0.0.1"),
        ("TARGET_HOSTNAME", "127.0.0.1"),
        ("USERNAME", USER),
        ("PASSWORD", PASSWORD),
        ("DOMAIN", DOMAIN),
        ("REALM", DOMAIN),
        ("STRICT_CHECKING", "0"),
        ("IGNORE_RANDOM_PAD", "1"),
        // The security contexts of one connection.
        ("MAX_NUM_AUTH", "512"),
        ("SMB_CONF_PATH", "/dev/null"),
    ] {
        raw.env(name, value);
    }
    let said = run_with(&mut raw, b"");
    assert!(said.success && said.out.ends_with("done\n"), "{}\n{}", said.out, said.err);
    let passed: BTreeSet<&str> = said.out.lines().filter_map(|line| line.strip_prefix("pass ")).collect();
    let expected: BTreeSet<&str> = RAW.lines().filter_map(|line| line.strip_prefix("pass ")).collect();
    assert!(!expected.is_empty());
    let told = |name: &&str| said.out.lines().find(|line| line.split(' ').nth(1) == Some(*name));
    let lost: Vec<&str> = expected.difference(&passed).map(|name| told(name).unwrap_or(name)).collect();
    assert!(
        lost.is_empty(),
        "{} of {} passed; these no longer:\n{}",
        passed.len(),
        expected.len(),
        lost.join("\n")
    );
    let news: Vec<&str> = passed.difference(&expected).copied().collect();
    assert!(news.is_empty(), "the list does not know that these pass:\n{}", news.join("\n"));
}

/// Samba's servers start once: they look for port 135 alone, so whoever shares them is in their network.
#[test]
fn our_client_calls_sambas_endpoint_mapper_and_its_registry() {
    let test = "our_client_calls_sambas_endpoint_mapper_and_its_registry";
    let Some(samba) = Samba::find(test) else { return };
    if !alone(test) {
        return;
    }
    let server = samba.serve();
    reads_the_endpoint_mapper_at_every_level(&server);
    calls_procedures_of_the_registry(&server);
}

fn reads_the_endpoint_mapper_at_every_level(server: &Beside) {
    let password: String = PASSWORD.bytes().map(|byte| format!("%{byte:02x}")).collect();
    for mechanism in ["ntlm", "negotiate"] {
        for level in ["connect", "packet", "integrity", "privacy"] {
            let node = Node::new();
            let address = |password: &str| {
                format!(
                    "dcom://{SAMBA_DOMAIN};{SAMBA_USER}:{password}@127.0.0.1?level={level}&mech={mechanism}"
                )
            };
            let found = node.list(&address(&password));
            let found =
                found.unwrap_or_else(|failure| panic!("{mechanism} {level}: {failure}\n{}", server.errors()));
            let text = format!("{found:?}").to_lowercase();
            // The registry, and the local security authority.
            for interface in ["338cd001-2244-31f1-aaaa-900038001003", "12345778-1234-abcd-ef00-0123456789ab"]
            {
                assert!(text.contains(interface), "{mechanism} {level}: {text}");
            }
        }
    }
    let node = Node::new();
    let found = node.list("dcom://127.0.0.1?level=none").expect("it tells everybody");
    assert!(!found.is_empty());
    let address = format!("dcom://{SAMBA_DOMAIN};{SAMBA_USER}:wrong@127.0.0.1?level=integrity");
    let refused = Node::new().list(&address).expect_err("a wrong password");
    assert_eq!(refused.kind(), Kind::Refused, "{refused}");
}

static HANDLE: Struct = record!("POLICY_HANDLE", "", {
    "attributes": Shape::U32, "a": Shape::U32, "b": Shape::U32, "c": Shape::U32, "d": Shape::U32,
});

/// A context handle.
type Handle = (u32, u32, u32, u32, u32);

static REGISTRY_OPERATIONS: [Operation; 6] = [
    operation!("OpenClassesRoot", () -> Shape::Void),
    operation!("OpenCurrentUser", () -> Shape::Void),
    operation!("OpenLocalMachine", (
        in "server": pointer!(Unique, Shape::U16), in "access": Shape::U32,
        out "key": structure(&HANDLE), out "status": Shape::U32,
    ) -> Shape::Void),
    operation!("OpenPerformanceData", () -> Shape::Void),
    operation!("OpenUsers", () -> Shape::Void),
    operation!("BaseRegCloseKey", (inout "key": structure(&HANDLE), out "status": Shape::U32) -> Shape::Void),
];

/// The registry's interface (MS-RRP), as far as it is called here.
fn registry() -> Interface {
    let interface = interface!("winreg", "338cd001-2244-31f1-aaaa-900038001003", [], 0, &REGISTRY_OPERATIONS);
    let syntax = ("dce".into(), "338cd001-2244-31f1-aaaa-900038001003/1.0".into());
    Interface { identities: vec![syntax].into(), ..of_kind(interface, InterfaceKind::Procedures) }
}

fn calls_procedures_of_the_registry(server: &Beside) {
    let password: String = PASSWORD.bytes().map(|byte| format!("%{byte:02x}")).collect();
    for mechanism in ["ntlm", "negotiate"] {
        for level in ["packet", "integrity", "privacy"] {
            let node = Node::new();
            // The endpoint mapper at port 135 knows where it is.
            let address = format!(
                "dcom://{SAMBA_DOMAIN};{SAMBA_USER}:{password}@127.0.0.1?level={level}&mech={mechanism}"
            );
            let object = node.object(&address).expect("an address").typed(Hold::new(registry()));
            let wrong = |failure: Failure| panic!("{mechanism} {level}: {failure}\n{}", server.errors());
            // MAXIMUM_ALLOWED.
            let opened: Result<(Handle, u32), Failure> =
                object.call(&REGISTRY_OPERATIONS[2], (None::<u16>, 0x0200_0000_u32));
            let (key, status) = opened.unwrap_or_else(wrong);
            assert_eq!(status, 0, "{mechanism} {level}");
            assert_ne!(key, Handle::default());
            let closed: Result<(Handle, u32), Failure> = object.call(&REGISTRY_OPERATIONS[5], (key,));
            assert_eq!(closed.unwrap_or_else(wrong), (Handle::default(), 0), "{mechanism} {level}");
            // What it no longer knows, or never knew.
            let gone: Result<(Handle, u32), Failure> = object.call(&REGISTRY_OPERATIONS[5], (key,));
            assert!(gone.is_err() || gone.is_ok_and(|(_, status)| status != 0));
        }
    }
    let mut absent = registry();
    absent.identities = vec![("dce".into(), "338cd001-2244-31f1-aaaa-900038001003/7.0".into())].into();
    let address = format!("dcom://{SAMBA_DOMAIN};{SAMBA_USER}:{password}@127.0.0.1");
    let object = Node::new().object(&address).expect("an address").typed(Hold::new(absent));
    let refused: Result<(Handle, u32), Failure> =
        object.call(&REGISTRY_OPERATIONS[2], (None::<u16>, 0x0200_0000_u32));
    assert_eq!(refused.expect_err("no such version").kind(), Kind::Unsupported);
}
