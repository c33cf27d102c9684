//! What a message says, in the terms of the races: each wire's listing has its own words for an interface, an operation, and
//! the number by which an answer finds its question.

use super::ours;
use everywire_model::wire::{MessageListing, Part};

/// What is found in the listing of one message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ListedMessage {
    pub(crate) interface: Option<String>,
    pub(crate) operation: Option<String>,
    /// The number of the question that this is, or that this answers.
    pub(crate) number: Option<String>,
}

/// What a message of this wire says, from the parts of its listing. Each wire names them differently,
/// and names of parts are all that is known of a wire here.
pub(crate) fn of(wire: &str, explained: &MessageListing) -> ListedMessage {
    let find = |names: &[&str]| {
        names.iter().find_map(|name| explained.parts.iter().find(|part| part.name == *name)).map(text)
    };
    let operation = find(&["operation", "MEMBER", "method", "command"]);
    // What says an interface by its identity, and an operation by its number, has their names behind them if they are known.
    let context = find(&["context id"]).and_then(|text| within(&text)).or_else(|| {
        let offered = find(&["presentation context"])?;
        Some(offered.split_once(": ")?.1.split_once(" v")?.0.to_owned())
    });
    let numbered = find(&["operation number"]);
    let interface = find(&["interface", "INTERFACE"])
        .or(context)
        .or_else(|| ours::interface_of(wire, operation.as_deref()?).map(str::to_owned));
    let operation = operation.or_else(|| {
        let numbered = numbered?;
        within(&numbered).or_else(|| {
            let number = numbered.parse().ok()?;
            Some(ours::operation_of(interface.as_deref()?, number)?.to_owned())
        })
    });
    let interface = interface.map(|id| ours::name_of(&id).map_or(id, str::to_owned));
    let number = find(&["REPLY_SERIAL", "request id", "call id", "serial"]);
    ListedMessage { interface, operation, number }
}

/// What stands in brackets at the end of a text.
fn within(text: &str) -> Option<String> {
    Some(text.split_once('(')?.1.strip_suffix(')')?.to_owned())
}

fn text(part: &Part) -> String {
    part.value.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_number_of_its_question() {
        let part = |name: &'static str, value: &str| Part { offset: 0, len: 0, name, value: value.into() };
        let explained = |parts: Vec<Part>| MessageListing { parts, ..MessageListing::default() };
        let question = of("giop", &explained(vec![part("request id", "7"), part("operation", "attach")]));
        assert_eq!(question.interface.as_deref(), Some("derby::Callback"));
        let answer = of("giop", &explained(vec![part("request id", "7")]));
        assert_eq!((answer.number, answer.operation), (question.number, None));
        let answer = of("dbus", &explained(vec![part("serial", "9"), part("REPLY_SERIAL", "3")]));
        assert_eq!(answer.number.as_deref(), Some("3"));
    }

    #[test]
    fn identities_and_numbers_are_named() {
        let part = |name: &'static str, value: &str| Part { offset: 0, len: 0, name, value: value.into() };
        let explained = |parts: Vec<Part>| MessageListing { parts, ..MessageListing::default() };
        let own = of(
            "dcom",
            &explained(vec![
                part("context id", "1 (606de2c5-1a8c-11d3-b68f-00c04f8b72e7)"),
                part("operation number", "8"),
            ]),
        );
        assert_eq!(
            (own.interface.as_deref(), own.operation.as_deref()),
            (Some("ICallback"), Some("Unadvise"))
        );
        let system = of(
            "dcom",
            &explained(vec![
                part("context id", "0 (IRemUnknown)"),
                part("operation number", "5 (RemRelease)"),
                part("call id", "9"),
            ]),
        );
        assert_eq!(
            (system.interface.as_deref(), system.operation.as_deref(), system.number.as_deref()),
            (Some("IRemUnknown"), Some("RemRelease"), Some("9"))
        );
        let bind = of("dcom", &explained(vec![part("presentation context", "0: IRemUnknown v0.0 over NDR")]));
        assert_eq!(bind.interface.as_deref(), Some("IRemUnknown"));
    }
}
