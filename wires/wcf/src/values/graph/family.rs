//! Types that derive from one another: each begins with the fields of its base.

use everywire_model::shape::Struct;
use std::collections::HashMap;

/// The lists of fields of a family as one tree, whose paths are beginnings that they have in common: whose a field is shows
/// without comparing each type with every other, whatever a description puts into one family.
pub(super) struct Family<'s> {
    /// By node and name of the next field; the root is 0.
    next: HashMap<(usize, &'s str), usize>,
    /// The type whose fields end at a node.
    ends: Vec<Option<&'s Struct>>,
}

impl<'s> Family<'s> {
    /// The types of a union in the order of its arms; the first of two with the same fields counts.
    pub(super) fn new(types: &[&'s Struct]) -> Self {
        let mut family = Self { next: HashMap::new(), ends: vec![None] };
        for shape in types {
            let mut at = 0;
            for field in shape.fields.iter() {
                let fresh = family.ends.len();
                // A common beginning is walked along, and the tree branches where the fields differ.
                at = *family.next.entry((at, &field.name)).or_insert(fresh);
                if at == fresh {
                    family.ends.push(None);
                }
            }
            if let Some(end) = family.ends.get_mut(at) {
                end.get_or_insert(shape);
            }
        }
        family
    }

    /// The type that declares each field of a type: of those that begin as it does, the one with the fewest fields that has it.
    pub(super) fn declaring(&self, shape: &'s Struct) -> Vec<&'s Struct> {
        let mut path = Vec::with_capacity(shape.fields.len());
        let mut at = Some(0);
        for field in shape.fields.iter() {
            at = at.and_then(|at| self.next.get(&(at, &*field.name)).copied());
            path.push(at);
        }
        let mut nearest = shape;
        let mut declaring: Vec<&Struct> = path
            .into_iter()
            // From the last field back: a field belongs to the nearest type that ends at or behind it.
            .rev()
            .map(|node| {
                nearest = node.and_then(|node| *self.ends.get(node)?).unwrap_or(nearest);
                nearest
            })
            .collect();
        declaring.reverse();
        declaring
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_model::Shape;
    use everywire_model::shape::Field;

    fn of(name: &str, fields: &str) -> Struct {
        let field = |name: char| Field { name: name.to_string().into(), shape: Shape::I32 };
        Struct { name: name.to_owned().into(), id: "".into(), fields: fields.chars().map(field).collect() }
    }

    #[test]
    fn each_field_is_its_nearest_base_s() {
        let types =
            [of("base", "ab"), of("empty", ""), of("leaf", "abcd"), of("middle", "abc"), of("other", "ax")];
        let types: Vec<&Struct> = types.iter().collect();
        let family = Family::new(&types);
        let declared = |at: usize| -> Vec<&str> {
            family.declaring(types[at]).iter().map(|shape| &*shape.name).collect()
        };
        assert_eq!(declared(0), ["base", "base"]);
        assert!(declared(1).is_empty());
        assert_eq!(declared(2), ["base", "base", "middle", "leaf"]);
        assert_eq!(declared(3), ["base", "base", "middle"]);
        assert_eq!(declared(4), ["other", "other"]);
        // Of two that say the same, the first.
        let twins = [of("one", "ab"), of("two", "ab")];
        let twins: Vec<&Struct> = twins.iter().collect();
        let names: Vec<&str> =
            Family::new(&twins).declaring(twins[1]).iter().map(|shape| &*shape.name).collect();
        assert_eq!(names, ["one", "one"]);
    }

    /// Comparing each with each, this takes as long as a hostile description likes.
    #[test]
    #[cfg_attr(miri, ignore = "Miri takes hours for so many types")]
    fn a_large_family_costs_its_size() {
        let types: Vec<Struct> = (0..50_000_u32)
            .map(|i| {
                let own = Field { name: format!("own{i}").into(), shape: Shape::I32 };
                let mut shape = of("type", "abcd");
                shape.fields.to_mut().push(own);
                shape
            })
            .chain([of("base", "abcd")])
            .collect();
        let types: Vec<&Struct> = types.iter().collect();
        let family = Family::new(&types);
        for shape in &types {
            let declaring = family.declaring(shape);
            assert!(declaring.iter().take(4).all(|base| base.name == "base"));
        }
    }
}
