//! Tokens to what the file says: recursive descent, which goes on after a mistake at the next `;` or `}`.
//!
//! State: one token of look-ahead (`current`), the place of the token before it, the directives that were met
//! inside a definition, and two counters. Nothing is looked up here: whether a name is a type or a constant
//! is the builder's matter.
//!
//! A method that fails has reported the mistake and returns `Skip`. The nearest list (`items`, members, arms)
//! catches it and calls `recover`, so one mistake costs one definition and the rest is still checked. About a
//! token of kind `Unknown` nothing is reported, since the lexer did.
//!
//! Invariants: every turn of every list takes at least one token, so the parser ends; `current` is never a
//! directive or an annotation, which `advance` takes out. Directives take effect behind the definition they
//! stand in, as items of their own, because the tree has no place for them inside.
//!
//! Bounds: `nested` bounds the depth of the recursion, `count` the names, types and values of the whole
//! contract. (CORBA 3.0, chapter 3; what IDL 4.2 added is read or passed over.)

mod expressions;
mod interfaces;
mod marks;
mod types;
mod values;
pub(super) use values::ABSTRACT_VALUE;

use super::ast::{Ident, Item, ItemKind, ScopedName};
use super::lexer::{Directive, Kind, Token};
use super::limits;
use super::preprocess::Preprocessor;
use crate::report::{Problem, Report, Span};

/// The error of the parser: what could not be parsed was reported, and the caller goes on behind it.
pub(crate) struct Skip;

pub(crate) type Parse<T> = Result<T, Skip>;

