//! What can be tried on the demo's objects: commands for the shell, of which each works as it is printed and ends by itself.

/// Where everything is.
pub(super) struct Addresses {
    /// The tank, on each wire.
    pub(super) tank: Vec<String>,
    /// The class of the OPC server.
    pub(super) opc: Vec<String>,
    /// What the OPC server is called.
    pub(super) server: String,
}

/// The commands of one wire.
pub(super) struct Group {
    pub(super) wire: &'static str,
    pub(super) title: &'static str,
    pub(super) address: String,
    pub(super) commands: Vec<DemoCommand>,
}

/// One command.
pub(super) struct DemoCommand {
    pub(super) text: String,
    pub(super) does: &'static str,
}

/// What is printed for a wire: its name, how its address begins, a title, and for each command the
/// verb, what stands behind the address, and what it does.
type Row = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str, &'static str)]);

const ROWS: &[Row] = &[
    (
        "iiop",
        "iiop:",
        "CORBA: an object for omniORB, JacORB and any other ORB; it has an interface repository",
        &[
            ("describe", "", "asks the interface repository what the object can do"),
            ("describe", "--as omg", "its contract, in OMG IDL"),
            ("call", "Fill 5", "an operation"),
            ("call", "Level --json", "an attribute, as JSON"),
        ],
    ),
    (
        "dbus",
        "dbus+unix:",
        "D-Bus, peer to peer: the object tells its contract",
        &[
            ("describe", "", "asks the object what it can do"),
            ("call", "Drain 2.5", "an operation"),
            ("call", "Name='Tank 2'", "writes a property"),
            ("watch", "Ticked --count 3", "a signal, each second"),
        ],
    ),
    (
        "dcop",
        "dcop",
        "DCOP: what KDE 3 and Trinity speak, at a server of the demo's own",
        &[
            ("describe", "", "asks the object what it can do"),
            ("call", "Fill 5", "an operation"),
            (
                "watch",
                "'Ticked(uint,double)' --count 2",
                "a signal, by its types: objects of DCOP do not tell theirs",
            ),
        ],
    ),
    (
        "dcom",
        "dcom:",
        "DCOM: a class for clients of COM",
        &[
            ("describe", "--as midl", "its contract, in MIDL"),
            ("call", "History 3", "a list comes back"),
            ("watch", "Ticked --count 2", "a connection point"),
        ],
    ),
    (
        "net.tcp",
        "net.tcp:",
        "WCF: net.tcp",
        &[
            ("describe", "", "asks the service for its metadata"),
            ("call", "Fill litres=5", "an argument by its name"),
        ],
    ),
    (
        "http",
        "basic:",
        "WCF: SOAP over HTTP",
        &[
            ("call", "Level", "an attribute"),
            ("gen rust", "", "a client in Rust, made of what the service tells"),
        ],
    ),
];

/// What is printed of OPC: the verb, what stands behind the server, and behind the address.
const ITEMS: &[(&str, &str, &str, &str)] = &[
    ("list", "", "", "the OPC servers of the host"),
    ("describe", "/SERVER", "--depth 1", "the tree of its items"),
    ("call", "/SERVER/Random.Real8", "read", "a value, with quality and time"),
    ("call", "/SERVER/Bucket%20Brigade.Int4", "write 7", "writes a value"),
    ("watch", "/SERVER/Counters.Seconds", "--count 3", "values as they change"),
];

/// The commands of each wire that the demo has an address of, and of OPC.
pub(super) fn groups(at: &Addresses) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (wire, scheme, title, rows) in ROWS {
        let Some(address) = at.tank.iter().find(|address| address.starts_with(scheme)) else { continue };
        let place = quoted(address);
        let command = |(verb, rest, does): &(&str, &str, &'static str)| DemoCommand {
            text: format!("everywire {verb} {place} {rest}").trim_end().to_owned(),
            does,
        };
        let commands = rows.iter().map(command).collect();
        groups.push(Group { wire, title, address: address.clone(), commands });
    }
    groups.extend(opc(at));
    groups
}

/// Those of OPC.
fn opc(at: &Addresses) -> Option<Group> {
    let class = at.opc.iter().find(|address| address.starts_with("dcom://"))?;
    let (_, rest) = class.split_once("://")?;
    let (host, _) = rest.split_once('/')?;
    let address = |path: &str| format!("opcda://{host}{}?level=none", path.replace("SERVER", &at.server));
    let command = |(verb, path, rest, does): &(&str, &str, &str, &'static str)| DemoCommand {
        text: format!("everywire {verb} {} {rest}", quoted(&address(path))).trim_end().to_owned(),
        does,
    };
    Some(Group {
        wire: "opcda",
        title: "OPC Data Access: simulated items",
        address: address("/SERVER"),
        commands: ITEMS.iter().map(command).collect(),
    })
}

/// A word for the shell, in single quotes if it has characters that mean something there.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/.:_-+,@%".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_the_shell_are_quoted_where_they_must_be() {
        assert_eq!(quoted("iiop://127.0.0.1:2809/tank"), "iiop://127.0.0.1:2809/tank");
        assert_eq!(quoted("basic://h/tank?security=none"), "'basic://h/tank?security=none'");
        assert_eq!(quoted("/tmp/o'clock"), r"'/tmp/o'\''clock'");
    }

    #[test]
    fn each_wire_has_commands_and_an_address_that_is_missing_has_none() {
        let tank = ["iiop://h:1/tank", "dcop+unix:///d/s#demo/tank", "dcom://h:2/tank?level=none"];
        let at = Addresses {
            tank: tank.map(str::to_owned).to_vec(),
            opc: vec!["dcom://h:2/9fd8?level=none".into()],
            server: "Demo.1".into(),
        };
        let groups = groups(&at);
        let wires: Vec<&str> = groups.iter().map(|group| group.wire).collect();
        assert_eq!(wires, ["iiop", "dcop", "dcom", "opcda"]);
        let texts: Vec<&str> =
            groups.iter().flat_map(|group| &group.commands).map(|one| one.text.as_str()).collect();
        assert!(texts.contains(&"everywire call iiop://h:1/tank Fill 5"), "{texts:?}");
        assert!(
            texts.contains(&"everywire call 'opcda://h:2/Demo.1/Random.Real8?level=none' read"),
            "{texts:?}"
        );
    }
}
