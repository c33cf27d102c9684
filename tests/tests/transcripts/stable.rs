//! What differs between runs, and the name that a transcript has in its place: all rules are here.
//!
//! Names go by the order of appearance: `port-1`, `guid-1`, ... In octets, what differs is shown as `--` and counts as zero.

use super::tape::Recorded;
use everywire::model::wire::{MessageListing, Part};

/// An octet; nothing where it differs between runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Kept(pub Option<u8>);

impl Kept {
    pub fn digits(&self) -> String {
        self.0.map_or_else(|| "--".to_owned(), |octet| format!("{octet:02x}"))
    }

    pub fn letter(&self) -> char {
        match self.0 {
            Some(octet) if octet.is_ascii_graphic() || octet == b' ' => char::from(octet),
            Some(_) => '.',
            None => '-',
        }
    }
}

/// Parts whose octets are secrets, or made from random numbers and the time: they are not shown at all.
const SECRET: &[&str] =
    &["authentication value", "encrypted stub", "protected stream", "secret", "authentication padding"];

/// Identifiers that contracts and specifications have made up once and for all: these are shown.
const FIXED: &[&str] = &[
    // The contracts of these tests.
    "6f3a1c10-8d5e-4b7a-9c21-",
    "7c1b1b40-6a0c-4e77-9f5c-",
    "4f0b2d8e-6f0a-4a5e-9d57-0d6f3c1b2a90",
    // COM's own, and those of OPC.
    "-0000-0000-c000-000000000046",
    "00000000-0000-0000-0000-000000000000",
    "39c13a",
    "39227004-",
    "3967b9bb-",
    "85c0b427-",
    "8a885d04-",
    "b196b28",
    "99fcfe",
    "4d9f4ab8-",
    "afbdb",
    // Of DCE/RPC.
    "e1af8308-",
    "afa8bd80-",
    "8a885d04-",
    "71710533-",
    "45570001-",
];

/// Identifiers that have a name in the contracts of these tests.
const CALLED: &[(&str, &str)] = &[
    ("6f3a1c10-8d5e-4b7a-9c21-5b2d8e0f4a01", "IPantry"),
    ("6f3a1c10-8d5e-4b7a-9c21-5b2d8e0f4a02", "IScales"),
    ("6f3a1c10-8d5e-4b7a-9c21-5b2d8e0f4a03", "IPantryEvents"),
    ("6f3a1c10-8d5e-4b7a-9c21-5b2d8e0f4a04", "_IPantryNotes"),
    ("6f3a1c10-8d5e-4b7a-9c21-5b2d8e0f4a10", "CLSID_Pantry"),
    ("6f3a1c10-8d5e-4b7a-9c21-5b2d8e0f4aff", "CLSID_Nobody"),
    ("4f0b2d8e-6f0a-4a5e-9d57-0d6f3c1b2a90", "CLSID_Tank"),
];

/// Parts whose whole value is a number that somebody draws, and the kind of name that it gets. Small numbers are none.
const DRAWN: &[(&str, &str)] = &[("association group", "group"), ("key", "key")];

/// What was found so far.
pub struct Stable {
    /// As text, and its name.
    names: Vec<(String, String)>,
    /// As octets.
    octets: Vec<Vec<u8>>,
    /// Exporters, as octets: behind one stand an object's number and an interface pointer's.
    exporters: Vec<[u8; 8]>,
    counts: Vec<(&'static str, usize)>,
}

impl Stable {
    pub fn new(recorded: &Recorded) -> Self {
        let mut stable =
            Self { names: Vec::new(), octets: Vec::new(), exporters: Vec::new(), counts: Vec::new() };
        for port in &recorded.ports {
            let text = port.to_string();
            stable.octets.push(text.clone().into_bytes());
            stable.octets.push(text.encode_utf16().flat_map(u16::to_le_bytes).collect());
            // An IIOP profile: the host, a zero, the port.
            for order in [port.to_le_bytes(), port.to_be_bytes()] {
                stable.octets.push([&b"127.0.0.1\0"[..], &order].concat());
            }
            // The floor of a tower: TCP, two octets, the port.
            stable.octets.push([&[0x07, 0x02, 0x00][..], &port.to_be_bytes()].concat());
            stable.name("port", text);
        }
        stable
    }

    fn name(&mut self, kind: &'static str, text: String) {
        if self.names.iter().any(|(known, _)| *known == text) {
            return;
        }
        let count = match self.counts.iter_mut().find(|(name, _)| *name == kind) {
            // A conversation may begin in one second and end in the next.
            Some((_, count)) if kind == "time" => *count,
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                self.counts.push((kind, 1));
                1
            }
        };
        self.names.push((text, format!("{kind}-{count}")));
    }

