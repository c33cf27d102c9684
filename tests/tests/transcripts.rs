//! Transcripts: conversations as text, both directions, one file a scene, from which a newcomer learns each protocol.
//!
//! A scene has a client and a server of ours do one thing, over a relay that records what passes (`tape`). The text is made by the
//! `explain` of the wire, as `everywire trace -v` prints it (`listing`); what differs between runs has a name in its place
//! (`stable`). The texts are `docs/transcripts/WIRE/NN-NAME.txt`, and each must be what it was. So must each octet: the hashes of
//! all messages are in `tests/tests/transcripts/octets`.
//!
//! Record anew with `EVERYWIRE_RECORD=1 cargo nextest run --workspace -E 'test(/^transcripts::/)'`, and read the difference.

mod dbus;
mod dcom;
mod dcop;
mod giop;
mod listing;
mod opc;
mod shop;
mod stable;
mod tape;
mod wcf;

use everywire::wires;
use everywire_tests::peers::root;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use tape::Tape;

/// The sets.
const SETS: &[&Set] = &[&giop::SET, &dbus::SET, &dcop::SET, &dcom::SET, &opc::SET, &wcf::NET_TCP, &wcf::HTTP];

/// The scenes of a wire, or of what stands on one.
struct Set {
    folder: &'static str,
    /// The name of the wire.
    wire: &'static str,
    title: &'static str,
    scenes: &'static [Scene],
}

/// One conversation.
struct Scene {
    /// Its file is called so, after its number.
    name: &'static str,
    /// What happens, in plain sentences.
    about: &'static str,
    /// The sections of the specification.
    read: &'static str,
    play: fn(&Tape),
}

fn recording() -> bool {
    std::env::var_os("EVERYWIRE_RECORD").is_some()
}

fn folder() -> PathBuf {
    root().join("docs/transcripts")
}

impl Set {
    fn file(&self, number: usize) -> String {
        format!("{:02}-{}.txt", number + 1, self.scenes[number].name)
    }

    /// Plays all scenes, and compares.
    fn play(&self) {
        let wire = wires::named(self.wire).expect("a wire");
        let dir = folder().join(self.folder);
        let octets = root().join("tests/tests/transcripts/octets").join(format!("{}.txt", self.folder));
        let mut sums = String::new();
        let (mut texts, mut failed) = (Vec::new(), Vec::new());
        for (number, scene) in self.scenes.iter().enumerate() {
            let tape = Tape::default();
            let played = std::panic::catch_unwind(AssertUnwindSafe(|| {
                (scene.play)(&tape);
                listing::text(&tape.recorded(), wire)
            }));
            let Ok(said) = played else {
                failed.push(scene.name);
                continue;
            };
            texts.push((
                dir.join(self.file(number)),
                format!("{}\n{}", heading(scene), said.text.trim_end().to_owned() + "\n"),
            ));
            for (index, (len, hash)) in said.octets.iter().enumerate() {
                let _ = writeln!(sums, "{}\t{}\t{len}\t{hash:016x}", self.file(number), index + 1);
            }
        }
        if recording() {
            let _ = fs::remove_dir_all(&dir);
            fs::create_dir_all(&dir).expect("a folder");
            fs::create_dir_all(octets.parent().expect("a folder")).expect("a folder");
            texts.iter().for_each(|(file, text)| fs::write(file, text).expect("it is written"));
            fs::write(&octets, &sums).expect("it is written");
        }
        assert!(failed.is_empty(), "these scenes of {} failed: {failed:?}", self.folder);
        texts.iter().for_each(|(file, text)| same(file, text));
        same(&octets, &sums);
    }
}

/// Title, what happens, what to read.
fn heading(scene: &Scene) -> String {
    let title: Vec<&str> = scene.name.split('-').map(spelled).collect();
    let title = title.join(" ");
    let mut text = format!("{}{}\n{}\n\n", title[..1].to_uppercase(), &title[1..], "=".repeat(title.len()));
    for paragraph in [scene.about, &format!("Read: {}.", scene.read)] {
        let mut line = 0;
        for word in paragraph.split_whitespace() {
            let len = word.chars().count();
            match line {
                0 => line = len,
                _ if line + 1 + len > 110 => {
                    text.push('\n');
                    line = len;
                }
                _ => {
                    text.push(' ');
                    line += 1 + len;
                }
            }
            text.push_str(word);
        }
        text.push('\n');
    }
    text
}

/// A word of a name as it is spelled.
fn spelled(word: &str) -> &str {
    const WORDS: [(&str, &str); 8] = [
        ("bstr", "BSTR"),
        ("variant", "VARIANT"),
        ("hresult", "HRESULT"),
        ("ntlm", "NTLM"),
        ("xml", "XML"),
        ("mtom", "MTOM"),
        ("windows", "Windows"),
        ("ws", "WS"),
    ];
    WORDS.iter().find(|(name, _)| *name == word).map_or(word, |(_, spelled)| spelled)
}