pub(crate) struct Parser<'a> {
    source: Preprocessor,
    report: &'a mut Report,
    current: Token,
    /// The place of the token before `current`; where it ends, a missing `;` belongs.
    last: Span,
    /// Directives met inside a definition; they take effect behind it.
    directives: Vec<Item>,
    /// What is left of the pragma that is being read, where one is.
    line: Option<std::vec::IntoIter<Token>>,
    /// The annotations right before `current`, those that are understood.
    annotations: marks::Annotations,
    /// How many `nested` calls are open; at most `NESTING`.
    depth: usize,
    /// What `count` counted; at most `NODES`.
    nodes: usize,
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
    let mut parser = Parser {
        source,
        report,
        current: Token::default(),
        last: Span::default(),
        directives: Vec::new(),
        line: None,
        annotations: marks::Annotations::default(),
        depth: 0,
        nodes: 0,
    };
    parser.advance();
    parser.items(DefinitionScope::File)
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
                    let doc = self.current.doc.clone().map(|doc| doc.to_string()).unwrap_or_default();
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
            && self.source.import_if_there(&format!("{}.idl", first.name), module.span, self.report)
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

    /// A name that is being defined, or one part of a scoped name.
    fn ident(&mut self) -> Parse<Ident> {
        let span = self.current.span;
        match &self.current.kind {
            Kind::Word(name) | Kind::Escaped(name) => {
                let name = name.clone();
                self.count()?;
                self.advance();
                Ok(Ident { name, span })
            }
            Kind::Keyword(word) => {
                let help = format!("`{word}` is a keyword; write `_{word}` to use it as a name");
                let problem = self.unexpected("a name is missing").expected(["a name"]).help(help);
                self.fail(problem)
            }
            _ => {
                let problem = self.unexpected("a name is missing").expected(["a name"]);
                self.fail(problem)
            }
        }
    }

    /// One or more, with commas between.
    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        let mut all = vec![one(self)?];
        while self.accept(",") {
            all.push(one(self)?);
        }
        Ok(all)
    }

    /// `{ ... }`; after a mistake inside, goes on behind the closing brace.
    fn braced<T>(&mut self, inside: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        let opening = self.current.span;
        self.expect("{")?;
        let result = inside(self);
        // The mistake may be deep inside; what belongs to this brace ends at its `}`.
        if result.is_err() {
            self.skip(false);
        } else if self.current.kind == Kind::End {
            let problem = Problem::new(self.current.span, "the file ends too early");
            return self.fail(problem.expected(["`}`"]).note(opening, "this `{` is never closed"));
        } else if self.current.kind != Kind::Punct("}") {
            let problem = self.unexpected("this does not belong here").expected(["`}`"]);
            // Reported here and not failed: what was read inside is good.
            self.report.add(problem);
            self.skip(false);
        }
        self.accept("}");
        result
    }

    /// Bounds how deep things are nested. Every way by which the parser calls itself goes through here.
    fn nested<T>(&mut self, inside: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= limits::NESTING {
            return self.fail(Problem::new(self.current.span, "this is nested too deeply"));
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    /// Bounds how many things there are. It is reported once. After that everything fails, and the parser
    /// runs to the end of the file without storing more.
    fn count(&mut self) -> Parse<()> {
        self.nodes += 1;
        if self.nodes == limits::NODES {
            self.report.add(Problem::new(self.current.span, "the contract is too large"));
        }
        if self.nodes >= limits::NODES { Err(Skip) } else { Ok(()) }
    }

    /// Goes to the next token that the grammar knows. Annotations are passed over, directives are put aside.
    fn advance(&mut self) {
        self.last = self.current.span;
        self.annotations = marks::Annotations::default();
        if let Some(line) = &mut self.line {
            self.current = line.next().unwrap_or_default();
            return;
        }
        self.current = self.source.next(self.report);
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
                    self.current = self.source.next(self.report);
                    continue;
                }
                Directive::EnterFile => ItemKind::EnterFile,
                Directive::LeaveFile => ItemKind::LeaveFile,
            };
            self.directives.push(Item { kind, doc: String::new() });
            self.current = self.source.next(self.report);
        }
    }

    /// Steps over an annotation (IDL 4.2, 8): `@key`, `@A::B(x = 1)`, and the declaration of one, `@annotation a { ... };`.
    /// Of what they say two words are understood; the rest is for other wires.
    fn annotation(&mut self) {
        let at = self.current.span;
        let mut next = || self.source.next(self.report);
        let mut token = next();
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

    /// True, and the token is taken, where it is this one.
    fn accept(&mut self, punct: &str) -> bool {
        let found = matches!(self.current.kind, Kind::Punct(found) if found == punct);
        if found {
            self.advance();
        }
        found
    }

    /// Takes this token, or fails.
    fn expect(&mut self, punct: &str) -> Parse<()> {
        // `>>` closes two sequences. Half of the token is used up; the other half stays as the current one.
        if punct == ">" && self.current.kind == Kind::Punct(">>") {
            self.current.kind = Kind::Punct(">");
            self.current.span.start += 1;
            return Ok(());
        }
        if self.accept(punct) {
            return Ok(());
        }
        let problem = self.unexpected("this does not belong here").expected([format!("`{punct}`")]);
        self.fail(problem)
    }

    fn accept_word(&mut self, keyword: &str) -> bool {
        let found = matches!(self.current.kind, Kind::Keyword(word) if word == keyword);
        if found {
            self.advance();
        }
        found
    }

    /// The `;` that ends a definition. One that is missing at the end of a line is reported and taken as written.
    fn semicolon(&mut self) -> Parse<()> {
        if self.accept(";") {
            return Ok(());
        }
        // The mark stands on the last character before, where the `;` should be.
        let after = Span { start: self.last.end.saturating_sub(1), ..self.last };
        let same_line = self.last.file == self.current.span.file
            && self.report.line_of(self.last) == self.report.line_of(self.current.span)
            && self.current.kind != Kind::End;
        // In one line the missing thing may be something else, so the definition is given up.
        if same_line {
            return self.expect(";");
        }
        self.report.add(Problem::new(after, "the `;` after this is missing").expected(["`;`"]));
        Ok(())
    }

    /// Goes on behind the next `;`, or at a `}`.
    fn recover(&mut self) {
        self.skip(true);
        self.accept(";");
    }

    /// Steps over tokens up to the `}` of this level, or its next `;`.
    fn skip(&mut self, stop_at_semicolon: bool) {
        let mut level = 0usize;
        loop {
            match self.current.kind {
                Kind::End => return,
                Kind::Punct("{") => level += 1,
                Kind::Punct("}") if level == 0 => return,
                Kind::Punct("}") => level -= 1,
                // A `;` inside braces belongs to something inside.
                Kind::Punct(";") if level == 0 && stop_at_semicolon => return,
                _ => {}
            }
            self.advance();
        }
    }

    fn problem(&mut self, message: &str) {
        let problem = Problem::new(self.current.span, message);
        self.report.add(problem);
    }

    /// A problem with the current token. Where the token is of no kind that can be named, the message is
    /// `otherwise`.
    fn unexpected(&self, otherwise: &str) -> Problem {
        let message = match &self.current.kind {
            Kind::Word(word) | Kind::Escaped(word) => format!("`{word}` does not belong here"),
            Kind::Keyword(word) | Kind::Punct(word) => format!("`{word}` does not belong here"),
            Kind::Integer(_) | Kind::Float(_) => "a number does not belong here".to_owned(),
            Kind::Text { .. } => "a string does not belong here".to_owned(),
            Kind::Char { .. } => "a character does not belong here".to_owned(),
            Kind::End if self.line.is_some() => "the line ends too early".to_owned(),
            Kind::End => "the file ends too early".to_owned(),
            _ => otherwise.to_owned(),
        };
        Problem::new(self.current.span, message)
    }

    /// Reports and gives up; nothing is reported about a token that the lexer refused.
    fn fail<T>(&mut self, problem: Problem) -> Parse<T> {
        if self.current.kind != Kind::Unknown {
            self.report.add(problem);
        }
        Err(Skip)
    }
}