    /// Looks for what differs in the parts of a message.
    pub fn learn(&mut self, explained: &MessageListing, octets: &[u8]) {
        for part in explained.parts.iter().filter(|part| is_drawn(part)) {
            let (_, kind) = DRAWN.iter().find(|(name, _)| *name == part.name).expect("it is drawn");
            self.name(kind, part.value.clone());
        }
        let whole = std::iter::once(explained.summary.as_str());
        for text in whole.chain(explained.parts.iter().map(|part| part.value.as_str())) {
            self.guids(text);
            self.numbers(text);
            self.words(text);
        }
        self.times(octets);
    }

    /// FILETIMEs of today: 100 ns since 1601, whose upper half changes every seven minutes.
    fn times(&mut self, octets: &[u8]) {
        const DAY: u64 = 864_000_000_000;
        let since_1970 =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("it is later");
        let now = (u64::try_from(since_1970.as_nanos()).unwrap_or(0) / 100) + 116_444_736_000_000_000;
        for window in octets.windows(8) {
            let time = u64::from_le_bytes(window.try_into().expect("eight"));
            if (now - DAY..now + DAY).contains(&time) {
                self.octets.push(window.to_vec());
            }
        }
    }

    fn guids(&mut self, text: &str) {
        for (at, _) in text.match_indices('-') {
            let Some(start) = at.checked_sub(8) else { continue };
            let Some(guid) = text.get(start..start + 36) else { continue };
            let shaped = guid.bytes().enumerate().all(|(at, octet)| match at {
                8 | 13 | 18 | 23 => octet == b'-',
                _ => octet.is_ascii_hexdigit(),
            });
            let lower = guid.to_ascii_lowercase();
            if !shaped || FIXED.iter().any(|fixed| lower.contains(fixed)) {
                continue;
            }
            if let Ok(parsed) = uuid::Uuid::parse_str(guid) {
                self.octets.push(parsed.to_bytes_le().to_vec());
                self.octets.push(parsed.as_bytes().to_vec());
                self.octets.push(guid.as_bytes().to_vec());
                self.octets.push(guid.encode_utf16().flat_map(u16::to_le_bytes).collect());
            }
            self.name("guid", guid.to_owned());
        }
    }

    /// Numbers that a node draws: OXIDs, OIDs, sets of pings.
    fn numbers(&mut self, text: &str) {
        for (kind, before) in [("oxid", "OXID 0x"), ("oid", "OID 0x"), ("set", "set 0x")] {
            for (at, found) in text.match_indices(before) {
                let start = at + found.len();
                if kind == "oid" && text[..at].ends_with(|letter: char| letter.is_ascii_alphabetic()) {
                    continue;
                }
                let Some(digits) = text.get(start..start + 16) else { continue };
                let Ok(number) = u64::from_str_radix(digits, 16) else { continue };
                if number != 0 {
                    self.octets.push(number.to_le_bytes().to_vec());
                    if kind == "oxid" && !self.exporters.contains(&number.to_le_bytes()) {
                        self.exporters.push(number.to_le_bytes());
                    }
                    self.name(kind, format!("0x{digits}"));
                }
            }
        }
    }

    /// Times and random words, by what stands in front of them and how long they are (0: to the end of the line).
    fn words(&mut self, text: &str) {
        for (kind, before, len) in
            [("time", "date: ", 0), ("server-id", "OK ", 32), ("boundary", "uuid:", 32)]
        {
            for (at, found) in text.match_indices(before) {
                let rest = &text[at + found.len()..];
                let word = rest.split(['\r', '\n']).next().unwrap_or(rest);
                let word = if len == 0 { word } else { word.get(..len).unwrap_or_default() };
                let random = word.bytes().all(|octet| octet.is_ascii_hexdigit());
                if word.is_empty() || (len > 0 && !random) {
                    continue;
                }
                self.octets.push(word.as_bytes().to_vec());
                self.name(kind, word.to_owned());
            }
        }
    }

    /// A text with names in the place of what differs.
    pub fn said(&self, text: &str) -> String {
        let named =
            self.names.iter().fold(text.to_owned(), |text, (found, name)| in_words(&text, found, name));
        CALLED.iter().fold(named, |text, (found, name)| text.replace(found, name))
    }

    /// What a part says.
    pub fn value(&self, part: &Part, octets: &[u8]) -> String {
        if SECRET.contains(&part.name) {
            let said = if is_hex(&part.value, octets) { "" } else { part.value.as_str() };
            return format!("{said} ({} octets, not shown)", part.len).trim_start().to_owned();
        }
        let is_octets = is_hex(&part.value, octets);
        if is_octets {
            // The octets beside it say the same.
            let kept = self.mask(octets);
            let digits: Vec<String> = kept.iter().take(32).map(Kept::digits).collect();
            let more = if octets.len() > 32 { " ..." } else { "" };
            return format!("{}{more}", digits.join(" "));
        }
        self.said(&part.value)
    }

