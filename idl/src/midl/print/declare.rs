//! A shape as a declaration: type, stars, dimensions, attributes.
//!
//! This is `build/places.rs` backwards. `Declaration` collects the parts while the shape is walked from outside to
//! inside: each pointer adds a star, each array a dimension, each kept attribute a value for the level at
//! which it was met. The text is put together at the end (`attributes`, `declared`).
//!
//! `DeclarationPosition` decides what the same shape looks like: a parameter that comes out is behind a pointer, text is a
//! word of its own (`LPCWSTR`) where it goes in, and a sequence that nobody counts cannot stand there at all,
//! so that a struct is made for it.
//!
//! `kept` carries the attributes of aliases inwards to the level that they speak of. It is empty again when
//! that level was said (`keep`), so no attribute is lost or said twice.

use super::super::known;
use super::{Printer, ident, is_known};
use everywire_model::shape::{Order, Pointer, PointerKind, Referent, Sequence, Text, TextKind};
use everywire_model::{Hold, Shape};

/// Where something is declared. It changes on the way in: what is behind a pointer or in an array is an
/// element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeclarationPosition {
    /// A parameter that goes in.
    In,
    /// One that comes out.
    Out,
    /// A field, or an arm of a union.
    Field,
    /// An element, or what a pointer points to.
    Element,
}

/// A declaration in the making. Levels of pointers and dimensions count from the outermost.
#[derive(Debug, Default)]
pub(super) struct Declaration {
    /// Each once.
    attributes: Vec<String>,
    /// Attributes with a value for each level: name, level, value. In the order in which the levels were met.
    lists: Vec<(String, usize, String)>,
    /// The type, one word or several.
    spec: String,
    /// Pointers before the name.
    stars: usize,
    /// Dimensions behind the name, with brackets.
    dimensions: Vec<String>,
}

impl Declaration {
    /// How many levels were said so far, which is the number of the next one.
    fn level(&self) -> usize {
        self.stars + self.dimensions.len()
    }

    /// Adds an attribute without levels, once.
    fn flag(&mut self, attribute: &str) {
        if !self.attributes.iter().any(|known| known == attribute) {
            self.attributes.push(attribute.to_owned());
        }
    }

    /// All attributes, those of a direction before.
    pub(super) fn attributes(&self, direction: &str) -> String {
        let mut all: Vec<String> = Vec::new();
        if !direction.is_empty() {
            all.push(direction.to_owned());
        }
        all.extend(self.attributes.iter().cloned());
        for name in ["size_is", "max_is", "first_is", "last_is", "length_is"] {
            let mut text = String::new();
            let mut at = 0;
            for (_, level, value) in self.lists.iter().filter(|(of, ..)| of == name) {
                // Levels without a value leave their place empty: `size_is(,n)`.
                text.push_str(&",".repeat(level.saturating_sub(at)));
                at = *level;
                text.push_str(value);
            }
            if !text.is_empty() {
                all.push(format!("{name}({text})"));
            }
        }
        if all.is_empty() { String::new() } else { format!("[{}] ", all.join(", ")) }
    }

    /// Type, stars, name and dimensions.
    pub(super) fn declared(&self, name: &str) -> String {
        let stars = "*".repeat(self.stars);
        let space = if name.is_empty() && stars.is_empty() { "" } else { " " };
        format!("{}{space}{stars}{name}{}", self.spec, self.dimensions.concat())
    }
}

/// Values that stand beside a declaration: name, and whether it is a pointer to the value.
pub(super) type CompanionValues<'b> = &'b [(String, bool)];

impl Printer {
    /// The declaration of a shape at a place.
    pub(super) fn say(
        &mut self,
        shape: &Shape,
        place: DeclarationPosition,
        beside: CompanionValues<'_>,
    ) -> Declaration {
        let mut said = Declaration::default();
        self.level(shape, place, beside, &mut said, &mut Vec::new());
        said
    }

