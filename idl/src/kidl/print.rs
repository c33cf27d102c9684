//! A document as `dcopidl` writes it, blank by blank.
//!
//! Files of the tool are compared byte for byte with what is printed here, so even its slips are kept: five
//! blanks before a closing tag, two before a qualifier.

use super::document::{Argument, Class, Document, Exception, Member, Type};
use super::types;
use crate::xml::{comment, escape};
use std::fmt::{self, Display, Formatter};

impl Display for Document {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "<!DOCTYPE DCOP-IDL><DCOP-IDL>")?;
        if let Some(source) = &self.source {
            writeln!(f, "<SOURCE>{}</SOURCE>", escaped(source))?;
        }
        for include in &self.includes {
            writeln!(f, "<INCLUDE>{}</INCLUDE>", escaped(include))?;
        }
        self.exceptions.iter().try_for_each(|exception| write!(f, "{exception}"))?;
        self.classes.iter().try_for_each(|class| write!(f, "{class}"))?;
        self.left_out.iter().try_for_each(|remark| writeln!(f, "{}", comment(remark)))?;
        writeln!(f, "</DCOP-IDL>")
    }
}

impl Display for Exception {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "<EXCEPTION>\n    <NAME>{}</NAME>", escaped(&self.name))?;
        self.fields.iter().try_for_each(|field| writeln!(f, "    {field}"))?;
        writeln!(f, "</EXCEPTION>")
    }
}

impl Display for Class {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "<CLASS>\n    <NAME>{}</NAME>", escaped(&self.name))?;
        if let Some(scope) = &self.link_scope {
            writeln!(f, "    <LINK_SCOPE>{}</LINK_SCOPE>", escaped(scope))?;
        }
        for base in &self.bases {
            writeln!(f, "    <SUPER>{}</SUPER>", template(base))?;
        }
        self.members.iter().try_for_each(|member| write!(f, "{member}"))?;
        // `dcopidl2cpp` reads the elements of a class up to the first node that is none.
        self.left_out.iter().try_for_each(|remark| writeln!(f, "    {}", comment(remark)))?;
        writeln!(f, "</CLASS>")
    }
}

impl Display for Member {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let tag = if self.signal { "SIGNAL" } else { "FUNC" };
        write!(f, "    <{tag}")?;
        if self.hidden {
            write!(f, " hidden=\"yes\"")?;
        }
        if let Some(qualifier) = &self.qualifier {
            write!(f, " qual=\"{}\"", escaped(qualifier))?;
        }
        if !self.raises.is_empty() {
            write!(f, " raises=\"{}\"", escaped(&self.raises.join(",")))?;
        }
        if self.idempotent {
            write!(f, " idempotent=\"yes\"")?;
        }
        // The line breaks are those of the tool, which writes one part a line.
        write!(f, ">\n        {}\n        <NAME>{}</NAME>", self.returns, escaped(&self.name))?;
        for argument in &self.arguments {
            write!(f, "\n        {argument}")?;
        }
        writeln!(f, "\n     </{tag}>")
    }
}

impl Display for Argument {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "<ARG>{}", self.kind)?;
        if let Some(name) = &self.name {
            write!(f, "<NAME>{}</NAME>", escaped(name))?;
        }
        write!(f, "</ARG>")
    }
}

impl Display for Type {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "<TYPE")?;
        // The tool writes two blanks before the first qualifier.
        if self.left.is_some() || self.right.is_some() {
            write!(f, " ")?;
        }
        if let Some(left) = &self.left {
            write!(f, " qleft=\"{}\"", escaped(left))?;
        }
        if let Some(right) = &self.right {
            write!(f, " qright=\"{}\"", escaped(right))?;
        }
        write!(f, ">{}</TYPE>", escaped(&self.name))
    }
}

/// A base class: the arguments of a template are types of their own. `Base<Type>` is written with an element
/// for each type.
fn template(base: &str) -> String {
    match base.split_once('<').and_then(|(name, rest)| Some((name, rest.strip_suffix('>')?))) {
        Some((name, mut rest)) => {
            let mut all = Vec::new();
            loop {
                let (first, others) = types::split(rest);
                all.push(Type::new(first).to_string());
                match others {
                    Some(others) => rest = others,
                    None => break,
                }
            }
            format!("{}&lt;{}&gt;", escaped(name), all.join(","))
        }
        None => escaped(base),
    }
}

/// Text that cannot become markup.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    escape(text, &mut out);
    out
}
