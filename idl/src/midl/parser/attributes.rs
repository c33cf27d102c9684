//! Attributes in brackets: `[in, size_is(n)] long *a`.
//!
//! Any name is an attribute, because compilers have many of their own, and those of tools say nothing about
//! bytes. Values are parsed for the attributes that the builder reads, and passed over for all others,
//! whatever stands in their parentheses.

use super::super::ast::{Attribute, Expr};
use super::{Descent, Parse, Parser};
use crate::omg::lexer::Kind;

/// Attributes whose values are expressions; what stands in the parentheses of any other is passed over. An
/// attribute that the builder asks for a value must be in here.
const VALUED: &[&str] = &[
    "call_as",
    "case",
    "endpoint",
    "first_is",
    "helpstring",
    "id",
    "iid_is",
    "last_is",
    "length_is",
    "max_is",
    "min_is",
    "pointer_default",
    "range",
    "size_is",
    "success",
    "switch_is",
    "uuid",
];

impl Parser<'_> {
    /// All lists that stand here, as one.
    pub(super) fn attributes(&mut self) -> Parse<Vec<Attribute>> {
        let mut all = Vec::new();
        while self.accept("[") {
            while !self.is(&Kind::Punct("]")) {
                if self.accept(",") {
                    continue;
                }
                all.push(self.attribute()?);
            }
            self.expect("]")?;
        }
        Ok(all)
    }

    /// One attribute with its values.
    fn attribute(&mut self) -> Parse<Attribute> {
        let ident = self.ident()?;
        let mut attribute = Attribute {
            name: ident.name,
            span: ident.span,
            values: Vec::new(),
            spec: None,
            calls: false,
            text: String::new(),
        };
        if !self.is(&Kind::Punct("(")) {
            return Ok(attribute);
        }
        let name = attribute.name.as_str();
        if matches!(name, "switch_type" | "wire_marshal" | "transmit_as") {
            self.advance();
            // The pointers behind the type are stepped over: what travels is the value.
            attribute.spec = Some(self.type_spec()?);
            while self.accept("*") {}
            self.expect(")")?;
        } else if VALUED.contains(&name) {
            self.advance();
            loop {
                match self.current.kind {
                    // An empty place counts as one: `size_is(, n)` speaks of the second pointer.
                    Kind::Punct(",") => attribute.values.push(None),
                    Kind::Punct(")") => {
                        if !attribute.values.is_empty() {
                            attribute.values.push(None);
                        }
                        break;
                    }
                    _ => attribute.values.push(Some(self.expression()?)),
                }
                if !self.accept(",") {
                    break;
                }
            }
            self.expect(")")?;
            attribute.calls = attribute.values.iter().flatten().any(Expr::calls);
        } else {
            let start = self.current.span;
            self.skip_parentheses()?;
            let text = self.report.text_of(start.to(self.last));
            match attribute.name.as_str() {
                // From the text, because 1.10 is not the number 1.1.
                "version" => attribute.text = text.trim_matches(['(', ')', ' ']).to_owned(),
                // What is written over several lines may have comments in it.
                "defaultvalue" if !text.contains(['\n', '\r']) => {
                    let inside = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
                    attribute.text = inside.unwrap_or_default().trim().to_owned();
                }
                _ => {}
            }
        }
        attribute.span = ident.span.to(self.last);
        Ok(attribute)
    }
}