    /// The type of an element: one word, or a word with stars.
    pub(super) fn element(&mut self, shape: &Shape) -> String {
        self.say(shape, DeclarationPosition::Element, &[]).declared("").trim_end().to_owned()
    }

    /// Says one level and what is inside it; `kept` are the attributes that aliases around the shape keep.
    fn level(
        &mut self,
        shape: &Shape,
        place: DeclarationPosition,
        beside: CompanionValues<'_>,
        said: &mut Declaration,
        kept: &mut Vec<(String, String)>,
    ) {
        match shape {
            Shape::Alias(alias) if alias.name.contains('(') => {
                kept.extend(pieces(&alias.name));
                self.level(&alias.target, place, beside, said, kept);
            }
            Shape::Alias(alias)
                if alias.name != "SAFEARRAY"
                    && !is_known(&alias.name)
                    && !self.contract.contains(alias.name.as_ref()) =>
            {
                self.level(&alias.target, place, beside, said, kept);
            }
            Shape::Optional(target) => self.pointer(PointerKind::Unique, target, place, beside, said, kept),
            Shape::Pointer(pointer) => self.pointer(pointer.kind, &pointer.target, place, beside, said, kept),
            Shape::Text(text) if text.kind != TextKind::Counted => {
                self.text(*text, place, beside, said, kept)
            }
            Shape::Sequence(sequence) if self.fits(sequence, place, said, kept) => {
                self.sequence(sequence, place, beside, said, kept);
            }
            // An array behind a pointer would bind the wrong way (`*a[3]`): `make` gives it a name.
            Shape::Array(array)
                if place != DeclarationPosition::Element || said.stars == 0 && said.level() > 0 =>
            {
                said.dimensions.push(format!("[{}]", array.len));
                self.level(&array.element, DeclarationPosition::Element, beside, said, kept);
            }
            Shape::Reference(referent) => {
                if place == DeclarationPosition::Out {
                    said.stars += 1;
                }
                said.stars += 1;
                said.spec = self.referent(referent);
                keep(kept, beside, said);
            }
            // The struct stands for the handle, which programs hold as a pointer to nothing.
            value if is_context(value) && !matches!(value, Shape::Alias(_)) => {
                said.flag("context_handle");
                said.spec = "void".to_owned();
                said.stars += if place == DeclarationPosition::Out { 2 } else { 1 };
            }
            value => {
                // C passes structs that go in by pointer, and everything that comes out.
                let by_pointer = place == DeclarationPosition::Out
                    || place == DeclarationPosition::In
                        && matches!(value.resolved(), Shape::Struct(_) | Shape::Union(_))
                        && !is_context(value);
                said.spec = self.base(value);
                // COM has names for pointers to these.
                let reference = match said.spec.as_str() {
                    known @ ("GUID" | "IID" | "CLSID" | "FMTID")
                        if place == DeclarationPosition::In && kept.is_empty() =>
                    {
                        Some(format!("REF{known}"))
                    }
                    _ => None,
                };
                match reference {
                    Some(reference) => said.spec = reference,
                    None if by_pointer => said.stars += 1,
                    None => {}
                }
                keep(kept, beside, said);
            }
        }
    }

    /// A pointer and what it points to. For parameters that come out it is behind the one that they are. At
    /// the top of a parameter that comes out, the pointer itself needs another star.
    fn pointer(
        &mut self,
        kind: PointerKind,
        target: &Shape,
        place: DeclarationPosition,
        beside: CompanionValues<'_>,
        said: &mut Declaration,
        kept: &mut Vec<(String, String)>,
    ) {
        let attribute = match (kind, place) {
            (PointerKind::Ref, DeclarationPosition::Field) => Some("ref"),
            (PointerKind::Full, DeclarationPosition::Field | DeclarationPosition::In) => Some("ptr"),
            (PointerKind::Unique, DeclarationPosition::In) => Some("unique"),
            _ => None,
        };
        if let Some(attribute) = attribute {
            said.flag(attribute);
        }
        if place == DeclarationPosition::Out {
            said.stars += 1;
        }
        let behind = matches!(place, DeclarationPosition::Out | DeclarationPosition::Element);
        if kind == PointerKind::Full && behind && kept.is_empty() && !is_counted(target) {
            said.spec = self.full_pointer(target);
            return;
        }
        let bare = self.bare(target, kept);
        match bare {
            Shape::Text(text) if text.kind != TextKind::Counted => {
                said.stars += usize::from(kept.iter().any(|(name, _)| name == "string"));
                self.text(text, DeclarationPosition::Element, beside, said, kept);
            }
            Shape::Sequence(sequence) if counted(&sequence, kept) && sequence.order != Order::Varying => {
                self.counted(&sequence, beside, said, kept);
            }
            bare => {
                said.stars += 1;
                self.level(&bare, DeclarationPosition::Element, beside, said, kept);
            }
        }
    }

