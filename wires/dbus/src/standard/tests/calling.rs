//! `discover` and `list`: what is asked of others.

use super::lamp::Lamp;
use super::store::{House, call_with};
use crate::names::of_interface;
use crate::standard::driver::{self, BUS};
use crate::standard::{discover, list};
use crate::values::VALUES;
use everywire_model::object::{Completion, Local, Ticket};
use everywire_model::{
    Body, Bytes, Codec, Encode, Failure, Hold, Initiator, Interface, Kind, Method, Object, Outcome, Presence,
    Profile, Reference, Request, Resolver, Servant, Target,
};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Whoever is there, and whom they were asked for.
#[derive(Clone)]
pub(crate) struct There {
    servants: Arc<Vec<Arc<dyn Servant>>>,
    asked: Arc<Mutex<Vec<Reference>>>,
}

impl There {
    pub(crate) fn new(servants: Vec<Arc<dyn Servant>>) -> Self {
        Self { servants: Arc::new(servants), asked: Arc::default() }
    }

    fn object(&self, key: &'static str) -> Object {
        let profile = Profile { wire: "dbus", key: Bytes::from_static(key.as_bytes()), ..Profile::default() };
        self.resolve(&Reference { profiles: vec![profile], ..Reference::default() }).unwrap()
    }
}

impl Resolver for There {
    fn resolve(&self, reference: &Reference) -> Result<Object, Failure> {
        self.asked.lock().unwrap().push(reference.clone());
        Ok(Object::new(Arc::new(Way { there: self.clone(), reference: reference.clone() })))
    }

    fn local(&self, _: &Reference, _: &str) -> Option<Local> {
        None
    }
}

struct Way {
    there: There,
    reference: Reference,
}

impl Target for Way {
    fn reference(&self) -> &Reference {
        &self.reference
    }

    fn invoke(&self, method: Method<'_>, arguments: &dyn Encode) -> Outcome<Body> {
        let body = VALUES.write(&mut |sink| arguments.encode(sink)).unwrap();
        let wanted = of_interface(method.interface().unwrap());
        let key = str::from_utf8(&self.reference.profiles[0].key).unwrap();
        match self.there.servants.iter().find(|servant| of_interface(servant.interface()) == wanted) {
            Some(servant) => {
                call_with(servant, key, str::from_utf8(method.name()).unwrap(), body).recv().unwrap()
            }
            None => Outcome::Failed(Failure::new(Kind::NoOperation, Initiator::Peer, "no such interface")),
        }
    }

    fn notify(&self, _: Method<'_>, _: &dyn Encode) -> Result<(), Failure> {
        unreachable!("everything here has an answer")
    }

    fn submit(&self, method: Method<'_>, arguments: &dyn Encode, done: Completion) -> Ticket {
        let outcome = self.invoke(method, arguments);
        thread::spawn(move || done(outcome));
        Ticket(0)
    }

    fn withdraw(&self, _: Ticket) {}

    fn probe(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn with_deadline(&self, _: Option<Duration>) -> Arc<dyn Target> {
        Arc::new(Self { there: self.there.clone(), reference: self.reference.clone() })
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::new(self.there.clone())
    }
}

/// A house as others see it.
fn house() -> There {
    let house = House::new();
    for key in ["room/lamp", "room/lamp/bulb"] {
        house.export(key, Lamp::new(key));
    }
    There::new(house.wire_state.servants())
}

#[test]
fn an_object_is_discovered_own_interfaces_first() {
    let found = discover(&house().object("room/lamp")).unwrap();
    let names: Vec<_> =
        found.contract.interfaces().map(|interface| of_interface(interface).into_owned()).collect();
    assert_eq!(found.own, 2);
    assert_eq!(names[..2], ["demo.Named", "demo.Lamp"]);
    assert!(names[2..].iter().all(|name| name.starts_with("org.freedesktop.DBus.")));
    assert_eq!(found.children, ["room/lamp/bulb"]);
    assert_eq!(discover(&house().object("nowhere")).unwrap_err().kind(), Kind::NoObject);
}

fn columns(list: &[Presence], wanted: &str) -> Vec<String> {
    let column =
        |presence: &Presence| presence.details.iter().find(|(name, _)| *name == wanted).unwrap().1.clone();
    list.iter().map(column).collect()
}

fn addresses(list: &[Presence]) -> Vec<&str> {
    list.iter().map(|presence| presence.address.as_str()).collect()
}

#[test]
fn the_objects_of_somebody_are_those_with_interfaces_of_their_own() {
    let found = list("dbus:unix:path=/run/nobody#com.example.App", &house()).unwrap();
    assert_eq!(
        addresses(&found),
        [
            "dbus:unix:path=/run/nobody#com.example.App/room/lamp",
            "dbus:unix:path=/run/nobody#com.example.App/room/lamp/bulb"
        ]
    );
    assert_eq!(columns(&found, "interfaces"), ["demo.Named, demo.Lamp", "demo.Named, demo.Lamp"]);
    assert_eq!(found[1].name, "/room/lamp/bulb");
    let below = list("dbus:unix:path=/run/nobody#com.example.App/room/lamp/bulb", &house()).unwrap();
    assert_eq!(below.len(), 1);
    for text in ["dbus+unix:///run/nobody", "dbus:unix:path=/run/nobody#/"] {
        let peer = list(text, &house()).unwrap();
        let expected = ["dbus+unix:///run/nobody#room/lamp", "dbus+unix:///run/nobody#room/lamp/bulb"];
        assert_eq!(addresses(&peer), expected);
    }
    assert_eq!(list("dbus:unix:path=/run/nobody#a.b/nowhere", &house()).unwrap_err().kind(), Kind::NoObject);
}

/// An object that says it contains others, which say this or, from the sixth on, that; and how often it was asked.
pub(crate) struct Endless([String; 2], Mutex<usize>);

impl Endless {
    pub(crate) fn new(descriptions: [String; 2]) -> Self {
        Self(descriptions, Mutex::default())
    }
}

impl Servant for Endless {
    fn interface(&self) -> &Interface {
        &crate::standard::INTROSPECTABLE
    }

