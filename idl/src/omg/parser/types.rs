//! Types: what stands before a name, and the bodies of structs, unions and enums.
//!
//! The state is the parser's; this file holds the part of the grammar from `type_spec` down (CORBA 3.0,
//! 3.11). A type that the runtime has no values for (maps, `ValueBase`) is read to
//! its end and becomes `Unsupported`: what needs it is left out of the contract with a note, and everything
//! around it stays.
//!
//! Whether a body may be empty is decided here: a struct and a union may not (an exception may), but this is
//! said only where nothing else was wrong, because a mistake inside empties a body as well.
//!
//! Every type counts as one node and as one level of nesting, which bounds the recursion through `struct {
//! struct { ...` and `sequence<sequence<...`.

use super::super::ast::{
    Arm, Basic, Declarator, Enum, Ident, ItemKind, Label, Struct, TypeKind, TypeSpec, Union,
};
use super::super::lexer::Kind;
use super::{Descent, Parse, Parser, Skip};
use crate::report::Problem;

impl Parser<'_> {
    /// Any type, constructed ones with their bodies. A constructed type defines its name where it stands; the
    /// parser only keeps it in the tree.
    pub(super) fn type_spec(&mut self) -> Parse<TypeSpec> {
        self.count()?;
        let start = self.current.span;
        let kind = self.nested(Self::type_kind)?;
        Ok(TypeSpec { kind, span: start.to(self.last) })
    }

    fn type_kind(&mut self) -> Parse<TypeKind> {
        let start = self.current.span;
        let keyword = match &self.current.kind {
            Kind::Keyword(keyword) => *keyword,
            Kind::Word(_) | Kind::Escaped(_) | Kind::Punct("::") => {
                let name = self.scoped_name()?;
                // `map` is a keyword of IDL 4.2 and a name before it, so only the angle decides. A scoped
                // name is never a keyword.
                let is_map = name.parts.len() == 1 && name.parts.iter().all(|part| part.name == "map");
                if is_map && self.accept("<") {
                    self.list(Self::type_or_bound)?;
                    self.expect(">")?;
                    return Ok(TypeKind::Unsupported("`map`"));
                }
                return Ok(TypeKind::Name(name));
            }
            _ => "",
        };
        let basic = match keyword {
            "void" => Basic::Void,
            "short" => Basic::Short,
            "long" => {
                self.advance();
                if self.accept_word("long") {
                    return Ok(TypeKind::Basic(Basic::LongLong));
                }
                if self.accept_word("double") {
                    return Ok(TypeKind::Basic(Basic::LongDouble));
                }
                return Ok(TypeKind::Basic(Basic::Long));
            }
            "unsigned" => {
                self.advance();
                if self.accept_word("short") {
                    return Ok(TypeKind::Basic(Basic::UShort));
                }
                if !self.accept_word("long") {
                    let problem = self.unexpected("a type is missing").expected(["`short`", "`long`"]);
                    return self.fail(problem);
                }
                let long = self.accept_word("long");
                return Ok(TypeKind::Basic(if long { Basic::ULongLong } else { Basic::ULong }));
            }
            "float" => Basic::Float,
            "double" => Basic::Double,
            "char" => Basic::Char,
            "wchar" => Basic::WChar,
            "boolean" => Basic::Boolean,
            "octet" => Basic::Octet,
            "any" => Basic::Any,
            "Object" => Basic::Object,
            "string" | "wstring" => {
                self.advance();
                let bound = if self.accept("<") {
                    let bound = self.expression()?;
                    self.expect(">")?;
                    Some(bound)
                } else {
                    None
                };
                return Ok(TypeKind::Text { wide: keyword == "wstring", bound });
            }
            "sequence" => {
                self.advance();
                self.expect("<")?;
                let element = Box::new(self.type_spec()?);
                // The grammar has only simple types here.
                if matches!(element.kind, TypeKind::Struct(_) | TypeKind::Union(_) | TypeKind::Enum(_)) {
                    let problem = Problem::new(element.span, "a type cannot be defined inside a sequence");
                    self.report.add(problem.help("define it before and use its name"));
                }
                let bound = if self.accept(",") { Some(self.expression()?) } else { None };
                self.expect(">")?;
                return Ok(TypeKind::Sequence(element, bound));
            }
            "struct" | "union" | "enum" => {
                return match self.constructed()? {
                    ItemKind::Type(spec) => Ok(spec.kind),
                    _ => self
                        .fail(Problem::new(start.to(self.last), "a definition is missing").expected(["`{`"])),
                };
            }
            "fixed" => {
                self.advance();
                if !self.accept("<") {
                    return Ok(TypeKind::FixedConstant);
                }
                let digits = self.expression()?;
                self.expect(",")?;
                let scale = self.expression()?;
                self.expect(">")?;
                return Ok(TypeKind::Fixed(digits, scale));
            }
            "ValueBase" => {
                self.advance();
                return Ok(TypeKind::Unsupported("the value type `ValueBase`"));
            }
            _ => {
                let problem = self.unexpected("a type is missing").expected(["a type"]);
                return self.fail(problem);
            }
        };
        self.advance();
        Ok(TypeKind::Basic(basic))
    }

    /// One of the things between the angles of a map: a type, or how many pairs it has at the most.
    fn type_or_bound(&mut self) -> Parse<()> {
        match self.current.kind {
            Kind::Integer(_) => self.expression().map(drop),
            _ => self.type_spec().map(drop),
        }
    }

    /// A struct, union or enum, or the announcement of one.
    pub(super) fn constructed(&mut self) -> Parse<ItemKind> {
        let start = self.current.span;
        // The caller has seen that it is one of the three words.
        let keyword = self.current.kind.clone();
        self.advance();
        let kind = match keyword {
            Kind::Keyword("struct") => {
                let structure = self.structure(false)?;
                // `structure` leaves an announcement without members. Two tokens of look-ahead would be
                // needed to know this before.
                if structure.members.is_empty()
                    && self.current.kind == Kind::Punct(";")
                    && self.last == structure.ident.span
                {
                    return Ok(ItemKind::ForwardStruct(structure.ident));
                }
                // One without members is legal since IDL 4.0 (7.4.13.4.2); classes of other languages often have none.
                TypeKind::Struct(structure)
            }
            Kind::Keyword("union") => {
                let ident = self.ident()?;
                if self.current.kind == Kind::Punct(";") {
                    return Ok(ItemKind::ForwardUnion(ident));
                }
                if !self.accept_word("switch") {
                    let problem = self.unexpected("the discriminator is missing").expected(["`switch`"]);
                    return self.fail(problem);
                }
                self.expect("(")?;
                let discriminator = self.type_spec()?;
                self.expect(")")?;
                let arms = self.nested(|p| p.braced(Self::arms))?;
                if arms.is_empty() && !self.report.failed() {
                    self.report.add(Problem::new(ident.span, "a union has at least one case"));
                }
                TypeKind::Union(Box::new(Union { ident, discriminator, arms }))
            }
            _ => {
                let ident = self.ident()?;
                let members = self.braced(Self::enumerators)?;
                TypeKind::Enum(Enum { ident, members })
            }
        };
        Ok(ItemKind::Type(TypeSpec { kind, span: start.to(self.last) }))
    }

    fn enumerators(&mut self) -> Parse<Vec<Ident>> {
        let members = self.list(Self::ident)?;
        // A missing comma: the message names what was expected instead of what comes later.
        if matches!(self.current.kind, Kind::Word(_)) {
            let problem = self.unexpected("").expected(["`,`", "`}`"]);
            return self.fail(problem);
        }
        Ok(members)
    }

    /// Name and members of a struct or exception; no members where a struct is only announced.
    pub(super) fn structure(&mut self, exception: bool) -> Parse<Struct> {
        let ident = self.ident()?;
        if !exception && self.current.kind == Kind::Punct(";") {
            return Ok(Struct { ident, base: None, members: Vec::new() });
        }
        let base = if !exception && self.accept(":") { Some(self.scoped_name()?) } else { None };
        let members = self.nested(|p| p.braced(Self::members))?;
        Ok(Struct { ident, base, members })
    }

    /// A wrong member is passed over, so that mistakes in the others are found too.
    fn members(&mut self) -> Parse<Vec<(TypeSpec, Vec<Declarator>)>> {
        let mut members = Vec::new();
        while !matches!(self.current.kind, Kind::Punct("}") | Kind::End) {
            match self.member() {
                Ok(member) => members.push(member),
                Err(Skip) => self.recover(),
            }
        }
        Ok(members)
    }

    fn member(&mut self) -> Parse<(TypeSpec, Vec<Declarator>)> {
        let spec = self.type_spec()?;
        let declarators = self.declarators()?;
        self.semicolon()?;
        Ok((spec, declarators))
    }

    /// Several names of one type, with commas.
    pub(super) fn declarators(&mut self) -> Parse<Vec<Declarator>> {
        self.list(Self::declarator)
    }

    /// A name, and one size in brackets for each dimension.
    pub(super) fn declarator(&mut self) -> Parse<Declarator> {
        let ident = self.ident()?;
        let mut dimensions = Vec::new();
        while self.accept("[") {
            dimensions.push(self.expression()?);
            self.expect("]")?;
        }
        Ok(Declarator { ident, dimensions })
    }

    fn arms(&mut self) -> Parse<Vec<Arm>> {
        let mut arms = Vec::new();
        while !matches!(self.current.kind, Kind::Punct("}") | Kind::End) {
            match self.arm() {
                Ok(arm) => arms.push(arm),
                Err(Skip) => self.recover(),
            }
        }
        Ok(arms)
    }

    /// Labels, of which there may be several, then one member.
    fn arm(&mut self) -> Parse<Arm> {
        let mut labels = Vec::new();
        loop {
            let span = self.current.span;
            if self.accept_word("case") {
                labels.push(Label::Case(self.expression()?));
            } else if self.accept_word("default") {
                labels.push(Label::Default(span));
            } else {
                break;
            }
            self.expect(":")?;
        }
        if labels.is_empty() {
            let problem = self.unexpected("a label is missing").expected(["`case`", "`default`"]);
            return self.fail(problem);
        }
        let spec = self.type_spec()?;
        let declarator = self.declarator()?;
        self.semicolon()?;
        Ok(Arm { labels, spec, declarator })
    }
}
