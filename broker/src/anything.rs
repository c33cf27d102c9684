//! What values of any type lose between two wires: found by writing one of each kind on both, and reading it again.
//!
//! States: none. Invariants: nothing is said of what neither wire has, and nothing here is a table of wires: their codecs decide.

use everywire_model::shape::{
    Alias, Array, Field, Hold, Map, Name, Shape, Struct, Text, TextKind, TypedShape,
};
use everywire_model::{Sink, Source, Value, Wire};

/// What becomes of a value of any type on one wire.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It comes back with the type that it had.
    Kept,
    /// It comes back with another one.
    Retyped,
    /// It cannot be written.
    Refused,
}

/// What loses its own type between these wires, or does not cross, each in one sentence; nothing where all that the one has crosses by the other.
pub(crate) fn lost(near: &dyn Wire, far: &dyn Wire) -> Vec<String> {
    let (mut retyped, mut refused) = (Vec::new(), Vec::new());
    for (name, shape, value) in kinds() {
        match (fate(near, &shape, &value), fate(far, &shape, &value)) {
            (Fate::Kept, Fate::Retyped) | (Fate::Retyped, Fate::Kept) => retyped.push(name),
            (Fate::Kept | Fate::Retyped, Fate::Refused) | (Fate::Refused, Fate::Kept | Fate::Retyped) => {
                refused.push(name);
            }
            (Fate::Kept, Fate::Kept) | (Fate::Retyped, Fate::Retyped) | (Fate::Refused, Fate::Refused) => {}
        }
    }
    let told = |names: &[&str], what: &str| {
        let (last, before) = names.split_last()?;
        let and = if before.is_empty() { "" } else { " and " };
        Some(format!("a value of any type: {}{and}{last} {what}", before.join(", ")))
    };
    let retyped = told(&retyped, "arrive as another type, as only one of the wires has them");
    retyped.into_iter().chain(told(&refused, "are refused, as one of the wires has none")).collect()
}

/// Kinds of values whose type a wire may have no word for, by the names that people read.
fn kinds() -> [(&'static str, Shape, Value); 7] {
    let alias = Alias { name: "Name".into(), id: "IDL:Name:1.0".into(), target: Shape::I32 };
    let array = Array { element: Shape::I32, len: 1 };
    let map = Map { key: Shape::I32, value: Shape::I32 };
    let text = |kind| Shape::Text(Text { kind, bound: None });
    let one = Value::Integer(1);
    [
        ("narrow text", text(TextKind::Narrow), Value::Text("a".into())),
        ("narrow characters", Shape::Char, Value::Char('a')),
        ("object paths", text(TextKind::Path), Value::Text("/a".into())),
        ("signatures", text(TextKind::Signature), Value::Text("i".into())),
        ("arrays", Shape::Array(Hold::new(array)), Value::List(vec![one.clone()])),
        ("maps", Shape::Map(Hold::new(map)), Value::Map(vec![(one.clone(), one.clone())])),
        ("aliases", Shape::Alias(Hold::new(alias)), one),
    ]
}

/// What becomes of a value of any type that holds this one, as the only argument of a call.
fn fate(wire: &dyn Wire, shape: &Shape, value: &Value) -> Fate {
    let field = Field { name: "value".into(), shape: Shape::Variant };
    let arguments = Shape::Struct(Hold::new(Struct {
        fields: vec![field].into(),
        name: Name::default(),
        id: Name::default(),
    }));
    let held = Value::Variant(Box::new((TypedShape(shape.clone()), value.clone())));
    let held = Value::Struct(vec![("value".to_owned(), held)]);
    let Ok(body) = wire.codec().write(&mut |sink: &mut dyn Sink| held.encode(&arguments, sink)) else {
        return Fate::Refused;
    };
    let told = body.read(|source: &mut dyn Source<'_>| Value::decode(&arguments, source));
    let Ok(Value::Struct(told)) = told else { return Fate::Retyped };
    match told.first() {
        Some((_, Value::Variant(told))) if alike(&told.0.0, shape) => Fate::Kept,
        _ => Fate::Retyped,
    }
}

/// Whether two shapes are of one kind; of texts, whether both are of the same.
fn alike(told: &Shape, shape: &Shape) -> bool {
    match (told, shape) {
        (Shape::Text(told), Shape::Text(text)) => told.kind == text.kind,
        _ => std::mem::discriminant(told) == std::mem::discriminant(shape),
    }
}
