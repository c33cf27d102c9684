//! How a wire lists the ways in which a peer can break its protocol.

/// Declares an enumeration of violations from a table: each row is a variant, what it holds, and the sentence that tells of it, in which
/// what it holds can stand by name. What stands behind the sentence are further arguments of the format.
///
/// The variant's name is stable, since tests, metrics and `trace` count by it. With the name of a wire in front, the enumeration becomes
/// the [`crate::Violation`] that ends a connection.
#[doc(hidden)]
#[macro_export]
macro_rules! violations {
    (
        $($wire:literal)?
        $(#[$attribute:meta])*
        pub enum $name:ident {
            $(
                $(#[$doc:meta])*
                $variant:ident $({ $($(#[$what:meta])* $field:ident: $type:ty),+ $(,)? })?
                    => $text:literal $(, $argument:expr)*;
            )+
        }
    ) => {
        $(#[$attribute])*
        #[non_exhaustive]
        #[allow(missing_docs)]
        pub enum $name {
            $($(#[$doc])* $variant $({ $($(#[$what])* $field: $type),+ })?),+
        }

        impl $name {
            /// The variant's name, stable: tests, metrics and `trace` count by it.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant { .. } => stringify!($variant)),+ }
            }

            $(
                /// The neutral violation; `offset` counts bytes received on the connection before the message.
                #[cold]
                pub fn violation(&self, offset: u64) -> $crate::Violation {
                    $crate::Violation { wire: $wire, name: self.name(), message: self.to_string(), offset }
                }
            )?
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self { $(Self::$variant $({ $($field),+ })? => ::std::write!(f, $text $(, $argument)*)),+ }
            }
        }

        impl ::std::error::Error for $name {}
    };
}
