//! Tokens to what the file says: recursive descent, which goes on after a mistake at the next `;` or `}`.

mod expressions;
mod interfaces;
mod marks;
mod types;

use super::ast::{Ident, Item, ItemKind, ScopedName};
use super::lexer::{Directive, Kind, Token};
use super::limits;
use super::preprocess::Preprocessor;
use crate::report::{Problem, Report, Span};

/// What could not be parsed was reported; the caller goes on behind it.
pub(crate) struct Skip;

pub(crate) type Parse<T> = Result<T, Skip>;

pub(crate) struct Parser<'a> {
    source: Preprocessor,
    report: &'a mut Report,
    current: Token,
    /// The token before `current`.
    last: Span,
    /// Directives met inside a definition; they take effect behind it.
    directives: Vec<Item>,
    /// What is left of the pragma that is being read, where one is.
    line: Option<std::vec::IntoIter<Token>>,
    /// The annotations right before `current`, those that are understood.
    annotations: marks::Annotations,
    depth: usize,
    nodes: usize,
}

/// Where a list of definitions stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    File,
    Module,
    Interface,
}

/// Parses all that a source yields.
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
    parser.items(Place::File)
}

impl Parser<'_> {
    /// Definitions up to the end of the file or the closing brace, which is left.
    fn items(&mut self, place: Place) -> Vec<Item> {
        let mut items = Vec::new();
        loop {
            items.append(&mut self.directives);
            match &self.current.kind {
                Kind::End => return items,
                Kind::Punct("}") if place != Place::File => return items,
                Kind::Punct("}") => {
                    self.problem("there is no `{` for this `}`");
                    self.advance();
                    self.accept(";");
                }
                Kind::Punct(";") => {
                    self.problem("nothing stands before this `;`");
                    self.advance();
                }
                _ => {
                    let doc = self.current.doc.clone().map(|doc| doc.to_string()).unwrap_or_default();
                    let item = match place {
                        Place::Interface => self.export(),
                        Place::File | Place::Module => self.definition(),
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

    /// What may stand in a file or a module.
    fn definition(&mut self) -> Parse<ItemKind> {
        match self.current.kind {
            Kind::Keyword("module") => {
                self.advance();
                let ident = self.ident()?;
                let items = self.nested(|p| p.braced(|p| Ok(p.items(Place::Module))))?;
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

    /// What may stand in a file, a module or an interface.
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
            Kind::Keyword(word @ ("native" | "valuetype" | "custom")) => {
                let what = if word == "native" { "the native type" } else { "the value type" };
                return self.leave_out(what);
            }
            Kind::Word(ref word) => match word.as_str() {
                "eventtype" => return self.leave_out("the event type"),
                "component" => return self.leave_out("the component"),
                "home" => return self.leave_out("the home"),
                "porttype" | "connector" => return self.leave_out("the connector"),
                "streamtype" | "sinktype" | "siptype" => return self.leave_out("the stream type"),
                "bitset" => return self.leave_out("the bit set"),
                "bitmask" => return self.leave_out("the bit mask"),
                // What it names is in files that are included.
                "import" => return Err(Skip),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        }))
    }

    /// Passes over something that is not supported, and keeps its name: what needs it is left out.
    fn leave_out<T>(&mut self, what: &'static str) -> Parse<T> {
        self.advance();
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
        if result.is_err() {
            self.skip(false);
        } else if self.current.kind == Kind::End {
            let problem = Problem::new(self.current.span, "the file ends too early");
            return self.fail(problem.expected(["`}`"]).note(opening, "this `{` is never closed"));
        } else if self.current.kind != Kind::Punct("}") {
            let problem = self.unexpected("this does not belong here").expected(["`}`"]);
            self.report.add(problem);
            self.skip(false);
        }
        self.accept("}");
        result
    }

    /// Bounds how deep things are nested.
    fn nested<T>(&mut self, inside: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= limits::NESTING {
            return self.fail(Problem::new(self.current.span, "this is nested too deeply"));
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    /// Bounds how many things there are.
    fn count(&mut self) -> Parse<()> {
        self.nodes += 1;
        if self.nodes == limits::NODES {
            self.report.add(Problem::new(self.current.span, "the contract is too large"));
        }
        if self.nodes >= limits::NODES { Err(Skip) } else { Ok(()) }
    }

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

    fn accept(&mut self, punct: &str) -> bool {
        let found = matches!(self.current.kind, Kind::Punct(found) if found == punct);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, punct: &str) -> Parse<()> {
        // `>>` closes two sequences.
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
        let after = Span { start: self.last.end.saturating_sub(1), ..self.last };
        let same_line = self.last.file == self.current.span.file
            && self.report.line_of(self.last) == self.report.line_of(self.current.span)
            && self.current.kind != Kind::End;
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

    /// A problem with the current token.
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

    fn fail<T>(&mut self, problem: Problem) -> Parse<T> {
        if self.current.kind != Kind::Unknown {
            self.report.add(problem);
        }
        Err(Skip)
    }
}
