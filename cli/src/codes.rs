//! The identifiers of errors, and what each means: what `everywire explain` reads, and what a failure's
//! last line refers to.
//!
//! The table (`help/codes.tsv`) has a row for each identifier in the tables of the wires:
//! `tests/explain.rs` reads those, and fails for one that has no text here. It is part of the program,
//! so nobody is asked. Columns, with tabs between them: code, name, family, kind, meaning, hint. A row
//! without a hint of its own has that of its kind.
//!
//! States: none. The table is parsed when it is first asked for, and then constant.
//!
//! Invariants: a row of the family `failure` stands for a kind of failure, and its code is the kind's
//! word; every `kind` of another row is the code of such a row. Codes of 32 bits stand as `0x` and
//! eight digits in lower case.

use std::sync::OnceLock;

const TABLE: &str = include_str!("../help/codes.tsv");

/// Who has a minor code of CORBA's system exceptions, by its high 16 bits: vendors get a number of 20
/// bits (VMCID) from the OMG, whose last four are zero for all of these.
const VENDORS: &[(u32, &str)] = &[
    (0x4f4d_0000, "the OMG's"),
    (0x4154_0000, "omniORB's"),
    (0x4557_0000, "Everywire's"),
    (0x4a43_0000, "JacORB's"),
    (0x5355_0000, "the JDK's"),
    (0x5441_0000, "TAO's"),
];

/// Parts of Windows that HRESULTs come from, by the bits 16 to 26 (MS-ERREF 2.1).
const FACILITIES: &[(u32, &str)] = &[
    (0, "COM"),
    (1, "RPC"),
    (2, "IDispatch"),
    (3, "storage"),
    (4, "the interface"),
    (7, "Windows"),
    (8, "Windows"),
    (9, "security"),
];

/// One identifier: a line of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// As failures show it.
    pub(crate) code: &'static str,
    /// A name that it has beside that; empty if none.
    pub(crate) name: &'static str,
    /// What it belongs to: a wire, a part of one, `failure` for kinds of failure.
    pub(crate) family: &'static str,
    /// The kind of failure that it is told as; empty where it is none.
    pub(crate) kind: &'static str,
    /// What it means.
    pub(crate) means: &'static str,
    /// What to try, if that is not what one tries at any failure of its kind.
    own_hint: &'static str,
}

impl Row {
    /// What to try: the hint of the row, or that of its kind; empty if neither has one.
    pub(crate) fn hint(&self) -> &'static str {
        if !self.own_hint.is_empty() {
            return self.own_hint;
        }
        rows()
            .iter()
            .find(|row| row.family == "failure" && row.code == self.kind)
            .map_or("", |row| row.own_hint)
    }

    /// The shortest word that `everywire explain` takes for it.
    pub(crate) fn word(&self) -> &'static str {
        if self.name.is_empty() { self.code } else { self.name }
    }
}

/// All of them.
pub(crate) fn rows() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| {
                let mut parts = line.split('\t');
                let mut next = || parts.next().unwrap_or_default();
                let (code, name, family, kind, means, own_hint) =
                    (next(), next(), next(), next(), next(), next());
                Row { code, name, family, kind, means, own_hint }
            })
            .collect()
    })
}

/// What goes by this code or name, in any case of letters; of names that several wires have, all. Tries
/// go from the exact to the vague, and the first that finds something ends them: the whole code or
/// name; a number in another notation; the last part of a code with a scope. A minor code that is not
/// known is that of its exception.
pub(crate) fn find(asked: &str) -> Vec<Row> {
    let asked = asked.trim().trim_matches(['[', ']']);
    // Behind a status of HTTP stands what it is called.
    let asked = match asked.strip_prefix("HTTP ").and_then(|rest| rest.split_once(' ')) {
        Some((status, _)) => asked.get(..5 + status.len()).unwrap_or(asked),
        None => asked,
    };
    // Codes come from peers: whoever sends a name of a megabyte is not compared with all of the table.
    if asked.len() > LONGEST {
        return Vec::new();
    }
    let is = |held: &str| !held.is_empty() && held.eq_ignore_ascii_case(asked);
    let chosen = |fits: &dyn Fn(&Row) -> bool| -> Vec<Row> {
        rows().iter().copied().filter(|row| fits(row)).collect()
    };
    // A word alone may be the name of several things.
    let alone = !asked.contains([' ', ':', '/', '}']);
    let of = |row: &Row| !row.code.contains(" minor ") && last(row.code).eq_ignore_ascii_case(asked);
    let mut found = chosen(&|row| is(row.code) || is(row.name) || (alone && of(row)));
    if found.is_empty()
        && let Some(number) = number(asked)
    {
        let code = format!("{number:#010x}");
        found = chosen(&|row| row.code == code);
    }
    // The number of a minor code alone is anybody's.
    if found.is_empty() && !asked.contains(" minor ") {
        let part = last(asked);
        found = chosen(&|row| last(row.code).eq_ignore_ascii_case(part) && !row.code.contains(" minor "));
    }
    if found.is_empty()
        && let Some((exception, _)) = asked.split_once(" minor ")
    {
        return find(exception);
    }
    found
}

/// Octets of the longest code that is looked for; those of the table have less than half as many.
const LONGEST: usize = 256;

/// The last part of a code with a scope.
fn last(code: &str) -> &str {
    // Not the dots of names that a service made up itself.
    code.rsplit([' ', ':', '/', '}']).next().unwrap_or(code)
}

