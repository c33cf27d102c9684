//! Types: structs, exceptions, enums, sequences, arrays, strings.
//!
//! A type is made when its text is met, and defined on the way: `struct A { struct B { ...` defines B, then
//! A. A struct or union that is used inside its own body, or before it, becomes a cell (`Hold::Later`), which
//! `close` fills exactly once; such a cell is never freed, so that shapes which refer to themselves need no
//! counting.
//!
//! Invariants: a member's type is complete, so a value of it has an end; only a sequence may hold what is not
//! yet complete. Depth counts levels of sequences, arrays, structs and names, at most `NESTING`; references
//! and cells count as one, since values end there or in a sequence. Sizes are 1 to 2^32 - 1, and the elements
//! of an array of several dimensions together fit 32 bits.
//!
//! What is not supported makes everything that contains it `Broken` with a reason. A type that refers to
//! itself cannot be taken back when something in it is missing, since others hold its cell: that is reported
//! as a mistake.

use super::super::ast::{Basic, Declarator, Enum, Expr, Ident, ScopedName, Struct, TypeKind, TypeSpec};
use super::super::ids::join;
use super::super::limits;
use super::Builder;
use super::named_item::{NamedItem, Typed};
use crate::report::{Problem, Span};
use everywire_model::fixed::{self, Fixed};
use everywire_model::shape::{self, Array, Field, Name, Order, Referent, Sequence, Text, TextKind};
use everywire_model::{Definition, Hold, Shape};
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::OnceLock;

/// The integers whose names tell their size (IDL 4.2, 7.4.13): names, where a contract defines them.
pub(super) fn sized(name: &str) -> Option<Shape> {
    Some(match name {
        "int8" => Shape::I8,
        "uint8" => Shape::U8,
        "int16" => Shape::I16,
        "uint16" => Shape::U16,
        "int32" => Shape::I32,
        "uint32" => Shape::U32,
        "int64" => Shape::I64,
        "uint64" => Shape::U64,
        _ => return None,
    })
}

