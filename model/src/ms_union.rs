//! Unions whose arms begin where the widest of them could begin.
//!
//! MIDL's `[ms_union]` asks for the NDR of early versions of Microsoft's compiler: after the discriminant of a union that is not
//! encapsulated there is padding up to the alignment of the widest arm, whichever arm follows, and also if none does. Without it each arm has
//! its own alignment (C706 14.3.8). That a union is such a one stands in a remark on its *discriminator* (an alias without a name, which
//! others look through), so that it is part of the union wherever that is used. Only NDR minds.

use crate::shape::{Alias, Hold, Name, Shape, Union};

const REMARK: &str = "#ms_union";

/// The shape of a discriminator, with the remark that the arms of its union are aligned alike.
pub fn remarked(discriminator: Shape) -> Shape {
    Shape::Alias(Hold::new(Alias {
        name: Name::default(),
        id: Name::Borrowed(REMARK),
        target: discriminator,
    }))
}

/// Whether the arms of a union are aligned alike.
#[inline]
pub fn is(union: &Union) -> bool {
    matches!(&union.discriminator, Shape::Alias(held) if held.name.is_empty() && held.id == REMARK)
}
