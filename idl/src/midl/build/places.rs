//! What a pointer or array becomes, by its place and its attributes.
//!
//! A declaration is a list of levels, the outermost first: `T *a[3]` is an array of pointers to `T`. The
//! attributes with lists (`size_is(, n)`) speak of the levels in this order; levels of typedefs come last.
//!
//! What a level becomes:
//! * a pointer with a size is a pointer to a sequence, one to characters with `string` is a pointer to text;
//! * any other pointer is `Optional` (unique) or `Pointer` (ref, full); at the top of a parameter, a
//!   reference is nothing, since NDR writes no byte for it;
//! * an array with a fixed size is an array, or a sequence with a bound where only part of it travels; one of characters with
//!   `string` is text with a bound, and an alias around it keeps the size (`string(20)`);
//! * an open array is a sequence, and stands only where NDR can put its size: as a parameter, or last in a
//!   struct.
//!
//! The element of a level is what the levels behind it become. A size that is a plain name beside the value
//! is kept in the sequence, any other size as an alias around it.

use super::super::ast::{Attribute, Declarator, Expr, ExprKind, Member, find, has};
use super::super::known;
use super::types::text_of;
use super::{Builder, Ty, Typed, pointer_kind};
use crate::omg::limits;
use crate::report::{Problem, Span};
use everywire_model::shape::{Alias, Array, Name, Order, Pointer, PointerKind, Referent, Sequence, Text};
use everywire_model::{Hold, Shape};
use std::collections::HashSet;

/// Where a value is declared. The levels inside are always `Inner`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It is a parameter: its outermost pointer is a reference, unless it says otherwise.
    Parameter,
    /// It is a field; an array without a size may be the last one.
    Field { last: bool },
    /// It is something else, such as an element.
    Inner,
}

/// One pointer or array. Attributes are put to it after all levels are known.
struct Level {
    kind: LevelKind,
    /// `size_is` or `max_is`: the name of a value beside it, or the attribute as it is written.
    size: Option<Count>,
    /// `length_is` and its like, as it is written.
    length: Option<String>,
    string: bool,
}

enum LevelKind {
    /// A pointer, with the kind that was written for it.
    Pointer(Option<PointerKind>),
    /// `[n]`.
    Fixed(u32),
    /// `[]` or `[*]`.
    Open,
}

/// How many elements there are.
enum Count {
    /// The name of a parameter or field.
    Beside(String),
    /// The whole attribute, where it is more than a name.
    Written(String),
}

impl Level {
    /// Bytes of the attributes that it keeps as text.
    fn text_len(&self) -> usize {
        let size = match &self.size {
            Some(Count::Written(text)) => text.len(),
            _ => 0,
        };
        size + self.length.as_ref().map_or(0, String::len)
    }
}

/// What the levels lead to.
enum Base {
    Value(Typed),
    /// An interface; only a pointer to it travels.
    Object(Referent),
    Void,
}