impl Builder<'_> {
    /// The type that is written; constructed ones are defined on the way. None after a mistake, or where
    /// `lacking` says what is not supported.
    pub(super) fn spec(&mut self, spec: &TypeSpec) -> Option<Typed> {
        Some(match &spec.kind {
            TypeKind::Basic(basic) => Typed::leaf(basic_shape(*basic)),
            TypeKind::Text { wide, bound } => {
                let bound = match bound {
                    Some(bound) => Some(self.size(bound)?),
                    None => None,
                };
                let kind = if *wide { TextKind::Wide } else { TextKind::Narrow };
                Typed::leaf(Shape::Text(Text { kind, bound }))
            }
            TypeKind::Fixed(digits, scale) => self.fixed(digits, scale)?,
            TypeKind::Sequence(element, bound) => {
                let element = self.spec(element).and_then(|typed| self.not_void(typed, element.span));
                // The bound is checked even where the element is wrong.
                let bound = match bound {
                    Some(bound) => Some(self.size(bound)?),
                    None => None,
                };
                let element = element?;
                let depth = self.deeper(element.depth, spec.span)?;
                let sequence = Sequence { element: element.shape, bound, order: Order::Free, size: None };
                Typed { shape: Shape::Sequence(Hold::new(sequence)), depth, complete: true }
            }
            TypeKind::Name(name) => self.named(name)?,
            TypeKind::Struct(structure) => self.structure(structure)?,
            TypeKind::Union(union) => self.union(union)?,
            TypeKind::Enum(members) => self.enumeration(members)?,
            TypeKind::FixedConstant => {
                self.lacking = Some("`fixed` without its digits".into());
                return None;
            }
            TypeKind::Unsupported(what) => {
                self.lacking = Some((*what).into());
                return None;
            }
        })
    }

    /// A type by its name. An interface becomes a reference by its name and id alone, so that interfaces may
    /// name one another.
    fn named(&mut self, name: &ScopedName) -> Option<Typed> {
        if self.is_type_code(name) {
            return Some(Typed::leaf(Shape::TypeCode));
        }
        // A contract that defines such a name itself means its own.
        if let [only] = name.parts.as_slice()
            && let Some(shape) = sized(&only.name)
            && self.find(name, false).is_none()
        {
            return Some(Typed::leaf(shape));
        }
        let key = self.find(name, true)?;
        let symbol = self.symbols.get_mut(&key)?;
        match &mut symbol.what {
            NamedItem::Type(typed) => Some(typed.clone()),
            NamedItem::Interface(_) if self.abstract_interfaces.contains(&key) => {
                self.lacking = Some(format!("the abstract interface `{}`", symbol.name).into());
                None
            }
            NamedItem::Interface(_) => {
                let id = self.ids.get(&symbol.name).cloned().unwrap_or_default();
                let referent = Referent { name: Name::from(symbol.name.clone()), id: Name::from(id) };
                Some(Typed::leaf(Shape::Reference(Hold::new(referent))))
            }
            NamedItem::Open { keyword, shape } => {
                let shape = shape.get_or_insert_with(|| match *keyword {
                    "struct" => Shape::Struct(Hold::Later(self.report.cell())),
                    "valuetype" => Shape::Optional(Hold::Later(self.report.cell())),
                    _ => Shape::Union(Hold::Later(self.report.cell())),
                });
                // A value that may be null ends, whatever it is made of.
                Some(Typed { shape: shape.clone(), depth: 1, complete: *keyword == "valuetype" })
            }
            NamedItem::Broken => {
                self.needs(&key);
                None
            }
            other => {
                let message = format!("`{}` is {}, not a type", name.text(), other.noun());
                let problem = Problem::new(name.span, message).expected(["a type"]);
                self.report.add(problem.note(symbol.span, format!("`{}` is defined here", symbol.name)));
                None
            }
        }
    }

    /// Whether this is the type of type codes, which compilers know without a definition. Its last part alone is enough where the
    /// contract has no such name: `TypeCode` is a keyword of older compilers (libIDL, MICO's).
    fn is_type_code(&mut self, name: &ScopedName) -> bool {
        let parts: Vec<&str> = name.parts.iter().map(|part| part.name.as_str()).collect();
        match parts[..] {
            ["CORBA", "TypeCode"] | ["TypeCode"] => {}
            _ => return false,
        }
        self.find(name, false).is_none()
    }

    /// Opens the name, reads the members in a scope of it, closes it; a mistake inside makes it `Broken`.
    fn structure(&mut self, structure: &Struct) -> Option<Typed> {
        self.open(&structure.ident, "struct")?;
        let (name, id) = self.identity(&structure.ident.name);
        let members = self.inside(&structure.ident.name, Rc::default(), |b| b.members(structure));
        let depth = members.as_ref().map_or(1, |members| members.1);
        let fields = members.map(|(fields, _)| shape::Struct { name, id, fields: Cow::Owned(fields) });
        self.close(&structure.ident, fields, depth, Shape::Struct, |shape| match shape {
            Shape::Struct(Hold::Later(cell)) => Some(*cell),
            _ => None,
        })
    }

    /// It is `Broken` while its members are read, since nothing may refer to an exception as a type.
    pub(super) fn exception(&mut self, structure: &Struct) -> Option<()> {
        self.declare(&structure.ident, NamedItem::Broken)?;
        let (name, id) = self.identity(&structure.ident.name);
        let members = self.inside(&structure.ident.name, Rc::default(), |b| b.members(structure));
        let Some((fields, _)) = members else {
            self.lacks_too(&structure.ident.name);
            return None;
        };
        let hold = Hold::new(shape::Struct { name, id, fields: Cow::Owned(fields) });
        let key = join(self.scope(), &structure.ident.name).to_ascii_lowercase();
        self.symbols.get_mut(&key)?.what = NamedItem::Exception(hold.clone());
        self.definitions.push(Definition::Exception(hold));
        Some(())
    }

    /// The fields of a struct or exception, and the depth that makes. None where any of them is wrong; all
    /// are looked at in any case.
    fn members(&mut self, structure: &Struct) -> Option<(Vec<Field>, usize)> {
        let (mut fields, mut depth, mut broken) = (Vec::new(), 0, false);
        if let Some(base) = &structure.base {
            (fields, depth) = self.inherited(base)?;
        }
        for (spec, declarators) in &structure.members {
            let typed = self.spec(spec);
            for declarator in declarators {
                let declared = self.declare(&declarator.ident, NamedItem::Member).is_some();
                let whole = typed.clone().and_then(|typed| self.inline(typed, spec.span, declarator));
                match whole.filter(|_| declared) {
                    Some(whole) => {
                        depth = depth.max(whole.depth);
                        fields.push(Field {
                            name: Name::from(declarator.ident.name.clone()),
                            shape: whole.shape,
                        });
                    }
                    None => broken = true,
                }
            }
        }
        let depth = self.deeper(depth, structure.ident.span)?;
        (!broken).then_some((fields, depth))
    }

    /// The members of the struct that another one inherits, as members of its own: on the wire there is no other sign of it.
    fn inherited(&mut self, base: &ScopedName) -> Option<(Vec<Field>, usize)> {
        let typed = self.named(base)?;
        let Shape::Struct(held) = typed.shape.resolved() else {
            let problem = Problem::new(base.span, format!("`{}` is no struct", base.text()));
            self.report.add(problem.expected(["a struct"]));
            return None;
        };
        if !typed.complete {
            let problem = Problem::new(base.span, "this struct is not complete here, so none can inherit it");
            self.report.add(problem.help("define it before"));
            return None;
        }
        let fields = held.fields.to_vec();
        for field in &fields {
            let ident = Ident { name: field.name.to_string(), span: base.span };
            self.declare(&ident, NamedItem::Member)?;
        }
        Some((fields, typed.depth))
    }

    /// The type of a member: it must be complete.
    pub(super) fn inline(&mut self, typed: Typed, span: Span, declarator: &Declarator) -> Option<Typed> {
        let typed = self.not_void(typed, span)?;
        if !typed.complete {
            let problem =
                Problem::new(span, "this type is not complete here, so it cannot lie inside another");
            self.report.add(problem.help("a sequence of it can"));
            return None;
        }
        self.dimensions(typed, declarator)
    }

    /// `void` is a type for results alone.
    pub(super) fn not_void(&mut self, typed: Typed, span: Span) -> Option<Typed> {
        if matches!(typed.shape, Shape::Void) {
            self.report.add(Problem::new(span, "`void` is only for operations that return nothing"));
            return None;
        }
        Some(typed)
    }

    /// The array that a declarator makes of a type. `long a[2][3]` is an array of 2 arrays of 3.
    pub(super) fn dimensions(&mut self, typed: Typed, declarator: &Declarator) -> Option<Typed> {
        let mut sizes = Vec::with_capacity(declarator.dimensions.len());
        for dimension in &declarator.dimensions {
            sizes.push(self.size(dimension)?);
        }
        let span = declarator.ident.span;
        if sizes.iter().try_fold(1u32, |all, size| all.checked_mul(*size)).is_none() {
            self.report.add(Problem::new(span, "this array has more than 4294967295 elements"));
            return None;
        }
        let mut whole = typed;
        for len in sizes.into_iter().rev() {
            let depth = self.deeper(whole.depth, span)?;
            let array = Array { element: whole.shape, len };
            whole = Typed { shape: Shape::Array(Hold::new(array)), depth, complete: whole.complete };
        }
        // A name for the type is a level too.
        let depth = self.deeper(whole.depth, span)?;
        Some(Typed { depth, ..whole })
    }

    /// A bound or dimension: an integer from 1.
    fn size(&mut self, expr: &Expr) -> Option<u32> {
        let value = self.integer(expr, &Shape::U32)?;
        match u32::try_from(value) {
            Ok(size) if size > 0 => Some(size),
            _ => {
                let problem = Problem::new(expr.span, format!("{value} is not a size"));
                self.report.add(problem.expected(["an integer from 1 to 4294967295"]));
                None
            }
        }
    }

    /// A fixed-point number (CORBA 3.0, 3.11.3.4): 1 to 31 digits, and no more of them behind the point than there are.
    fn fixed(&mut self, digits: &Expr, scale: &Expr) -> Option<Typed> {
        let (all, behind) = (self.integer(digits, &Shape::U32)?, self.integer(scale, &Shape::U32)?);
        let Some(digits) = u16::try_from(all).ok().filter(|all| (1..=fixed::MAX_DIGITS).contains(all)) else {
            let problem = Problem::new(digits.span, format!("a fixed-point number cannot have {all} digits"));
            self.report.add(problem.expected(["an integer from 1 to 31"]));
            return None;
        };
        let Some(scale) = u16::try_from(behind).ok().filter(|behind| *behind <= digits) else {
            let message = format!("{behind} digits behind the point are more than there are");
            self.report
                .add(Problem::new(scale.span, message).expected([format!("an integer from 0 to {digits}")]));
            return None;
        };
        Some(Typed::leaf(Fixed { digits, scale }.shape()))
    }

    /// Enumerators have the numbers 0, 1, 2, ... and 32 bits on the wire (CORBA 3.0, 15.3.2).
    fn enumeration(&mut self, members: &Enum) -> Option<Typed> {
        let (name, id) = self.identity(&members.ident.name);
        let mut values = Vec::with_capacity(members.members.len());
        for (ident, value) in members.members.iter().zip(0..) {
            values.push((Name::from(ident.name.clone()), value));
        }
        let hold = Hold::new(shape::Enum { name, id, members: Cow::Owned(values), bits: 32, open: false });
        let typed = Typed::leaf(Shape::Enum(hold.clone()));
        self.declare(&members.ident, NamedItem::Type(typed.clone()))?;
        // Enumerators stand beside their type, not inside it.
        for (ident, value) in members.members.iter().zip(0..) {
            self.declare(ident, NamedItem::Enumerator(hold.clone(), value));
        }
        self.definitions.push(Definition::Type(typed.shape.clone()));
        Some(typed)
    }

    /// Starts the definition of a struct or union, which may have been announced. A definition that stands
    /// inside itself is refused, like a second one.
    pub(super) fn open(&mut self, ident: &Ident, keyword: &'static str) -> Option<()> {
        let key = join(self.scope(), &ident.name).to_ascii_lowercase();
        if let Some(symbol) = self.symbols.get_mut(&key)
            && matches!(symbol.what, NamedItem::Open { keyword: announced, .. } if announced == keyword)
            && symbol.name.ends_with(&ident.name)
            && !self.scopes.iter().any(|scope| scope.name == symbol.name)
        {
            symbol.span = ident.span;
            return Some(());
        }
        self.declare(ident, NamedItem::Open { keyword, shape: None })
    }

    /// Ends it: fills the cell if somebody needed the type before, else makes a plain one. `body` is None
    /// where something in it was wrong or not supported. `cell` finds the cell in a shape of this kind.
    pub(super) fn close<T: 'static>(
        &mut self,
        ident: &Ident,
        body: Option<T>,
        depth: usize,
        wrap: fn(Hold<T>) -> Shape,
        cell: fn(&Shape) -> Option<&'static OnceLock<T>>,
    ) -> Option<Typed> {
        let key = join(self.scope(), &ident.name).to_ascii_lowercase();
        let symbol = self.symbols.get_mut(&key)?;
        let Some(body) = body else {
            let used = matches!(symbol.what, NamedItem::Open { shape: Some(_), .. });
            symbol.what = NamedItem::Broken;
            if used && (self.lacking.is_some() || !self.report.failed()) {
                // Other types contain its cell already and cannot be left out any more; without a mistake they would be used.
                let lacking = self.lacking.as_deref().unwrap_or("something in it");
                let message = format!("{lacking} is not supported, and {} refers to itself", ident.name);
                self.report.add(Problem::new(ident.span, message));
            }
            self.lacks_too(&ident.name);
            return None;
        };
        let shape = match &symbol.what {
            NamedItem::Open { shape: Some(shape), .. } => {
                // Nobody else fills the cell: a second definition is refused.
                let _ = cell(shape)?.set(body);
                shape.clone()
            }
            _ => wrap(Hold::new(body)),
        };
        let typed = Typed { shape, depth, complete: true };
        symbol.what = NamedItem::Type(typed.clone());
        self.definitions.push(Definition::Type(typed.shape.clone()));
        Some(typed)
    }

    /// One level more, if there may be one. Reports a type that would have more.
    pub(super) fn deeper(&mut self, depth: usize, span: Span) -> Option<usize> {
        if depth >= limits::NESTING {
            self.report
                .add(Problem::new(span, format!("this type has more than {} levels", limits::NESTING)));
            return None;
        }
        Some(depth + 1)
    }
}

/// `Object` is a reference without a name: any object is meant.
fn basic_shape(basic: Basic) -> Shape {
    match basic {
        Basic::Void => Shape::Void,
        Basic::Short => Shape::I16,
        Basic::Long => Shape::I32,
        Basic::LongLong => Shape::I64,
        Basic::UShort => Shape::U16,
        Basic::ULong => Shape::U32,
        Basic::ULongLong => Shape::U64,
        Basic::Float => Shape::F32,
        Basic::Double => Shape::F64,
        Basic::LongDouble => everywire_model::long_double::SHAPE,
        Basic::Char => Shape::Char,
        Basic::WChar => Shape::WideChar,
        Basic::Boolean => Shape::Bool,
        Basic::Octet => Shape::U8,
        Basic::Any => Shape::Variant,
        Basic::Object => Shape::Reference(Hold::new(Referent { name: Name::default(), id: Name::default() })),
    }
}
