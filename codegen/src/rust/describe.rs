//! The descriptions at the foot of each module: statics made with `everywire_model::describe`.
//!
//! Codecs, bridges and tools know a contract by these statics; the stubs hand them along with every call.
//! They must say exactly what the contract says, since the wire is made of them: names, ids, numbers, notes,
//! directions.
//!
//! Everything is a constant expression, so a program that starts has nothing to build. A type refers to
//! another one by the path of its static, which also works in circles. What bases have is not repeated:
//! `inherit!` copies runs of operations and attributes out of the statics of the bases at compile time.
//!
//! Types without a name are written where they stand; a struct that is no tuple has a static, found by its
//! fingerprint.

use super::definitions::{INLINE, is_on_the_wire, is_tuple, literal};
use super::plan::{Family, Item, ItemPath, Module, Plan};
use super::types::{TraitKind, Types};
use crate::page::Page;
use everywire_model::contract::{
    Attribute, Constant, Direction, Interface, InterfaceKind, Notify, Operation, Signal,
};
use everywire_model::shape::{Field, Name, Order, Shape, Struct, Text, TextKind};

/// Writes `mod describe` of a module. The constants of the whole contract stand in the root's.
pub(super) fn write(plan: &Plan<'_>, module: &Module<'_>, page: &mut Page) {
    let mut from = module.path.clone();
    from.push("describe".into());
    let types = Types { plan, from: &from, trait_kind: TraitKind::Blocking };
    let describe = Describe { types };
    page.gap();
    page.line("/// What all of this looks like, for codecs and tools.");
    page.block("pub mod describe", |page| {
        page.line("#![allow(missing_docs)]");
        page.gap();
        page.line("use ::everywire::model::describe::*;");
        for item in &module.items {
            match item {
                Item::Type(shape) => describe.named_type(shape, page),
                Item::Exception(exception) => describe.record(exception, page),
                Item::Constant(..) => {}
                Item::Interface(interface, family) | Item::Foreign(interface, family) => {
                    // Bases that the contract does not define are described too, since others inherit their
                    // operations.
                    describe.interface(interface, family, page);
                }
            }
        }
        if module.path == plan.known_static.path {
            describe.known_types(page);
        }
        if module.path.is_empty() && plan.tells_constants() {
            describe.constants(page);
        }
    });
}

struct Describe<'p, 'c> {
    types: Types<'p, 'c>,
}

impl Describe<'_, '_> {
    /// The named types of the whole contract, where an interface has values of any type.
    fn known_types(&self, page: &mut Page) {
        let plan = self.types.plan;
        if !plan.known.is_empty() {
            let each: Vec<_> = plan.known.iter().map(|shape| self.shape(shape)).collect();
            page.gap();
            let head = format!("pub static {}: Types =", plan.known_static.described);
            page.binding_filled(&head, "types!(", &each, ")");
        }
    }

    /// All constants of the contract whose values have literals.
    fn constants(&self, page: &mut Page) {
        page.gap();
        page.block("pub fn constants() -> Vec<Constant>", |page| {
            let each: Vec<_> = self.types.plan.constants().filter_map(|held| self.constant(held)).collect();
            page.line("vec![");
            each.iter().for_each(|one| page.line(format!("    {one},")));
            page.line("]");
        });
    }

    /// One constant as an expression; None where its value has none.
    fn constant(&self, constant: &Constant) -> Option<String> {
        let value = literal(&constant.value)?;
        Some(format!("constant({:?}, {}, {value})", constant.name, self.shape(&constant.shape)))
    }

