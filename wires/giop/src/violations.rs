//! Each way a peer can be wrong is one named variant.
//!
//! A violation ends the connection: the session puts MessageError into its output and takes nothing more.
//! What concerns one call alone (arguments that do not decode, an exception that does not) is a `Failure` of
//! that call and not here. The names are stable, since tests, metrics and `trace` count by them.

use everywire_model::Violation;

/// How a peer broke the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wrong {
    /// The bytes are no GIOP message.
    NotGiop {
        /// The first four.
        found: [u8; 4],
    },
    /// A version this side does not speak.
    Version {
        /// Major.
        major: u8,
        /// Minor.
        minor: u8,
    },
    /// Reserved bits are set in the header's flags.
    Flags {
        /// The octet.
        flags: u8,
    },
    /// No message is of this kind.
    Kind {
        /// The octet.
        octet: u8,
    },
    /// A message is larger than this side accepts.
    OverLimit {
        /// Its bytes, header included.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// A message header does not decode.
    Header {
        /// What is wrong.
        what: &'static str,
        /// Offset in the message.
        at: usize,
    },
    /// Bytes stand after a message that has no body.
    Trailing {
        /// The message.
        kind: &'static str,
        /// How many.
        bytes: usize,
    },
    /// A message of this kind cannot be fragmented in this version.
    NotFragmentable {
        /// The message.
        kind: &'static str,
        /// Minor version.
        minor: u8,
    },
    /// A fragmented message begins while another with the same number is open.
    FragmentedTwice {
        /// The request.
        id: u32,
    },
    /// A fragment differs from its message in byte order. (One of another version continues none.)
    FragmentDiffers {
        /// The request.
        id: u32,
    },
    /// A fragment before the last is no multiple of 8 bytes long.
    FragmentLength {
        /// Its size.
        size: u32,
    },
    /// Too many fragmented messages are open.
    Assemblies {
        /// The limit.
        limit: usize,
    },
    /// Open fragmented messages hold too many bytes together.
    AssembledBytes {
        /// Bytes they would hold.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// A message began and did not arrive in time.
    TooSlow {
        /// Seconds it was given.
        seconds: u64,
    },
    /// A request has the number of another that is not answered yet.
    RequestIdReused {
        /// The number.
        id: u32,
    },
    /// An addressing disposition that does not exist.
    Addressing {
        /// The number.
        disposition: u16,
    },
    /// A target is addressed by a profile of another protocol, or by a profile index out of range.
    Target,
    /// The status of a reply does not exist.
    Status {
        /// The number.
        status: u32,
    },
    /// Requests from the accepting side of a connection that was not made bidirectional.
    NotBidirectional {
        /// The message.
        kind: &'static str,
    },
    /// More locate requests are open than the limit, in a version without a way to say so.
    TooManyOpen {
        /// The limit.
        limit: usize,
    },
}

impl Wrong {
    /// The variant's name, stable: tests, metrics and `trace` count by it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotGiop { .. } => "NotGiop",
            Self::Version { .. } => "Version",
            Self::Flags { .. } => "Flags",
            Self::Kind { .. } => "Kind",
            Self::OverLimit { .. } => "OverLimit",
            Self::Header { .. } => "Header",
            Self::Trailing { .. } => "Trailing",
            Self::NotFragmentable { .. } => "NotFragmentable",
            Self::FragmentedTwice { .. } => "FragmentedTwice",
            Self::FragmentDiffers { .. } => "FragmentDiffers",
            Self::FragmentLength { .. } => "FragmentLength",
            Self::Assemblies { .. } => "Assemblies",
            Self::AssembledBytes { .. } => "AssembledBytes",
            Self::TooSlow { .. } => "TooSlow",
            Self::RequestIdReused { .. } => "RequestIdReused",
            Self::Addressing { .. } => "Addressing",
            Self::Target => "Target",
            Self::Status { .. } => "Status",
            Self::NotBidirectional { .. } => "NotBidirectional",
            Self::TooManyOpen { .. } => "TooManyOpen",
        }
    }

    /// The neutral violation; `offset` counts bytes received on the connection before the message.
    #[cold]
    pub fn violation(self, offset: u64) -> Violation {
        Violation { wire: "giop", name: self.name(), message: self.to_string(), offset }
    }
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotGiop { found } => {
                // A record of the handshake, or an alert (RFC 8446, section 5.1).
                let tls = if matches!(found, [0x15 | 0x16, 3, ..]) {
                    ": the peer speaks TLS, which is called by iiops://"
                } else {
                    ""
                };
                write!(f, "a message begins with `{}` instead of `GIOP`{tls}", found.escape_ascii())
            }
            Self::Version { major, minor } => {
                write!(f, "GIOP {major}.{minor} is not spoken here (1.0 to 1.2 are)")
            }
            Self::Flags { flags } => write!(f, "reserved bits are set in the flags {flags:#04x}"),
            Self::Kind { octet } => write!(f, "no GIOP message is of kind {octet}"),
            Self::OverLimit { size, limit } => {
                write!(f, "a message of {size} bytes exceeds the limit of {limit} bytes")
            }
            Self::Header { what, at } => write!(f, "{what}, at byte {at} of the message"),
            Self::Trailing { kind, bytes } => write!(f, "{bytes} bytes follow a {kind}"),
            Self::NotFragmentable { kind, minor } => {
                write!(f, "a {kind} of GIOP 1.{minor} cannot be fragmented")
            }
            Self::FragmentedTwice { id } => {
                write!(f, "request {id} begins again before its last fragment came")
            }
            Self::FragmentDiffers { id } => {
                write!(f, "a fragment of request {id} has another byte order than its message")
            }
            Self::FragmentLength { size } => {
                write!(f, "a fragment of size {size} is not the last and ends off an 8-byte boundary")
            }
            Self::Assemblies { limit } => write!(f, "more than {limit} fragmented messages are open"),
            Self::AssembledBytes { size, limit } => {
                write!(f, "fragmented messages of {size} bytes together exceed the limit of {limit} bytes")
            }
            Self::TooSlow { seconds } => {
                write!(f, "a message that had begun did not arrive within {seconds} s")
            }
            Self::RequestIdReused { id } => write!(f, "request {id} comes again before it was answered"),
            Self::Addressing { disposition } => {
                write!(f, "addressing disposition {disposition} does not exist")
            }
            Self::Target => write!(f, "the target's profile is none of IIOP, or is out of range"),
            Self::Status { status } => write!(f, "a reply has the status {status}, which does not exist"),
            Self::NotBidirectional { kind } => {
                write!(
                    f,
                    "a {kind} came from the side that accepted, on a connection that is not bidirectional"
                )
            }
            Self::TooManyOpen { limit } => write!(f, "more than {limit} requests are open"),
        }
    }
}

impl std::error::Error for Wrong {}
