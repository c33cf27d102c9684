//! The preprocessor: included files, conditions, macros, pragmas.
//!
//! Included files are read once each, however often they are named. Text read by `parse` of this module
//! includes nothing: a contract that came over a wire must not make us open files.
//!
//! State: a stack of files, of which the last is being read; the macros; and tokens that macros made and that
//! come before anything from the files. A file's conditions live in its frame, so that an `#if` cannot end in
//! another file. MIDL adds what every compiler of it knows without files (`BuiltinFiles`), and files in the
//! background, in which mistakes do not count.
//!
//! Invariants: each canonical path becomes part of the contract at most once, so files that include one
//! another end. `bytes` counts all files against one limit, before a file's text is kept. The parser sees
//! `EnterFile` and `LeaveFile` around each included file, since prefixes of repository ids end there.
//!
//! Bounds: bytes and number of files, their depth, tokens that macros make, length of one macro and of one
//! text it makes.

use super::conditions::{Conditions, Function, Macros};
use super::lexer::{self, Directive, Kind, Lexer, Token};
use super::limits;
use super::macros;
use super::pragmas::pragma;
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::preprocessing::Preprocessing;
use crate::report::{Problem, Report, Span};
use std::collections::{HashMap, HashSet, VecDeque};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The text that is read for `orb.idl`: the names of the module CORBA that are plain types and interfaces.
/// What needs any other name of that module is left out, because the name is not supported.
const ORB: &str = r#"
#pragma prefix "omg.org"
module CORBA {
    typedef string Identifier;
    typedef string RepositoryId;
    typedef string ScopedName;
    typedef unsigned long PolicyType;
    interface InterfaceDef;
    interface Policy;
};
"#;

/// Whether a file that is not there is one of those that come with an ORB: TAO's contracts include `tao/orb.idl`, `tao/LongSeq.pidl` and
/// their like, for names of the module CORBA and of others that are the ORB's own.
fn is_of_an_orb(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    name == "orb.idl" || (name.ends_with(".pidl") && file.starts_with("tao/"))
}

/// Makes one stream of tokens from a file and what it includes.
pub(crate) struct Preprocessor {
    /// Files that are open, the one that is read last.
    pub(super) frames: Vec<Frame>,
    /// What each macro stands for; nothing for those with parameters. A macro with parameters has an entry
    /// here too, so that `defined` finds it.
    pub(super) macros: HashMap<String, Vec<Token>>,
    /// Macros with parameters. A name is in here only while it is in `macros` as well.
    pub(super) functions: HashMap<String, Function>,
    /// Tokens made by macros, next first.
    pub(super) expanded: VecDeque<Token>,
    /// Tokens that macros made so far, in all files; bounded by `EXPANSION`.
    pub(super) expansions: usize,
    /// Where included files are looked for; nothing if no file may be opened.
    directories: Option<Vec<PathBuf>>,
    /// Canonical paths, and the names of built-in files.
    included: HashSet<PathBuf>,
    /// Bytes of all files that were read; at most `BYTES`.
    bytes: usize,
    /// For MIDL: which files come with every compiler of it, and what of them is known here.
    known: Option<BuiltinFiles>,
}

/// What MIDL knows without files.
#[derive(Clone, Copy)]
pub(crate) struct BuiltinFiles {
    /// Whether a file of this name, with this text if there is one, is one of those that come with every compiler.
    pub(crate) is_file: fn(&str, Option<&str>) -> bool,
    /// The text that is read for all of them, also where the file itself is there.
    pub(crate) text: &'static str,
    /// Whether a name is that of a type which is known without a definition. It is no macro, whatever a file says: some define
    /// `REFIID` as a macro, and others as a type.
    pub(crate) is_type: fn(&str) -> bool,
}

/// The name of [`BuiltinFiles::text`] among the files.
const KNOWN: &str = "known.midl";

/// A file that is being read.
pub(super) struct Frame {
    pub(super) lexer: Lexer,
    /// The `#if`s that are open in this file.
    conditions: Conditions,
    /// Where files that it includes are looked for first.
    directory: PathBuf,
    /// It is read for what others need of it.
    background: bool,
}

/// A macro that is being expanded, and those around it whose bodies it came from.
struct Within<'a> {
    name: &'a str,
    /// How many there are; at most `MACRO_DEPTH`.
    depth: usize,
    around: Option<&'a Within<'a>>,
}

