//! Bounds that hold whatever the budget of a message allows, and the quotas that users set, by WCF's names
//! and with its defaults.
//!
//! There are two kinds of numbers here. The constants bound what a peer can make this side keep or repeat,
//! and no address changes them: depth, attributes, names, words of a session, references in an object
//! graph. `Quotas` are what an address says (`?MaxReceivedMessageSize=1000000`), in the names that users of
//! .NET know from their configuration files.
//!
//! State: `Quotas` are plain values. `address::options` sets them one after the other with `Quotas::set`;
//! from then on they stand in `Settings` and do not change.
//!
//! Invariants:
//!
//! * Each number that `set` takes is at least 1 and fits into .NET's `long` or `int`; each time is between
//!   a millisecond and thirty days, so sums with an `Instant` do not overflow. 0, which stands for "without
//!   bound" in two of them, comes from the default alone.
//! * `MaxReceivedMessageSize` is checked on the size that a record or a Content-Length announces, before
//!   memory is allocated (framing: `Channel::sized`, HTTP: `everywire_http::Bounds`), and on what comes out of a
//!   decompressor.
//! * A quota of WCF that has no meaning here is refused with the reason, and not taken silently: whoever
//!   writes it relies on it.

pub use crate::values::ReaderQuotas;

use everywire_model::{Failure, Initiator, Kind};
use std::time::Duration;

/// Bytes of the session dictionary of one direction, length prefixes included, summed over the session
/// (MC-NBFSE 2.1). .NET's default for `MaxSessionSize`: this side's writer never goes beyond it, since the
/// peer's quota is not known.
pub const MAX_SESSION_SIZE: usize = 2048;

/// Headers of one envelope. Far more than WCF's own messages have (addressing, a reliable session,
/// security).
pub const MAX_HEADERS: usize = 64;

/// Words in the session dictionary of one direction. A word costs its bytes and its length prefix, so one
/// of no letters costs a single byte: the number of entries needs a bound of its own where `MaxSessionSize`
/// was raised.
pub const MAX_SESSION_WORDS: usize = 2048;

/// Elements in elements: .NET's default for `MaxDepth` (XmlDictionaryReaderQuotas).
pub const MAX_DEPTH: usize = 32;

/// Attributes and namespace declarations of one element, which are compared with each other.
pub const MAX_ATTRIBUTES: usize = 64;

/// Bytes of one name, prefix or namespace in a record or in text.
pub const MAX_NAME: usize = 4096;

/// The most bytes of a reference as text, the password and all options included.
pub const REFERENCE_TEXT: usize = 16 << 10;

/// Objects of one message that are read because others refer to them (what .NET's MaxItemsInObjectGraph was by default).
pub const MAX_REFERENCES: usize = 65_536;

/// Octets of one message that are read again because objects refer to them (`z:Ref`): an object that many
/// refer to is read as often as it is referred to, and without this bound a small message could ask for
/// unbounded work.
pub const MAX_REFERRED_OCTETS: usize = 16 << 20;

/// Namespaces that are declared at one place of a document, in all open elements together: each prefix is
/// looked for among them.
pub const MAX_PREFIXES: usize = 256;

/// The quotas of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quotas {
    /// Octets of a message as it arrives, and of what it is unpacked to.
    pub max_received_message_size: u64,
    /// What reading its XML may cost.
    pub reader: ReaderQuotas,
    /// Octets of the session's dictionary, of one direction: of what the peer may teach this side.
    pub max_session_size: usize,
    /// Octets of the Via of a preamble; a longer one is answered by the framing fault ViaTooLong.
    pub max_via_size: usize,
    /// Octets of a content type in a preamble; a longer one is answered by ContentTypeTooLong.
    pub max_content_type_size: usize,
    /// How long it may take until a channel is open: for whoever connects from the first byte to the
    /// Preamble Ack, for a place how long a session waits for its turn.
    pub open_timeout: Duration,
    /// Of a place: how long a channel may be silent while nobody waits for an answer. Then this side ends
    /// it.
    pub receive_timeout: Duration,
    /// How long a peer may take to say what it wants: for the whole preamble.
    pub channel_initialization_timeout: Duration,
    /// How long an unused connection is kept: one that waits for another preamble, or an idle one of HTTP.
    pub idle_timeout: Duration,
    /// Of a place: sessions that are served at once, others wait; 0 for as many as come.
    pub max_concurrent_sessions: usize,
    /// Of a place: calls that are served at once and that somebody waits for, others wait; 0 for as many as come.
    pub max_concurrent_calls: usize,
    /// Of a place: connections whose sessions wait, where those are bounded; others are refused.
    pub max_pending_connections: usize,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            max_received_message_size: Self::MAX_RECEIVED_MESSAGE_SIZE,
            reader: ReaderQuotas::default(),
            max_session_size: MAX_SESSION_SIZE,
            max_via_size: 2048,
            max_content_type_size: 256,
            open_timeout: Duration::from_secs(60),
            receive_timeout: Duration::from_secs(600),
            channel_initialization_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(120),
            max_concurrent_sessions: 0,
            max_concurrent_calls: 0,
            max_pending_connections: 128,
        }
    }
}

