//! Whether a schema can say a shape: asked before anything of it is printed.
//!
//! Printing writes into shared tables, and half a type could not be taken out again. So whole operations are
//! checked first.

use super::super::builtin;
use super::super::limits::NESTING;
use super::super::names::{QName, is_name};
use everywire_model::Shape;
use everywire_model::shape::Field;
use std::collections::HashSet;

/// The types that were checked already.
#[derive(Default)]
pub(super) struct CheckedTypes {
    /// Names of types that were looked at, by which types that contain themselves end.
    seen: HashSet<String>,
    /// How deep the present shape is; at most `NESTING`.
    depth: usize,
}

impl CheckedTypes {
    /// Fields and their names, which become elements.
    pub(super) fn fields(&mut self, fields: &[Field]) -> Result<(), String> {
        fields.iter().try_for_each(|field| {
            name(&field.name)?;
            self.shape(&field.shape)
        })
    }

    /// A shape with everything inside; the error is the reason.
    pub(super) fn shape(&mut self, shape: &Shape) -> Result<(), String> {
        self.depth += 1;
        let told = if self.depth > NESTING {
            Err(format!("types are inside one another more than {NESTING} deep"))
        } else {
            self.told(shape)
        };
        self.depth -= 1;
        told
    }

    /// One level of a shape.
    fn told(&mut self, shape: &Shape) -> Result<(), String> {
        match shape {
            Shape::Handle => Err("handles of the operating system do not travel".to_owned()),
            Shape::TypeCode => Err("type codes do not travel in XML".to_owned()),
            Shape::Void => Err("a value that is nothing".to_owned()),
            Shape::Struct(of) if of.get().is_none() => {
                Err("a type that is declared and not defined".to_owned())
            }
            Shape::Union(of) if of.get().is_none() => {
                Err("a type that is declared and not defined".to_owned())
            }
            Shape::Struct(of) => {
                if self.is_unseen(shape)? {
                    self.fields(&of.fields)?;
                }
                Ok(())
            }
            Shape::Union(of) => {
                if self.is_unseen(shape)? {
                    self.shape(&of.discriminator)?;
                    for arm in of.arms.iter().filter(|arm| !matches!(arm.field.shape.resolved(), Shape::Void))
                    {
                        name(&arm.field.name)?;
                        self.shape(&arm.field.shape)?;
                    }
                }
                Ok(())
            }
            Shape::Enum(_) => self.is_unseen(shape).map(|_| ()),
            Shape::Optional(target) => self.shape(target),
            Shape::Pointer(pointer) => self.shape(&pointer.target),
            Shape::Alias(alias) => {
                if let Some(own) = QName::parse(&alias.id) {
                    name(&own.local)?;
                }
                self.shape(&alias.target)
            }
            Shape::Map(map) => {
                name(&builtin::pair(map))?;
                self.shape(&map.key)?;
                self.shape(&map.value)
            }
            Shape::Sequence(_) | Shape::Array(_) => match shape.element() {
                Some(element) => self.shape(element),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Whether a named type was not looked at yet. A struct without a name is always looked at, since its
    /// name says only its parts.
    fn is_unseen(&mut self, shape: &Shape) -> Result<bool, String> {
        let of = builtin::name(shape);
        name(&of.local)?;
        let kind = if matches!(shape, Shape::Union(_)) { "union" } else { "" };
        Ok(matches!(shape, Shape::Struct(of) if of.name.is_empty())
            || self.seen.insert(format!("{kind}{of}")))
    }
}

/// Whether a text can be the name of an element or a type.
fn name(text: &str) -> Result<(), String> {
    if is_name(text) { Ok(()) } else { Err(format!("`{text}` is no name of XML")) }
}
