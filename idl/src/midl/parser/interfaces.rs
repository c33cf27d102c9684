//! Interfaces, dispinterfaces, coclasses and their methods.
//!
//! The body of an interface is a list of methods with types and constants between them. The two are parted
//! here: types go to `items`, where the builder treats them like those beside the interface.

use super::super::ast::{
    Attribute, CoclassInterface, Declarator, Interface, ItemKind, Member, Method, TypeKind, TypeSpec,
};
use super::{Descent, Parse, Parser};
use crate::omg::lexer::Kind;
use crate::report::Span;
use std::rc::Rc;

impl Parser<'_> {
    /// The announcement of an interface (`interface A;`), or an interface with its body.
    pub(super) fn interface(&mut self) -> Parse<ItemKind> {
        let dispatch = self.word() == Some("dispinterface");
        self.advance();
        let ident = self.ident()?;
        if self.accept(";") {
            return Ok(ItemKind::Forward(ident));
        }
        let base = if self.accept(":") { Some(self.ident()?) } else { None };
        let (items, methods, raises, signals) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut interface = Interface { ident, base, dispatch, wraps: None, items, methods, raises, signals };
        self.nested(|p| p.braced(|p| p.body(&mut interface)))?;
        self.accept(";");
        Ok(ItemKind::Interface(interface))
    }

    /// A mistake costs the method in which it is.
    fn body(&mut self, interface: &mut Interface) -> Parse<()> {
        let mut properties = false;
        while !matches!(self.current.kind, Kind::End | Kind::Punct("}")) {
            self.take_pragmas(interface);
            if self.accept(";") {
                continue;
            }
            // What follows `properties:` are fields in form, and accessors in meaning.
            if self.section("properties") {
                properties = true;
            } else if self.section("methods") {
                properties = false;
            } else if self.member(interface, properties).is_err() {
                self.recover();
            }
        }
        self.take_pragmas(interface);
        Ok(())
    }

    /// `properties:` or `methods:` of a dispinterface.
    fn section(&mut self, word: &str) -> bool {
        let found = self.word() == Some(word);
        if found {
            self.advance();
            self.accept(":");
        }
        found
    }

    /// One method, property, type or constant.
    fn member(&mut self, interface: &mut Interface, properties: bool) -> Parse<()> {
        let (doc, span) = (self.doc(), self.current.span);
        let attributes = self.attributes()?;
        match self.word() {
            Some("interface") if interface.dispatch && attributes.is_empty() => {
                self.advance();
                interface.wraps = Some(self.ident()?);
                return self.semicolon();
            }
            Some("const") => return self.constant_or_method(interface, attributes, doc, span),
            // What stands between methods may be anything that stands beside an interface.
            Some("import" | "importlib") => {
                // What is imported stands beside the interface; the body goes on behind the file's end.
                let around = std::mem::replace(&mut self.around, self.tokens.source.depth());
                let read = self.item(doc);
                while self.source.depth() > self.around && !self.is(&Kind::End) {
                    interface.items.append(&mut self.items());
                    if self.source.depth() > self.around && self.is(&Kind::Punct("}")) {
                        self.problem("there is no `{` for this `}`");
                        self.advance();
                    }
                }
                self.around = around;
                return read.map(drop);
            }
            Some("typedef" | "cpp_quote" | "midl_pragma") => {
                let item = self.item(doc)?;
                interface.items.extend(item.map(|mut item| {
                    item.attributes.extend(attributes);
                    item
                }));
                return Ok(());
            }
            _ => {}
        }
        // `struct A { ... };` alone is a type; before a name it is the result of a method.
        let constructed = matches!(self.word(), Some("struct" | "union" | "enum"));
        let returns = self.type_spec()?;
        if constructed && self.accept(";") {
            interface.items.push(super::Item { kind: ItemKind::Type(returns), attributes, doc, span });
            return Ok(());
        }
        let declarator = self.declarator(true)?;
        self.method(interface, Method { attributes, returns, declarator, parameters: None, doc }, properties)
    }

    /// `const T name = value;`, or a method that returns what is not to be changed.
    fn constant_or_method(
        &mut self,
        interface: &mut Interface,
        attributes: Vec<Attribute>,
        doc: String,
        span: Span,
    ) -> Parse<()> {
        self.advance();
        let (returns, declarator) = (self.type_spec()?, self.declarator(true)?);
        if self.is(&Kind::Punct("(")) {
            let method = Method { attributes, returns, declarator, parameters: None, doc };
            return self.method(interface, method, false);
        }
        self.expect("=")?;
        let kind = ItemKind::Constant(returns, declarator, self.expression()?);
        self.semicolon()?;
        interface.items.push(super::Item { kind, attributes, doc, span });
        Ok(())
    }

    /// What follows the name of a method or property.
    fn method(&mut self, interface: &mut Interface, method: Method, properties: bool) -> Parse<()> {
        let parameters = if properties { None } else { Some(self.parameters()?) };
        // `const` and `= 0` behind the parameters of old libraries mean nothing here.
        self.accept_word("const");
        if self.accept("=") {
            if !self.is(&Kind::Integer(0)) {
                let problem = self.unexpected("this does not belong here").expected(["`0`"]);
                return self.fail(problem);
            }
            self.advance();
        }
        self.semicolon()?;
        interface.methods.push(Method { parameters, ..method });
        Ok(())
    }

    /// The parameters with their parentheses. A name may be missing.
    fn parameters(&mut self) -> Parse<Vec<Member>> {
        self.expect("(")?;
        let mut parameters = Vec::new();
        if self.accept(")") {
            return Ok(parameters);
        }
        loop {
            let attributes = Rc::from(self.attributes()?);
            if self.accept(".") {
                // `...`
                self.expect(".")?;
                self.expect(".")?;
                let spec = TypeSpec { kind: TypeKind::Void, span: self.last };
                let stays = Some("any number of parameters do not travel");
                let declarator = Declarator { stays, ..Declarator::default() };
                parameters.push(Member { attributes, spec: Rc::new(spec), declarator });
                break;
            }
            let spec = Rc::new(self.type_spec()?);
            let declarator = self.declarator(false)?;
            parameters.push(Member { attributes, spec, declarator });
            if !self.accept(",") {
                break;
            }
        }
        self.expect(")")?;
        // `(void)` says that there are none.
        if let [only] = parameters.as_slice()
            && matches!(only.spec.kind, TypeKind::Void)
            && only.declarator.pointers == 0
            && only.declarator.stays.is_none()
        {
            parameters.clear();
        }
        Ok(parameters)
    }

    /// A coclass: which interfaces its objects answer, and which they call (`source`).
    pub(super) fn class(&mut self) -> Parse<ItemKind> {
        self.advance();
        let ident = self.ident()?;
        if self.accept(";") {
            return Ok(ItemKind::Forward(ident));
        }
        let interfaces = self.nested(|p| {
            p.braced(|p| {
                let mut interfaces = Vec::new();
                while !matches!(p.current.kind, Kind::End | Kind::Punct("}")) {
                    if p.accept(";") {
                        continue;
                    }
                    let attributes = p.attributes()?;
                    if !p.accept_word("interface") && !p.accept_word("dispinterface") {
                        let problem = p.unexpected("an interface is missing");
                        return p.fail(problem.expected(["`interface`", "`dispinterface`"]));
                    }
                    interfaces.push(CoclassInterface { attributes, ident: p.ident()? });
                    p.semicolon()?;
                }
                Ok(interfaces)
            })
        })?;
        self.accept(";");
        Ok(ItemKind::Class(ident, interfaces))
    }
}