    /// The static of a type; nothing for shapes without a name.
    fn named_type(&self, shape: &Shape, page: &mut Page) {
        match shape {
            Shape::Struct(shape) => self.record(shape, page),
            Shape::Enum(shape) => {
                let bits = match (shape.bits, shape.open) {
                    (bits, true) => format!("{bits}, open, "),
                    (32, false) => String::new(),
                    (bits, false) => format!("{bits}, "),
                };
                let members: Vec<_> =
                    shape.members.iter().map(|(name, value)| format!("{name:?} = {value}")).collect();
                let head = format!(
                    "pub static {}: Enum = variants!({:?}, {:?}, {bits}",
                    self.own(&shape.name),
                    shape.name,
                    shape.id
                );
                braces(page, &head, &members);
            }
            Shape::Union(shape) => {
                let arms: Vec<_> = shape
                    .arms
                    .iter()
                    .map(|arm| {
                        let default = if arm.default { "@default " } else { "" };
                        let field = &arm.field;
                        format!("{default}{:?} {:?}: {}", arm.labels, field.name, self.shape(&field.shape))
                    })
                    .collect();
                let head = format!(
                    "pub static {}: Union = arms!({:?}, {:?}, {}, ",
                    self.own(&shape.name),
                    shape.name,
                    shape.id,
                    self.shape(&shape.discriminator)
                );
                braces(page, &head, &arms);
            }
            Shape::Alias(shape) => {
                page.gap();
                let head = format!("pub static {}: Alias =", self.own(&shape.name));
                let items =
                    [format!("{:?}", shape.name), format!("{:?}", shape.id), self.shape(&shape.target)];
                page.binding(&head, "named(", &items, ")");
            }
            _ => {}
        }
    }

    /// The static of a struct or an exception.
    fn record(&self, shape: &Struct, page: &mut Page) {
        let fields: Vec<_> = shape.fields.iter().map(|field| self.field(field)).collect();
        let head = format!(
            "pub static {}: Struct = record!({:?}, {:?}, ",
            self.types.plan.find_struct(shape).map_or("", |place| place.described.as_str()),
            shape.name,
            shape.id
        );
        braces(page, &head, &fields);
    }

    /// The statics of an interface, which stand together: its operations, its signals, itself.
    fn interface(&self, interface: &Interface, family: &Family, page: &mut Page) {
        let operations = &family.operations;
        page.gap();
        let count = interface.operations.len();
        let (parts, inherited) = self.inherited_operations(interface);
        let own = interface.operations.iter().skip(inherited);
        let own: Vec<_> = own.map(|operation| self.operation(operation, page)).collect();
        // An array, because its length is known, and a slice of it serves everybody.
        let head = format!("pub static {operations}: [Operation; {count}] =");
        match parts.is_empty() {
            true => page.binding(&head, "[", &own, "]"),
            false => page.binding(&head, &format!("inherit!([{}], [", parts.join(", ")), &own, "])"),
        }
        let bases: Vec<_> =
            interface.bases.iter().map(|base| format!("&{}", self.described(&base.name))).collect();
        let (parts, inherited) = self.inherited_attributes(interface);
        let attributes: Vec<_> =
            interface.attributes.iter().skip(inherited).map(|attribute| self.attribute(attribute)).collect();
        self.signals(interface, &family.signals, page);
        // The order is that of the macro's parameters.
        let mut items = vec![
            format!("{:?}", interface.name),
            format!("{:?}", interface.id),
            format!("[{}]", bases.join(", ")),
            interface.inherited.to_string(),
            format!("&{operations}"),
        ];
        if inherited > 0 {
            items.push(format!("inherits {} [{}]", interface.attributes.len(), parts.join(", ")));
        }
        if !attributes.is_empty() {
            items.push(broken(page, "[", &attributes, "]"));
        }
        if !interface.signals.is_empty() {
            items.push(format!("signals &{}", family.signals));
        }
        let (mut open, mut close) = ("interface!(".to_owned(), ")".to_owned());
        // What is not usual is put around the expression, one function for each thing.
        if interface.kind != InterfaceKind::Plain {
            open.insert_str(0, "of_kind(");
            close = format!("{close}, InterfaceKind::{:?})", interface.kind);
        }
        if !interface.identities.is_empty() {
            open.insert_str(0, "known_as(");
            close = format!("{close}, {})", pairs(&interface.identities));
        }
        if !interface.notes.is_empty() {
            open.insert_str(0, "annotated(");
            close = format!("{close}, {})", pairs(&interface.notes));
        }
        if interface.has_any() && !self.types.plan.known.is_empty() {
            open.insert_str(0, "knowing(");
            close = format!("{close}, &{})", self.path(&self.types.plan.known_static));
        }
        page.binding_filled(
            &format!("pub static {}: Interface =", self.own(&interface.name)),
            &open,
            &items,
            &close,
        );
    }

