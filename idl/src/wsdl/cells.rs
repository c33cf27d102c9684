//! Cells of types that contain themselves. They live as long as the process, so each is made once: whoever
//! reads the same documents again gets the same cells, and there are only so many.
//!
//! Without this table, a client that asks a service for its description again and again would leak memory
//! each time. The key is a hash of all documents together, because the same name may be another type
//! elsewhere, and of the types that are known to be broken, because those around them are read without them
//! then. A cell may be filled already when a type is read again: text and broken types are the same, so the
//! content is.

use super::names::QName;
pub(super) use crate::read_cache::{Origin, origin};
use everywire_model::shape::{Struct, Union};
use everywire_model::{Hold, Shape};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

/// Types that contain themselves, of all documents that a process reads. Beyond it they are refused, with a
/// message, and others are read as before.
pub(super) const CELLS: usize = 1 << 16;

/// By the documents, the type, and whether all that extend it are meant too.
type TypeCells = HashMap<(Origin, QName, bool), Cell>;

/// The cells so far. Nothing is ever taken out: shapes elsewhere point to them.
static KNOWN: LazyLock<Mutex<TypeCells>> = LazyLock::new(Mutex::default);

/// What a type or a family needs.
#[derive(Clone, Copy)]
enum Cell {
    Struct(&'static OnceLock<Struct>),
    Union(&'static OnceLock<Union>),
}

/// The shape that stands for a type while it is read, or for it and all that extend it; `None` if there are too many.
pub(super) fn of(origin: Origin, name: &QName, family: bool) -> Option<Shape> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (origin, name.clone(), family);
    if !known.contains_key(&key) && known.len() >= CELLS {
        return None;
    }
    let cell = *known.entry(key).or_insert_with(|| {
        if family { Cell::Union(Box::leak(Box::default())) } else { Cell::Struct(Box::leak(Box::default())) }
    });
    Some(match cell {
        Cell::Struct(cell) => Shape::Struct(Hold::Later(cell)),
        Cell::Union(cell) => Shape::Union(Hold::Later(cell)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(shape: &Shape) -> usize {
        match shape {
            Shape::Struct(Hold::Later(cell)) => std::ptr::from_ref(*cell).addr(),
            Shape::Union(Hold::Later(cell)) => std::ptr::from_ref(*cell).addr(),
            _ => panic!("{shape:?}"),
        }
    }

    #[test]
    fn the_same_documents_have_the_same_cells() {
        let name = QName::new("urn:a", "Node");
        let [one, other] = ["<a/>", "<b/>"].map(origin);
        let at = |origin, family| address(&of(origin, &name, family).unwrap());
        assert_eq!(at(one, false), at(origin("<a/>"), false));
        assert!(at(one, false) != at(other, false) && at(one, false) != at(one, true));
    }

    #[test]
    fn a_contract_that_is_read_again_leaks_nothing_more() {
        let text = r#"<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" targetNamespace="urn:leak"><types>
            <schema xmlns="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:leak" xmlns:t="urn:leak">
            <complexType name="Leaky"><sequence><element name="next" type="t:Leaky" minOccurs="0" nillable="true"/></sequence>
            </complexType></schema></types></definitions>"#;
        let held = || {
            let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
            known.keys().filter(|(_, name, _)| name.local == "Leaky").count()
        };
        let read = || {
            let contract = crate::wsdl::parse(text, "leak.wsdl").unwrap();
            let shape = contract.definitions.iter().find_map(|definition| match definition {
                everywire_model::Definition::Type(shape @ Shape::Struct(_)) => Some(shape.clone()),
                _ => None,
            });
            address(&shape.unwrap())
        };
        let first = read();
        assert_eq!(held(), 1);
        assert_eq!((read(), held()), (first, 1));
    }
}
