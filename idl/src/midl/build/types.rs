//! Types: structs, unions, enumerations, names. A struct or union lives in `records` under its keyword and
//! tag from its first mention on: open, then done or broken, and never back, except that an own definition
//! replaces one of the background. While it is open, whoever needs its shape gets a cell, which `close` or
//! `settle` fills exactly once and which is never freed.
//!
//! Invariants: a name is declared once; fields have different names; what has no form on a wire is never part
//! of a struct. `deeper` bounds the depth. Something must choose a union's arm: a discriminator of its own,
//! `switch_type`, or `switch_is` at its use. The functions return None after a mistake, or with a reason in
//! `stays`.

use super::super::ast::{Attribute, Member, Members, TypeKind, TypeSpec, find, has};
use super::super::made::{MAP, made_of};
use super::super::{ast, known};
use super::constants::narrow;
use super::places::Role;
use super::{Builder, Ty, Typed};
use crate::report::{Problem, Span};
use everywire_model::shape::{self, Enum, Field, Name, Struct, Text, TextKind};
use everywire_model::{Definition, Hold, Shape};
use std::borrow::Cow;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::OnceLock;

/// The type of bindings.
pub(super) const HANDLE: &str = "handle_t";
/// What a binding is: it says where to call.
pub(super) const BINDING: &str = "a binding is no part of a call";

/// A struct or union, from its first mention on.
pub(super) enum Record {
    Open {
        name: String,
        span: Span,
        shape: Option<Shape>,
    },
    Done {
        name: String,
        typed: Typed,
    },
    /// It was wrong, which was reported, or has no form on a wire.
    Broken {
        name: String,
        stays: Option<Rc<str>>,
        /// The cell that others got while it was open. It stays empty until `settle`.
        shape: Option<Shape>,
    },
}

impl Record {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Open { name, .. } | Self::Done { name, .. } | Self::Broken { name, .. } => name,
        }
    }
}

/// Keyword and tag of a struct, union or enumeration that has a tag.
pub(super) fn key(spec: &TypeSpec) -> Option<String> {
    let (keyword, tag) = match &spec.kind {
        TypeKind::Struct(record) => ("struct", record.tag.as_ref()),
        TypeKind::Union(union) => ("union", union.tag.as_ref()),
        TypeKind::Enum(members) => ("enum", members.tag.as_ref()),
        _ => return None,
    };
    Some(format!("{keyword} {}", tag?.name))
}

/// The name of a shape that has one.
pub(super) fn name_of(shape: &Shape) -> Option<&str> {
    match shape {
        Shape::Struct(shape) => shape.get().map(|shape| shape.name.as_ref()),
        Shape::Union(shape) => shape.get().map(|shape| shape.name.as_ref()),
        Shape::Enum(shape) => Some(&shape.name),
        Shape::Alias(shape) => Some(&shape.name),
        _ => None,
    }
}

/// The text that a string of such characters is.
pub(super) fn text_of(shape: &Shape) -> Option<Text> {
    let kind = match shape.resolved() {
        Shape::WideChar => TextKind::Wide,
        Shape::Char | Shape::U8 | Shape::I8 => TextKind::Narrow,
        _ => return None,
    };
    Some(Text { kind, bound: None })
}

