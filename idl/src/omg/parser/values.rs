//! Value types (CORBA 3.0, 3.9): what travels of them, and what is read over, since it says how programs treat them.

use super::super::ast::{ItemKind, ValueType};
use super::super::lexer::Kind;
use super::{DefinitionScope, Descent, Parse, Parser};

/// What is left out where an abstract value type is needed as a type. As a base it adds nothing that travels.
pub(in crate::omg) const ABSTRACT_VALUE: &str = "the abstract value type";

impl Parser<'_> {
    /// A value type, the announcement of one, or a value box.
    pub(super) fn value_type(&mut self) -> Parse<ItemKind> {
        self.advance();
        let ident = self.ident()?;
        if self.current.kind == Kind::Punct(";") {
            return Ok(ItemKind::ForwardValue(ident));
        }
        let begins_body = matches!(self.current.kind, Kind::Punct(":" | "{") | Kind::Keyword("supports"));
        if !begins_body {
            return Ok(ItemKind::ValueBox(ident, self.type_spec()?));
        }
        let mut bases = Vec::new();
        let mut truncatable = false;
        if self.accept(":") {
            truncatable = self.accept_word("truncatable");
            bases = self.list(Self::scoped_name)?;
        }
        // Interfaces that values have as well say nothing of what travels.
        if self.accept_word("supports") {
            self.list(Self::scoped_name)?;
        }
        let items = self.nested(|p| p.braced(|p| Ok(p.items(DefinitionScope::Value))))?;
        Ok(ItemKind::Value(ValueType { ident, truncatable, bases, items }))
    }

    /// What may stand in a value type: members of its state, factories, and what may stand in an interface.
    pub(super) fn value_element(&mut self) -> Parse<ItemKind> {
        let is_factory = self.current.kind == Kind::Word("factory".to_owned());
        match self.current.kind {
            Kind::Keyword(word @ ("public" | "private")) => {
                self.advance();
                let spec = self.type_spec()?;
                Ok(ItemKind::StateMember(word == "public", spec, self.declarators()?))
            }
            _ if is_factory => {
                self.advance();
                self.factory()?;
                Ok(ItemKind::Factory)
            }
            _ => self.export(),
        }
    }
}