    /// Where the first operations stand in the lists of the bases, `(&BASE, first, count)`, and how many they
    /// are. They are compared by what would be written of them, so a base that differs in anything is not
    /// used. The longest run counts.
    fn inherited_operations(&self, interface: &Interface) -> (Vec<String>, usize) {
        let said = |operation: &Operation| self.operation(operation, &Page::new(0));
        let mut parts = Vec::new();
        let mut next = 0;
        while next < interface.inherited {
            let inherited = interface.operations.get(next..interface.inherited).unwrap_or_default();
            let Some(first) = inherited.first() else { break };
            // Any base may hold a run of them; the longest one saves most.
            let longest = self.described_bases(interface).filter_map(|base| {
                let from = base.operations.iter().position(|operation| operation.name == first.name)?;
                let theirs = base.operations.iter().skip(from);
                let count = theirs.zip(inherited).take_while(|(one, other)| said(one) == said(other)).count();
                (count > 0).then_some((base, from, count))
            });
            let Some((base, from, count)) = longest.max_by_key(|(.., count)| *count) else { break };
            parts.push(format!("(&{}, {from}, {count})", self.described(&base.name)));
            next += count;
        }
        (parts, next)
    }

    /// Where the first attributes stand in the lists of the bases, `(&BASE, first, count, further)`, and how
    /// many they are. `further` is by how many numbers the accessors stand behind those of the base.
    fn inherited_attributes(&self, interface: &Interface) -> (Vec<String>, usize) {
        let mut parts = Vec::new();
        let mut next = 0;
        while let Some(first) = interface.attributes.get(next) {
            let longest = self.described_bases(interface).filter_map(|base| {
                let from = base.attributes.iter().position(|attribute| attribute.name == first.name)?;
                let further = first.getter.checked_sub(base.attributes.get(from)?.getter)?;
                let moved = |attribute: &Attribute| {
                    let setter = attribute.setter.map(|setter| setter + further);
                    self.attribute(&Attribute {
                        getter: attribute.getter + further,
                        setter,
                        ..attribute.clone()
                    })
                };
                let theirs = base.attributes.iter().skip(from);
                let ours = interface.attributes.iter().skip(next);
                let same = theirs.zip(ours).take_while(|(one, other)| moved(one) == self.attribute(other));
                let count = same.count();
                (count > 0).then_some((base, from, count, further))
            });
            let Some((base, from, count, further)) = longest.max_by_key(|(.., count, _)| *count) else {
                break;
            };
            parts.push(format!("(&{}, {from}, {count}, {further})", self.described(&base.name)));
            next += count;
        }
        (parts, next)
    }

