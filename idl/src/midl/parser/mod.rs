//! Tokens to what the file says: recursive descent, which goes on after a mistake at the next `;` or `}`.
//!
//! State: one token of look-ahead (two after `put_back`), the place of the token before it, and two counters. MIDL has words instead
//! of keywords: a word means something by its place alone, so each method compares it.
//!
//! A method that fails has reported the mistake and returns `Skip`; the nearest list catches it and goes on
//! behind the next `;`. Everything in a file that describes no bytes (`cpp_quote`, functions of libraries,
//! attributes of tools) is stepped over without a word.
//!
//! `import` is the one place where the source changes under the parser: the token at hand is then the `;`
//! before the imported text, and nothing may be read ahead before the file is opened.
//!
//! Bounds: `nested` bounds the depth of the recursion, `count` the names and values of the whole contract.

mod attributes;
mod expressions;
mod interfaces;
mod pragmas;
mod quoted;
mod types;

use super::ast::{Attribute, Declarator, Ident, Item, ItemKind, TypeKind};
use crate::omg::lexer::{Directive, Kind, Mark, Token};
use crate::omg::limits;
use crate::omg::preprocess::Preprocessor;
use crate::report::{Problem, Report, Span};

/// The error of the parser: what could not be parsed was reported, and the caller goes on behind it.
pub(super) struct Skip;

pub(super) type Parse<T> = Result<T, Skip>;

pub(super) struct Parser<'a> {
    source: Preprocessor,
    report: &'a mut Report,
    current: Token,
    /// The token behind `current`, where `current` was taken and put back.
    ahead: Option<Token>,
    /// The place of the token before `current`; where it ends, a missing `;` belongs.
    last: Span,
    /// Pragmas of ours before `current` that nobody took yet.
    pragmas: Vec<(Mark, Vec<Token>)>,
    /// How many files are open around the one whose definitions are read.
    around: usize,
    /// How many `nested` calls are open; at most `NESTING`.
    depth: usize,
    /// What `count` counted; at most `NODES`.
    nodes: usize,
}

/// Parses all that a source yields. A stray `}` is reported, and reading goes on behind it.
pub(super) fn parse(source: Preprocessor, report: &mut Report) -> Vec<Item> {
    let (current, ahead, last, pragmas) = (Token::default(), None, Span::default(), Vec::new());
    let mut parser = Parser { source, report, current, ahead, last, pragmas, around: 0, depth: 0, nodes: 0 };
    parser.advance();
    let mut items = Vec::new();
    loop {
        items.append(&mut parser.items());
        if parser.is(&Kind::End) {
            return items;
        }
        parser.problem("there is no `{` for this `}`");
        parser.advance();
        parser.accept(";");
    }
}

