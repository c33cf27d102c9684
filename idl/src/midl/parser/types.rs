//! Types and declarators: what stands before a name, the name itself, and what stands around it.
//!
//! C divides a declaration in two: the type (`type_spec`) and, for each name, pointers and dimensions
//! (`declarator`). Words for calling conventions and `const` are stepped over: they change nothing on a wire.
//!
//! A pointer to a function, a field of bits and the like are read to their end and marked with `stays`, the
//! reason why they have no form on a wire; the builder leaves out what needs them.
//!
//! Bounds: pointers and dimensions of one name here, depth and number by the parser. `long` has 32 bits,
//! `hyper` and `long long` have 64, as DCE and COM have it on every machine.

use super::super::ast::{
    Arm, Attribute, Choice, Declarator, Ident, Member, Members, Record, TypeKind, TypeSpec, has,
};
use super::{Descent, Parse, Parser};
use crate::omg::lexer::Kind;
use crate::report::{Problem, Span};
use everywire_model::Shape;
use std::rc::Rc;

/// Words of the built-in numbers.
pub(super) const NUMBERS: &[&str] = &[
    "boolean",
    "byte",
    "char",
    "double",
    "float",
    "hyper",
    "int",
    "long",
    "short",
    "signed",
    "small",
    "unsigned",
    "wchar_t",
    "__int3264",
    "__int64",
    "__int32",
    "__int16",
    "__int8",
];

/// Why a function does not travel.
pub(super) const FUNCTION: &str = "pointers to functions do not travel";

/// The most pointers before one name.
const POINTERS: usize = 8;
/// The most dimensions behind one name.
const DIMENSIONS: usize = 8;