/// A kept file must be what it was.
#[track_caller]
fn same(file: &Path, text: &str) {
    let name = file.strip_prefix(root()).unwrap_or(file).display();
    let kept = fs::read_to_string(file).unwrap_or_else(|error| panic!("{name}: {error}; {AGAIN}"));
    if kept == text {
        return;
    }
    let (number, was, is) = first_difference(&kept, text);
    panic!("{name} differs in line {number}\n  kept: {was}\n  now:  {is}\n{AGAIN}");
}

const AGAIN: &str = "record it anew with EVERYWIRE_RECORD=1, and read the difference";

fn first_difference<'a>(kept: &'a str, now: &'a str) -> (usize, &'a str, &'a str) {
    let (mut kept, mut now) = (kept.lines(), now.lines());
    for number in 1.. {
        match (kept.next(), now.next()) {
            (Some(was), Some(is)) if was == is => {}
            (was, is) => return (number, was.unwrap_or("(the end)"), is.unwrap_or("(the end)")),
        }
    }
    unreachable!("numbers do not end")
}

/// The index.
fn index() -> String {
    let mut text = "# Transcripts\n\nConversations of a client and a server, message by message: who says what, each field with its place, its octets and \
         its value. What differs from run to run has a name in its place (`port-1`, `guid-1`); such octets are shown as `--`. A field \
         of a header that is as in the message before, such as its version, is left out.\n\n\
         Most scenes have the same service, [`shop.idl`](../../tests/contracts/shop.idl), so that wires can be compared; other \
         contracts stand beside it. The texts are recorded by a test and held by it:\n\n```sh\n\
         EVERYWIRE_RECORD=1 cargo nextest run --workspace -E 'test(/^transcripts::/)'\n```\n\n`everywire trace -v` prints the same \
         of any connection.\n"
        .to_owned();
    for set in SETS {
        let _ = write!(text, "\n## {}\n\n", set.title);
        for (number, scene) in set.scenes.iter().enumerate() {
            let file = set.file(number);
            let about = scene.about.split_whitespace().collect::<Vec<_>>().join(" ");
            let end =
                [". ", ": ", "; "].iter().filter_map(|end| about.find(end)).min().unwrap_or(about.len());
            let first = about[..end].trim_end_matches('.');
            let _ = writeln!(text, "* [{}]({}/{file}): {first}", scene.name.replace('-', " "), set.folder);
        }
    }
    text
}

#[test]
fn the_index_lists_all_files_and_every_wire_has_ten() {
    let file = folder().join("README.md");
    if recording() {
        fs::create_dir_all(folder()).expect("a folder");
        fs::write(&file, index()).expect("it is written");
    }
    same(&file, &index());
    for wire in wires::ALL {
        let sets = SETS.iter().filter(|set| set.wire == wire.name());
        assert!(sets.clone().count() > 0, "{} has no transcripts", wire.name());
        sets.for_each(|set| assert!(set.scenes.len() >= 10, "{} has few scenes", set.folder));
    }
    let kept = |dir: &Path| -> BTreeSet<String> {
        let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    };
    let folders: BTreeSet<String> = SETS.iter().map(|set| set.folder.to_owned()).collect();
    let mut found = kept(&folder());
    found.remove("README.md");
    assert_eq!(found, folders);
    if recording() {
        // The other tests write their files at the same time.
        return;
    }
    for set in SETS {
        let files: BTreeSet<String> = (0..set.scenes.len()).map(|number| set.file(number)).collect();
        assert_eq!(kept(&folder().join(set.folder)), files);
    }
}

#[test]
fn giop() {
    giop::SET.play();
}

#[test]
fn dbus() {
    dbus::SET.play();
}

#[test]
fn dcop() {
    dcop::SET.play();
}

#[test]
fn dcom() {
    dcom::SET.play();
}

#[test]
fn opc() {
    opc::SET.play();
}

#[test]
fn net_tcp() {
    wcf::NET_TCP.play();
}

#[test]
fn http() {
    wcf::HTTP.play();
}

/// What the kept files hold: change any octet that passes, and the text or a hash is another.
#[test]
fn every_octet_of_a_message_counts() {
    let wire = wires::named("giop").expect("a wire");
    let scene = giop::SET.scenes.iter().find(|scene| scene.name == "call-with-result").expect("a scene");
    let tape = Tape::default();
    (scene.play)(&tape);
    let recorded = tape.recorded();
    let told = listing::text(&recorded, wire);
    let shown = |outward: bool| {
        let mut shown = recorded.events[recorded.begin..].iter().filter_map(|event| match event {
            tape::Event::Octets { outward: way, end, .. } if *way == outward => Some(*end),
            _ => None,
        });
        let before = recorded.events[..recorded.begin].iter().rev().find_map(|event| match event {
            tape::Event::Octets { outward: way, end, .. } if *way == outward => Some(*end),
            _ => None,
        });
        before.unwrap_or(0)..shown.next_back().expect("something passed")
    };
    for outward in [true, false] {
        for at in shown(outward) {
            let mut other = recorded.clone();
            let there = &mut other.connections[0];
            let octets = if outward { &mut there.outward } else { &mut there.inward };
            octets[at] ^= 1;
            let changed = listing::text(&other, wire);
            assert!(
                (changed.text, changed.octets) != (told.text.clone(), told.octets.clone()),
                "octet {at}, {outward}"
            );
        }
    }
}