impl Parser<'_> {
    /// Definitions up to the end of the contract or the closing brace, which is left; those in a file end with the file where it is in
    /// the body of an interface.
    fn items(&mut self) -> Vec<Item> {
        let mut items = self.take_exceptions();
        while !matches!(self.current.kind, Kind::End | Kind::Punct("}")) && self.source.depth() > self.around
        {
            if self.accept(";") {
                continue;
            }
            let doc = self.doc();
            match self.item(doc) {
                Ok(item) => items.extend(item),
                Err(Skip) => self.recover(),
            }
            items.append(&mut self.take_exceptions());
        }
        items
    }

    /// One definition, or what defines nothing. None for what is stepped over.
    fn item(&mut self, doc: String) -> Parse<Option<Item>> {
        let span = self.current.span;
        let mut attributes = self.attributes()?;
        let Some(word) = self.word() else {
            let problem = self.unexpected("a definition starts here").expected([
                "`interface`",
                "`coclass`",
                "`library`",
                "`typedef`",
                "`const`",
                "`[`",
            ]);
            return self.fail(problem);
        };
        let kind = match word {
            "import" => return self.import().map(|()| None),
            "importlib" => return self.import_library().map(|()| None),
            // Text for the C header, which may be a constant of a printed contract, and switches of the compiler.
            "cpp_quote" | "midl_pragma" => {
                self.advance();
                while !matches!(self.current.kind, Kind::Punct("(") | Kind::End) {
                    self.advance();
                }
                let mut quoted = None;
                self.parentheses(|kind| {
                    if let Kind::Text { value, .. } = kind {
                        quoted = quoted::constant(value, span);
                    }
                })?;
                self.accept(";");
                return Ok(quoted.map(|kind| Item { kind, attributes, doc, span }));
            }
            "library" => {
                self.advance();
                self.ident()?;
                let items = self.nested(|p| p.braced(|p| Ok(p.items())))?;
                self.accept(";");
                ItemKind::Library(items)
            }
            "module" => {
                // Functions of a DLL cannot be called from another machine; its constants are of use.
                self.advance();
                self.ident()?;
                let items = self.nested(|p| p.braced(Self::module))?;
                self.accept(";");
                ItemKind::Library(items)
            }
            "interface" | "dispinterface" => self.interface()?,
            "coclass" => self.class()?,
            "extern" => {
                // A variable of a library of this machine.
                self.recover();
                return Ok(None);
            }
            "typedef" | "const" | "struct" | "union" | "enum" => self.definition(&mut attributes)?,
            "namespace" => {
                let problem = self.unexpected("a definition starts here");
                return self.fail(problem.help("this is of the Windows Runtime, which is not read here"));
            }
            // Any other word may be the type of a function.
            _ => return self.function().map(|()| None),
        };
        Ok(Some(Item { kind, attributes, doc, span }))
    }

    /// A type or constant. The `;` behind it is taken as well.
    fn definition(&mut self, attributes: &mut Vec<Attribute>) -> Parse<ItemKind> {
        let kind = match self.word() {
            Some("typedef") => {
                self.advance();
                attributes.extend(self.attributes()?);
                let is_bitmap = self.word() == Some("bitmap");
                let (spec, declarators) = (self.type_spec()?, self.list(Self::defined)?);
                let announced = match &spec.kind {
                    TypeKind::Name(of) if is_bitmap => Some(of),
                    TypeKind::Enum(of) if of.members.is_none() => of.tag.as_ref(),
                    _ => None,
                };
                let is_plain = |only: &Declarator| only.pointers == 0 && only.dimensions.is_empty();
                // `typedef bitmap X X;` and the same with `enum` announce what another file defines.
                match (announced, declarators.as_slice()) {
                    (Some(of), [only]) if of.name == only.ident.name && is_plain(only) => {
                        ItemKind::Library(Vec::new())
                    }
                    _ => ItemKind::Typedef(spec, declarators),
                }
            }
            Some("const") => {
                self.advance();
                let (spec, declarator) = (self.type_spec()?, self.declarator(true)?);
                self.expect("=")?;
                ItemKind::Constant(spec, declarator, self.expression()?)
            }
            _ => ItemKind::Type(self.type_spec()?),
        };
        self.semicolon()?;
        Ok(kind)
    }

    /// A name that a typedef defines; it may be that of a function. A typedef of a function type names
    /// something that does not travel; the name must be known all the same.
    fn defined(&mut self) -> Parse<Declarator> {
        let mut declarator = self.declarator(true)?;
        if self.is(&Kind::Punct("(")) {
            self.skip_parentheses()?;
            declarator.stays = Some(types::FUNCTION);
        }
        Ok(declarator)
    }

    /// A function that stands beside the interfaces: it is of a library of this machine, and cannot be called from another one.
    fn function(&mut self) -> Parse<()> {
        let problem = self.unexpected("a definition starts here").expected([
            "`typedef`",
            "`const`",
            "`struct`",
            "`union`",
            "`enum`",
        ]);
        // Mistakes inside what is no function would only confuse: one message says what may stand here.
        let mark = self.report.mark();
        if self.type_spec().is_err() || self.declarator(true).is_err() || !self.is(&Kind::Punct("(")) {
            self.report.forget(mark);
            return self.fail(problem);
        }
        self.skip_parentheses()?;
        self.semicolon()
    }

    /// `import "a.idl", "b.idl";`: their definitions come before what follows, once each.
    fn import(&mut self) -> Parse<()> {
        self.advance();
        let mut files = Vec::new();
        loop {
            match self.current.kind.clone() {
                Kind::Text { value, .. } => files.push((value, self.current.span)),
                _ => {
                    let problem = self.unexpected("a file name is missing").expected(["\"file.idl\""]);
                    return self.fail(problem);
                }
            }
            self.advance();
            if !self.accept(",") {
                break;
            }
        }
        // The token at hand is the last one before the imported text, so nothing may be taken from behind it.
        if self.current.kind != Kind::Punct(";") {
            return self.expect(";");
        }
        // The file that is opened last is read first.
        for (file, span) in files.into_iter().rev() {
            self.source.import(&file, span, self.report);
        }
        self.advance();
        Ok(())
    }

    /// `importlib("x.tlb");` reads `x.idl`, from which the library was made, where that file is beside the
    /// contract. Names of other libraries are known here, or are reported where they are used.
    fn import_library(&mut self) -> Parse<()> {
        self.advance();
        self.expect("(")?;
        let (file, span) = match self.current.kind.clone() {
            Kind::Text { value, .. } => (Some(value), self.current.span),
            _ => (None, self.current.span),
        };
        if file.is_some() {
            self.advance();
        }
        while !matches!(self.current.kind, Kind::Punct(")") | Kind::End) {
            self.advance();
        }
        self.expect(")")?;
        if let Some(stem) = file.as_deref().and_then(|file| file.rsplit_once('.')).map(|(stem, _)| stem)
            && self.is(&Kind::Punct(";"))
        {
            // As for `import`: the `;` is the last token before the text.
            self.source.import_if_there(&format!("{stem}.idl"), span, self.report);
            self.advance();
            return Ok(());
        }
        self.accept(";");
        Ok(())
    }

    /// Constants, types and functions of a `module`; the functions are stepped over.
    fn module(&mut self) -> Parse<Vec<Item>> {
        let mut items = Vec::new();
        while !matches!(self.current.kind, Kind::End | Kind::Punct("}")) {
            if self.accept(";") {
                continue;
            }
            let (doc, span) = (self.doc(), self.current.span);
            let mut attributes = self.attributes()?;
            if matches!(self.word(), Some("typedef" | "const" | "struct" | "union" | "enum")) {
                match self.definition(&mut attributes) {
                    Ok(kind) => items.push(Item { kind, attributes, doc, span }),
                    Err(Skip) => self.recover(),
                }
            } else {
                self.recover();
            }
        }
        Ok(items)
    }

    /// The documentation before the token at hand.
    fn doc(&self) -> String {
        self.current.doc.as_deref().unwrap_or_default().to_owned()
    }

    /// The word at hand. None where it is something else.
    fn word(&self) -> Option<&str> {
        match &self.current.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    fn is(&self, kind: &Kind) -> bool {
        self.current.kind == *kind
    }

    /// True, and the word is taken, where it is this one.
    fn accept_word(&mut self, wanted: &str) -> bool {
        let found = self.word() == Some(wanted);
        if found {
            self.advance();
        }
        found
    }

    /// A name; MIDL escapes none.
    fn ident(&mut self) -> Parse<Ident> {
        let span = self.current.span;
        if let Kind::Word(name) = &self.current.kind {
            let name = name.clone();
            self.count()?;
            self.advance();
            return Ok(Ident { name, span });
        }
        let problem = self.unexpected("a name is missing").expected(["a name"]);
        self.fail(problem)
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
        } else if self.is(&Kind::End) {
            let problem = Problem::new(self.current.span, "the file ends too early");
            return self.fail(problem.expected(["`}`"]).note(opening, "this `{` is never closed"));
        } else if !self.is(&Kind::Punct("}")) {
            let problem = self.unexpected("this does not belong here").expected(["`}`"]);
            self.report.add(problem);
            self.skip(false);
        }
        self.accept("}");
        result
    }

    /// Steps over `( ... )`, whatever is in it.
    fn skip_parentheses(&mut self) -> Parse<()> {
        self.parentheses(|_| {})
    }

    /// Looks at each token of `( ... )`.
    fn parentheses(&mut self, mut look: impl FnMut(&Kind)) -> Parse<()> {
        let opening = self.current.span;
        self.expect("(")?;
        let mut level = 1usize;
        while level > 0 {
            match self.current.kind {
                Kind::End => {
                    let problem = Problem::new(self.current.span, "the file ends too early");
                    return self.fail(problem.expected(["`)`"]).note(opening, "this `(` is never closed"));
                }
                // Whatever is in the parentheses, brackets of the other kinds included.
                Kind::Punct("(") => level += 1,
                Kind::Punct(")") => level -= 1,
                _ => {}
            }
            look(&self.current.kind);
            self.advance();
        }
        Ok(())
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

    /// Bounds how many things there are. It is reported once. After that everything fails, and nothing more
    /// is stored.
    fn count(&mut self) -> Parse<()> {
        self.nodes += 1;
        if self.nodes == limits::NODES {
            self.report.add(Problem::new(self.current.span, "the contract is too large"));
        }
        if self.nodes >= limits::NODES { Err(Skip) } else { Ok(()) }
    }

    /// Makes the word that was taken last the token at hand again; `last` is what stands before it.
    fn put_back(&mut self, word: Ident, last: Span) {
        let again = Token { kind: Kind::Word(word.name), span: word.span, doc: None };
        self.ahead = Some(std::mem::replace(&mut self.current, again));
        self.last = last;
    }

    /// Directives of the preprocessor mean nothing in MIDL.
    fn advance(&mut self) {
        self.last = self.current.span;
        if let Some(token) = self.ahead.take() {
            self.current = token;
            return;
        }
        loop {
            self.current = self.source.next(self.report);
            match &mut self.current.kind {
                Kind::Directive(Directive::Mark(mark, tokens)) => {
                    let pragma = (*mark, std::mem::take(tokens));
                    self.pragmas.push(pragma);
                }
                Kind::Directive(_) => {}
                _ => return,
            }
        }
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
        if self.accept(punct) {
            return Ok(());
        }
        let problem = self.unexpected("this does not belong here").expected([format!("`{punct}`")]);
        self.fail(problem)
    }

    /// The `;` that ends a definition. One that is missing at the end of a line is reported and taken as written.
    fn semicolon(&mut self) -> Parse<()> {
        if self.accept(";") {
            return Ok(());
        }
        let same_line = self.last.file == self.current.span.file
            && self.report.line_of(self.last) == self.report.line_of(self.current.span)
            && !self.is(&Kind::End);
        // In one line the missing thing may be something else, so the definition is given up.
        if same_line {
            return self.expect(";");
        }
        let after = Span { start: self.last.end.saturating_sub(1), ..self.last };
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

    /// A problem with the current token. Where the token is of no kind that can be named, the message is
    /// `otherwise`.
    fn unexpected(&self, otherwise: &str) -> Problem {
        let message = match &self.current.kind {
            Kind::Word(word) => format!("`{word}` does not belong here"),
            Kind::Punct(word) => format!("`{word}` does not belong here"),
            Kind::Integer(_) | Kind::Float(_) => "a number does not belong here".to_owned(),
            Kind::Uuid(_) => "a UUID does not belong here".to_owned(),
            Kind::Text { .. } => "a string does not belong here".to_owned(),
            Kind::Char { .. } => "a character does not belong here".to_owned(),
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