    fn dispatch(&self, request: Request) {
        let mut asked = self.1.lock().unwrap();
        let description = self.0[usize::from(*asked >= 5)].clone();
        *asked += 1;
        request.run(|request| request.reply::<_, Failure>(Ok((description,))));
    }
}

/// How many objects are found where all say this.
fn walk(descriptions: [String; 2]) -> usize {
    let endless = Arc::new(Endless::new(descriptions));
    let there = There::new(vec![Arc::clone(&endless) as _]);
    let listed = list("dbus:unix:path=/run/nobody#a.b", &there).unwrap().len();
    assert_eq!(listed, *endless.1.lock().unwrap());
    listed
}

#[test]
fn a_walk_ends() {
    let itself = "<node><interface name='a.b'/><node name='x'/></node>";
    assert_eq!(walk([itself.to_owned(), itself.to_owned()]), 32);
}

#[test]
#[cfg_attr(miri, ignore = "64 MiB of XML are read")]
fn a_walk_over_large_descriptions_ends() {
    // A hundred large ones, of which some 64 MiB are read.
    let others: String = (0..20).map(|number| format!("<node name='x{number}'/>")).collect();
    let large = |others: &str| {
        format!("<node><!--{}--><interface name='a.b'/>{others}</node>", "large ".repeat(1 << 18))
    };
    assert!(walk([large(&others), large("")]) < 80);
}

/// A bus of which some names are about to vanish.
struct Bus;

impl Servant for Bus {
    fn interface(&self) -> &Interface {
        &BUS
    }

    fn dispatch(&self, request: Request) {
        let names = |names: &[&str]| (names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(),);
        let nobody = || Failure::new(Kind::NoObject, Initiator::Peer, "no such name");
        request.run(|request| {
            if request.index() == 3 {
                let owned = [":1.10", ":1.2", "com.gone", "org.freedesktop.DBus", "com.App", "not a/name"];
                return request.reply::<_, Failure>(Ok(names(&owned)));
            }
            if request.index() == 4 {
                return request.reply::<_, Failure>(Ok(names(&["com.App", "com.Sleeping"])));
            }
            let (name,): (String,) = request.arguments()?;
            let (owner, pid, uid) = match name.as_str() {
                "com.App" | ":1.10" => (":1.10", Some(std::process::id()), 0),
                ":1.2" => (":1.2", None, u32::MAX - 7),
                "org.freedesktop.DBus" => ("org.freedesktop.DBus", None, 0),
                _ => return Err(nobody()),
            };
            match request.index() {
                6 => request.reply::<_, Failure>(Ok((owner.to_owned(),))),
                10 => request.reply::<_, Failure>(Ok((uid,))),
                11 => request.reply(pid.map(|pid| (pid,)).ok_or_else(nobody)),
                other => panic!("operation {other} is not asked for here"),
            }
        });
    }
}

#[test]
fn a_bus_tells_its_names_and_who_they_are() {
    let there = There::new(vec![Arc::new(Bus)]);
    let found = list("dbus:unix:path=/run/nobody", &there).unwrap();
    let names: Vec<_> = found.iter().map(|presence| presence.name.as_str()).collect();
    assert_eq!(names, ["com.App", "com.Sleeping", "org.freedesktop.DBus", ":1.2", ":1.10"]);
    assert_eq!(found[0].address, "dbus:unix:path=/run/nobody#com.App");
    let me = std::process::id().to_string();
    assert_eq!(columns(&found, "pid"), [&me, "", "", "", &me]);
    assert_eq!(columns(&found, "user"), ["root", "", "root", "uid 4294967288", "root"]);
    assert_eq!(columns(&found, "unique name"), [":1.10", "", "org.freedesktop.DBus", ":1.2", ":1.10"]);
    assert_eq!(columns(&found, "activatable"), ["yes", "yes", "no", "no", "no"]);
    let comm = std::fs::read_to_string("/proc/self/comm").unwrap();
    assert_eq!(columns(&found, "process")[0], comm.trim_end());
    for text in ["dbus:unix:path=/run/nobody#", "dbus:unix:path=/run/nobody?auth=external"] {
        assert_eq!(list(text, &there).unwrap().len(), found.len());
    }
    let asked = there.asked.lock().unwrap();
    assert!(asked.iter().all(|reference| reference.profiles[0].key == driver::KEY));
}

#[test]
fn the_statics_of_the_bus_are_where_they_say() {
    for (operation, name) in [
        (driver::HELLO, "Hello"),
        (driver::LIST_ACTIVATABLE_NAMES, "ListActivatableNames"),
        (driver::GET_CONNECTION_CREDENTIALS, "GetConnectionCredentials"),
        (driver::RELOAD_CONFIG, "ReloadConfig"),
        (driver::BECOME_MONITOR, "BecomeMonitor"),
    ] {
        assert_eq!(operation.name, name);
    }
    let held = Hold::Static(&BUS);
    assert!(held.operations.iter().all(|operation| crate::names::is_member(operation.name.as_bytes())));
}
