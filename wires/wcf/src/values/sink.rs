//! Writing values as elements.

use super::Layout;
use super::names::{ARRAYS, SCHEMA, XSI, contract_name, inner_namespace, pair_name, schema_name};
use crate::dictionary::Outgoing;
use crate::limits::MAX_DEPTH;
use crate::nbfx::{Item, Prefix, Record, Text as Value, Word, Writer};
use crate::violations::{Violation, unsupported};
use everywire_model::shape::{Enum, Hold, Shape, Struct, Text, Union};
use everywire_model::visit::{Numbers, Sink, Visit};
use everywire_model::{Failure, Handle, Initiator, Kind as Why, Reference};

/// Prefix of the schema-instance namespace, as .NET writes it.
const INSTANCE: char = 'i';

/// Writes the wrapper element of a message's body, or one value as an element.
#[derive(Debug)]
pub struct BinaryXmlSink<'s> {
    layout: &'s Layout,
    words: &'s mut Outgoing,
    writer: Writer,
    frames: Vec<Frame>,
    /// Prefixes that are declared on open elements, with the number of frames that were open then.
    scope: Vec<(char, String, usize)>,
}

/// Where the next element's name comes from.
#[derive(Debug)]
enum Kind {
    Parameters(Hold<Struct>),
    Struct(Hold<Struct>),
    Union(Hold<Union>, usize),
    /// Every element has the same name; items that an array record can hold are collected for it.
    Items(String, Option<Run>),
    /// Pairs: the name of the element around each.
    Pairs(String),
    /// The name was asked for before: this frame adds nothing.
    Maybe(Option<Name>),
    /// A value with its own type, whose element starts when the type is known: its name until then.
    Variant(Option<Name>),
}

#[derive(Debug)]
struct Run {
    item: Item,
    data: Vec<u8>,
}

#[derive(Debug)]
struct Frame {
    kind: Kind,
    /// Values begun so far.
    index: usize,
    /// How many there must be.
    len: usize,
    prefix: Option<char>,
    /// Whether an element ends with this frame.
    ends: bool,
}

#[derive(Debug, Clone)]
struct Name {
    prefix: Option<char>,
    local: String,
}

macro_rules! integers {
    ($($name:ident $type:ty),*) => {$(
        fn $name(&mut self, value: $type) -> Visit<()> {
            self.leaf(|writer| writer.integer(value.into()))
        }
    )*};
}

macro_rules! collected {
    ($($name:ident $type:ty, $item:ident, $write:ident);*) => {$(
        fn $name(&mut self, value: $type) -> Visit<()> {
            if self.collect(Item::$item, &value.to_le_bytes())? {
                return Ok(());
            }
            self.leaf(|writer| writer.$write(value.into()))
        }
    )*};
}

impl<'s> BinaryXmlSink<'s> {
    /// A sink for one body; the words it uses are added to those of the session.
    pub fn new(layout: &'s Layout, words: &'s mut Outgoing) -> Self {
        Self { layout, words, writer: Writer::new(), frames: Vec::new(), scope: Vec::new() }
    }

    /// The element.
    ///
    /// # Errors
    /// A composite was left open.
    pub fn into_bytes(self) -> Visit<Vec<u8>> {
        if self.frames.is_empty() { Ok(self.writer.into_bytes()) } else { Err(Violation::Misuse.at(0)) }
    }

    /// The name of the element for the value that begins now.
    fn next_name(&mut self) -> Visit<Name> {
        let result = &self.layout.result;
        let Some(frame) = self.frames.last_mut() else {
            let local =
                if self.layout.wrapper.is_empty() { "Value".to_owned() } else { self.layout.wrapper.clone() };
            return Ok(Name { prefix: None, local });
        };
        let index = frame.index;
        if index >= frame.len {
            return Err(miscounted());
        }
        frame.index += 1;
        let prefix = frame.prefix;
        let name = |local: &str| Ok(Name { prefix, local: local.to_owned() });
        let field = |fields: &Struct| fields.fields.get(index).map(|field| field.name.to_string());
        match &mut frame.kind {
            Kind::Parameters(fields) => match field(fields) {
                Some(local) if local == "return" && !result.is_empty() => name(result),
                Some(local) => name(&local),
                None => Err(miscounted()),
            },
            Kind::Struct(fields) => field(fields).map_or_else(|| Err(miscounted()), |local| name(&local)),
            Kind::Union(..) if index == 0 => name("discriminator"),
            Kind::Union(union, arm) => match union.arms.get(*arm) {
                Some(arm) => name(&arm.field.name),
                None => Err(miscounted()),
            },
            Kind::Items(local, _) => name(local),
            Kind::Pairs(local) if index % 2 == 0 => {
                let pair = Name { prefix, local: local.clone() };
                if index > 0 {
                    self.writer.end();
                }
                self.start(&pair);
                Ok(Name { prefix, local: "Key".to_owned() })
            }
            Kind::Pairs(_) => name("Value"),
            Kind::Maybe(inherited) | Kind::Variant(inherited) => inherited.take().ok_or_else(miscounted),
        }
    }