    /// The octets of a message without what differs.
    pub fn keep(&self, explained: &MessageListing, octets: &[u8]) -> Vec<Kept> {
        let mut kept = self.mask(octets);
        let masked = |part: &&Part| {
            SECRET.contains(&part.name)
                || (is_drawn(part) && self.names.iter().any(|(known, _)| *known == part.value))
        };
        for part in explained.parts.iter().filter(masked) {
            let end = part.offset.saturating_add(part.len).min(kept.len());
            kept.get_mut(part.offset..end).unwrap_or_default().fill(Kept(None));
        }
        // The number of a client's context stands in an OBJREF, behind 48 octets of its header.
        for part in explained.parts.iter().filter(|part| part.value.starts_with("IContext, by value")) {
            let end = part.offset.saturating_add(part.len).min(kept.len());
            kept.get_mut(part.offset + 48..end).unwrap_or_default().fill(Kept(None));
        }
        kept
    }

    fn mask(&self, octets: &[u8]) -> Vec<Kept> {
        let mut kept: Vec<Kept> = octets.iter().map(|octet| Kept(Some(*octet))).collect();
        for needle in &self.octets {
            for at in 0..=octets.len().saturating_sub(needle.len()) {
                if octets[at..].starts_with(needle) {
                    // What makes it certain what it is stays.
                    let known = [&b"127.0.0.1\0"[..], &[0x07, 0x02, 0x00]];
                    let head =
                        known.iter().find(|known| needle.starts_with(known)).map_or(0, |known| known.len());
                    kept[at + head..at + needle.len()].fill(Kept(None));
                }
            }
        }
        for exporter in &self.exporters {
            for at in 0..octets.len().saturating_sub(31) {
                // STDOBJREF: flags and count, OXID, OID, IPID.
                if octets[at..].starts_with(exporter) && octets[at + 8..at + 16] != [0; 8] {
                    kept[at..at + 32].fill(Kept(None));
                }
            }
        }
        kept
    }
}

/// Whether a value is nothing but these octets, the first ones of them.
pub fn is_hex(value: &str, octets: &[u8]) -> bool {
    let digits: Vec<String> = octets.iter().take(32).map(|octet| format!("{octet:02x}")).collect();
    !octets.is_empty() && value.split(" ...").next() == Some(digits.join(" ").as_str())
}

fn is_drawn(part: &Part) -> bool {
    DRAWN.iter().any(|(name, _)| *name == part.name) && part.value.len() > 4
}

/// Replaces a word that stands by itself.
fn in_words(text: &str, found: &str, name: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(found) {
        let (before, after) = (&rest[..at], &rest[at + found.len()..]);
        let open = |letter: Option<char>| letter.is_none_or(|letter| !letter.is_ascii_alphanumeric());
        out.push_str(before);
        let alone = open(before.chars().next_back().or_else(|| out.chars().next_back()))
            && open(after.chars().next());
        out.push_str(if alone { name } else { found });
        rest = after;
    }
    out + rest
}

/// A message as user number 0 would have sent it, and a process whose number has five digits: what is longer or shorter elsewhere has one
/// length here. Nothing, if it is so already.
pub fn canonical(octets: &[u8]) -> Option<Vec<u8>> {
    let own = format!("anonymous-{}", std::process::id()).into_bytes();
    if octets.starts_with(b"\0AUTH EXTERNAL ") && octets.ends_with(b"\r\n") {
        return Some(b"\0AUTH EXTERNAL 30\r\n".to_vec());
    }
    // A message of DCOP: a header with the length of the rest, and texts with their lengths in front, big-endian and with a zero.
    let mut out = octets.get(..12)?.to_vec();
    let mut rest = &octets[12..];
    let mut grown = 0_i64;
    while !rest.is_empty() {
        let text =
            rest.get(4..4 + own.len()).filter(|text| *text == own && rest.get(4 + own.len()) == Some(&0));
        if text.is_some() {
            let name = b"anonymous-12345\0";
            out.extend_from_slice(&u32::try_from(name.len()).ok()?.to_be_bytes());
            out.extend_from_slice(name);
            grown += i64::try_from(name.len()).ok()? - i64::try_from(own.len() + 1).ok()?;
            rest = &rest[5 + own.len()..];
        } else {
            out.push(rest[0]);
            rest = &rest[1..];
        }
    }
    if out == octets {
        return None;
    }
    let length = i64::from(u32::from_le_bytes(octets.get(4..8)?.try_into().ok()?)) + grown;
    out[4..8].copy_from_slice(&u32::try_from(length).ok()?.to_le_bytes());
    Some(out)
}