    /// The name of a full pointer to this. An attribute speaks of the outermost pointer of a declaration alone, and the others are what
    /// `pointer_default` says: so only a name can say that one is full.
    fn full_pointer(&mut self, target: &Shape) -> String {
        let pointer = Pointer { kind: PointerKind::Full, target: target.clone() };
        let mut said = self.say(&Shape::Pointer(Hold::new(pointer)), DeclarationPosition::Field, &[]);
        // An attribute of a typedef speaks of the star that it adds, and not of one that is part of a name.
        if said.stars == 0 {
            let character = if said.spec == "LPWSTR" { "wchar_t" } else { "char" };
            (said.spec, said.stars) = (character.to_owned(), 1);
        }
        self.made_pointer(&said)
    }

    /// A shape without the attributes kept around it, which are noted.
    fn bare(&self, shape: &Shape, kept: &mut Vec<(String, String)>) -> Shape {
        match shape {
            Shape::Alias(alias)
                if alias.name.contains('(')
                    && matches!(alias.target.resolved(), Shape::Text(_) | Shape::Sequence(_)) =>
            {
                kept.extend(pieces(&alias.name));
                self.bare(&alias.target, kept)
            }
            other => other.clone(),
        }
    }

    /// Text: a word for its pointer, or a buffer with a size that is said.
    fn text(
        &mut self,
        text: Text,
        place: DeclarationPosition,
        beside: CompanionValues<'_>,
        said: &mut Declaration,
        kept: &mut Vec<(String, String)>,
    ) {
        said.flag("string");
        let wide = text.kind != TextKind::Narrow;
        let character = if wide { "wchar_t" } else { "char" };
        if let Some(at) = kept.iter().position(|(name, _)| name == "string") {
            // An array of a fixed size, which stands in place.
            let (_, len) = kept.remove(at);
            keep(kept, beside, said);
            if place == DeclarationPosition::Element && (said.stars > 0 || said.level() == 0) {
                // Behind a pointer it would bind the wrong way; a struct around it has the same bytes.
                said.attributes.retain(|attribute| attribute != "string");
                said.spec = self.made("text", &format!("    [string] {character} items[{len}];\n"));
                return;
            }
            said.dimensions.push(format!("[{len}]"));
            said.spec = character.to_owned();
            return;
        }
        if kept.iter().any(|(name, _)| matches!(name.as_str(), "size_is" | "max_is")) {
            // A buffer of a size that is said.
            keep(kept, beside, said);
            said.stars += 1;
            said.spec = character.to_owned();
            return;
        }
        if place == DeclarationPosition::Out {
            said.stars += 1;
        }
        said.spec = match (wide, place) {
            (true, DeclarationPosition::In) => "LPCWSTR",
            (true, _) => "LPWSTR",
            (false, DeclarationPosition::In) => "LPCSTR",
            (false, _) => "LPSTR",
        }
        .to_owned();
    }