    /// The bases whose descriptions are in this text.
    fn described_bases<'i>(&self, interface: &'i Interface) -> impl Iterator<Item = &'i Interface> {
        interface.bases.iter().map(|base| &**base).filter(|base| self.types.plan.find(&base.name).is_some())
    }

    /// The static with all signals of an interface, inherited ones too.
    fn signals(&self, interface: &Interface, signals: &str, page: &mut Page) {
        if interface.signals.is_empty() {
            return;
        }
        let all: Vec<_> = interface.signals.iter().map(|signal| self.signal(signal, page)).collect();
        page.binding(&format!("pub static {signals}: [Signal; {}] =", all.len()), "[", &all, "]");
    }

    /// One signal; `sunk` adds the method that delivers it.
    fn signal(&self, signal: &Signal, page: &Page) -> String {
        let fields: Vec<_> = signal.fields.fields().iter().map(|field| self.field(field)).collect();
        let mut head = format!("signal!({:?}{}, ", signal.name, label(&signal.label, &signal.name));
        let mut tail = String::new();
        if let Some((sink, index)) = &signal.sink {
            head.insert_str(0, "sunk(");
            tail = format!(", &{}, {index})", self.described(&sink.name));
        }
        if fields.is_empty() {
            return head + "{})" + &tail;
        }
        let line = format!("{head}{{ {} }}){tail}", fields.join(", "));
        if page.fits(&format!("    {line},")) {
            return line;
        }
        broken(page, &format!("{head}{{"), &fields, &format!("}}){tail}"))
    }

    /// One attribute with the numbers of its accessors.
    fn attribute(&self, attribute: &Attribute) -> String {
        let Attribute { name, shape, getter, setter, notify } = attribute;
        let shape = self.shape(shape);
        match notify {
            Notify::Value => format!("attribute({name:?}, {shape}, {getter}, {setter:?})"),
            other => format!("notifying({name:?}, {shape}, {getter}, {setter:?}, Notify::{other:?})"),
        }
    }

    /// One operation; `page` is asked only whether it fits a line.
    fn operation(&self, operation: &Operation, page: &Page) -> String {
        let parameters: Vec<_> = operation
            .parameters
            .iter()
            .map(|parameter| {
                let direction = match parameter.direction {
                    Direction::In => "in",
                    Direction::Out => "out",
                    Direction::InOut => "inout",
                };
                format!("{direction} {}", self.field(&parameter.field))
            })
            .collect();
        let oneway = if operation.oneway { "oneway " } else { "" };
        let label = label(&operation.label, &operation.name);
        let raises: Vec<_> =
            operation.raises.iter().map(|raised| format!("&{}", self.described(&raised.name))).collect();
        let raises =
            if raises.is_empty() { String::new() } else { format!(", raises [{}]", raises.join(", ")) };
        let mut head = format!("operation!({oneway}{:?}{label}, (", operation.name);
        let mut tail = format!(") -> {}{raises})", self.shape(&operation.returns));
        if operation.idempotent {
            head.insert_str(0, "idempotent(");
            tail.push(')');
        }
        if let Some(id) = operation.id {
            head.insert_str(0, "numbered(");
            tail = format!("{tail}, {id})");
        }
        if !operation.notes.is_empty() {
            head.insert_str(0, "noted(");
            tail = format!("{tail}, {})", pairs(&operation.notes));
        }
        broken(page, &head, &parameters, &tail)
    }

    /// A name and a shape.
    fn field(&self, field: &Field) -> String {
        format!("{:?}: {}", field.name, self.shape(&field.shape))
    }

    /// A shape as an expression. Named types are references to their statics.
    fn shape(&self, shape: &Shape) -> String {
        match shape {
            Shape::Void => "Shape::Void".into(),
            Shape::Bool => "Shape::Bool".into(),
            Shape::U8 => "Shape::U8".into(),
            Shape::I8 => "Shape::I8".into(),
            Shape::U16 => "Shape::U16".into(),
            Shape::I16 => "Shape::I16".into(),
            Shape::U32 => "Shape::U32".into(),
            Shape::I32 => "Shape::I32".into(),
            Shape::U64 => "Shape::U64".into(),
            Shape::I64 => "Shape::I64".into(),
            Shape::F32 => "Shape::F32".into(),
            Shape::F64 => "Shape::F64".into(),
            Shape::Char => "Shape::Char".into(),
            Shape::WideChar => "Shape::WideChar".into(),
            Shape::Variant => "Shape::Variant".into(),
            Shape::TypeCode => "Shape::TypeCode".into(),
            Shape::Handle => "Shape::Handle".into(),
            Shape::Text(text) if *text == Text::NARROW => "TEXT".into(),
            Shape::Text(text) if *text == Text::WIDE => "WIDE_TEXT".into(),
            Shape::Text(text) => {
                let kind = match text.kind {
                    TextKind::Narrow => "Narrow",
                    TextKind::Wide => "Wide",
                    TextKind::Counted => "Counted",
                    TextKind::Path => "Path",
                    TextKind::Signature => "Signature",
                };
                format!("text(TextKind::{kind}, {:?})", text.bound)
            }
            Shape::Struct(shape) if is_tuple(shape) => {
                let numbered = |(number, field): (usize, &Field)| field.name == format!("field_{number}");
                if (1..).zip(shape.fields.iter()).all(numbered) {
                    let shapes: Vec<_> = shape.fields.iter().map(|field| self.shape(&field.shape)).collect();
                    return format!("tuple!({})", shapes.join(", "));
                }
                let fields: Vec<_> = shape.fields.iter().map(|field| self.field(field)).collect();
                format!("nameless!({{ {} }})", fields.join(", "))
            }
            Shape::Struct(shape) => match self.types.plan.find_struct(shape) {
                Some(place) => format!("structure(&{})", self.path(place)),
                None => format!("structure(&{})", self.described(&shape.name)),
            },
            Shape::Union(shape) => format!("union(&{})", self.described(&shape.name)),
            Shape::Enum(shape) => format!("enumeration(&{})", self.described(&shape.name)),
            Shape::Alias(shape) if shape.name == INLINE || is_on_the_wire(shape) => {
                format!("renamed!({:?}, {})", shape.name, self.shape(&shape.target))
            }
            // What one wire remarks on a shape stands where the shape does.
            Shape::Alias(shape) if shape.name.is_empty() && !shape.id.is_empty() => {
                format!("remarked!({:?}, {})", shape.id, self.shape(&shape.target))
            }
            // A name that another language has built in, and that has no static here.
            Shape::Alias(shape) if self.types.plan.find(&shape.name).is_none() => self.shape(&shape.target),
            Shape::Alias(shape) => format!("alias(&{})", self.described(&shape.name)),
            Shape::Sequence(sequence) => {
                let element = self.shape(&sequence.element);
                match (sequence.order, sequence.bound) {
                    (order, None) if sequence.size.is_some() => {
                        let size = sequence.size.as_deref().unwrap_or_default();
                        format!("counted!({element}, {size:?}, {order:?})")
                    }
                    // Most sequences of most languages.
                    (Order::Free, None) => format!("sequence!({element})"),
                    (Order::Free, Some(bound)) => format!("sequence!({element}, {bound})"),
                    (order, bound) => format!("sequence!({element}, {bound:?}, {order:?})"),
                }
            }
            Shape::Array(array) => format!("array!({}, {})", self.shape(&array.element), array.len),
            Shape::Map(map) => format!("map!({}, {})", self.shape(&map.key), self.shape(&map.value)),
            Shape::Optional(target) => format!("optional!({})", self.shape(target)),
            Shape::Pointer(pointer) => {
                format!("pointer!({:?}, {})", pointer.kind, self.shape(&pointer.target))
            }
            Shape::Reference(referent) if referent.name.is_empty() && referent.id.is_empty() => {
                "ANY_OBJECT".into()
            }
            Shape::Reference(referent) => format!("reference!({:?}, {:?})", referent.name, referent.id),
        }
    }

    /// The static of something defined in this module.
    fn own(&self, name: &str) -> String {
        self.types.plan.find(name).map_or_else(String::new, |place| place.described.clone())
    }

    /// The path to the static of something defined anywhere.
    fn described(&self, name: &str) -> String {
        match self.types.plan.find(name) {
            Some(place) => self.path(place),
            None => crate::names::screaming(name),
        }
    }

    /// The path from this module to a static.
    fn path(&self, place: &ItemPath) -> String {
        let mut path = place.path.clone();
        path.push("describe".into());
        Plan::path(self.types.from, &path, &place.described)
    }
}

