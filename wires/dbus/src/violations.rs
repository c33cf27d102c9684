//! Each way a peer can be wrong is one named variant.
//!
//! A violation ends the connection, and the protocol has no word to tell the peer why. What concerns one call
//! alone (values that do not decode, a message of somebody on a bus that is too large) is a `Failure` of that
//! call and not here. The names are stable, since tests, metrics and `trace` count by them.

use everywire_model::violations;

violations! {
    "dbus"
    /// How a peer broke the protocol.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum ProtocolError {
        /// A message begins with no byte-order mark.
        NotDbus { found: u8 } => "a message begins with `{}` instead of `l` or `B`", found.escape_ascii();
        /// A version this side does not speak.
        Version { found: u8 } => "version {found} of the protocol is not spoken here (1 is)";
        /// A message of the type INVALID.
        Kind => "a message is of the type INVALID";
        /// A message without a serial number.
        ZeroSerial => "a message has the serial number 0";
        /// A message is larger than this side accepts.
        OverLimit { size: u64, limit: u64 } => "a message of {size} bytes exceeds the limit of {limit} bytes";
        /// The header fields take more bytes than this side accepts.
        Fields { size: u64, limit: u64 } => "header fields of {size} bytes exceed the limit of {limit} bytes";
        /// A header does not decode.
        Header { what: &'static str, at: usize } => "{what}, at byte {at} of the message";
        /// Padding that is not zero.
        Padding { at: usize } => "padding is not zero at byte {at} of the message";
        /// A header field has the wrong type.
        FieldType { field: &'static str } => "the header field {field} has a wrong type";
        /// A header field stands twice.
        FieldTwice { field: &'static str } => "the header field {field} stands twice";
        /// A header field has a value that its kind of name does not allow.
        FieldValue { field: &'static str } => "the header field {field} breaks the rules for its value";
        /// A header field is missing.
        Missing { kind: &'static str, field: &'static str } => "a {kind} lacks the header field {field}";
        /// The signature in a header breaks the specification's rules.
        Signature { what: &'static str } => "a signature is wrong: {what}";
        /// A body without a signature.
        NoSignature { bytes: u32 } => "a body of {bytes} bytes has no signature";
        /// The path or interface that the specification reserves for a message within a process.
        Reserved => "a message bears the path or the interface reserved for local use";
        /// More handles than a message may have.
        TooManyHandles { count: usize } => "{count} handles came; a message may have 16";
        /// Handles that no message announces, or fewer than one does.
        Handles { announced: usize, came: usize } =>
            "a message announces {announced} handles, and {came} came with it";
        /// Handles on a connection that did not agree to them.
        HandlesUnasked => "handles came on a connection that did not agree to pass them";
        /// The peer calls this side, which called it, and reads none of the answers.
        Unread { bytes: usize } => "{bytes} bytes wait for the peer, which calls on and reads no answers";
        /// A message, or the greeting, began and did not arrive in time.
        TooSlow { seconds: u64 } => "a message, or the greeting, did not arrive within {seconds} s";
        /// Authentication failed.
        Authentication { what: String } => "authentication failed: {what}";
        /// The bus refused to greet, to give the name or to let us monitor.
        Unwelcome { what: String } => "{what}";
    }
}
