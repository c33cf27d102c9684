//! What the program tells unasked: signals, and changes of attributes. Both go out by the emitter of
//! the node, under the key of the object, to whoever has subscribed. A change with its value goes out at
//! once, in the order of the program's lines; without one the program is asked for the value afterwards.

use everywire::model::{Emission, Hold, Sink};
use everywire::{Interface, Value};
use everywire_dynamic::json::{self, NodeNotation};
use serde_json::{Map, Value as Json};

/// Emits the signal, or tells of the change, that a line of the program speaks of.
///
/// # Errors
/// It does not fit the contract.
pub(super) fn news(
    said: &Map<String, Json>,
    key: &str,
    interface: &Hold<Interface>,
    words: &NodeNotation,
) -> Result<(), String> {
    if let Some(name) = said.get("signal").and_then(Json::as_str) {
        signal(name, said.get("fields"), key, interface, words)
    } else if let Some(name) = said.get("changed").and_then(Json::as_str) {
        let Some(attribute) = interface.attributes.iter().find(|attribute| attribute.name == name) else {
            return Err(format!("the contract has no attribute `{name}`"));
        };
        let emitter = words.node().emitter();
        let told = match said.get("value") {
            None => emitter.changed(key.as_bytes(), interface, attribute),
            Some(value) => {
                let getter = interface.operations.get(attribute.getter);
                let list = getter.map(|getter| &getter.results).filter(|list| list.fields().len() == 1);
                let list = list.ok_or_else(|| format!("attribute `{name}` cannot be read"))?;
                let value = json::read(&attribute.shape, value, "value", words)
                    .map_err(|misfit| format!("attribute `{name}` does not fit: {misfit}"))?;
                let answer = Value::Struct(vec![("return".to_owned(), value)]);
                let answer = |sink: &mut dyn Sink| answer.encode(list, sink);
                emitter.changed_to(key.as_bytes(), interface, attribute, &answer)
            }
        };
        told.map_err(|failure| failure.to_string())
    } else {
        Err("a line has neither `id` nor `signal` nor `changed`".into())
    }
}

/// Emits one signal, by its label or its name on the wire.
fn signal(
    name: &str,
    fields: Option<&Json>,
    key: &str,
    interface: &Hold<Interface>,
    words: &NodeNotation,
) -> Result<(), String> {
    let Some(signal) = interface.signals.iter().find(|signal| signal.label == name || signal.name == name)
    else {
        let known: Vec<_> = interface.signals.iter().map(|signal| signal.label.as_ref()).collect();
        let known = if known.is_empty() { "none".into() } else { known.join(", ") };
        return Err(format!("the contract has no signal `{name}`; it has {known}"));
    };
    let nothing = Json::Object(Map::new());
    let value = json::read(&signal.fields, fields.unwrap_or(&nothing), "fields", words)
        .map_err(|misfit| format!("signal `{name}` does not fit: {misfit}"))?;
    let encode = |sink: &mut dyn Sink| value.encode(&signal.fields, sink);
    words
        .node()
        .emitter()
        .emit(&Emission::typed(key.as_bytes(), interface, signal, &encode))
        .map_err(|failure| format!("signal `{name}` was not sent: {failure}"))
}