    fn start(&mut self, name: &Name) {
        let Self { words, writer, .. } = self;
        writer.put(&Record::Element(letter(name.prefix), word(words, &name.local)));
    }

    /// Starts the element of the value that begins now; that of a value with its own type was started with the type.
    fn begin(&mut self) -> Visit<()> {
        if let Some(Frame { kind: Kind::Variant(None), index, len, .. }) = self.frames.last_mut()
            && *index < *len
        {
            *index += 1;
            return Ok(());
        }
        let name = self.next_name()?;
        self.start(&name);
        Ok(())
    }

    fn leaf(&mut self, write: impl FnOnce(&mut Writer)) -> Visit<()> {
        self.begin()?;
        write(&mut self.writer);
        self.writer.end();
        Ok(())
    }

    /// Keeps an item for the array record at the end of its sequence, if it is to be one.
    fn collect(&mut self, item: Item, raw: &[u8]) -> Visit<bool> {
        match self.frames.last_mut() {
            Some(Frame { kind: Kind::Items(_, Some(run)), index, len, .. }) if run.item == item => {
                if *index >= *len {
                    return Err(miscounted());
                }
                *index += 1;
                run.data.extend_from_slice(raw);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// The prefix of a namespace for what is inside the element that just started, declared there if need be.
    fn prefix_of(&mut self, namespace: &str) -> Option<char> {
        if let Some((prefix, ..)) = self.scope.iter().rev().find(|(_, known, _)| known == namespace) {
            return Some(*prefix);
        }
        // `a` is taken by the envelope; `i` is the schema instance.
        let declared = self.scope.iter().filter(|(prefix, ..)| *prefix != INSTANCE).count();
        let prefix = ('b'..='z').filter(|prefix| *prefix != INSTANCE && *prefix != 's').nth(declared)?;
        self.declare(prefix, namespace);
        Some(prefix)
    }

    fn declare(&mut self, prefix: char, namespace: &str) {
        let mut buffer = [0; 4];
        let text = prefix.encode_utf8(&mut buffer);
        self.writer.put(&Record::Xmlns(Some(text), word(self.words, namespace)));
        self.scope.push((prefix, namespace.to_owned(), self.frames.len()));
    }

    fn declare_instance(&mut self) {
        if !self.scope.iter().any(|(prefix, ..)| *prefix == INSTANCE) {
            self.declare(INSTANCE, XSI);
        }
    }

    fn push(&mut self, kind: Kind, len: usize, prefix: Option<char>, ends: bool) -> Visit<()> {
        // The envelope and its body are around every value.
        let limit = MAX_DEPTH - 2;
        if self.frames.len() >= limit {
            return Err(Failure::over_limit(
                Initiator::User,
                "nesting of elements",
                limit as u64 + 1,
                limit as u64,
            ));
        }
        self.frames.push(Frame { kind, index: 0, len, prefix, ends });
        Ok(())
    }

    /// Starts an element that holds elements of a namespace.
    fn open_element(&mut self, shape: &Shape, kind: Kind, len: usize) -> Visit<()> {
        self.begin()?;
        let prefix = self.prefix_of(&inner_namespace(shape, self.layout));
        self.declare_instance();
        self.push(kind, len, prefix, true)
    }

    fn nil(&mut self, name: &Name) {
        self.start(name);
        self.writer.put(&Record::Attribute(letter(Some(INSTANCE)), word(self.words, "nil"), Value::True));
        let before = self.scope.len();
        self.declare_instance();
        self.scope.truncate(before);
        self.writer.end();
    }
}

impl Sink for BinaryXmlSink<'_> {
    integers!(u8 u8, i8 i8, u16 u16, i16 i16, u32 u32);
    collected!(i32 i32, I32, integer; i64 i64, I64, integer; f32 f32, F32, float; f64 f64, F64, double);

    fn bool(&mut self, value: bool) -> Visit<()> {
        if self.collect(Item::Bool, &[value.into()])? {
            return Ok(());
        }
        self.leaf(|writer| writer.boolean(value))
    }

    fn u64(&mut self, value: u64) -> Visit<()> {
        self.leaf(|writer| writer.unsigned(value))
    }

    fn char(&mut self, value: char, _: bool) -> Visit<()> {
        let code = u16::try_from(u32::from(value)).map_err(|_| unsupported("characters above U+FFFF"))?;
        self.leaf(|writer| writer.integer(code.into()))
    }

    fn text(&mut self, shape: &Text, value: &str) -> Visit<()> {
        if shape.bound.is_some_and(|bound| value.chars().count() > bound as usize) {
            return Err(too_long(value.len(), shape.bound));
        }
        if value.chars().any(|c| !is_xml(c)) {
            return Err(Failure::new(
                Why::BadArgument,
                Initiator::User,
                "text with a character that XML does not have",
            ));
        }
        self.leaf(|writer| writer.chars(value))
    }

    fn bytes(&mut self, shape: &Shape, value: &[u8]) -> Visit<()> {
        check_len(shape, value.len())?;
        self.leaf(|writer| writer.bytes(value))
    }

    fn numbers(&mut self, values: Numbers<'_>) -> Visit<()> {
        macro_rules! one_by_one {
            ($($variant:ident $name:ident),*) => {
                match values {
                    $(Numbers::$variant(items) => items.iter().try_for_each(|item| self.$name(*item)),)*
                }
            };
        }
        let item = match values {
            Numbers::I32(_) => Item::I32,
            Numbers::I64(_) => Item::I64,
            Numbers::F32(_) => Item::F32,
            Numbers::F64(_) => Item::F64,
            _ => return one_by_one!(U16 u16, I16 i16, U32 u32, I32 i32, U64 u64, I64 i64, F32 f32, F64 f64),
        };
        match self.frames.last_mut() {
            Some(Frame { kind: Kind::Items(_, Some(run)), index, len, .. })
                if run.item == item && *index + values.len() == *len =>
            {
                *index = *len;
                values.put(true, &mut run.data);
                Ok(())
            }
            _ => Err(miscounted()),
        }
    }

    fn enumerant(&mut self, shape: &Enum, value: i32) -> Visit<()> {
        match shape.name_of(value) {
            Some(name) => self.leaf(|writer| writer.chars(name)),
            None => {
                let message = format!("{value} is no member of {}", shape.name);
                Err(Failure::new(Why::BadArgument, Initiator::User, message))
            }
        }
    }

    fn reference(&mut self, value: Option<&Reference>) -> Visit<()> {
        if value.is_some() {
            return Err(unsupported("references to objects"));
        }
        let name = self.next_name()?;
        self.nil(&name);
        Ok(())
    }

    fn handle(&mut self, _: &Handle) -> Visit<()> {
        Err(unsupported("handles of the operating system"))
    }

    fn open(&mut self, shape: &Shape, len: usize) -> Visit<()> {
        match shape.resolved() {
            Shape::Struct(fields) if fields.name.is_empty() && self.frames.is_empty() => {
                self.begin()?;
                self.writer.put(&Record::Xmlns(None, word(self.words, &self.layout.namespace)));
                self.push(Kind::Parameters(fields.clone()), fields.fields.len(), None, true)
            }
            resolved @ Shape::Struct(fields) => {
                self.open_element(resolved, Kind::Struct(fields.clone()), fields.fields.len())
            }
            resolved @ Shape::Union(union) => {
                let (arm, len) = if len > 0 { (len - 1, 2) } else { (usize::MAX, 1) };
                self.open_element(resolved, Kind::Union(union.clone(), arm), len)
            }
            resolved @ (Shape::Sequence(_) | Shape::Array(_)) => {
                check_len(resolved, len)?;
                let element = resolved.element().unwrap_or(&Shape::Void);
                let run = array_item(element).map(|item| Run { item, data: Vec::new() });
                self.open_element(resolved, Kind::Items(contract_name(element), run), len)
            }
            resolved @ Shape::Map(map) => {
                let pairs = Kind::Pairs(pair_name(&map.key, &map.value));
                self.open_element(resolved, pairs, len.saturating_mul(2))
            }
            Shape::Optional(_) | Shape::Pointer(_) => {
                let name = self.next_name()?;
                if len == 0 {
                    self.nil(&name);
                    return self.push(Kind::Maybe(None), 0, None, false);
                }
                self.push(Kind::Maybe(Some(name)), 1, None, false)
            }
            Shape::Variant => {
                let name = self.next_name()?;
                self.push(Kind::Variant(Some(name)), 1, None, false)
            }
            _ => Err(Violation::Misuse.at(0)),
        }
    }

    fn content(&mut self, shape: &Shape) -> Visit<()> {
        let Some(Frame { kind: Kind::Variant(name), len, .. }) = self.frames.last_mut() else {
            return Err(Violation::Misuse.at(0));
        };
        let (namespace, local) = match (shape.resolved(), schema_name(shape)) {
            (Shape::Void, _) => {
                let name = name.take().ok_or_else(miscounted)?;
                *len = 0;
                self.nil(&name);
                return Ok(());
            }
            (_, Some(local)) if local == "char" => (super::names::SERIALIZATION, local.to_owned()),
            (_, Some(local)) => (SCHEMA, local.to_owned()),
            (resolved @ Shape::Sequence(_), _)
                if resolved.element().and_then(schema_name).is_some_and(|name| name != "base64Binary") =>
            {
                (ARRAYS, contract_name(resolved))
            }
            (other, _) => {
                return Err(unsupported(format_args!("{} in a value with its own type", other.noun())));
            }
        };
        let name = name.take().ok_or_else(miscounted)?;
        let declared = self.scope.iter().filter(|(prefix, ..)| *prefix != INSTANCE).count();
        let known =
            self.scope.iter().rev().find(|(_, known, _)| known == namespace).map(|(prefix, ..)| *prefix);
        let fresh = ('b'..='z').filter(|prefix| *prefix != INSTANCE && *prefix != 's').nth(declared);
        let prefix = known.or(fresh).ok_or_else(|| unsupported("so many namespaces"))?;
        self.start(&name);
        let qualified = format!("{prefix}:{local}");
        let id = self.words.id(&local);
        let text = match id {
            Some(id) => Value::QName(prefix as u8 - b'a', id),
            None => Value::Chars(&qualified),
        };
        self.writer.put(&Record::Attribute(letter(Some(INSTANCE)), word(self.words, "type"), text));
        if known.is_none() {
            self.declare(prefix, namespace);
        }
        self.declare_instance();
        Ok(())
    }

    fn close(&mut self, _: &Shape) -> Visit<()> {
        let Some(frame) = self.frames.pop() else { return Err(Violation::Misuse.at(0)) };
        if frame.index != frame.len {
            return Err(miscounted());
        }
        match frame.kind {
            Kind::Items(local, Some(run)) if !run.data.is_empty() => {
                self.writer.put(&Record::Array);
                self.start(&Name { prefix: frame.prefix, local });
                self.writer.put(&Record::End);
                self.writer.items(run.item, &run.data);
            }
            Kind::Pairs(_) if frame.len > 0 => self.writer.end(),
            _ => {}
        }
        if frame.ends {
            self.writer.end();
        }
        let open = self.frames.len();
        self.scope.retain(|(.., at)| *at < open || (*at == open && !frame.ends));
        Ok(())
    }
}

/// The record type that holds items of this shape in arrays.
fn array_item(shape: &Shape) -> Option<Item> {
    Some(match shape.resolved() {
        Shape::Bool => Item::Bool,
        Shape::I32 => Item::I32,
        Shape::I64 => Item::I64,
        Shape::F32 => Item::F32,
        Shape::F64 => Item::F64,
        _ => return None,
    })
}

fn letter(prefix: Option<char>) -> Prefix<'static> {
    match prefix {
        Some(prefix @ 'a'..='z') => Prefix::Letter(prefix as u8 - b'a'),
        _ => Prefix::None,
    }
}

fn word<'w>(words: &mut Outgoing, text: &'w str) -> Word<'w> {
    words.id(text).map_or(Word::Inline(text), Word::Id)
}

fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

fn check_len(shape: &Shape, len: usize) -> Visit<()> {
    match shape.resolved() {
        Shape::Sequence(shape) if shape.bound.is_some_and(|bound| len > bound as usize) => {
            Err(too_long(len, shape.bound))
        }
        Shape::Array(shape) if shape.len as usize != len => Err(miscounted()),
        _ => Ok(()),
    }
}

fn too_long(len: usize, bound: Option<u32>) -> Failure {
    let bound = bound.unwrap_or(u32::MAX);
    Failure::new(Why::BadArgument, Initiator::User, format!("a length of {len} exceeds the bound of {bound}"))
}

fn miscounted() -> Failure {
    Failure::new(
        Why::BadArgument,
        Initiator::User,
        "a composite holds another number of values than it began with",
    )
}