impl Within<'_> {
    fn has(&self, name: &str) -> bool {
        let mut at = Some(self);
        while let Some(within) = at {
            if within.name == name {
                return true;
            }
            at = within.around;
        }
        false
    }
}

impl Preprocessor {
    /// For text that includes nothing.
    pub(crate) fn of_text(name: &str, text: &str, report: &mut Report) -> Self {
        let mut new = Self::empty(None);
        if text.len() > limits::BYTES {
            let file = report.add_file(name, Arc::from(""));
            let message = format!("the contract is larger than {} MiB", limits::BYTES >> 20);
            report.add(Problem::new(Span { file, ..Span::default() }, message));
        } else {
            new.push(name, text, PathBuf::new(), report);
        }
        new
    }

    /// For a file, and what it includes from beside it and from the directories given, with the macros given.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn of_file(
        path: &Path,
        given: &Preprocessing,
        report: &mut Report,
    ) -> Result<Self, Diagnostics> {
        let wrong = |error: std::io::Error| {
            Diagnostic::of_file(&path.to_string_lossy(), format!("cannot be read: {error}"))
        };
        let mut new = Self::empty(Some(given.directories.clone()));
        let text = new.load(path).map_err(wrong)?;
        new.included.insert(path.canonicalize().map_err(wrong)?);
        let directory = path.parent().unwrap_or_else(|| Path::new("")).to_owned();
        new.push(&path.to_string_lossy(), &text, directory, report);
        // Each is read as a line of a file of its own, so that a mistake in it has a place.
        for (name, value) in &given.macros {
            let text: Arc<str> = Arc::from(format!("{name} {value}"));
            let file = report.add_file(&format!("-D {name}"), Arc::clone(&text));
            new.define(&mut Lexer::new(file, text), report);
        }
        Ok(new)
    }

    fn empty(directories: Option<Vec<PathBuf>>) -> Self {
        Self {
            frames: Vec::new(),
            macros: HashMap::new(),
            functions: HashMap::new(),
            expanded: VecDeque::new(),
            expansions: 0,
            directories,
            included: HashSet::new(),
            bytes: 0,
            known: None,
        }
    }

    /// Reads MIDL. It is called before the first token is read.
    pub(crate) fn midl(mut self, known: BuiltinFiles) -> Self {
        self.known = Some(known);
        // As its compiler does, so that headers of C show what is for it.
        let one = Token { kind: Kind::Integer(1), ..Token::default() };
        self.macros.insert("__midl".to_owned(), vec![one]);
        for frame in &mut self.frames {
            frame.lexer.midl = true;
        }
        self
    }

    /// The next token; at the end, [`Kind::End`] for ever.
    pub(crate) fn next(&mut self, report: &mut Report) -> Token {
        loop {
            // What a macro made may be the name of a macro with parameters whose parenthesis comes from the
            // file.
            if let Some(token) = self.expanded.pop_front() {
                let token = self.spelt(token, report);
                if self.invoke(&token, report) {
                    continue;
                }
                return token;
            }
            let depth = self.frames.len();
            let Some(frame) = self.frames.last_mut() else { return Token::default() };
            let token = frame.lexer.next(report);
            let token = self.spelt(token, report);
            match &token.kind {
                Kind::Hash => {
                    if let Some(directive) = self.directive(&token, report) {
                        return Token { kind: Kind::Directive(directive), ..token };
                    }
                }
                Kind::End => {
                    // The last file stays, so that its end is found again by each further call.
                    if let Some(frame) = self.frames.last_mut() {
                        frame.conditions.finish(report);
                    }
                    if depth == 1 {
                        return token;
                    }
                    self.frames.pop();
                    return Token { kind: Kind::Directive(Directive::LeaveFile), ..token };
                }
                Kind::Word(word) if self.macros.get(word).is_some_and(|body| !body.is_empty()) => {
                    self.expand(&token, report);
                }
                _ if self.invoke(&token, report) => {}
                _ => return token,
            }
        }
    }

    /// A word that resembles a keyword: a name where a macro has it, and else a mistake.
    fn spelt(&self, token: Token, report: &mut Report) -> Token {
        let Kind::Misspelt(word, keyword) = token.kind else { return token };
        let is_macro = self.macros.get(&word).is_some_and(|body| !body.is_empty());
        if is_macro || self.functions.contains_key(&word) {
            return Token { kind: Kind::Word(word), ..token };
        }
        report.add(lexer::misspelt(&word, keyword, token.span));
        Token { kind: Kind::Keyword(keyword), ..token }
    }

    /// Appends what a token stands for. Tokens of a macro's body have the span of its use, so that a mistake in them is shown where the
    /// macro is used. The name of a macro stays as it is within that macro (C++98, 16.3.4).
    pub(super) fn expand(&mut self, token: &Token, report: &mut Report) {
        self.expand_within(token, None, report);
    }

    fn expand_within(&mut self, token: &Token, within: Option<&Within<'_>>, report: &mut Report) {
        let body = match &token.kind {
            Kind::Word(word) | Kind::Misspelt(word, _)
                if self.expansions <= limits::EXPANSION && !within.is_some_and(|within| within.has(word)) =>
            {
                self.macros.get(word).filter(|body| !body.is_empty()).map(|body| (word, body.clone()))
            }
            _ => None,
        };
        let Some((name, body)) = body else {
            self.expanded.push_back(token.clone());
            return;
        };
        let within = Within { name, depth: within.map_or(1, |around| around.depth + 1), around: within };
        if within.depth > limits::MACRO_DEPTH {
            // What is left of the text says nothing, so no more of it is made.
            self.expansions = limits::EXPANSION + 1;
            let message = format!("macros are nested deeper than {}", limits::MACRO_DEPTH);
            report.add(Problem::new(token.span, message));
            return;
        }
        // Documentation belongs to the first thing that a macro makes; each definition copies what stands before it.
        let mut doc = token.doc.clone();
        for part in body {
            if self.expansions > limits::EXPANSION {
                return;
            }
            self.expansions += 1;
            if self.expansions > limits::EXPANSION {
                report.add(Problem::new(token.span, "macros expand to too much text"));
                return;
            }
            self.expand_within(&Token { span: token.span, doc: doc.take(), ..part }, Some(&within), report);
        }
    }

    /// Takes the line after a `#`. What the parser must know comes back; None for what is done here.
    fn directive(&mut self, hash: &Token, report: &mut Report) -> Option<Directive> {
        let midl = self.known.is_some();
        let frame = self.frames.last_mut()?;
        let mut line = frame.lexer.split_line();
        let name = line.next(report);
        let word = match &name.kind {
            Kind::Word(word) => word.as_str(),
            // `#` alone, and the line marks that a preprocessor leaves. `# 12 "file.idl"` is such a mark.
            Kind::End | Kind::Integer(_) => return None,
            _ => "",
        };
        match word {
            "ifdef" | "ifndef" | "if" | "elif" | "else" | "endif" => {
                // Skipped text is passed over at once, so nothing but a condition is looked at in it.
                let macros = Macros { bodies: &self.macros, functions: &self.functions };
                frame.conditions.directive(word, name.span, &mut line, macros, report);
                if frame.conditions.skipping() {
                    frame.conditions.skip(&mut frame.lexer, macros, report);
                }
            }
            "define" => self.define(&mut line, report),
            "undef" => {
                if let Kind::Word(word) = line.next(report).kind {
                    self.macros.remove(&word);
                    self.functions.remove(&word);
                }
            }
            "include" => return self.include(&mut line, report),
            "pragma" => return pragma(&mut line, hash.doc.clone(), midl, report),
            "error" => report.add(Problem::new(name.span, format!("#error {}", line.remainder()))),
            "line" | "warning" | "ident" => {}
            _ => report.add(Problem::new(hash.span.to(name.span), "unknown directive").expected([
                "`#include`",
                "`#define`",
                "`#ifdef`",
                "`#ifndef`",
                "`#if`",
                "`#pragma`",
            ])),
        }
        None
    }

    /// A second definition replaces the first in silence.
    fn define(&mut self, line: &mut Lexer, report: &mut Report) {
        let name = line.next(report);
        let Kind::Word(word) = name.kind else {
            report.add(Problem::new(name.span, "a macro needs a name").expected(["a name"]));
            return;
        };
        if self.known.is_some_and(|known| (known.is_type)(&word)) {
            return;
        }
        // Only a parenthesis without a space before it starts parameters (C++98, 16.3).
        let parameters = if line.rest().starts_with('(') {
            // Macros that make text of a parameter are for C, whose headers MIDL files include.
            if self.known.is_some() && line.rest().replace("##", "").contains('#') {
                return;
            }
            match macros::parameters(line, report) {
                Some(parameters) => Some(parameters),
                None => return,
            }
        } else {
            None
        };
        // The body is text of the contract, where keywords are keywords.
        (line.plain, line.macros) = (false, true);
        line.body = parameters.is_some();
        let mut body = Vec::new();
        loop {
            match line.next(report) {
                token if token.kind == Kind::End => break,
                token if body.len() >= limits::MACRO_BODY => {
                    report.add(Problem::new(token.span, "this macro is too long"));
                    return;
                }
                token => body.push(token),
            }
        }
        self.functions.remove(&word);
        if let Some(parameters) = parameters {
            self.functions.insert(word.clone(), Function { parameters, body });
            body = Vec::new();
        }
        self.macros.insert(word, body);
    }

    /// Quotes look beside the file that is read first, angles only in the directories.
    fn include(&mut self, line: &mut Lexer, report: &mut Report) -> Option<Directive> {
        let start = line.at + line.rest().len() - line.rest().trim_start().len();
        let mut wanted = line.remainder().to_owned();
        line.at = start + wanted.len();
        let span = line.span_from(start);
        // A macro may say which file (C++98, 16.2).
        if let Some([Token { kind: Kind::Text { value, .. }, .. }]) =
            self.macros.get(&wanted).map(Vec::as_slice)
        {
            wanted = format!("\"{value}\"");
        }
        let closing = match wanted.chars().next() {
            Some('"') => '"',
            Some('<') => '>',
            _ => {
                report.add(
                    Problem::new(span, "a file name is missing").expected(["\"file.idl\"", "<file.idl>"]),
                );
                return None;
            }
        };
        let Some((file, _)) = wanted.get(1..).and_then(|rest| rest.split_once(closing)) else {
            let expected = [format!("`{closing}`")];
            report.add(Problem::new(span, "the file name does not end").expected(expected));
            return None;
        };
        let directory = self.frames.last().map(|frame| frame.directory.clone()).filter(|_| closing == '"');
        self.open(file, directory, span, report)
    }

    /// Reads a file that an `import` names, and tells whether its text comes next. It looks beside the importing file first, as
    /// an include in quotes does.
    pub(crate) fn import(&mut self, file: &str, span: Span, report: &mut Report) -> bool {
        let directory = self.frames.last().map(|frame| frame.directory.clone());
        self.open(file, directory, span, report).is_some()
    }

    /// How many files are open, the one that is read counted.
    pub(crate) fn depth(&self) -> usize {
        self.frames.len()
    }

    /// Reads a file that may be there or not; whether its text comes next.
    pub(crate) fn import_if_there(&mut self, file: &str, span: Span, report: &mut Report) -> bool {
        self.beside(file).is_some() && self.import(file, span, report)
    }

    /// The file of this name that is beside the one at hand.
    fn beside(&self, file: &str) -> Option<PathBuf> {
        let directories = self.directories.as_ref()?;
        let here = self.frames.last().map(|frame| frame.directory.clone());
        here.into_iter().chain(directories.iter().cloned()).find_map(|place| self.file_in(&place, file))
    }

    /// The file of this name in a folder. MIDL is written where case does not matter in names of files.
    fn file_in(&self, folder: &Path, file: &str) -> Option<PathBuf> {
        let exact = folder.join(file);
        if exact.is_file() {
            return Some(exact);
        }
        self.known.and_then(|_| crate::file::in_any_case(folder, file))
    }

    /// Goes on with the text that is read for `orb.idl`, once.
    fn open_orb(&mut self, report: &mut Report) -> Option<Directive> {
        if !self.included.insert(PathBuf::from("orb.idl")) {
            return None;
        }
        self.push("orb.idl", ORB, PathBuf::new(), report);
        Some(Directive::EnterFile)
    }

    /// Goes on with a file, which is beside the one at hand or in one of the directories.
    fn open(
        &mut self,
        file: &str,
        beside: Option<PathBuf>,
        span: Span,
        report: &mut Report,
    ) -> Option<Directive> {
        // Most names are of no such file, and then nothing needs to be read.
        if let Some(known) = self.known
            && (known.is_file)(file, None)
        {
            // A file beside the contract is meant, unless it is a copy of one that is known.
            let path = self.beside(file);
            if path
                .as_ref()
                .and_then(|path| path.canonicalize().ok())
                .is_some_and(|it| self.included.contains(&it))
            {
                return None;
            }
            let own = path.as_ref().and_then(|path| crate::file::beginning(path, limits::BYTES as u64));
            // The name decides, and for a file that is there, its text: see `known.rs`.
            if (known.is_file)(file, own.as_deref()) {
                return self.open_known(known, path, report);
            }
        } else if self.known.is_none() && matches!(file, "orb.idl" | "TypeCode.idl") {
            return self.open_orb(report);
        }
        let Some(directories) = &self.directories else {
            report.add(Problem::new(span, "text that is not a file cannot include files"));
            return None;
        };
        let places: Vec<PathBuf> = beside.into_iter().chain(directories.iter().cloned()).collect();
        let Some(path) = places.iter().find_map(|place| self.file_in(place, file)) else {
            if self.known.is_none() && is_of_an_orb(file) {
                return self.open_orb(report);
            }
            // The help lists the places, since a missing directory is the likely reason.
            let shown = places.iter().map(|place| match place.display().to_string() {
                here if here.is_empty() => ".".to_owned(),
                other => other,
            });
            let help = match shown.collect::<Vec<_>>().join(", ") {
                none if none.is_empty() => "name the directories to look in".to_owned(),
                all => format!("looked in {all}"),
            };
            report.add(Problem::new(span, format!("`{file}` is not found")).help(help));
            return None;
        };
        // Checked before the file is opened.
        if self.frames.len() >= limits::INCLUDES || self.included.len() >= limits::FILES {
            report.add(Problem::new(span, "too many files are included"));
            return None;
        }
        if !path.canonicalize().is_ok_and(|whole| self.included.insert(whole)) {
            return None;
        }
        match self.load(&path) {
            Ok(text) => {
                let directory = path.parent().unwrap_or_else(|| Path::new("")).to_owned();
                self.push(&path.to_string_lossy(), &text, directory, report);
                Some(Directive::EnterFile)
            }
            Err(error) => {
                report.add(Problem::new(span, format!("`{file}` cannot be read: {error}")));
                None
            }
        }
    }

    /// Goes on with the built-in text for a file that comes with every compiler, and then with the file
    /// itself where it is there. Both are read in the background: definitions that a contract needs are found
    /// in them, and what is wrong in them does not matter. The built-in text is read once, whichever of those
    /// files is named first.
    fn open_known(
        &mut self,
        known: BuiltinFiles,
        path: Option<PathBuf>,
        report: &mut Report,
    ) -> Option<Directive> {
        let mut opened = None;
        let has_room = self.frames.len() < limits::INCLUDES && self.included.len() < limits::FILES;
        if let Some(path) = path.filter(|_| has_room)
            && path.canonicalize().is_ok_and(|whole| self.included.insert(whole))
            && let Ok(text) = self.load(&path)
        {
            let directory = path.parent().unwrap_or_else(|| Path::new("")).to_owned();
            self.push_in(&path.to_string_lossy(), &text, directory, true, report);
            opened = Some(Directive::EnterFile);
        }
        // What is pushed last is read first.
        if self.included.insert(PathBuf::from(KNOWN)) {
            self.push_in(KNOWN, known.text, PathBuf::new(), true, report);
            opened = Some(Directive::EnterFile);
        }
        opened
    }

    /// Starts to read a text that was loaded.
    fn push(&mut self, name: &str, text: &str, directory: PathBuf, report: &mut Report) {
        // Headers of C hold types for contracts, and much that MIDL cannot say.
        let is_header = self.known.is_some() && name.ends_with(".h");
        let background = is_header || self.frames.last().is_some_and(|frame| frame.background);
        self.push_in(name, text, directory, background, report);
    }

    fn push_in(&mut self, name: &str, text: &str, directory: PathBuf, background: bool, report: &mut Report) {
        let text: Arc<str> = Arc::from(text);
        let file = report.add_file(name, Arc::clone(&text));
        if background {
            report.put_in_background(file);
        }
        let mut lexer = Lexer::new(file, text);
        (lexer.midl, lexer.macros) = (self.known.is_some(), true);
        self.frames.push(Frame { lexer, conditions: Conditions::default(), directory, background });
    }

    /// Reads a file: UTF-8, or else ISO 8859-1, which is what OMG IDL is written in. The room that is left is
    /// the limit, and one byte more shows that the file is too large.
    fn load(&mut self, path: &Path) -> std::io::Result<String> {
        let mut bytes = Vec::new();
        let room = limits::BYTES - self.bytes;
        std::fs::File::open(path)?.take(room as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > room {
            let message = format!("the contract is larger than {} MiB", limits::BYTES >> 20);
            return Err(std::io::Error::other(message));
        }
        self.bytes += bytes.len();
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| error.as_bytes().iter().map(|b| char::from(*b)).collect()))
    }
}
