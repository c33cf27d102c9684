//! Pragmas: those of the language, and the words that are ours.

use super::lexer::{Directive, Kind, Lexer, Mark, Token};
use super::limits;
use crate::report::{Problem, Report, Span};
use std::sync::Arc;

/// Takes what follows `#pragma`, with the documentation before it; a pragma nobody knows is passed over, as the language demands.
/// OMG IDL defines three (CORBA 3.0, 10.7.5): `prefix`, `ID` and `version`.
pub(super) fn pragma(
    line: &mut Lexer,
    doc: Option<Arc<str>>,
    midl: bool,
    report: &mut Report,
) -> Option<Directive> {
    let kind = line.next(report);
    let Kind::Word(word) = &kind.kind else { return None };
    let marks: &[Mark] = match midl {
        true => &[Mark::Exception, Mark::Raises, Mark::Signals],
        false => &[Mark::Signal, Mark::Idempotent],
    };
    if let Some(mark) = marks.iter().copied().find(|mark| mark.word() == word) {
        return mark_tokens(mark, line, doc, report);
    }
    match word.as_str() {
        "prefix" => {
            let token = line.next(report);
            let prefix = match token.kind {
                Kind::Text { value, .. } => value,
                // JacORB's compiler takes it without quotes.
                Kind::Word(mut value) => {
                    let is_part = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
                    value.extend(line.rest().chars().take_while(is_part));
                    value
                }
                _ => {
                    report.add(Problem::new(token.span, "the prefix is missing").expected(["a string"]));
                    return None;
                }
            };
            if prefix.len() > limits::IDENTIFIER {
                let message = format!("this prefix is longer than {} bytes", limits::IDENTIFIER);
                report.add(Problem::new(token.span, message));
                return None;
            }
            Some(Directive::Prefix(prefix))
        }
        "ID" => {
            let (name, last) = scoped_name(line, report)?;
            match last.kind {
                Kind::Text { value, .. } => Some(Directive::Id(name, value)),
                _ => {
                    report
                        .add(Problem::new(last.span, "the repository id is missing").expected(["a string"]));
                    None
                }
            }
        }
        "version" => {
            let (name, last) = scoped_name(line, report)?;
            // From the text, because 1.10 is not the number 1.1.
            let start = last.span.start as usize;
            let version = line.text.get(start..last.span.end as usize).unwrap_or_default().to_owned();
            let digits =
                |part: &str| !part.is_empty() && part.len() < 6 && part.bytes().all(|b| b.is_ascii_digit());
            if version.split_once('.').is_some_and(|(major, minor)| digits(major) && digits(minor)) {
                Some(Directive::Version(name, version))
            } else {
                report.add(
                    Problem::new(last.span, "this is not a version").expected(["a version such as 1.0"]),
                );
                None
            }
        }
        _ => None,
    }
}

/// The words of a pragma of ours, and last the end of its line; the first has the documentation before it.
fn mark_tokens(
    mark: Mark,
    line: &mut Lexer,
    doc: Option<Arc<str>>,
    report: &mut Report,
) -> Option<Directive> {
    line.plain = false;
    let mut tokens = Vec::new();
    loop {
        let token = line.next(report);
        if tokens.len() >= limits::MACRO_BODY {
            report.add(Problem::new(token.span, "this pragma is too long"));
            return None;
        }
        let ends = token.kind == Kind::End;
        tokens.push(token);
        if ends {
            break;
        }
    }
    if let Some(first) = tokens.first_mut() {
        first.doc = doc;
    }
    Some(Directive::Mark(mark, tokens))
}

/// A scoped name, and the token after it. An empty first part stands for a leading `::`.
fn scoped_name(line: &mut Lexer, report: &mut Report) -> Option<(Vec<(String, Span)>, Token)> {
    let mut parts = Vec::new();
    let mut token = line.next(report);
    if token.kind == Kind::Punct("::") {
        parts.push((String::new(), token.span));
        token = line.next(report);
    }
    loop {
        match token.kind {
            Kind::Word(word) if parts.len() <= limits::NESTING => {
                parts.push((word.strip_prefix('_').unwrap_or(&word).to_owned(), token.span));
            }
            _ => {
                report.add(Problem::new(token.span, "the name is missing").expected(["a name"]));
                return None;
            }
        }
        token = line.next(report);
        if token.kind != Kind::Punct("::") {
            return Some((parts, token));
        }
        token = line.next(report);
    }
}