/// The name people see, where it is another one.
fn label(label: &str, name: &str) -> String {
    if label == name { String::new() } else { format!(" as {label:?}") }
}

/// `head{ items });` on one line if it fits, else as many items a line as fit.
fn braces(page: &mut Page, head: &str, items: &[String]) {
    page.gap();
    page.fill(&format!("{head}{{ "), items, " });");
}

/// Items on one line if they fit between `head` and `tail`, else one level deeper, as many a line as fit. It is part of a longer
/// expression; `page` is asked only what fits.
fn broken(page: &Page, head: &str, items: &[String], tail: &str) -> String {
    let line = format!("{head}{}{tail}", items.join(", "));
    if items.is_empty() || page.fits(&format!("    {line},")) {
        return line;
    }
    let mut rows: Vec<String> = Vec::new();
    for item in items {
        match rows.last_mut() {
            Some(row) if page.fits(&format!("        {row} {item},")) => *row += &format!(" {item},"),
            _ => rows.push(format!("{item},")),
        }
    }
    format!("{head}\n    {}\n{tail}", rows.join("\n    "))
}

/// Pairs of names, as a slice of them.
fn pairs(pairs: &[(Name, Name)]) -> String {
    let pair = |(what, value): &(Name, Name)| format!("{what:?} = {value:?}");
    format!("pairs!({})", pairs.iter().map(pair).collect::<Vec<_>>().join(", "))
}
