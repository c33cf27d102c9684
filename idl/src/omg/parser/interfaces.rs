//! Interfaces: operations, attributes, and what may be defined inside (CORBA 3.0, 3.8, 3.13 and 3.14).
//!
//! `local` is read and not kept: such an interface is on no wire. `abstract` is kept, since values of such an interface travel in another way
//! than references do.

use super::super::ast::{
    Attribute, Forward, Interface, ItemKind, Operation, Parameter, ScopedName, TypeKind, TypeSpec,
};
use super::super::lexer::Kind;
use super::values::ABSTRACT_VALUE;
use super::{DefinitionScope, Descent, Parse, Parser};
use crate::report::Problem;
use everywire_model::Direction;

impl Parser<'_> {
    /// An interface, or the announcement of one.
    pub(super) fn interface(&mut self) -> Parse<ItemKind> {
        let is_abstract = self.accept_word("abstract");
        if (is_abstract || self.accept_word("local")) && self.current.kind == Kind::Keyword("valuetype") {
            return self.leave_out(ABSTRACT_VALUE);
        }
        if !self.accept_word("interface") {
            let problem = self.unexpected("this does not belong here").expected(["`interface`"]);
            return self.fail(problem);
        }
        let ident = self.ident()?;
        if self.current.kind == Kind::Punct(";") {
            return Ok(ItemKind::ForwardInterface(Forward { ident, is_abstract }));
        }
        let bases = if self.accept(":") { self.list(Self::scoped_name)? } else { Vec::new() };
        // The message of `braced` would not name the other two ways to go on.
        if bases.is_empty() && self.current.kind != Kind::Punct("{") {
            let problem = self.unexpected("a body is missing").expected(["`{`", "`:`", "`;`"]);
            return self.fail(problem);
        }
        let items = self.nested(|p| p.braced(|p| Ok(p.items(DefinitionScope::Interface))))?;
        Ok(ItemKind::Interface(Interface { ident, is_abstract, bases, items }))
    }

    /// What may stand in an interface. What begins with no word of its own is an operation, which begins with
    /// its result.
    pub(super) fn export(&mut self) -> Parse<ItemKind> {
        let annotations = std::mem::take(&mut self.annotations);
        let item = self.unmarked_export()?;
        self.annotated(item, &annotations)
    }

    fn unmarked_export(&mut self) -> Parse<ItemKind> {
        match self.current.kind {
            Kind::Keyword("readonly" | "attribute") => self.attribute(),
            Kind::Keyword("oneway") => self.operation(),
            Kind::Keyword(word @ ("module" | "interface")) => {
                let problem =
                    Problem::new(self.current.span, format!("`{word}` cannot stand inside an interface"));
                self.fail(problem)
            }
            _ => match self.shared()? {
                Some(kind) => Ok(kind),
                None => self.operation(),
            },
        }
    }

    /// Exceptions of attributes are of CORBA 3: `raises` for a read-only one, `getraises` and `setraises` for
    /// the others, in either order, as JacORB takes them.
    fn attribute(&mut self) -> Parse<ItemKind> {
        let readonly = self.accept_word("readonly");
        if !self.accept_word("attribute") {
            let problem = self.unexpected("this does not belong here").expected(["`attribute`"]);
            return self.fail(problem);
        }
        let spec = self.type_spec()?;
        let idents = self.list(Self::ident)?;
        let (mut get_raises, mut set_raises) = (Vec::new(), Vec::new());
        // The words differ, so that a wrong one is reported with those that were expected.
        if readonly {
            get_raises = self.raises("raises")?;
        } else {
            get_raises.extend(self.raises("getraises")?);
            set_raises.extend(self.raises("setraises")?);
            if get_raises.is_empty() {
                get_raises.extend(self.raises("getraises")?);
            }
            if self.current.kind == Kind::Keyword("raises") {
                let problem = self.unexpected("").expected(["`getraises`", "`setraises`"]);
                return self.fail(problem);
            }
        }
        Ok(ItemKind::Attribute(Attribute { readonly, spec, idents, get_raises, set_raises }))
    }

    /// Of the clause `context` it is kept that it is there: a caller has no properties here, but a request has a list of them.
    fn operation(&mut self) -> Parse<ItemKind> {
        let start = self.current.span;
        let oneway = self.accept_word("oneway").then_some(start);
        let returns = self.type_spec()?;
        self.refuse_anonymous(&returns, "an operation cannot return");
        let ident = self.ident()?;
        self.expect("(")?;
        let parameters =
            if self.current.kind == Kind::Punct(")") { Vec::new() } else { self.list(Self::parameter)? };
        self.expect(")")?;
        let raises = self.raises("raises")?;
        let mut context = Vec::new();
        if self.accept_word("context") {
            self.expect("(")?;
            // Names of properties, which may hold a `*` at the end.
            context = self.list(Self::text_literal)?;
            self.expect(")")?;
        }
        let idempotent = false;
        Ok(ItemKind::Operation(Operation { ident, oneway, returns, parameters, raises, context, idempotent }))
    }

    /// What stands behind the word `factory`, up to the `;`.
    pub(super) fn factory(&mut self) -> Parse<()> {
        self.ident()?;
        self.expect("(")?;
        if self.current.kind != Kind::Punct(")") {
            self.list(Self::parameter)?;
        }
        self.expect(")")?;
        self.raises("raises").map(drop)
    }

    fn parameter(&mut self) -> Parse<Parameter> {
        let direction = match self.current.kind {
            Kind::Keyword("in") => Direction::In,
            Kind::Keyword("out") => Direction::Out,
            Kind::Keyword("inout") => Direction::InOut,
            _ => {
                let problem =
                    self.unexpected("the direction is missing").expected(["`in`", "`out`", "`inout`"]);
                return self.fail(problem);
            }
        };
        self.advance();
        let spec = self.type_spec()?;
        self.refuse_anonymous(&spec, "a parameter cannot be");
        let ident = self.ident()?;
        // C has arrays here, so many people write them.
        if self.current.kind == Kind::Punct("[") {
            let problem = Problem::new(self.current.span, "a parameter cannot be an array without a name");
            return self.fail(problem.help("give the array a name with `typedef` and use that"));
        }
        Ok(Parameter { direction, spec, ident })
    }

    /// `raises (A, B)` or nothing.
    fn raises(&mut self, word: &str) -> Parse<Vec<ScopedName>> {
        if !self.accept_word(word) {
            return Ok(Vec::new());
        }
        self.expect("(")?;
        let list = self.list(Self::scoped_name)?;
        self.expect(")")?;
        Ok(list)
    }

    /// Operations name their types; only basic types and strings go without.
    fn refuse_anonymous(&mut self, spec: &TypeSpec, what: &str) {
        let noun = match spec.kind {
            TypeKind::Sequence(..) => "a sequence without a name",
            TypeKind::Struct(_) | TypeKind::Union(_) | TypeKind::Enum(_) => "a type defined on the spot",
            _ => return,
        };
        let help = "define the type before and use its name";
        self.report.add(Problem::new(spec.span, format!("{what} {noun}")).help(help));
    }
}