impl Builder<'_> {
    /// The shape of what is declared with a type, attributes and a declarator. None after a mistake, or with
    /// a reason in `stays`.
    pub(super) fn declared(
        &mut self,
        ty: &Ty,
        attributes: &[Attribute],
        declarator: &Declarator,
        role: Role,
    ) -> Option<Typed> {
        let span = declarator.ident.span;
        if let Some(why) = declarator.stays {
            return self.stay(why);
        }
        if self.texts > limits::TEXTS {
            // That was said where it was exceeded.
            return None;
        }
        if let Some(why) = self.other_bytes(attributes) {
            return self.stay(why);
        }
        let (mut base, mut levels) = self.levels(ty, declarator)?;
        // The innermost pointer is the handle itself.
        if has(attributes, "context_handle") && matches!(base, Base::Void) && levels.pop().is_some() {
            base = Base::Value(Typed::leaf(known::context_handle()));
        }
        self.sizes(attributes, &mut levels)?;
        // Attributes of the declaration speak of its outermost pointer alone.
        if let Some(kind) = pointer_kind(attributes)
            && let Some(Level { kind: LevelKind::Pointer(own), .. }) = levels.first_mut()
        {
            *own = Some(kind);
        }
        if let Base::Value(typed) = &mut base
            && matches!(typed.shape, Shape::U16)
            && has(attributes, "charset")
            && has(attributes, "string")
        {
            typed.shape = Shape::WideChar;
        }
        let is_text = matches!(&base, Base::Value(typed) if text_of(&typed.shape).is_some());
        if has(attributes, "string")
            && is_text
            && let Some(last) = levels.last_mut()
        {
            last.string = true;
        }
        let written = |name: &str| find(attributes, name).map(written);
        let mut texts = 0;
        match &mut base {
            // Which interface it is travels beside it, so the declared one says nothing.
            Base::Object(referent) if has(attributes, "iid_is") => {
                *referent = Referent { name: Name::default(), id: Name::default() };
            }
            Base::Void if has(attributes, "iid_is") => {
                base = Base::Object(Referent { name: Name::default(), id: Name::default() });
            }
            Base::Value(typed) => {
                let union = matches!(typed.shape.resolved(), Shape::Union(_));
                // `switch_is` matters to unions alone; a struct that holds one keeps its own.
                let kept = written("range").or_else(|| written("switch_is").filter(|_| union));
                if let Some(kept) = kept {
                    texts = kept.len();
                    *typed = annotated(typed.clone(), kept);
                }
            }
            _ => {}
        }
        let iid = written("iid_is");
        texts += iid.as_ref().map_or(0, String::len);
        texts += levels.iter().map(Level::text_len).sum::<usize>();
        self.charge_texts(texts, span)?;
        self.place(&base, &levels, 0, role, iid, span)
    }

    /// So many bytes of attributes are kept beside one declarator more: they are written once, and count for all names of a list.
    fn charge_texts(&mut self, bytes: usize, span: Span) -> Option<()> {
        self.texts += bytes;
        if self.texts <= limits::TEXTS {
            return Some(());
        }
        let mib = limits::TEXTS >> 20;
        self.report
            .add(Problem::new(span, format!("the attributes kept beside names have more than {mib} MiB")));
        None
    }

    /// The pointers and dimensions around a type, and what they lead to. Dimensions are outside of the stars
    /// before the name, and those outside of the pointers of typedefs.
    fn levels(&mut self, ty: &Ty, declarator: &Declarator) -> Option<(Base, Vec<Level>)> {
        let level = |kind| Level { kind, size: None, length: None, string: false };
        let mut levels = Vec::new();
        for dimension in &declarator.dimensions {
            levels.push(level(match dimension {
                Some(expr) => LevelKind::Fixed(self.dimension(expr)?),
                None => LevelKind::Open,
            }));
        }
        levels.extend((0..declarator.pointers).map(|_| level(LevelKind::Pointer(None))));
        let mut ty = ty.clone();
        while let Ty::Pointer(pointer) = ty {
            levels.push(Level { string: pointer.string, ..level(LevelKind::Pointer(pointer.kind)) });
            ty = pointer.to.clone();
        }
        let base = match ty {
            Ty::Value(typed) => Base::Value(typed),
            Ty::Object(referent) => Base::Object(referent),
            Ty::Mention(key) => Base::Value(self.resolved(&key)?),
            Ty::Stays(why) => return self.stay(why),
            // No pointer is left here.
            Ty::Void | Ty::Pointer(_) => Base::Void,
        };
        Some((base, levels))
    }

    /// The size of an array. In pidl a field beside it may say it, and then it travels without one.
    fn dimension(&mut self, expr: &Expr) -> Option<u32> {
        let mark = self.report.mark();
        let size = self.size(expr);
        if size.is_none() && self.is_pidl {
            self.report.forget(mark);
            return self.stay(format!("the size `{}` of an array is no constant", expr.text()));
        }
        size
    }

    /// These are declared beside each other from now on; returns the names that were so before.
    pub(super) fn declare_beside(&mut self, members: &[Member]) -> HashSet<String> {
        let names = members.iter().map(|member| member.declarator.ident.name.clone());
        std::mem::replace(&mut self.beside, names.collect())
    }

    /// Gives each level what the attributes say of it. `max_is` and the others stay as they are written,
    /// because a wire must add one or compare. Constants become their values, which no wire could look up.
    fn sizes(&mut self, attributes: &[Attribute], levels: &mut [Level]) -> Option<()> {
        for attribute in attributes {
            let name = attribute.name.as_str();
            if !matches!(name, "size_is" | "max_is" | "length_is" | "first_is" | "last_is") {
                continue;
            }
            for (index, value) in attribute.values.iter().enumerate() {
                let Some(value) = value else { continue };
                let Some(level) = levels.get_mut(index) else {
                    let message = format!("`{name}` speaks of a pointer that is not there");
                    self.report.add(Problem::new(attribute.span, message));
                    return None;
                };
                let value = &self.with_constants(value);
                let simple = value.name().filter(|name| !name.contains(['.', '>']));
                match (name, simple) {
                    ("size_is", Some(beside)) => level.size = Some(Count::Beside(beside.to_owned())),
                    ("size_is" | "max_is", _) => {
                        level.size = Some(Count::Written(format!("{name}({})", plain(value))));
                    }
                    _ => {
                        let more = level.length.take().map(|first| first + ", ").unwrap_or_default();
                        level.length = Some(format!("{more}{name}({})", plain(value)));
                    }
                }
            }
        }
        Some(())
    }

    /// What the levels from `at` on become, and inside them the base. `iid` is the attribute `iid_is` as it
    /// is written, which belongs to the innermost pointer.
    fn place(
        &mut self,
        base: &Base,
        levels: &[Level],
        at: usize,
        role: Role,
        iid: Option<String>,
        span: Span,
    ) -> Option<Typed> {
        let behind = levels.get(..at).unwrap_or_default().iter().any(|level| level.points());
        let Some(level) = levels.get(at) else {
            return match base {
                // A pointer before it ends the value, so that a struct may point to itself.
                Base::Value(typed) if typed.open && !behind => {
                    let problem = Problem::new(span, "this type is not complete here");
                    self.report.add(problem.help("a pointer to it can be used"));
                    None
                }
                Base::Value(typed) => Some(typed.clone()),
                Base::Object(_) => self.stay("an interface travels as a pointer to it"),
                Base::Void => self.stay("`void` has no bytes: name the type, or add `iid_is`"),
            };
        };
        let innermost = at + 1 == levels.len();
        let top = at == 0 && role == Role::Parameter;
        // The last pointer to an interface is the reference itself.
        if let (LevelKind::Pointer(_), Base::Object(referent), true) = (&level.kind, base, innermost) {
            if level.size.is_some() {
                return self.refuse(span, "an array of interfaces is one of pointers to them");
            }
            let reference = Typed::leaf(Shape::Reference(Hold::new(referent.clone())));
            return Some(match iid {
                Some(iid) => annotated(reference, iid),
                None => reference,
            });
        }
        // `string` at the last level makes text of the characters, at once for this level and its base.
        let text = match base {
            Base::Value(typed) if level.string && innermost => text_of(&typed.shape),
            _ => None,
        };
        match &level.kind {
            LevelKind::Pointer(kind) => {
                let target = match text {
                    Some(text) => {
                        let typed = Typed { depth: 2, ..Typed::leaf(Shape::Text(text)) };
                        match &level.size {
                            Some(count) => annotated(typed, count.written()),
                            None => typed,
                        }
                    }
                    None if level.size.is_some() || level.length.is_some() => {
                        self.sequence(base, levels, at, None, iid, span)?
                    }
                    None => self.place(base, levels, at + 1, Role::Inner, iid, span)?,
                };
                // The rules of MIDL: parameters are references, all else follows `pointer_default`.
                let kind = kind.unwrap_or(if top { PointerKind::Ref } else { self.pointer_default });
                self.pointed(kind, top, target, span)
            }
            LevelKind::Fixed(len) if level.string && level.length.is_none() && text.is_some() => {
                self.fixed_string(text?, *len, span)
            }
            LevelKind::Fixed(len) if level.string || level.length.is_some() => {
                self.sequence(base, levels, at, Some(*len), iid, span)
            }
            LevelKind::Fixed(_) if level.size.is_some() => self.sequence(base, levels, at, None, iid, span),
            LevelKind::Fixed(len) => {
                let element = self.place(base, levels, at + 1, Role::Inner, iid, span)?;
                let depth = self.deeper(element.depth, span)?;
                let array = Array { element: element.shape, len: *len };
                Some(Typed { shape: Shape::Array(Hold::new(array)), depth, open: element.open })
            }
            LevelKind::Open => {
                if let (Some(text), true) = (text, top) {
                    return Some(Typed::leaf(Shape::Text(text)));
                }
                // Programs alone use such a struct; what needs it is left out.
                if level.size.is_none() && !level.string && matches!(role, Role::Field { .. }) {
                    return self.stay("an array has no size: it needs `size_is` or `max_is`");
                }
                if !(top || at == 0 && role == Role::Field { last: true }) {
                    return self.refuse(
                        span,
                        "an array without a size is a parameter or the last field of a struct",
                    );
                }
                if level.size.is_none() && !level.string {
                    return self.refuse(span, "this array needs `size_is` or `max_is`");
                }
                self.sequence(base, levels, at, None, iid, span)
            }
        }
    }

    /// Text in an array of `len` characters, the last of which is the NUL. The alias around it tells that it stands in place.
    fn fixed_string(&mut self, text: Text, len: u32, span: Span) -> Option<Typed> {
        let Some(bound) = len.checked_sub(1) else {
            return self.refuse(span, "a string needs room for its NUL");
        };
        let typed = Typed { depth: 2, ..Typed::leaf(Shape::Text(Text { bound: Some(bound), ..text })) };
        Some(annotated(typed, format!("string({len})")))
    }

    /// The sequence that a level with a size is; `bound` is the size of an array that has a fixed one. It is
    /// not open, since its elements are behind a size.
    fn sequence(
        &mut self,
        base: &Base,
        levels: &[Level],
        at: usize,
        bound: Option<u32>,
        iid: Option<String>,
        span: Span,
    ) -> Option<Typed> {
        let level = levels.get(at)?;
        let element = self.place(base, levels, at + 1, Role::Inner, iid, span)?;
        let depth = self.deeper(element.depth, span)?;
        let varying = level.length.is_some() || level.string;
        // The three forms of arrays in NDR (C706, 14.3): with a size, with a length, or with both.
        let order = match (bound, varying) {
            (Some(_), _) => Order::Varying,
            (None, true) => Order::ConformantVarying,
            (None, false) => Order::Conformant,
        };
        let size = match &level.size {
            Some(Count::Beside(name)) => Some(Name::from(name.clone())),
            _ => None,
        };
        let sequence = Sequence { element: element.shape, bound, order, size };
        let mut typed = Typed { shape: Shape::Sequence(Hold::new(sequence)), depth, open: false };
        if let Some(Count::Written(text)) = &level.size {
            typed = annotated(typed, text.clone());
        }
        if let Some(length) = &level.length {
            typed = annotated(typed, length.clone());
        }
        Some(typed)
    }

    /// What a pointer of this kind to something is. A pointer that may be null is `Optional`; one to a type
    /// that is not complete stays a `Pointer`.
    fn pointed(&mut self, kind: PointerKind, top: bool, target: Typed, span: Span) -> Option<Typed> {
        if kind == PointerKind::Ref && top && !target.open {
            return Some(target);
        }
        let depth = self.deeper(target.depth, span)?;
        let shape = if kind == PointerKind::Unique && !target.open {
            Shape::Optional(Hold::new(target.shape))
        } else {
            Shape::Pointer(Hold::new(Pointer { kind, target: target.shape }))
        };
        Some(Typed { shape, depth, open: false })
    }

    /// Reports a mistake; None, to be returned at once.
    fn refuse(&mut self, span: Span, message: &str) -> Option<Typed> {
        self.problem(span, message);
        None
    }
}

impl Level {
    /// Whether a value behind it stands apart from the one that holds it.
    fn points(&self) -> bool {
        matches!(self.kind, LevelKind::Pointer(_)) || self.size.is_some()
    }
}

impl Count {
    fn written(&self) -> String {
        match self {
            Self::Beside(name) => format!("size_is({name})"),
            Self::Written(text) => text.clone(),
        }
    }
}

/// The attribute as MIDL writes it.
fn written(attribute: &Attribute) -> String {
    let values: Vec<String> = attribute.values.iter().flatten().map(plain).collect();
    format!("{}({})", attribute.name, values.join(", "))
}

/// One value: a name without the star before it, else the expression.
fn plain(expr: &Expr) -> String {
    match (&expr.kind, expr.name()) {
        (ExprKind::Unary(..), Some(name)) => name.to_owned(),
        _ => expr.text(),
    }
}

/// A shape with an attribute kept around it.
fn annotated(typed: Typed, name: String) -> Typed {
    let alias = Alias { name: Name::from(name), id: Name::default(), target: typed.shape };
    Typed { shape: Shape::Alias(Hold::new(alias)), depth: typed.depth + 1, open: typed.open }
}