/// A code of 32 bits: `0x` and digits, eight digits alone, or a negative decimal number, as programs of
/// Windows print it.
fn number(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    match digits.or_else(|| (text.len() == 8).then_some(text)) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse::<i32>().ok().filter(|number| *number < 0).map(i32::cast_unsigned),
    }
}

/// The codes that are told as a kind of failure, by what they belong to, in the order of the table.
pub(crate) fn told_as(kind: &str) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut families: Vec<(&'static str, Vec<&'static str>)> = Vec::new();
    for row in rows().iter().filter(|row| row.kind == kind && row.family != "failure") {
        match families.iter_mut().find(|(family, _)| *family == row.family) {
            Some((_, words)) => words.push(row.word()),
            None => families.push((row.family, vec![row.word()])),
        }
    }
    families
}

/// What the digits of a code alone tell, where no table has it: whose minor code, or which part of Windows.
pub(crate) fn digits(asked: &str) -> Option<String> {
    if let Some((_, minor)) = asked.split_once(" minor ") {
        let minor = number(minor.trim())?;
        let (_, who) = VENDORS.iter().find(|(vendor, _)| minor & 0xffff_0000 == *vendor)?;
        return Some(format!("the minor code is {who} own, number {}", minor & 0xffff));
    }
    let code = number(asked).filter(|code| code & 0x8000_0000 != 0)?;
    let (facility, low) = (code >> 16 & 0x7ff, code & 0xffff);
    let (_, from) = FACILITIES.iter().find(|(number, _)| *number == facility)?;
    Some(match facility {
        4 => format!(
            "it is a code of the interface that was called, number {low:#06x}: its documentation says what it means"
        ),
        7 => format!("it is error {low} of Windows (`net helpmsg {low}` says its text there)"),
        _ => format!("it is a failure of {from}, number {low:#06x}"),
    })
}

/// The word by which a failure can be looked up: by its code; else by the violation that its message
/// names; else by its kind. `None` if the table has none of them: then nothing is offered.
pub(crate) fn word_for(code: Option<&str>, message: &str, kind: &str) -> Option<&'static str> {
    let known = |text: &str| find(text).first().map(Row::word);
    if let Some(code) = code {
        return known(code);
    }
    // As violations are printed: `what is wrong (Name, at byte N of the connection)`.
    let violation = message.rsplit_once(", at byte ").and_then(|(before, _)| before.rsplit_once('('));
    // Wires share some names: then the name alone shows the rows of all of them.
    let breach = |name: &str| {
        let mut rows = find(name).into_iter().filter(|row| row.family != "failure");
        let row = rows.next()?;
        Some(if rows.next().is_some() { last(row.code) } else { row.word() })
    };
    violation.and_then(|(_, name)| breach(name)).or_else(|| known(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_found_as_it_is_shown_and_by_its_names() {
        for (asked, code) in [
            ("0x80004002", "0x80004002"),
            ("80004002", "0x80004002"),
            ("-2147467262", "0x80004002"),
            ("e_nointerface", "0x80004002"),
            ("[0x80004002]", "0x80004002"),
            ("CORBA::MARSHAL minor 0x4154000b", "CORBA::MARSHAL minor 0x4154000b"),
            ("CORBA::MARSHAL minor 0x12345678", "CORBA::MARSHAL"),
            // Not the HRESULT of that number.
            ("CORBA::TRANSIENT minor 0x00000001", "CORBA::TRANSIENT"),
            ("MARSHAL", "CORBA::MARSHAL"),
            ("org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.NoReply"),
            ("ndr CountMismatch", "ndr CountMismatch"),
            ("unreachable", "unreachable"),
            ("4", "exit 4"),
            ("HTTP 404 Not Found", "HTTP 404"),
            (
                "{http://schemas.xmlsoap.org/ws/2004/08/addressing}ActionNotSupported",
                "fault ActionNotSupported",
            ),
        ] {
            let found = find(asked);
            assert_eq!(found.first().map(|row| row.code), Some(code), "{asked}");
        }
        assert!(find("Refused").len() > 2, "several wires have one of this name");
        assert!(find("nothing of this name").is_empty());
        // Compared with each row this would take minutes.
        assert!(find(&"x".repeat(1 << 22)).is_empty());
    }

    #[test]
    fn digits_tell_whose_a_code_is() {
        assert!(digits("CORBA::INTERNAL minor 0x4a430011").is_some_and(|told| told.contains("JacORB")));
        assert!(digits("0x800706ba").is_some_and(|told| told.contains("error 1722 of Windows")));
        assert!(digits("0xc0040fff").is_some_and(|told| told.contains("interface")));
        assert_eq!(digits("hello"), None);
    }

    #[test]
    fn a_failure_leads_to_its_text() {
        let violation =
            "a message begins with `HTTP` instead of `GIOP` (NotGiop, at byte 0 of the connection)";
        assert_eq!(word_for(None, violation, "violation"), Some("giop NotGiop"));
        let shared = "a record Sized Envelope is empty (Empty, at byte 1 of the connection)";
        assert_eq!(word_for(None, shared, "violation"), Some("Empty"), "of WCF and of DCOM");
        assert_eq!(word_for(None, "connection refused", "unreachable"), Some("unreachable"));
        assert_eq!(word_for(Some("0x80004002"), "so", "no-operation"), Some("E_NOINTERFACE"));
        assert_eq!(word_for(Some("org.example.Full"), "so", "internal"), None);
    }
}
