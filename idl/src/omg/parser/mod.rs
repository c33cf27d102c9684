//! Tokens to what the file says: recursive descent, which goes on after a mistake at the next `;` or `}`.
//!
//! State: that of `Descent`, which says how mistakes are passed over and what is bounded, and the directives that were met inside a
//! definition. Nothing is looked up here: whether a name is a type or a constant is the builder's matter.
//!
//! Invariants: every turn of every list takes at least one token, so the parser ends; `current` is never a
//! directive or an annotation, which `advance` takes out. Directives take effect behind the definition they
//! stand in, as items of their own, because the tree has no place for them inside. (CORBA 3.0, chapter 3; what IDL 4.2 added is read
//! or passed over.)

mod expressions;
mod interfaces;
mod marks;
mod types;
mod values;
pub(super) use values::ABSTRACT_VALUE;

use super::ast::{Ident, Item, ItemKind, ScopedName};
use super::descent::{Descent, Parse, Skip, Tokens};
use super::lexer::{Directive, Kind, Token};
use super::limits;
use super::preprocess::Preprocessor;
use crate::report::{Problem, Report, Span};
use std::ops::{Deref, DerefMut};

pub(crate) struct Parser<'a> {
    tokens: Tokens<'a>,
    /// Directives met inside a definition; they take effect behind it.
    directives: Vec<Item>,
    /// What is left of the pragma that is being read, where one is.
    line: Option<std::vec::IntoIter<Token>>,
    /// The annotations right before `current`, those that are understood.
    annotations: marks::Annotations,
}

impl<'a> Deref for Parser<'a> {
    type Target = Tokens<'a>;

    fn deref(&self) -> &Tokens<'a> {
        &self.tokens
    }
}

impl<'a> DerefMut for Parser<'a> {
    fn deref_mut(&mut self) -> &mut Tokens<'a> {
        &mut self.tokens
    }
}

/// Where a list of definitions stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DefinitionScope {
    File,
    Module,
    Interface,
    Value,
}

/// Parses all that a source yields. The items are not complete where the report has mistakes.
pub(crate) fn parse(source: Preprocessor, report: &mut Report) -> Vec<Item> {
    let tokens = Tokens::new(source, report);
    let annotations = marks::Annotations::default();
    let mut parser = Parser { tokens, directives: Vec::new(), line: None, annotations };
    parser.advance();
    parser.items(DefinitionScope::File)
}

impl<'a> Descent<'a> for Parser<'a> {
    /// Annotations are passed over, directives are put aside.
    fn advance(&mut self) {
        self.last = self.current.span;
        self.annotations = marks::Annotations::default();
        if let Some(line) = &mut self.line {
            self.current = line.next().unwrap_or_default();
            return;
        }
        self.current = self.tokens.next();
        loop {
            if self.current.kind == Kind::Punct("@") {
                self.annotation();
                continue;
            }
            let Kind::Directive(directive) = &mut self.current.kind else { return };
            let name = |parts: Vec<(String, Span)>| {
                let span = parts.first().zip(parts.last()).map_or_else(Span::default, |(a, b)| a.1.to(b.1));
                let absolute = parts.first().is_some_and(|part| part.0.is_empty());
                let idents = parts.into_iter().filter(|part| !part.0.is_empty());
                ScopedName {
                    absolute,
                    parts: idents.map(|(name, span)| Ident { name, span }).collect(),
                    span,
                }
            };
            let kind = match directive.clone() {
                Directive::Prefix(prefix) => ItemKind::Prefix(prefix),
                Directive::Id(parts, id) => ItemKind::Id(name(parts), id),
                Directive::Version(parts, version) => ItemKind::Version(name(parts), version),
                Directive::Mark(mark, tokens) => {
                    self.marked(mark, tokens);
                    self.current = self.tokens.next();
                    continue;
                }
                Directive::EnterFile => ItemKind::EnterFile,
                Directive::LeaveFile => ItemKind::LeaveFile,
            };
            self.directives.push(Item { kind, doc: String::new() });
            self.current = self.tokens.next();
        }
    }

    fn whole(&self) -> &'static str {
        if self.line.is_some() { "line" } else { "file" }
    }
}

