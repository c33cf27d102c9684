//! Signals of objects that are known by their contract, or by what they tell.

use crate::support::place;
use everywire::model::{Hold, Request, Servant, Sink, object::no_operation};
use everywire::{Interface, Node, SignalEvent, Value};
use everywire_dynamic::watching::SignalFilter;
use everywire_dynamic::{CallError, DynamicObject, ObjectContract};
use serde_json::json;
use std::sync::{Arc, mpsc};

const BELL: &str = r#"<node><interface name="org.example.Bell">
    <signal name="Rang"><arg name="times" type="i"/></signal>
    <signal name="Broke"><arg name="why" type="s"/></signal>
</interface></node>"#;

/// Emits signals, and does nothing else.
struct Bell(Hold<Interface>);

impl Servant for Bell {
    fn interface(&self) -> &Interface {
        &self.0
    }

    fn dispatch(&self, mut request: Request) {
        request.answer(everywire::model::Answer::Failed(&no_operation(&self.0)));
    }
}

#[test]
fn signals_come_as_json() {
    for wire in ["dbus", "dcop"] {
        let contract = everywire_idl::dbus_xml::parse(BELL, "bell.xml").unwrap();
        let contract = ObjectContract::new(contract, "bell.xml");
        let interface = contract.interface("Bell").or_else(|_| contract.interface("org.example.Bell"));
        let interface = interface.unwrap().clone();
        let server = Node::new();
        server.listen(&place(wire)).unwrap();
        let served = server.export_servant("bell", Arc::new(Bell(interface.clone())));
        let address = server.print_friendly(&served);
        let bell = DynamicObject::with_contract(&Node::new(), &address, contract).unwrap();

        let (tell, told) = mpsc::channel();
        let tell = std::sync::Mutex::new(tell);
        let wanted = SignalFilter { signal: Some("Rang"), ..SignalFilter::default() };
        let watch = bell
            .watch(wanted, move |event| {
                if let SignalEvent::Signal(signal) = event {
                    tell.lock().unwrap().send(signal).unwrap();
                }
            })
            .unwrap();
        let emit = |name: &str, value: Value| {
            let signal = interface.signals.iter().find(|signal| signal.label == name).unwrap();
            let field = signal.fields.fields()[0].name.to_string();
            let fields = Value::Struct(vec![(field, value)]);
            let encode = |sink: &mut dyn Sink| fields.encode(&signal.fields, sink);
            server
                .emitter()
                .emit(&everywire::model::Emission::typed(b"bell", &interface, signal, &encode))
                .unwrap();
        };
        // Somebody else's business.
        emit("Broke", Value::Text("old".into()));
        emit("Rang", Value::Integer(3));
        let heard = told.recv().unwrap();
        assert!(heard.signal.starts_with("Rang"), "{wire}: {heard:?}");
        assert_eq!(heard.fields.unwrap().as_object().unwrap().values().next(), Some(&json!(3)), "{wire}");
        drop(watch);

        let wanted = SignalFilter { signal: Some("Rung"), ..SignalFilter::default() };
        let none = bell.watch(wanted, |_| {}).unwrap_err();
        assert!(
            matches!(&none, CallError::Mistake(mistake) if mistake.why() == "known are Rang, Broke"),
            "{none}"
        );
        assert_eq!(everywire::Failure::from(none).hint(), Some("did you mean `Rang`?"));
    }
}