    /// Whether a sequence can be said here; else a type is made for it. What is left over gets a struct with
    /// a count, which `make` makes.
    fn fits(
        &self,
        sequence: &Sequence,
        place: DeclarationPosition,
        said: &Declaration,
        kept: &[(String, String)],
    ) -> bool {
        if sequence.order == Order::Varying {
            return said.stars == 0
                && sequence.bound.is_some()
                && (counted(sequence, kept) || is_character(sequence));
        }
        let tail = place == DeclarationPosition::Field
            && is_character(sequence)
            && sequence.order == Order::ConformantVarying;
        place != DeclarationPosition::Element && (counted(sequence, kept) || tail)
    }

    /// An array with brackets where it stands in a struct or has a fixed bound; else a pointer.
    fn sequence(
        &mut self,
        sequence: &Sequence,
        place: DeclarationPosition,
        beside: CompanionValues<'_>,
        said: &mut Declaration,
        kept: &mut Vec<(String, String)>,
    ) {
        if sequence.order != Order::Varying && place != DeclarationPosition::Field {
            self.counted(sequence, beside, said, kept);
            return;
        }
        // Only a string has an offset and a count of its own beside its size (C706 14.3.4).
        if is_character(sequence)
            && sequence.order != Order::Conformant
            && !kept.iter().any(|(name, _)| name.ends_with("t_is") || name == "length_is")
        {
            said.flag("string");
        }
        self.sized(sequence, beside, said, kept);
        let bound = sequence.bound.filter(|_| sequence.order == Order::Varying);
        said.dimensions.push(bound.map_or_else(|| "[]".to_owned(), |bound| format!("[{bound}]")));
        self.level(&sequence.element, DeclarationPosition::Element, beside, said, kept);
    }

    /// A pointer to as many elements as something says.
    fn counted(
        &mut self,
        sequence: &Sequence,
        beside: CompanionValues<'_>,
        said: &mut Declaration,
        kept: &mut Vec<(String, String)>,
    ) {
        self.sized(sequence, beside, said, kept);
        said.stars += 1;
        self.level(&sequence.element, DeclarationPosition::Element, beside, said, kept);
    }

    /// Says the size at this level, with all other attributes that were kept for it.
    fn sized(
        &mut self,
        sequence: &Sequence,
        beside: CompanionValues<'_>,
        said: &mut Declaration,
        kept: &mut Vec<(String, String)>,
    ) {
        if let Some(size) = &sequence.size {
            kept.push(("size_is".to_owned(), size.to_string()));
        }
        keep(kept, beside, said);
    }

    /// A type by its name. What has no word and no name is made.
    fn base(&mut self, shape: &Shape) -> String {
        let word = match shape {
            Shape::Void => "void",
            Shape::Bool => "boolean",
            Shape::U8 => "byte",
            Shape::I8 => "small",
            Shape::U16 => "unsigned short",
            Shape::I16 => "short",
            Shape::U32 => "unsigned long",
            Shape::I32 => "long",
            Shape::U64 => "unsigned hyper",
            Shape::I64 => "hyper",
            Shape::F32 => "float",
            Shape::F64 => "double",
            Shape::Char => "char",
            Shape::WideChar => "wchar_t",
            Shape::Variant => "VARIANT",
            Shape::Text(_) => "BSTR",
            Shape::Alias(alias) if alias.name == "SAFEARRAY" => {
                let element = match &alias.target {
                    Shape::Sequence(sequence) => self.element(&sequence.element),
                    other => self.element(other),
                };
                return format!("SAFEARRAY({element})");
            }
            Shape::Alias(alias) => return ident(&alias.name),
            Shape::Struct(held) if held.get().is_none_or(|shape| !shape.name.is_empty()) => {
                return self.record(shape);
            }
            Shape::Union(_) => return self.record(shape),
            Shape::Enum(shape_of) => {
                if !self.contract.contains(shape_of.name.as_ref()) {
                    return self.used(shape, &shape_of.name);
                }
                return ident(&shape_of.name);
            }
            // The text goes on with a word that does not matter, since nothing is given out.
            Shape::Handle => {
                self.cannot("a handle of the operating system cannot travel");
                "void"
            }
            Shape::TypeCode => {
                self.cannot("a type code cannot travel");
                "void"
            }
            other => return self.make(other),
        };
        word.to_owned()
    }

