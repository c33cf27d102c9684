//! Tables of what a peer can do wrong: name, meaning and text of each way stand in one place.

/// Declares an enumeration of the ways in which a peer can break a protocol, each with its sentence for people: a format string that
/// may name the variant's fields. What is declared has `name`, [`Display`](std::fmt::Display) and [`Error`](std::error::Error).
///
/// ```
/// everywire_model::violations! {
/// /// How a peer broke the protocol.
/// #[derive(Debug)]
/// pub enum Wrong {
///     /// The version is not spoken here.
///     Version {
///         /// What the peer said.
///         found: u8,
///     } => "version {found} of the protocol is not spoken here",
///     /// Nothing came.
///     Silence => "the peer says nothing",
/// }
/// }
/// assert_eq!(Wrong::Version { found: 3 }.name(), "Version");
/// assert_eq!(Wrong::Version { found: 3 }.to_string(), "version 3 of the protocol is not spoken here");
/// ```
#[macro_export]
macro_rules! violations {
    ($(#[$about:meta])* pub enum $Wrong:ident {
        $($(#[$meaning:meta])* $Way:ident $({ $($(#[$what:meta])* $field:ident: $type:ty,)* })? => $text:literal,)*
    }) => {
        $(#[$about])*
        pub enum $Wrong {
            $($(#[$meaning])* $Way $({ $($(#[$what])* $field: $type,)* })?,)*
        }

        impl $Wrong {
            /// The variant's name, stable: tests, metrics and `trace` count by it.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$Way { .. } => stringify!($Way),)*
                }
            }
        }

        impl std::fmt::Display for $Wrong {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$Way $({ $($field),* })? => write!(f, $text),)*
                }
            }
        }

        impl std::error::Error for $Wrong {}
    };
}
