//! Which messages are told: all, unless somebody asks for some.

use super::message_summary::MessageSummary;
use super::seen_message::SeenMessage;
use clap::Args;

/// What is asked for. Names are whole, or have `*` for any letters.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Selection {
    /// Only calls of this object and their answers: its key or its path; * stands for any letters, here and below.
    #[arg(long, value_name = "KEY")]
    object: Option<String>,
    /// Only calls and signals of this interface.
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Only calls of this operation, or this signal.
    #[arg(long, value_name = "NAME")]
    operation: Option<String>,
    /// Only what this peer sends or is sent: HOST, HOST:PORT, or a name on a bus.
    #[arg(long, value_name = "PEER")]
    peer: Option<String>,
    /// Only exceptions, faults, errors, HRESULTs of failures and what breaks the protocol.
    #[arg(long)]
    errors: bool,
}

impl Selection {
    /// Whether a message is to be told; `asked` is what the call said that it answers, whose object and
    /// operation are those of the answer, too. Every option that is given has to fit.
    pub(super) fn takes(
        &self,
        passed: &SeenMessage<'_>,
        spoken: &MessageSummary,
        asked: Option<&MessageSummary>,
    ) -> bool {
        let of = |field: fn(&MessageSummary) -> &Option<String>| {
            field(spoken).clone().or_else(|| asked.and_then(|asked| field(asked).clone()))
        };
        let named = |wanted: &Option<String>, name: Option<String>, alike: fn(&str) -> Vec<&str>| match wanted
        {
            None => true,
            Some(wanted) => name.is_some_and(|name| alike(&name).iter().any(|name| matches(wanted, name))),
        };
        let peer = |wanted: &String| {
            let hosts = [passed.from, passed.to].into_iter().flat_map(|end| {
                let host = end.rsplit_once(':').map_or(end, |(host, _)| host);
                [end, host.trim_start_matches('[').trim_end_matches(']')]
            });
            hosts.chain(spoken.parties.iter().map(String::as_str)).any(|name| matches(wanted, name))
        };
        (!self.errors || spoken.failed)
            && self.peer.as_ref().is_none_or(peer)
            && named(&self.object, of(|spoken| &spoken.object), |name| {
                vec![name, name.trim_start_matches('/')]
            })
            && named(&self.interface, of(|spoken| &spoken.interface), interfaces)
            && named(&self.operation, of(|spoken| &spoken.operation), operations)
    }
}

/// An interface as it may be asked for: whole, and by the last part of its name.
fn interfaces(name: &str) -> Vec<&str> {
    vec![name, crate::contract::last_part(name)]
}

/// An operation as it may be asked for: whole, without the types of its arguments, as an attribute, and by the last part of an action.
fn operations(name: &str) -> Vec<&str> {
    let bare = name.split('(').next().unwrap_or(name);
    let last = bare.rsplit(['/', '.']).next().unwrap_or(bare);
    let attribute = last.strip_prefix("_get_").or_else(|| last.strip_prefix("_set_"));
    [Some(name), Some(bare), Some(last), attribute].into_iter().flatten().collect()
}

/// Whether a name is that of a pattern, in which `*` stands for any letters.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::{matches, operations};

    #[test]
    fn stars_stand_for_any_letters() {
        for (pattern, name, is) in [
            ("deposit", "deposit", true),
            ("deposit", "deposits", false),
            ("dep*", "deposit", true),
            ("*sit", "deposit", true),
            ("d*o*t", "deposit", true),
            ("d*x*t", "deposit", false),
            ("*", "", true),
            ("aa*aa", "aaa", false),
        ] {
            assert_eq!(matches(pattern, name), is, "{pattern} {name}");
        }
        assert!(operations("http://tempuri.org/IOrders/Count").contains(&"Count"));
        assert!(operations("seek(int)").contains(&"seek"));
        assert!(operations("_get_title").contains(&"title"));
    }
}