    /// A struct or union by its name, with the keyword while it is not defined.
    fn record(&mut self, shape: &Shape) -> String {
        let (keyword, name) = match shape {
            Shape::Struct(shape) => ("struct", shape.name.to_string()),
            Shape::Union(shape) => ("union", shape.name.to_string()),
            _ => return String::new(),
        };
        if self.open.contains(&name) {
            format!("{keyword} {}", ident(&name))
        } else if is_known(&name) || self.defined.contains(&name) {
            ident(&name)
        } else if self.contract.contains(&name) {
            format!("{keyword} {}", ident(&name))
        } else {
            self.used(shape, &name)
        }
    }

    /// An interface that objects are referred by. One that the contract does not define is noted.
    fn referent(&mut self, referent: &Referent) -> String {
        if referent.name.is_empty() {
            return "IUnknown".to_owned();
        }
        let name = referent.name.as_ref();
        let known = known::interface(name).is_some() || self.contract.contains(name);
        if !known && self.defined.insert(name.to_owned()) {
            self.unknown.push((self.at, referent.clone()));
        }
        ident(name)
    }

    /// A type that the contract uses and does not define: it is defined before what is being written. Types
    /// of another contract may be used in this one.
    fn used(&mut self, shape: &Shape, name: &str) -> String {
        if !is_known(name) && self.defined.insert(name.to_owned()) {
            let mut text = String::new();
            self.open.insert(name.to_owned());
            self.named_type(shape, &mut text);
            self.open.remove(name);
            self.pending.push_str(&text);
        }
        ident(name)
    }
}

/// Whether something says how many elements there are.
fn counted(sequence: &Sequence, kept: &[(String, String)]) -> bool {
    let said = |name: &str| kept.iter().any(|(known, _)| known == name);
    sequence.size.is_some() || ["size_is", "max_is", "length_is", "last_is"].iter().any(|name| said(name))
}

/// Whether attributes of a declaration have to say how long what a pointer points to is: they can only stand where the value does.
fn is_counted(target: &Shape) -> bool {
    matches!(target.resolved(), Shape::Sequence(_))
}

/// Whether a value is the handle of a context.
pub(super) fn is_context(shape: &Shape) -> bool {
    matches!(shape.resolved(), Shape::Struct(held) if held.get().is_some_and(|s| s.name == "context_handle"))
}

/// Whether elements are characters or octets, for which `string` ends the sequence.
fn is_character(sequence: &Sequence) -> bool {
    matches!(sequence.element, Shape::Char | Shape::WideChar | Shape::U8 | Shape::I8)
}

/// Says the kept attributes at this level. A value beside the declaration that is passed by pointer gets a
/// `*`. Nothing is kept afterwards.
fn keep(kept: &mut Vec<(String, String)>, beside: CompanionValues<'_>, said: &mut Declaration) {
    for (name, value) in kept.drain(..) {
        let pointed = beside.iter().any(|(known, pointed)| *known == value && *pointed);
        let star = if pointed && name != "iid_is" { "*" } else { "" };
        let value = format!("{star}{value}");
        if name.ends_with("_is") && !matches!(name.as_str(), "iid_is" | "switch_is") {
            let level = said.level();
            said.lists.push((name, level, value));
        } else {
            said.flag(&format!("{name}({value})"));
        }
    }
}

/// `a(b), c(d)` as pairs of name and value. Parentheses inside the values are counted.
fn pieces(text: &str) -> Vec<(String, String)> {
    let (mut all, mut depth, mut start) = (Vec::new(), 0usize, 0);
    let mut push = |piece: &str| {
        if let Some((name, rest)) = piece.trim_start_matches([',', ' ']).split_once('(') {
            let value = rest.strip_suffix(')').unwrap_or(rest);
            all.push((name.to_owned(), value.to_owned()));
        }
    };
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    push(text.get(start..=at).unwrap_or_default());
                    start = at + 1;
                }
            }
            _ => {}
        }
    }
    all
}