impl Builder<'_> {
    /// The type that is written; one with a body is defined on the way. `wanted` is the name of one that has none, and
    /// `switch` the shape of the discriminator that stands beside a union, if that is known.
    pub(super) fn spec(
        &mut self,
        spec: &TypeSpec,
        wanted: &str,
        attributes: &[Attribute],
        switch: Option<Shape>,
    ) -> Option<Ty> {
        match &spec.kind {
            TypeKind::Base(shape) => Some(Ty::Value(Typed::leaf(shape.clone()))),
            TypeKind::Void => Some(Ty::Void),
            TypeKind::Pipe => self.stay("pipes are not supported"),
            TypeKind::Name(ident) => self.named(&ident.name, ident.span),
            TypeKind::SafeArray(element, declarator) => {
                let ty = self.spec(element, wanted, &[], None)?;
                let element = self.declared(&ty, &[], declarator, Role::Inner)?;
                let depth = self.deeper(element.depth, spec.span)?;
                Some(Ty::Value(Typed { shape: known::safe_array(element.shape), depth, open: false }))
            }
            TypeKind::Bitmap(members) => self.bitmap(members, attributes),
            TypeKind::Enum(members) if has(attributes, "enum8bit") && members.members.is_some() => {
                self.bitmap(members, attributes)
            }
            TypeKind::Enum(members) => self.enumeration(members, spec, wanted, attributes),
            TypeKind::Struct(record) => {
                let key = key(spec).unwrap_or_else(|| format!("struct {wanted}"));
                match &record.members {
                    Some(members) => self.record(&key, members, spec.span, wanted),
                    None => self.mention(key, spec.span),
                }
            }
            TypeKind::Union(union) => {
                let key = key(spec).unwrap_or_else(|| format!("union {wanted}"));
                match &union.arms {
                    Some(arms) => self.union(&key, union, arms, spec.span, wanted, attributes, switch),
                    None => self.mention(key, spec.span),
                }
            }
        }
    }

    /// A type by its name.
    pub(super) fn named(&mut self, name: &str, span: Span) -> Option<Ty> {
        if let Some(ty) = self.types.get(name) {
            return Some(ty.clone());
        }
        if let Some(id) = self.ids.get(name)
            && !known::is_root(name)
        {
            let (name, id) = (Name::from(name.to_owned()), Name::from(id.clone()));
            return Some(Ty::Object(shape::Referent { name, id }));
        }
        if let Some(ty) = known::ty(name) {
            return Some(ty);
        }
        // C++ takes the tag for the name, and MIDL files do so as well.
        for keyword in ["struct", "union"] {
            let key = format!("{keyword} {name}");
            if self.records.contains_key(&key) {
                return Some(Ty::Mention(key));
            }
        }
        if let Some(ty) = self.of_pidl(name) {
            return Some(ty);
        }
        // Names of interfaces are found in any case, as type libraries find them.
        if let Some(spelled) = self.spelled(name) {
            return self.named(&spelled, span);
        }
        if name == HANDLE {
            return Some(Ty::Stays(Rc::from(BINDING)));
        }
        if self.define_later(name) {
            return self.named(name, span);
        }
        let problem = Problem::new(span, format!("there is no type `{name}`"));
        self.report.add(problem.help("define or import it before this"));
        None
    }

    /// The name of an interface as it is defined, where that differs in the case of letters only.
    pub(super) fn spelled(&self, name: &str) -> Option<String> {
        let known = self.spellings.get(&name.to_ascii_lowercase());
        let found = known.into_iter().flatten().filter(|known| *known != name).min();
        found.cloned().or_else(|| known::spelled(name).map(str::to_owned))
    }

    /// A struct or union that is mentioned, and perhaps defined later.
    fn mention(&mut self, key: String, span: Span) -> Option<Ty> {
        if let Some(known) = self.known_by_tag(&key).or_else(|| known_struct(&key)) {
            return Some(known);
        }
        if let Some(why) = self.formless.get(&key) {
            return Some(Ty::Stays(Rc::clone(why)));
        }
        if !self.records.contains_key(&key) {
            let name = self.name_for(&key, "");
            self.records.insert(key.clone(), Record::Open { name, span, shape: None });
        }
        Some(Ty::Mention(key))
    }

    /// The type that is known here by the name which a typedef gives to this tag.
    fn known_by_tag(&self, key: &str) -> Option<Ty> {
        let name = self.named.get(key).filter(|name| known::is_type(name))?;
        known::ty(name)
    }

    /// The name of a struct or union: that of its typedef, else its tag, else what is wanted.
    fn name_for(&self, key: &str, wanted: &str) -> String {
        match self.named.get(key) {
            Some(name) => name.clone(),
            None => match key.split_once(' ') {
                Some((_, tag)) if !tag.is_empty() => tag.to_owned(),
                _ => wanted.to_owned(),
            },
        }
    }

    /// What a mention stands for at this moment.
    pub(super) fn resolved(&mut self, key: &str) -> Option<Typed> {
        match self.records.get_mut(key)? {
            Record::Done { typed, .. } => Some(typed.clone()),
            Record::Broken { stays, .. } => {
                self.stays = stays.clone();
                None
            }
            Record::Open { shape, .. } => {
                let shape = shape.get_or_insert_with(|| {
                    if key.starts_with("struct ") {
                        Shape::Struct(Hold::Later(self.report.cell()))
                    } else {
                        Shape::Union(Hold::Later(self.report.cell()))
                    }
                });
                Some(Typed { shape: shape.clone(), depth: 1, open: true })
            }
        }
    }

    /// What a struct or union stands for that proved to have no form on a wire after others had mentioned it. A typedef before it
    /// may have given it its name already.
    pub(super) fn without_form(&mut self, key: &str, wanted: &str) -> Option<Ty> {
        let out = Ty::Stays(Rc::clone(self.formless.get(key)?));
        let name = self.name_for(key, wanted);
        self.types.entry(name).or_insert_with(|| out.clone());
        Some(out)
    }

    /// Starts a definition with a body; the name it gets.
    pub(super) fn open(&mut self, key: &str, span: Span, wanted: &str) -> Option<String> {
        let name = self.name_for(key, wanted);
        let mentioned =
            self.types.get(&name).filter(|ty| matches!(ty, Ty::Mention(known) if known == key)).cloned();
        match self.records.get(key) {
            None => {
                if !self.declare(&name, span) {
                    self.keep_first(key, &name);
                    return None;
                }
                self.records.insert(key.to_owned(), Record::Open { name: name.clone(), span, shape: None });
            }
            Some(Record::Open { .. }) => {
                if !self.declare(&name, span) {
                    self.keep_first(key, &name);
                    return None;
                }
            }
            Some(_) => {
                // A definition of a file in the background is replaced.
                if !self.is_of_background(key) || !self.declare(&name, span) {
                    self.problem(span, &format!("`{name}` is defined twice"));
                    return None;
                }
                self.records.insert(key.to_owned(), Record::Open { name: name.clone(), span, shape: None });
            }
        }
        // A typedef before this named the type, which its own fields may use.
        if let Some(mention) = mentioned {
            self.types.insert(name.clone(), mention);
        }
        Some(name)
    }

    /// Of two definitions of one name in the background the first counts, also for those who know the type by the tag of the
    /// second.
    pub(super) fn keep_first(&mut self, key: &str, name: &str) {
        let free = matches!(self.records.get(key), None | Some(Record::Open { shape: None, .. }));
        if let Some(Ty::Value(typed)) = self.types.get(name).filter(|_| self.behind && free) {
            let done = Record::Done { name: name.to_owned(), typed: typed.clone() };
            self.records.insert(key.to_owned(), done);
        }
    }

    /// Ends it: fills the cell if somebody needed the type before, else makes a plain one.
    pub(super) fn close<T: 'static>(
        &mut self,
        key: &str,
        body: Option<(T, usize)>,
        wrap: fn(Hold<T>) -> Shape,
        cell: fn(&Shape) -> Option<&'static OnceLock<T>>,
    ) -> Option<Ty> {
        let record = self.records.get_mut(key)?;
        let name = record.name().to_owned();
        let Some((body, depth)) = body else {
            let stays = self.stays.clone();
            let shape = match record {
                Record::Open { shape, .. } => shape.take(),
                _ => None,
            };
            *record = Record::Broken { name: name.clone(), stays: stays.clone(), shape };
            let why = stays?;
            self.types.insert(name, Ty::Stays(Rc::clone(&why)));
            self.stays = None;
            return Some(Ty::Stays(why));
        };
        let shape = match record {
            Record::Open { shape: Some(shape), .. } => {
                // Nobody else fills the cell: a second definition is refused.
                let _ = cell(shape)?.set(body);
                shape.clone()
            }
            _ => wrap(Hold::new(body)),
        };
        let typed = Typed { shape, depth, open: false };
        *record = Record::Done { name: name.clone(), typed: typed.clone() };
        self.definitions.push(Definition::Type(typed.shape.clone()));
        self.types.insert(name, Ty::Value(typed.clone()));
        Some(Ty::Value(typed))
    }

    fn record(&mut self, key: &str, members: &[Member], span: Span, wanted: &str) -> Option<Ty> {
        if let Some(known) = self.known_by_tag(key).or_else(|| known_struct(key)) {
            return Some(known);
        }
        if let Some(out) = self.without_form(key, wanted) {
            // What is defined inside is known outside as well.
            let _ = self.fields(wanted, members, span);
            self.stays = None;
            return Some(out);
        }
        if let Some(same) = self.same(key, members).filter(|_| !self.is_of_background(key)) {
            return Some(same);
        }
        let name = self.open(key, span, wanted)?;
        let fields = self.fields(&name, members, span);
        let is_new = matches!(self.records.get(key), Some(Record::Open { shape: None, .. }));
        if let Some((fields, depth)) = fields.as_ref().filter(|_| is_new)
            && let Some(shape) = made_of(&name, fields)
        {
            return Some(self.keep_made(key, name, Typed { shape, depth: *depth, open: false }));
        }
        let body = fields.map(|(fields, depth)| {
            let (name, id) = (Name::from(name), Name::default());
            (Struct { name, id, fields: Cow::Owned(fields) }, depth)
        });
        self.close(key, body, Shape::Struct, |shape| match shape {
            Shape::Struct(Hold::Later(cell)) => Some(*cell),
            _ => None,
        })
    }

    /// Whether the struct of this tag is defined in a file that comes with every compiler.
    fn is_of_background(&self, key: &str) -> bool {
        let place = self.records.get(key).and_then(|record| self.places.get(record.name()));
        place.is_some_and(|place| self.report.is_background(*place))
    }

    /// The struct of this tag that is defined already, with the same fields: files of C guard what two of them define, where MIDL does not look.
    fn same(&self, key: &str, members: &[Member]) -> Option<Ty> {
        let Record::Done { typed, .. } = self.records.get(key)? else { return None };
        let Shape::Struct(known) = &typed.shape else { return None };
        let names = members.iter().map(|member| member.declarator.ident.name.as_str());
        known.fields.iter().map(|field| &*field.name).eq(names).then(|| Ty::Value(typed.clone()))
    }

    /// A struct that the printer made of a sequence or a map is that again: its name stands for it, and it is no definition.
    fn keep_made(&mut self, key: &str, name: String, typed: Typed) -> Ty {
        if let Shape::Map(_) = &typed.shape {
            // Nor is the struct of its pairs, which was made for it.
            let pair = name.strip_prefix(MAP).unwrap_or_default().to_owned();
            let is_pair = |definition: &Definition| matches!(definition, Definition::Type(Shape::Struct(held)) if held.name == pair);
            self.definitions.retain(|definition| !is_pair(definition));
        }
        self.made.insert(name.clone());
        self.records.insert(key.to_owned(), Record::Done { name: name.clone(), typed: typed.clone() });
        self.types.insert(name, Ty::Value(typed.clone()));
        Ty::Value(typed)
    }

    fn fields(&mut self, owner: &str, members: &[Member], span: Span) -> Option<(Vec<Field>, usize)> {
        let around = self.declare_beside(members);
        let fields = self.fields_beside(owner, members, span);
        self.beside = around;
        fields
    }

    fn fields_beside(&mut self, owner: &str, members: &[Member], span: Span) -> Option<(Vec<Field>, usize)> {
        let (mut fields, mut depth, mut broken) = (Vec::<Field>::new(), 0, false);
        let (mut seen, mut stays) = (HashSet::new(), None);
        let mut shared: Option<(&Rc<TypeSpec>, Option<Ty>)> = None;
        for (index, member) in members.iter().enumerate() {
            let ident = &member.declarator.ident;
            if ident.name.is_empty() && member.declarator.stays.is_some() {
                stays = member.declarator.stays.map(Rc::from);
                continue;
            }
            // A union may have no name; it travels all the same.
            let name = if ident.name.is_empty() { format!("u{index}") } else { ident.name.clone() };
            if !seen.insert(name.clone()) {
                self.problem(ident.span, &format!("there are two fields `{name}`"));
                broken = true;
            }
            let last = index + 1 == members.len();
            // Names that are declared together have one type, which is read once.
            let ty = match &shared {
                Some((spec, ty)) if Rc::ptr_eq(spec, &member.spec) => ty.clone(),
                _ => self.field(owner, &name, member, &fields),
            };
            shared = Some((&member.spec, ty.clone()));
            let role = Role::Field { last };
            match ty.and_then(|ty| self.declared(&ty, &member.attributes, &member.declarator, role)) {
                Some(typed) => {
                    depth = depth.max(typed.depth);
                    fields.push(Field { name: Name::from(name), shape: typed.shape });
                }
                // The mistake inside was reported already.
                None => match self.stays.take() {
                    Some(why) => stays = Some(why),
                    None => broken = true,
                },
            }
        }
        let depth = self.deeper(depth, span)?;
        if broken {
            return None;
        }
        match stays {
            Some(why) => self.stay(why),
            None => Some((fields, depth)),
        }
    }

    /// The type of a field or of a union's arm, before its declarator counts; `beside` are the fields before it. `Stays` for one that
    /// has no form on a wire.
    pub(super) fn field(&mut self, owner: &str, name: &str, member: &Member, beside: &[Field]) -> Option<Ty> {
        let switch = find(&member.attributes, "switch_is").and_then(ast::Attribute::value);
        let switch = switch
            .and_then(|expr| expr.name())
            .and_then(|name| beside.iter().find(|field| field.name == name).map(|field| field.shape.clone()));
        let wanted = format!("{owner}_{name}");
        let ty = self.spec(&member.spec, &wanted, &member.attributes, switch);
        ty.or_else(|| self.stays.take().map(Ty::Stays))
    }

    fn enumeration(
        &mut self,
        members: &Members,
        spec: &TypeSpec,
        wanted: &str,
        attributes: &[Attribute],
    ) -> Option<Ty> {
        let key = key(spec).unwrap_or_else(|| format!("enum {wanted}"));
        let Some(list) = &members.members else {
            return match self.records.get(&key) {
                Some(Record::Done { typed, .. }) => Some(Ty::Value(typed.clone())),
                Some(Record::Broken { stays: Some(why), .. }) => Some(Ty::Stays(Rc::clone(why))),
                _ => {
                    self.problem(spec.span, &format!("`{key}` is not defined here"));
                    None
                }
            };
        };
        let name = match self.name_for(&key, wanted) {
            // Nobody needs the name of an enumeration that only makes constants.
            none if none.is_empty() => {
                format!("enum_{}", list.first().map_or("", |(ident, _)| ident.name.as_str()))
            }
            name => name,
        };
        if !self.declare(&name, spec.span) {
            return None;
        }
        let (mut values, mut next) = (Vec::with_capacity(list.len()), 0i128);
        for (ident, value) in list {
            let value = match value {
                Some(expr) => self.integer(expr)?,
                None => next,
            };
            let Some(narrow) = narrow(value) else {
                self.problem(ident.span, "the value of a member has 32 bits");
                return None;
            };
            if self.declare(&ident.name, ident.span) {
                self.constants.insert(ident.name.clone(), value);
            }
            values.push((Name::from(ident.name.clone()), narrow));
            next = value + 1;
        }
        let bits = if has(attributes, "v1_enum") { 32 } else { 16 };
        let built = Enum {
            name: Name::from(name.clone()),
            id: Name::default(),
            members: Cow::Owned(values),
            bits,
            open: true,
        };
        let typed = Typed::leaf(Shape::Enum(Hold::new(built)));
        self.definitions.push(Definition::Type(typed.shape.clone()));
        self.types.insert(name.clone(), Ty::Value(typed.clone()));
        self.records.insert(key, Record::Done { name, typed: typed.clone() });
        Some(Ty::Value(typed))
    }
}

/// A struct that is known here by its tag.
fn known_struct(key: &str) -> Option<Ty> {
    let name = match key.strip_prefix("struct ")? {
        "_GUID" => "GUID",
        "_FILETIME" => "FILETIME",
        "_SYSTEMTIME" => "SYSTEMTIME",
        "tagDEC" => "DECIMAL",
        tag if known::is_struct(tag) => tag,
        _ => return None,
    };
    known::ty(name)
}