impl Parser<'_> {
    /// A type without the pointers and dimensions, which belong to a name.
    pub(super) fn type_spec(&mut self) -> Parse<TypeSpec> {
        // Attributes of a typedef stand behind the word; they are kept for the definition.
        self.qualifiers();
        let start = self.current.span;
        let Some(word) = self.word().map(str::to_owned) else {
            let problem = self.unexpected("a type is missing").expected(["a type"]);
            return self.fail(problem);
        };
        let kind = match word.as_str() {
            "void" => {
                self.advance();
                TypeKind::Void
            }
            "pipe" => {
                self.advance();
                self.nested(Self::type_spec)?;
                TypeKind::Pipe
            }
            "struct" => TypeKind::Struct(Box::new(self.nested(Self::record)?)),
            "enum" => TypeKind::Enum(Box::new(self.enumeration()?)),
            // A type may have this name; pidl has the word before a body or a name.
            "bitmap" => {
                let ident = Ident { name: word, span: start };
                self.advance();
                match self.named_values()? {
                    Members { tag: None, members: None } => TypeKind::Name(ident),
                    // What is behind the word tells whether it is the name that is declared.
                    Members { tag: Some(tag), members: None } if self.ends_declarator() => {
                        self.put_back(tag, start);
                        TypeKind::Name(ident)
                    }
                    Members { tag: Some(tag), members: None } => TypeKind::Name(tag),
                    members => TypeKind::Bitmap(Box::new(members)),
                }
            }
            "union" => TypeKind::Union(Box::new(self.nested(Self::union)?)),
            "interface" | "dispinterface" | "coclass" => {
                self.advance();
                TypeKind::Name(self.ident()?)
            }
            "SAFEARRAY" => self.safe_array()?,
            word if NUMBERS.contains(&word) => self.number()?,
            _ => TypeKind::Name(self.ident()?),
        };
        self.qualifiers();
        Ok(TypeSpec { kind, span: start.to(self.last) })
    }

    /// Whether the token at hand stands behind a name that is declared.
    fn ends_declarator(&self) -> bool {
        matches!(self.current.kind, Kind::Punct(";" | "," | ")" | "[" | "=" | ":"))
    }

    /// Steps over words that say nothing about bytes.
    fn qualifiers(&mut self) {
        while matches!(self.word(), Some("const" | "volatile" | "__unaligned")) {
            self.advance();
        }
    }

    /// The words of a number stand in any order with `unsigned` (`unsigned long int`, `long unsigned`).
    fn number(&mut self) -> Parse<TypeKind> {
        let start = self.current.span;
        let mut words = Vec::new();
        while let Some(word) = self.word()
            && NUMBERS.contains(&word)
            // `unsigned long long int` has four.
            && words.len() < 4
        {
            words.push(word.to_owned());
            self.advance();
            self.qualifiers();
        }
        let unsigned = words.iter().any(|word| word == "unsigned");
        let signed = words.iter().any(|word| word == "signed");
        words.retain(|word| word != "unsigned" && word != "signed");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let pick = |wide, narrow| if unsigned { wide } else { narrow };
        let shape = match words.as_slice() {
            ["char"] if signed => Shape::I8,
            // A `char` without a sign is a character, which is translated on the wire; with one it is a
            // number.
            ["char"] => pick(Shape::U8, Shape::Char),
            ["small" | "__int8"] => pick(Shape::U8, Shape::I8),
            ["short"] | ["short", "int"] | ["__int16"] => pick(Shape::U16, Shape::I16),
            [] | ["int"] | ["long"] | ["long", "int"] | ["__int32" | "__int3264"] => {
                pick(Shape::U32, Shape::I32)
            }
            ["hyper"] | ["hyper", "int"] | ["long", "long"] | ["long", "long", "int"] | ["__int64"] => {
                pick(Shape::U64, Shape::I64)
            }
            ["byte"] if !unsigned => Shape::U8,
            ["boolean"] if !unsigned => Shape::Bool,
            ["wchar_t"] if !unsigned => Shape::WideChar,
            ["float"] if !unsigned => Shape::F32,
            ["double"] if !unsigned => Shape::F64,
            _ => return self.fail(Problem::new(start.to(self.last), "there is no such type")),
        };
        Ok(TypeKind::Base(shape))
    }

    /// `SAFEARRAY(type)`; without parentheses, a SAFEARRAY of anything.
    fn safe_array(&mut self) -> Parse<TypeKind> {
        let ident = self.ident()?;
        if !self.accept("(") {
            return Ok(TypeKind::Name(ident));
        }
        let (spec, declarator) = self.nested(|p| Ok((p.type_spec()?, p.declarator(false)?)))?;
        self.expect(")")?;
        Ok(TypeKind::SafeArray(Box::new(spec), declarator))
    }

    /// The name behind `struct`, `union` or `enum`, which may be missing.
    fn tag(&mut self) -> Parse<Option<Ident>> {
        if self.word().is_some_and(|word| word != "switch") { self.ident().map(Some) } else { Ok(None) }
    }

    /// A struct with its body, or the mention of one.
    fn record(&mut self) -> Parse<Record> {
        self.advance();
        let tag = self.tag()?;
        let members =
            if self.is(&Kind::Punct("{")) { Some(self.braced(Self::members)?.into()) } else { None };
        self.some(tag.as_ref(), members.is_some())?;
        Ok(Record { tag, members })
    }

    /// There must be a name or a body.
    fn some(&mut self, tag: Option<&Ident>, body: bool) -> Parse<()> {
        if tag.is_some() || body {
            return Ok(());
        }
        let problem = self.unexpected("a body is missing").expected(["a name", "`{`"]);
        self.fail(problem)
    }

    /// The fields of a struct. The first mistake ends the whole struct: without one of its fields, all others
    /// would have wrong places.
    fn members(&mut self) -> Parse<Vec<Member>> {
        let mut members = Vec::new();
        while !matches!(self.current.kind, Kind::End | Kind::Punct("}")) {
            if self.accept(";") {
                continue;
            }
            let attributes = self.attributes()?;
            self.fields(attributes, &mut members)?;
            self.semicolon()?;
        }
        Ok(members)
    }

    /// One type and what is declared with it; nothing but the type for a union without a name. A field of
    /// bits (`long a : 3`) is kept with the reason why it does not travel.
    fn fields(&mut self, attributes: Vec<Attribute>, members: &mut Vec<Member>) -> Parse<()> {
        let spec = Rc::new(self.type_spec()?);
        let attributes: Rc<[Attribute]> = Rc::from(attributes);
        loop {
            let named = !matches!(self.current.kind, Kind::Punct(";" | ":"));
            let declarator = if named { self.declarator(true)? } else { Declarator::default() };
            let mut declarator = declarator;
            if self.accept(":") {
                self.expression()?;
                declarator.stays = Some("fields of bits do not travel");
            }
            members.push(Member { attributes: Rc::clone(&attributes), spec: Rc::clone(&spec), declarator });
            if !self.accept(",") {
                return Ok(());
            }
        }
    }

    /// An enumeration with its members, or the mention of one.
    fn enumeration(&mut self) -> Parse<Members> {
        self.advance();
        let members = self.named_values()?;
        self.some(members.tag.as_ref(), members.members.is_some())?;
        Ok(members)
    }

    /// A name, and in braces names with values. A comma may stand behind the last one.
    fn named_values(&mut self) -> Parse<Members> {
        let tag = self.tag()?;
        let members = if self.is(&Kind::Punct("{")) {
            Some(self.braced(|p| {
                let mut members = Vec::new();
                while !matches!(p.current.kind, Kind::End | Kind::Punct("}")) {
                    p.attributes()?;
                    let ident = p.ident()?;
                    let value = if p.accept("=") { Some(p.expression()?) } else { None };
                    members.push((ident, value));
                    if !p.accept(",") {
                        break;
                    }
                }
                Ok(members)
            })?)
        } else {
            None
        };
        Ok(Members { tag, members })
    }

    /// Two forms: with `switch (type name)`, which brings its discriminator, and without, where an attribute
    /// or the place of use says what chooses.
    fn union(&mut self) -> Parse<Choice> {
        self.advance();
        let mut tag = self.tag()?;
        let mut switch = None;
        if self.accept_word("switch") {
            self.expect("(")?;
            switch = Some(self.type_spec()?);
            // The names of the discriminator and of the union inside do not travel.
            self.ident()?;
            self.expect(")")?;
            if self.word().is_some() {
                let inner = self.ident()?;
                tag = tag.or(Some(inner));
            }
        }
        let arms = if self.is(&Kind::Punct("{")) { Some(self.braced(Self::arms)?.into()) } else { None };
        self.some(tag.as_ref(), arms.is_some())?;
        Ok(Choice { tag, switch, arms })
    }

    /// Labels stand before an arm as `case n:`, or in its attributes as `case(n)`, by the form of the union.
    fn arms(&mut self) -> Parse<Vec<Arm>> {
        let mut arms = Vec::new();
        while !matches!(self.current.kind, Kind::End | Kind::Punct("}")) {
            let span = self.current.span;
            let (mut labels, mut default) = (Vec::new(), false);
            loop {
                if self.accept_word("case") {
                    labels.push(self.expression()?);
                } else if self.accept_word("default") {
                    default = true;
                } else {
                    break;
                }
                self.expect(":")?;
            }
            let mut attributes = self.attributes()?;
            if let Some(at) = attributes.iter().position(|attribute| attribute.name == "case") {
                labels.extend(attributes.remove(at).values.into_iter().flatten());
            }
            default |= has(&attributes, "default");
            attributes.retain(|attribute| attribute.name != "default");
            let member = self.arm(attributes, span)?;
            self.semicolon()?;
            arms.push(Arm { labels, default, span, member });
        }
        Ok(arms)
    }

    /// The field of an arm; None for an arm without one.
    fn arm(&mut self, attributes: Vec<Attribute>, span: Span) -> Parse<Option<Member>> {
        if matches!(self.current.kind, Kind::Punct(";" | "}")) {
            return Ok(None);
        }
        let mut members = Vec::new();
        self.fields(attributes, &mut members)?;
        // `long a, b;` would be two values for one label.
        if members.len() > 1 {
            return self.fail(Problem::new(span, "an arm has one field"));
        }
        Ok(members.pop())
    }

    /// Pointers, a name and dimensions; the name may be missing where nothing needs it. Calling conventions
    /// may stand among the stars.
    pub(super) fn declarator(&mut self, named: bool) -> Parse<Declarator> {
        let mut declarator = Declarator::default();
        let start = self.current.span;
        loop {
            if self.accept("*") {
                declarator.pointers += 1;
            } else if matches!(
                self.word(),
                Some(
                    "const"
                        | "volatile"
                        | "__unaligned"
                        | "__RPC_FAR"
                        | "__stdcall"
                        | "_stdcall"
                        | "__cdecl"
                        | "_cdecl"
                        | "STDMETHODCALLTYPE"
                        | "STDAPICALLTYPE"
                        | "WINAPI"
                        | "CALLBACK"
                )
            ) {
                self.advance();
            } else {
                break;
            }
        }
        if self.accept("(") {
            // `(*name)(parameters)`, and what returns such a pointer.
            let inner = self.nested(|p| p.declarator(named))?;
            self.expect(")")?;
            self.skip_parentheses()?;
            return Ok(Declarator { stays: Some(FUNCTION), ..inner });
        }
        declarator.ident = if named || self.word().is_some() {
            self.ident()?
        } else {
            Ident { name: String::new(), span: start }
        };
        while self.accept("[") {
            let open = matches!(self.current.kind, Kind::Punct("]" | "*"));
            if open {
                self.accept("*");
                declarator.dimensions.push(None);
            } else {
                declarator.dimensions.push(Some(self.expression()?));
            }
            self.expect("]")?;
        }
        if declarator.pointers > POINTERS || declarator.dimensions.len() > DIMENSIONS {
            return self.fail(Problem::new(start, "this has too many pointers or dimensions"));
        }
        Ok(declarator)
    }
}
