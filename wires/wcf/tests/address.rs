//! Addresses: what they say, what is shown of them again, and what is refused.

#![allow(clippy::unwrap_used)]

use everywire_idl::wsdl::Port;
use everywire_model::{
    BindAddress, Call, Config, Endpoint, Expects, Failure, Kind, Method, Operation, Reference, SendBuffer,
    Shape, visit,
};
use everywire_wcf::address::{
    listen, parse, parse_like, parse_port, print, print_friendly, protection, publish,
};
use everywire_wcf::settings::{Binding, Encoding, Mode, Security, Settings};
use everywire_wcf::soap::{Dialect, Side, SoapChannel};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

fn settings(text: &str) -> Arc<Settings> {
    Settings::of(&parse(text).unwrap_or_else(|failure| panic!("{text}: {failure}")).profiles[0])
}

fn place(text: &str) -> Result<Arc<Settings>, Failure> {
    listen(text).map(|place| Settings::of(place.profile()))
}

/// A file that nobody else can read, until this is dropped.
struct Secret(PathBuf);

impl std::ops::Deref for Secret {
    type Target = std::path::Path;

    fn deref(&self) -> &std::path::Path {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn file(name: &str, text: &str) -> Secret {
    let path = std::env::temp_dir().join(format!("everywire-wcf-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    Secret(path)
}

#[test]
fn every_scheme_has_its_binding() {
    for (text, binding, security, endpoint, key, via) in [
        ("net.tcp://host/a/b", Binding::NetTcp, Security::None, "tcp:host:808", "a/b", "net.tcp://host/a/b"),
        (
            "net.tcp://host:9000/a",
            Binding::NetTcp,
            Security::None,
            "tcp:host:9000",
            "a",
            "net.tcp://host:9000/a",
        ),
        (
            "net.tcp://[::1]:9000/",
            Binding::NetTcp,
            Security::None,
            "tcp:[::1]:9000",
            "",
            "net.tcp://[::1]:9000/",
        ),
        (
            "net.tcp+unix:///run/s#a/b",
            Binding::NetTcp,
            Security::None,
            "unix:/run/s",
            "a/b",
            "net.uds:///run/s/a/b",
        ),
        ("net.tcp+shm:///run/s#a", Binding::NetTcp, Security::None, "shm:/run/s", "a", "net.uds:///run/s/a"),
        ("net.uds:///run/s", Binding::NetTcp, Security::None, "unix:/run/s", "", "net.uds:///run/s"),
        (
            "net.uds:///run/x.sock/a/b",
            Binding::NetTcp,
            Security::None,
            "unix:/run/x.sock",
            "a/b",
            "net.uds:///run/x.sock/a/b",
        ),
        ("net.uds:///run/s#a", Binding::NetTcp, Security::None, "unix:/run/s", "a", "net.uds:///run/s/a"),
        (
            "net.pipe://localhost/run/x.pipe/a",
            Binding::NetTcp,
            Security::None,
            "unix:/run/x.pipe",
            "a",
            "net.pipe:///run/x.pipe/a",
        ),
        ("basic://host/a", Binding::Basic, Security::None, "tcp:host:80", "a", "http://host/a"),
        ("basics://host/a", Binding::Basic, Security::Tls, "tcp:host:443", "a", "https://host/a"),
        ("wshttp://host:81/a", Binding::Ws, Security::None, "tcp:host:81", "a", "http://host:81/a"),
        ("wshttps://host/a", Binding::Ws, Security::Tls, "tcp:host:443", "a", "https://host/a"),
        ("soap12://host:81/a", Binding::Soap12, Security::None, "tcp:host:81", "a", "http://host:81/a"),
        ("soap12s://host/a", Binding::Soap12, Security::Tls, "tcp:host:443", "a", "https://host/a"),
        (
            "binhttp+unix:///run/s#a",
            Binding::BinaryHttp,
            Security::None,
            "unix:/run/s",
            "a",
            "http://localhost/a",
        ),
        ("binhttps://host:444/", Binding::BinaryHttp, Security::Tls, "tcp:host:444", "", "https://host:444/"),
        ("http://host/a?binding=ws", Binding::Ws, Security::None, "tcp:host:80", "a", "http://host/a"),
        (
            "http://host/a?binding=soap12",
            Binding::Soap12,
            Security::None,
            "tcp:host:80",
            "a",
            "http://host/a",
        ),
        (
            "https://host/a?binding=binary",
            Binding::BinaryHttp,
            Security::Tls,
            "tcp:host:443",
            "a",
            "https://host/a",
        ),
        ("HTTP://host/a", Binding::Basic, Security::None, "tcp:host:80", "a", "http://host/a"),
    ] {
        let text = if security == Security::Tls {
            format!("{text}{}insecure=on", if text.contains('?') { '&' } else { '?' })
        } else {
            text.to_owned()
        };
        let reference = parse(&text).unwrap();
        let way = &reference.profiles[0];
        let told = settings(&text);
        assert_eq!((told.binding, told.transport_security), (binding, security), "{text}");
        assert_eq!(
            (way.endpoints[0].to_string(), &*way.key),
            (endpoint.to_owned(), key.as_bytes()),
            "{text}"
        );
        assert_eq!(told.via(&way.key), via, "{text}");
        assert_eq!(told.key_of(via).as_deref(), Some(key.as_bytes()), "{text}");
        // What is shown says the same again.
        for shown in [print(&reference), print_friendly(&reference)] {
            let again = parse(&shown).unwrap_or_else(|failure| panic!("{shown}: {failure}"));
            assert_eq!(again.profiles[0].endpoints, way.endpoints, "{shown}");
            assert_eq!(again.profiles[0].key, way.key, "{shown}");
            assert_eq!(print_friendly(&again), print_friendly(&reference), "{shown}");
        }
    }
}

#[test]
fn options_are_understood_and_shown_again() {
    let text =
        "net.tcp://ada:engine@host/a?mode=streamed&reliable=on&callback=back&MaxReceivedMessageSize=1000000";
    let told = settings(text);
    assert_eq!((told.mode, told.encoding), (Mode::Streamed, Encoding::Binary));
    assert_eq!(told.quotas.max_received_message_size, 1_000_000);
    assert!(told.reliable && told.callback.as_deref() == Some(b"back"));
    assert_eq!(told.transport_security, Security::Windows);
    let shown = print_friendly(&parse(text).unwrap());
    assert_eq!(shown, "net.tcp://host:808/a?security=windows&mode=streamed&reliable=on");
    assert_eq!(settings("http://host/a?binding=mtom").encoding, Encoding::Mtom);
    assert_eq!(print(&parse("wshttp://host/a?encoding=mtom").unwrap()), "wshttp://host:80/a?encoding=mtom");
    assert_eq!(print(&parse("basic://host/a").unwrap()), "http://host/a");
}

#[test]
fn secrets_are_never_shown() {
    for text in [
        "net.tcp://HOME;ada:eng%21ne@host/a",
        "net.tcp://ada:eng%21ne@host/a?identity=host/x&mech=ntlm",
        "basics://ada:eng%21ne@host/a?insecure=on",
    ] {
        let reference = parse(text).unwrap();
        let told = Settings::of(&reference.profiles[0]);
        assert_eq!(told.credentials.as_ref().unwrap().password.as_password(), Some("eng!ne"));
        let shown = [
            print(&reference),
            print_friendly(&reference),
            format!("{reference:?}"),
            format!("{told:?}"),
            protection(&reference.profiles[0]),
        ];
        for shown in shown {
            assert!(!shown.contains("eng") && !shown.contains(":eng%21ne"), "{shown}");
        }
    }
    // Not even by what is wrong with the address.
    for text in
        ["net.tcp://ada:eng/ine@host/a", "net.tcp://ada:eng?ine@host/a", "net.tcp://ada:eng%zzine@host/a"]
    {
        let failure = parse(text).unwrap_err();
        assert!(!failure.to_string().contains("ine@"), "{failure}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    for (text, said) in [
        ("host/a", "://"),
        ("ftp://host/a", "no scheme"),
        ("net.tcp://host:0/a", "port 0"),
        ("net.uds://run/s", "absolute"),
        ("net.tcp://host/a?color=red", "unknown"),
        ("net.tcp://host/a?security=lots", "none of"),
        ("net.tcp://host/a?MaxDepth=none", "MaxDepth"),
        ("net.tcp://host/a?encoding=session&mode=streamed", "dictionary"),
        ("basic://host/a?encoding=session", "sessions"),
        ("basic://host/a?security=windows", "Windows"),
        ("basic://ada:engine@host/a", "clear"),
        ("wshttp://ada:engine@host/a?security=none", "clear"),
        ("net.tcp://host/a?encoding=mtom", "MTOM"),
        ("basic://host/a?reliable=on", "reliable"),
        ("basic://host/a?to=http://inner", "do not say where"),
        ("net.tcp://host/a?to=inner", "no URI"),
        ("net.tcp://host/a?to=net.tcp://in%0aner", "no URI"),
        ("net.tcp://host/a?details=on", "for those who listen"),
        ("net.tcp://host/a?users=/dev/null", "users"),
        ("net.tcp://host/a?MaxConcurrentCalls=7", "for those who listen"),
        ("net.tcp://host/a?ReceiveTimeout=7", "for those who listen"),
        ("net.tcp://host/a?SendTimeout=7", "--deadline"),
        ("net.tcp://host/a?MaxConnections=7", "leave it out"),
        ("net.tcp://host/a?protection=Sign", "security=none"),
        ("net.tcp://host/a?security=none&mech=ntlm", "Windows"),
        ("net.tcp://ada:x@host/a?security=windows&ca=/nowhere", "TLS"),
        ("net.tcp://host/a?security=tls&security=windows", "both"),
        ("net.tcp://host/a?SendTimeout=7", "--deadline"),
        ("net.tcp://host/a?MaxItemsInObjectGraph=7", "MaxArrayLength"),
        ("net.tcp://host/a?ca=/nowhere/at/all.pem", "cannot be read"),
        ("net.tcp://host/a?credentials=/nowhere/at/all", "does not exist"),
    ] {
        let failure = parse(text).unwrap_err();
        assert!(failure.message().contains(said), "{text}: {failure}");
    }
    let long = format!("net.tcp://host/{}", "a".repeat(20_000));
    assert_eq!(parse(&long).unwrap_err().kind(), Kind::LimitExceeded);
}

#[test]
fn the_service_s_own_address_is_told_where_the_connection_leads_elsewhere() {
    for (text, via) in [
        ("net.tcp://relay:9000/a?to=net.tcp://inner:808/app", "net.tcp://inner:808/app/a"),
        ("net.tcp+unix:///run/relay.sock#a/b?to=net.uds:///run/app.sock/", "net.uds:///run/app.sock/a/b"),
        ("net.uds:///run/relay.sock?to=net.uds:///run/app.sock", "net.uds:///run/app.sock"),
        ("wshttp://relay/a?to=http://inner", "http://inner/a"),
    ] {
        let reference = parse(text).unwrap();
        assert_eq!(settings(text).via(&reference.profiles[0].key), via, "{text}");
        // Whoever is handed the address comes the same way.
        let shown = print(&reference);
        let again = parse(&shown).unwrap();
        assert_eq!(settings(&shown).via(&again.profiles[0].key), via, "{shown}");
        assert_eq!(again.profiles[0].endpoints, reference.profiles[0].endpoints, "{shown}");
        assert_ne!(reference.profiles[0], parse(text.split('?').next().unwrap()).unwrap().profiles[0]);
    }
}

#[test]
fn listeners_say_who_is_let_in() {
    let users = file("users", "ada:engine\n");
    let users = users.display();
    for text in ["net.tcp://127.0.0.1:0", "net.tcp://0.0.0.0:808"] {
        let failure = place(text).unwrap_err();
        assert!(failure.hint().unwrap().contains("?security=none"), "{failure}");
        let told = place(&format!("{text}?security=none")).unwrap();
        assert_eq!(told.transport_security, Security::None);
        let told = place(&format!("{text}?users={users}")).unwrap();
        assert_eq!(told.transport_security, Security::Windows);
        assert!(told.server_layer().is_ok() && told.users.is_some());
    }
    assert_eq!(place("net.tcp+unix:///run/s").unwrap().transport_security, Security::None);
    assert_eq!(place("basic://127.0.0.1:0").unwrap().transport_security, Security::None);
    assert_eq!(place("net.uds:///run/s?security=unix").unwrap().transport_security, Security::Unix);
    let told = place(&format!("basic+unix:///run/s?users={users}")).unwrap();
    assert!(told.basic_login && !told.username);
    let told = place(&format!("wshttp+unix:///run/s?users={users}")).unwrap();
    assert!(told.username && !told.basic_login);
    let nowhere = place("net.tcp://127.0.0.1:0?users=/nowhere/at/all").unwrap_err();
    assert!(nowhere.message().contains("/nowhere/at/all") && nowhere.hint().unwrap().contains("0600"));
    for text in [
        "net.tcp://127.0.0.1:0?security=none&callback=x".to_owned(),
        "net.tcp://127.0.0.1:0?security=none&ca=x".to_owned(),
        "net.tcp://127.0.0.1:0?security=none&to=net.tcp://x".to_owned(),
        "basic://127.0.0.1:0?MaxConcurrentSessions=7".to_owned(),
        "wshttp://127.0.0.1:0?ReceiveTimeout=7".to_owned(),
        "net.tcp://127.0.0.1:0?security=none&ListenBacklog=7".to_owned(),
        "net.tcp://127.0.0.1:0?security=windows".to_owned(),
        "net.tcp://127.0.0.1:0?security=tls".to_owned(),
        "net.tcp://127.0.0.1:0?security=unix".to_owned(),
        "basics://127.0.0.1:0".to_owned(),
        "net.tcp://127.0.0.1:0/path?security=none".to_owned(),
        format!("basic://127.0.0.1:0?users={users}"),
        format!("net.tcp://127.0.0.1:0?users={users}&security=username&security=none"),
        "net.tcp+unix:///run/s?security=username".to_owned(),
    ] {
        assert!(place(&text).is_err(), "{text}");
    }
}

/// On a socket nobody listens in: calls may carry a password without TLS, whatever the framing.
#[test]
fn a_password_goes_by_a_socket_of_this_machine() {
    let login = file("login", "username=ada\npassword=engine\n");
    let (operation, nothing) = (Operation::new("Echo", vec![], Shape::Void), &visit::Nothing);
    for scheme in ["wshttp+unix", "wshttp+shm", "net.tcp+unix", "net.tcp+shm"] {
        let text = format!("{scheme}:///run/s#a?security=username&credentials={}", login.display());
        let profile = parse(&text).unwrap().profiles.remove(0);
        let mut session =
            SoapChannel::new(Dialect::WS, &Config::default(), &Settings::of(&profile), Side::Client);
        let method = Method::Typed { interface: None, operation: &operation };
        let call = Call { profile: &profile, method, arguments: nothing, expects: Expects::Reply };
        let mut out = SendBuffer::new();
        session.start(std::time::Instant::now(), &call, &mut out).unwrap();
        assert!(String::from_utf8(out.to_vec()).unwrap().contains(">engine</o:Password>"), "{text}");
    }
}

/// Servers that tell their services apart by it (SAP's, Magento's, pages of PHP) have it in the address that their WSDL names.
#[test]
fn the_service_s_own_query_stays_behind_its_path() {
    let text = "wshttp://host:8000/sap/x?query=sap-client=100%26a=%C3%A4";
    let reference = parse(text).unwrap();
    let profile = &reference.profiles[0];
    let own = Settings::of(profile);
    let via = own.via(&profile.key);
    assert_eq!(via, "http://host:8000/sap/x?sap-client=100&a=%C3%A4");
    assert_eq!(own.key_of(&via).unwrap(), profile.key);
    let again = parse(&print(&reference)).unwrap();
    assert_eq!(again, reference);
    assert_ne!(settings("wshttp://host:8000/sap/x"), own);
    for uri in
        ["http://host:8000/sap/y?sap-client=200&encoding=text#part", "http://else/y?services=a%26b&wsdl"]
    {
        let said = uri.replace("&encoding=text#part", "").replace("&wsdl", "");
        let given = parse_like(uri, &own).unwrap();
        let like = Settings::of(&given);
        assert_eq!(like.via(&given.key), said);
        let reference = Reference { profiles: vec![given], ..Reference::default() };
        assert_eq!(parse(&print(&reference)).unwrap().profiles[0].options, reference.profiles[0].options);
    }
    let plain = parse_like("http://host:8000/sap/y?wsdl", &own).unwrap();
    assert_eq!(Settings::of(&plain).via(&plain.key), "http://host:8000/sap/y");
    for text in ["net.tcp://host/a?query=b", "basic://host/a?query=", "basic://host/a?services=b"] {
        let failure = parse(text).unwrap_err();
        assert!(failure.hint().unwrap().contains("query="), "{text}: {failure}");
    }
    assert!(place("basic://127.0.0.1:0?query=a").is_err());
}

#[test]
fn one_way_of_spelling() {
    let shown = |text: &str| print_friendly(&parse(text).unwrap());
    assert_eq!(shown("net.tcp+shm:///run/s#a"), "net.tcp+shm:///run/s#a");
    for text in ["net.tcp://host:9/a?security=username", "net.tcp+unix:///run/s#a?security=username"] {
        assert!(shown(text).ends_with("?security=username"), "{}", shown(text));
    }
    for text in
        ["net.uds:///run/s#a?security=tls&security=username", "net.uds:///run/s#a?security=tls+username"]
    {
        assert!(shown(text).ends_with("?security=tls+username"), "{}", shown(text));
        let again = settings(&shown(text));
        assert!(again.username && again.transport_security == Security::Tls);
    }
}

#[test]
fn what_is_published_can_be_called() {
    let place = listen("net.tcp://127.0.0.1:0?security=none&MaxReceivedMessageSize=123456").unwrap();
    let BindAddress::Listen(mut way) = place else { panic!("a socket") };
    way.endpoints = vec![Endpoint::Tcp { host: "127.0.0.1".into(), port: 4321 }];
    let reference = publish("", &[BindAddress::Listen(way)], b"a/b");
    assert_eq!(print(&reference), "net.tcp://127.0.0.1:4321/a/b");
    let told = Settings::of(&reference.profiles[0]);
    assert_eq!(told.via(b"a/b"), "net.tcp://127.0.0.1:4321/a/b");
    assert_eq!(told.quotas.max_received_message_size, 123_456);
}

#[test]
fn connections_are_shared_by_equal_options_only() {
    let shared_by = |text: &str| {
        let way = parse(text).unwrap().profiles.remove(0);
        (way.options.clone(), way.options.scope(&way))
    };
    assert_eq!(shared_by("net.tcp://host/a"), shared_by("net.tcp://host:808/a"));
    assert_eq!(shared_by("basic://host/a"), shared_by("http://host/b"), "requests say whom they are for");
    let all = [
        "net.tcp://host/a",
        "net.tcp://host/b",
        "net.tcp://ada:engine@host/a",
        "net.tcp://ada:motor@host/a",
        "net.tcp://host/a?mode=streamed",
        "net.tcp://host/a?MaxArrayLength=7",
        "basic://host/a",
        "wshttp://host/a",
        "basics://host:80/a?insecure=on",
    ];
    for (number, one) in all.iter().enumerate() {
        for other in &all[number + 1..] {
            assert_ne!(shared_by(one), shared_by(other), "{one} {other}");
        }
    }
}

#[test]
fn what_is_not_checked_is_said() {
    let told = |text: &str| protection(&parse(text).unwrap().profiles[0]);
    assert!(told("basics://host/a?insecure=on").contains("NOT checked"));
    assert!(told("net.tcp://host/a").starts_with("none"));
    assert!(told("net.tcp+unix:///run/s#a").contains("socket"));
    assert!(told("net.tcp://ada:engine@host/a").contains("signed and encrypted"));
    assert!(told("net.tcp://ada:engine@host/a?protection=Sign").contains("nothing is encrypted"));
}

#[test]
fn references_from_messages_name_nothing_of_this_side() {
    let like = settings("net.tcp://ada:engine@host:9000/a?MaxReceivedMessageSize=999999");
    let same = parse_like("net.tcp://host:9000/b", &like).unwrap();
    let told = Settings::of(&same);
    assert!(told.credentials.is_some() && told.quotas.max_received_message_size == 999_999);
    assert_eq!(told.via(&same.key), "net.tcp://host:9000/b");
    // Another host is not told this side's password, whatever it says.
    let other = parse_like("net.tcp://elsewhere/b?credentials=/etc/passwd&ca=/etc/passwd", &like).unwrap();
    let told = Settings::of(&other);
    assert!(told.credentials.is_none() && told.transport_security == Security::None);
    assert_eq!(&*other.key, b"b");
    let posing = parse_like("net.tcp://ada:x@elsewhere/b", &like).unwrap();
    assert!(Settings::of(&posing).credentials.is_none());
    let ws = settings("wshttp://host/a");
    assert_eq!(Settings::of(&parse_like("http://host/b", &ws).unwrap()).binding, Binding::Ws);
}

/// A description's endpoint is called as its binding says, however its page was asked for.
#[test]
fn endpoints_of_descriptions_are_spoken_to_as_their_bindings_say() {
    for (said, expected) in [
        ("soap=1.1 addressing=none encoding=text", "basic://host:8080/b"),
        ("soap=1.2 addressing=none encoding=text", "soap12://host:8080/b"),
        ("soap=1.2 addressing=1.0 encoding=text", "wshttp://host:8080/b"),
        ("soap=1.2 addressing=1.0 encoding=binary", "binhttp://host:8080/b"),
        ("soap=1.2 addressing=none encoding=mtom", "soap12://host:8080/b?encoding=mtom"),
    ] {
        let port = Port::parse(&format!("http://host:8080/b transport=http {said}"));
        for like in ["http://host/a", "wshttp://other/a", "net.tcp://ada:engine@host/a"] {
            let profile = parse_port(&port, &settings(like)).unwrap();
            let told = Settings::of(&profile);
            assert!(told.credentials.is_none());
            assert_eq!(told.encoding == Encoding::Mtom, said.ends_with("mtom"));
            let reference = everywire_model::Reference { profiles: vec![profile], ..Default::default() };
            assert_eq!(print_friendly(&reference), expected, "{like}");
        }
    }
    let tcp = Port::parse("net.tcp://host:8080/b transport=tcp soap=1.2 addressing=1.0 encoding=binary");
    assert_eq!(parse_port(&tcp, &settings("http://host/a")).unwrap().key, "b");
}