impl Parser<'_> {
    /// Definitions up to the end of the file or the closing brace, which is left.
    fn items(&mut self, place: DefinitionScope) -> Vec<Item> {
        let mut items = Vec::new();
        loop {
            items.append(&mut self.directives);
            match &self.current.kind {
                Kind::End => return items,
                // `braced`, which called, takes the brace.
                Kind::Punct("}") if place != DefinitionScope::File => return items,
                Kind::Punct("}") => {
                    self.problem("there is no `{` for this `}`");
                    self.advance();
                    self.accept(";");
                }
                Kind::Punct(";") => {
                    self.problem("nothing stands before this `;`");
                    self.advance();
                }
                Kind::Word(word) if word == "import" && place == DefinitionScope::File => {
                    if self.import().is_err() {
                        self.recover();
                    }
                }
                _ => {
                    // Documentation stands before the first token of a definition.
                    let doc = self.doc();
                    let item = match place {
                        DefinitionScope::Interface => self.export(),
                        DefinitionScope::Value => self.value_element(),
                        DefinitionScope::File | DefinitionScope::Module => self.definition(),
                    };
                    match item {
                        Ok(kind) => {
                            if self.semicolon().is_err() {
                                self.recover();
                            }
                            items.push(Item { kind, doc });
                        }
                        Err(Skip) => self.recover(),
                    }
                }
            }
        }
    }

    /// `import ::A::B;` reads `A.idl`, as a module of the OMG is in a file of its name, where that is beside the contract or in
    /// an include directory. CORBA leaves open where imported names are found (CORBA 3.0, 3.6); if there is no such file, what is
    /// imported is in files that are included, or is missed where it is used.
    fn import(&mut self) -> Parse<()> {
        self.advance();
        // A repository id in place of a name tells no file.
        let module = match self.current.kind {
            Kind::Text { .. } => return Err(Skip),
            _ => self.scoped_name()?,
        };
        // It is the last token before the imported text, so nothing may be taken from behind it.
        if self.current.kind != Kind::Punct(";") {
            return self.expect(";");
        }
        if let Some(first) = module.parts.first()
            && self.tokens.source.import_if_there(
                &format!("{}.idl", first.name),
                module.span,
                self.tokens.report,
            )
        {
            self.directives.push(Item { kind: ItemKind::EnterFile, doc: String::new() });
        }
        self.advance();
        Ok(())
    }

    /// What may stand in a file or a module.
    fn definition(&mut self) -> Parse<ItemKind> {
        match self.current.kind {
            Kind::Keyword("module") => {
                self.advance();
                let ident = self.ident()?;
                let items = self.nested(|p| p.braced(|p| Ok(p.items(DefinitionScope::Module))))?;
                Ok(ItemKind::Module(ident, items))
            }
            Kind::Keyword("interface" | "abstract" | "local") => self.interface(),
            // JacORB's word for objects that are on no wire; a name begins nothing here.
            Kind::Word(ref word) if word == "pseudo" => {
                self.advance();
                self.interface()
            }
            _ => match self.shared()? {
                Some(kind) => Ok(kind),
                None => {
                    let problem = self.unexpected("a definition starts here").expected([
                        "`module`",
                        "`interface`",
                        "`struct`",
                        "`union`",
                        "`enum`",
                        "`typedef`",
                        "`exception`",
                        "`const`",
                    ]);
                    self.fail(problem)
                }
            },
        }
    }

    /// What may stand in a file, a module or an interface. None where the token begins nothing of this kind;
    /// nothing was taken then.
    fn shared(&mut self) -> Parse<Option<ItemKind>> {
        Ok(Some(match self.current.kind {
            Kind::Keyword("typedef") => {
                self.advance();
                ItemKind::Typedef(self.type_spec()?, self.declarators()?)
            }
            Kind::Keyword("struct" | "union" | "enum") => self.constructed()?,
            Kind::Keyword("exception") => {
                self.advance();
                ItemKind::Exception(self.structure(true)?)
            }
            Kind::Keyword("const") => {
                self.advance();
                let spec = self.type_spec()?;
                let ident = self.ident()?;
                self.expect("=")?;
                ItemKind::Constant(spec, ident, self.expression()?)
            }
            Kind::Keyword("typeid") => {
                self.advance();
                ItemKind::Id(self.scoped_name()?, self.text_literal()?)
            }
            Kind::Keyword("typeprefix") => {
                self.advance();
                ItemKind::TypePrefix(self.scoped_name()?, self.text_literal()?)
            }
            Kind::Keyword("native") => return self.leave_out("the native type"),
            Kind::Keyword("custom") => return self.leave_out("the custom value type"),
            Kind::Keyword("valuetype") => self.value_type()?,
            // Words of the component model and of IDL 4: they are names in older contracts, so only their
            // place makes them keywords.
            Kind::Word(ref word) => match word.as_str() {
                "eventtype" => return self.leave_out("the event type"),
                "component" => return self.leave_out("the component"),
                "home" => return self.leave_out("the home"),
                "porttype" | "connector" => return self.leave_out("the connector"),
                "streamtype" | "sinktype" | "siptype" => return self.leave_out("the stream type"),
                "bitset" => return self.leave_out("the bit set"),
                "bitmask" => return self.leave_out("the bit mask"),
                // Where it may not stand: what it names is in files that are included.
                "import" => return Err(Skip),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        }))
    }

    /// Passes over something that is not supported, and keeps its name: what needs it is left out. The name
    /// is kept as a directive, and `Skip` makes the list pass over the body, up to the `;` behind it.
    fn leave_out<T>(&mut self, what: &'static str) -> Parse<T> {
        self.advance();
        // `custom valuetype A` and `custom eventtype A` have two words before the name.
        if !self.accept_word("valuetype") && self.current.kind == Kind::Word("eventtype".to_owned()) {
            self.advance();
        }
        let ident = self.ident()?;
        self.directives.push(Item { kind: ItemKind::Unsupported(ident, what), doc: String::new() });
        Err(Skip)
    }

    fn text_literal(&mut self) -> Parse<String> {
        match self.current.kind.clone() {
            Kind::Text { wide: false, value } => {
                self.advance();
                Ok(value)
            }
            _ => {
                let problem = self.unexpected("a string is missing").expected(["a string"]);
                self.fail(problem)
            }
        }
    }

    /// The span covers all parts.
    fn scoped_name(&mut self) -> Parse<ScopedName> {
        let start = self.current.span;
        let absolute = self.accept("::");
        let mut parts = vec![self.ident()?];
        while self.current.kind == Kind::Punct("::") {
            self.advance();
            parts.push(self.ident()?);
            if parts.len() > limits::NESTING {
                return self.fail(Problem::new(start, "this name has too many parts"));
            }
        }
        Ok(ScopedName { absolute, parts, span: start.to(self.last) })
    }

    /// Steps over an annotation (IDL 4.2, 8): `@key`, `@A::B(x = 1)`, and the declaration of one, `@annotation a { ... };`.
    /// Of what they say two words are understood; the rest is for other wires.
    fn annotation(&mut self) {
        let at = self.current.span;
        let mut next = || self.tokens.next();
        let mut token = next();
        // A name from the outermost scope on.
        if token.kind == Kind::Punct("::") {
            token = next();
        }
        self.annotations.note(&token, at);
        // Here `token` is what stands behind the `@`; the next one tells whether parameters follow.
        let declares = token.kind == Kind::Word("annotation".to_owned());
        token = next();
        while token.kind == Kind::Punct("::") {
            next();
            token = next();
        }
        let (closing, opening) = match token.kind {
            Kind::Punct("(") if !declares => (")", "("),
            Kind::Word(_) if declares => ("}", "{"),
            _ => {
                self.current = token;
                return;
            }
        };
        // The parenthesis of `@name(` was taken already; the brace of a declaration was not.
        let mut level = usize::from(!declares);
        loop {
            token = next();
            match token.kind {
                Kind::End => break,
                Kind::Punct(punct) if punct == opening => level += 1,
                Kind::Punct(punct) if punct == closing => {
                    level = level.saturating_sub(1);
                    if level == 0 {
                        break;
                    }
                }
                _ => {}
            }
        }
        if token.kind != Kind::End {
            token = next();
        }
        if declares && token.kind == Kind::Punct(";") {
            token = next();
        }
        self.current = token;
    }

    fn accept_word(&mut self, keyword: &str) -> bool {
        let found = matches!(self.current.kind, Kind::Keyword(word) if word == keyword);
        if found {
            self.advance();
        }
        found
    }
}