/// Where a quota stands, which says what it can be.
enum QuotaField<'q> {
    /// A `long` in .NET's configuration.
    Long(&'q mut u64),
    /// An `int` there.
    Int(&'q mut u32),
    /// The same, of bytes or of peers.
    Size(&'q mut usize),
    Time(&'q mut Duration),
}

impl Quotas {
    /// The default of `MaxReceivedMessageSize`, in octets.
    pub const MAX_RECEIVED_MESSAGE_SIZE: u64 = 65_536;

    /// Quotas of WCF's that would bound nothing here, and what does.
    /// Refused with the reason, since an address that names one of them relies on it.
    const ELSEWHERE: [(&str, &str); 6] = [
        (
            "MaxConcurrentInstances",
            "an object here is one instance, which serves all: MaxConcurrentCalls= and MaxConcurrentSessions= bound what it does",
        ),
        (
            "MaxConnections",
            "callers share connections as they need them, and a listener has MaxPendingConnections= for those whose sessions \
             wait, and the node's quota for all: leave it out",
        ),
        (
            "ListenBacklog",
            "the system bounds connections that nobody has accepted yet (net.core.somaxconn), and they are accepted at once: \
             MaxPendingConnections= bounds those whose sessions wait",
        ),
        ("CloseTimeout", "closing waits for nobody here: leave it out"),
        (
            "SendTimeout",
            "a call has its deadline from whoever makes it (`--deadline` of the command): leave it out",
        ),
        (
            "MaxItemsInObjectGraph",
            "values are bounded by MaxReceivedMessageSize=, MaxArrayLength= and MaxDepth=: use those",
        ),
    ];

    /// Sets a quota by its name, in any case. Times are seconds, or `HH:MM:SS` as in configuration files of .NET, or end with
    /// `ms`, `s`, `m` or `h`.
    ///
    /// Returns whether there is such a quota.
    ///
    /// # Errors
    ///
    /// The value is none, or the quota is one that something else stands for here.
    pub fn set(&mut self, name: &str, value: &str) -> Result<bool, Failure> {
        if let Some((name, instead)) =
            Self::ELSEWHERE.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))
        {
            let what = format!("the quota {name} bounds nothing here: {instead}");
            return Err(Failure::bad_reference(what));
        }
        let Some(place) = self.place(name) else { return Ok(false) };
        let number = |most: u64| value.parse().ok().filter(|number| (1..=most).contains(number));
        // What is an `int` there is refused above its maximum here, too.
        let small = || number(i32::MAX as u64);
        let what = if matches!(place, QuotaField::Time(_)) {
            "a time, such as 30s or 00:00:30"
        } else {
            "a whole number greater than 0"
        };
        let set = match place {
            QuotaField::Long(quota) => number(i64::MAX as u64).map(|number| *quota = number),
            QuotaField::Int(quota) => small().map(|number| *quota = number as u32),
            QuotaField::Size(quota) => small().map(|number| *quota = number as usize),
            QuotaField::Time(quota) => duration(value).map(|time| *quota = time),
        };
        set.map(|()| true).ok_or_else(|| {
            let what = format!("the quota {name} is {what}, not `{value}`");
            Failure::bad_reference(what)
        })
    }

    /// What each name means. Two names set one quota: see the first arm.
    fn place(&mut self, name: &str) -> Option<QuotaField<'_>> {
        let reader = &mut self.reader;
        Some(match &*name.to_ascii_lowercase() {
            // Whoever buffers messages gives room to them whole: the two are one quota here.
            "maxreceivedmessagesize" | "maxbuffersize" => {
                QuotaField::Long(&mut self.max_received_message_size)
            }
            "maxdepth" => QuotaField::Int(&mut reader.max_depth),
            "maxstringcontentlength" => QuotaField::Int(&mut reader.max_string_content_length),
            "maxarraylength" => QuotaField::Int(&mut reader.max_array_length),
            "maxbytesperread" => QuotaField::Int(&mut reader.max_bytes_per_read),
            "maxnametablecharcount" => QuotaField::Int(&mut reader.max_name_table_char_count),
            "maxsessionsize" => QuotaField::Size(&mut self.max_session_size),
            "maxviasize" => QuotaField::Size(&mut self.max_via_size),
            "maxcontenttypesize" => QuotaField::Size(&mut self.max_content_type_size),
            "opentimeout" => QuotaField::Time(&mut self.open_timeout),
            "receivetimeout" => QuotaField::Time(&mut self.receive_timeout),
            "channelinitializationtimeout" => QuotaField::Time(&mut self.channel_initialization_timeout),
            "idletimeout" => QuotaField::Time(&mut self.idle_timeout),
            "maxconcurrentsessions" => QuotaField::Size(&mut self.max_concurrent_sessions),
            "maxconcurrentcalls" => QuotaField::Size(&mut self.max_concurrent_calls),
            "maxpendingconnections" => QuotaField::Size(&mut self.max_pending_connections),
            _ => return None,
        })
    }

    /// A message of this side's peer is too large: what WCF says, and how the quota is raised here.
    #[cold]
    pub fn message_too_large(&self, initiator: Initiator) -> Failure {
        Failure::new(Kind::LimitExceeded, initiator, too_large(self.max_received_message_size))
            .with_hint("end the address with ?MaxReceivedMessageSize=OCTETS")
    }
}

