//! Tokens to what the file says: recursive descent, which goes on after a mistake at the next `;` or `}`.
//!
//! State: that of `Descent`, which says how mistakes are passed over and what is bounded, and a second token of look-ahead after
//! `put_back`. MIDL has words instead of keywords: a word means something by its place alone, so each method compares it.
//!
//! Everything in a file that describes no bytes (`cpp_quote`, functions of libraries,
//! attributes of tools) is stepped over without a word.
//!
//! `import` is the one place where the source changes under the parser: the token at hand is then the `;`
//! before the imported text, and nothing may be read ahead before the file is opened.

mod attributes;
mod expressions;
mod interfaces;
mod pragmas;
mod quoted;
mod types;

use super::ast::{Attribute, Declarator, Ident, Item, ItemKind, TypeKind};
use crate::omg::descent::{Descent, Parse, Skip, Tokens};
use crate::omg::lexer::{Directive, Kind, Mark, Token};
use crate::omg::preprocess::Preprocessor;
use crate::report::{Problem, Report, Span};
use std::ops::{Deref, DerefMut};

pub(super) struct Parser<'a> {
    tokens: Tokens<'a>,
    /// The token behind `current`, where `current` was taken and put back.
    ahead: Option<Token>,
    /// Pragmas of ours before `current` that nobody took yet.
    pragmas: Vec<(Mark, Vec<Token>)>,
    /// How many files are open around the one whose definitions are read.
    around: usize,
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

/// Parses all that a source yields. A stray `}` is reported, and reading goes on behind it.
pub(super) fn parse(source: Preprocessor, report: &mut Report) -> Vec<Item> {
    let tokens = Tokens::new(source, report);
    let mut parser = Parser { tokens, ahead: None, pragmas: Vec::new(), around: 0 };
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

impl<'a> Descent<'a> for Parser<'a> {
    /// Directives of the preprocessor mean nothing in MIDL.
    fn advance(&mut self) {
        self.last = self.current.span;
        if let Some(token) = self.ahead.take() {
            self.current = token;
            return;
        }
        let mut doc = None;
        loop {
            self.current = self.tokens.next();
            match &mut self.current.kind {
                Kind::Directive(Directive::Mark(mark, tokens)) => {
                    let pragma = (*mark, std::mem::take(tokens));
                    if *mark == Mark::Raises {
                        // It may stand between a method and its documentation.
                        doc = self.current.doc.take().or(doc);
                    }
                    self.pragmas.push(pragma);
                }
                Kind::Directive(_) => {}
                _ => break,
            }
        }
        if self.current.doc.is_none() {
            self.current.doc = doc;
        }
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
                if self.is(&Kind::Punct("(")) {
                    // A function that returns what is not to be changed; as `function` steps over others.
                    self.skip_parentheses()?;
                    self.semicolon()?;
                    return Ok(ItemKind::Library(Vec::new()));
                }
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
            self.tokens.source.import(&file, span, self.tokens.report);
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
            self.tokens.source.import_if_there(&format!("{stem}.idl"), span, self.tokens.report);
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

    /// The word at hand. None where it is something else.
    fn word(&self) -> Option<&str> {
        match &self.current.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    /// True, and the word is taken, where it is this one.
    fn accept_word(&mut self, wanted: &str) -> bool {
        let found = self.word() == Some(wanted);
        if found {
            self.advance();
        }
        found
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

    /// Makes the word that was taken last the token at hand again; `last` is what stands before it.
    fn put_back(&mut self, word: Ident, last: Span) {
        let again = Token { kind: Kind::Word(word.name), span: word.span, doc: None };
        self.ahead = Some(std::mem::replace(&mut self.current, again));
        self.last = last;
    }
}