/// What is said of a message that is too large. The sentence is .NET's own: users search the web for it.
pub(crate) fn too_large(quota: u64) -> String {
    format!(
        "The maximum message size quota for incoming messages ({quota}) has been exceeded. To increase the quota, use the MaxReceivedMessageSize property on the appropriate binding element."
    )
}

/// A time in any notation of [`Quotas::set`].
fn duration(text: &str) -> Option<Duration> {
    let found = if text.contains(':') {
        let parts: Option<Vec<f64>> = text.split(':').map(|part| part.parse().ok()).collect();
        let [hours, minutes, seconds] = parts?[..] else { return None };
        (hours * 60.0 + minutes) * 60.0 + seconds
    } else {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = match &text[digits.len()..] {
            "ms" => 0.001,
            "" | "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        digits.parse::<f64>().ok()? * unit
    };
    // A millisecond to thirty days: more is as good as for ever, and cannot overflow a clock.
    (0.001..=2_592_000.0).contains(&found).then(|| Duration::from_secs_f64(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_set_by_name() {
        let mut quotas = Quotas::default();
        for (name, value) in [
            ("MaxReceivedMessageSize", "1000000"),
            ("maxarraylength", "16384"),
            ("ReceiveTimeout", "00:01:30"),
        ] {
            assert!(quotas.set(name, value).unwrap(), "{name}");
        }
        assert_eq!(quotas.receive_timeout, Duration::from_secs(90));
        assert_eq!((quotas.max_received_message_size, quotas.reader.max_array_length), (1_000_000, 16_384));
    }

    #[test]
    fn every_name_is_known() {
        let names = [
            "MaxReceivedMessageSize",
            "MaxBufferSize",
            "MaxDepth",
            "MaxStringContentLength",
            "MaxArrayLength",
            "MaxBytesPerRead",
            "MaxNameTableCharCount",
            "MaxSessionSize",
            "MaxViaSize",
            "MaxContentTypeSize",
            "OpenTimeout",
            "ReceiveTimeout",
            "ChannelInitializationTimeout",
            "IdleTimeout",
            "MaxConcurrentSessions",
            "MaxConcurrentCalls",
            "MaxPendingConnections",
        ];
        for name in names {
            assert!(Quotas::default().set(name, "7").unwrap(), "{name}");
        }
        assert!(!Quotas::default().set("MaxNothing", "7").unwrap());
        for (name, instead) in Quotas::ELSEWHERE {
            let failure = Quotas::default().set(&name.to_lowercase(), "7").unwrap_err();
            assert!(failure.message().contains(name) && failure.message().contains(instead));
        }
    }

    #[test]
    fn values_that_are_none() {
        for (name, value) in [
            ("MaxDepth", "0"),
            ("MaxDepth", "-1"),
            ("MaxDepth", "4294967296"),
            ("OpenTimeout", "soon"),
            ("OpenTimeout", "NaN"),
            ("OpenTimeout", "1:2"),
            ("OpenTimeout", "inf"),
            ("OpenTimeout", "é"),
        ] {
            assert!(Quotas::default().set(name, value).is_err(), "{name}={value}");
        }
    }
}
