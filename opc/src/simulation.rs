//! A source that makes its values up: what a client is tried with where no plant is at hand. Its branches are those that people know
//! from the simulation servers of Windows.
//!
//! | branch | its items |
//! | --- | --- |
//! | `Random` | other values ten times a second |
//! | `Saw-toothed Waves`, `Triangle Waves`, `Square Waves`, `Sine Waves` | 0 to 100 in ten seconds |
//! | `Counters` | seconds since the server started, tenths and hundredths of them |
//! | `Bucket Brigade` | what a client wrote last |
//! | `Write Only` | take values and give none |
//! | `Quality` | good, bad and uncertain, and one that is bad for five seconds of ten |
//!
//! A value is computed when somebody reads it; between reads nothing runs.

use crate::data::{Data, VarType, Vqt};
use crate::item::{Access, Item};
use crate::source::{Child, Children, Feed, Source, Write};
use crate::table::Table;
use crate::{Code, FileTime, Quality};
use std::f64::consts::TAU;
use std::sync::Arc;
use std::time::Instant;

/// The types that most branches have an item of.
const NUMBERS: [(&str, VarType); 8] = [
    ("Int1", VarType::I1),
    ("Int2", VarType::I2),
    ("Int4", VarType::I4),
    ("UInt1", VarType::UI1),
    ("UInt2", VarType::UI2),
    ("UInt4", VarType::UI4),
    ("Real4", VarType::R4),
    ("Real8", VarType::R8),
];
/// Branches that have numbers, and what these do.
const WAVES: [(&str, Kind); 6] = [
    ("Random", Kind::Random),
    ("Saw-toothed Waves", Kind::Saw),
    ("Triangle Waves", Kind::Triangle),
    ("Square Waves", Kind::Square),
    ("Sine Waves", Kind::Sine),
    ("Bucket Brigade", Kind::Held),
];
/// Seconds of a wave.
const PERIOD: f64 = 10.0;
/// How high waves are.
const HEIGHT: f64 = 100.0;
/// Elements of arrays.
const ELEMENTS: u64 = 5;

/// What an item does.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Random,
    Saw,
    Triangle,
    Square,
    Sine,
    /// So many in a second.
    Counter(f64),
    /// What was written last.
    Held,
    WriteOnly,
    /// A sine of this quality.
    Of(Quality),
    /// A sine that is bad half of the time.
    Failing,
}

/// A source of simulated values.
pub struct Simulation {
    /// All items, and the values of those that hold what was written.
    table: Table,
    /// What the items do, by their tags.
    kinds: Vec<Kind>,
    begun: Instant,
}

impl Default for Simulation {
    fn default() -> Self {
        Self::new()
    }
}

impl Simulation {
    /// All branches.
    #[must_use]
    pub fn new() -> Self {
        let mut made = Self { table: Table::new(), kinds: Vec::new(), begun: Instant::now() };
        for (branch, kind) in WAVES {
            for (name, vt) in NUMBERS {
                made.add(Item::new(format!("{branch}.{name}"), vt).analog(0.0, HEIGHT, "%"), kind);
            }
        }
        for (branch, kind) in [("Random", Kind::Random), ("Bucket Brigade", Kind::Held)] {
            for (name, vt) in [
                ("Boolean", VarType::BOOL),
                ("Money", VarType::CY),
                ("String", VarType::BSTR),
                ("Time", VarType::DATE),
                ("ArrayOfReal8", VarType::R8.array()),
                ("ArrayOfString", VarType::BSTR.array()),
            ] {
                made.add(Item::new(format!("{branch}.{name}"), vt), kind);
            }
        }
        made.add(Item::new("Square Waves.Boolean", VarType::BOOL), Kind::Square);
        for (name, a_second) in [("Seconds", 1.0), ("Tenths", 10.0), ("Hundredths", 100.0)] {
            made.add(Item::new(format!("Counters.{name}"), VarType::UI4), Kind::Counter(a_second));
        }
        for (name, vt) in [("Int4", VarType::I4), ("Real8", VarType::R8), ("String", VarType::BSTR)] {
            made.add(Item::new(format!("Write Only.{name}"), vt), Kind::WriteOnly);
        }
        for (name, kind) in [
            ("Good", Kind::Of(Quality::GOOD)),
            ("Bad", Kind::Of(Quality::DEVICE_FAILURE)),
            ("Not connected", Kind::Of(Quality::NOT_CONNECTED)),
            ("Uncertain", Kind::Of(Quality::SENSOR_CAL)),
            ("Failing", Kind::Failing),
        ] {
            made.add(Item::new(format!("Quality.{name}"), VarType::R8).analog(0.0, HEIGHT, "%"), kind);
        }
        made
    }

    fn add(&mut self, mut item: Item, kind: Kind) {
        item.tag = self.kinds.len() as u64;
        self.kinds.push(kind);
        item.access = match kind {
            Kind::Held => Access::BOTH,
            Kind::WriteOnly => Access::WRITE,
            _ => Access::READ,
        };
        let first = empty_of(item.canonical);
        self.table.add(item, first);
    }

    fn kind(&self, item: &Item) -> Kind {
        let at = usize::try_from(item.tag).unwrap_or(usize::MAX);
        self.kinds.get(at).copied().unwrap_or(Kind::Held)
    }

    /// The value of an item so many seconds after the beginning.
    fn value(item: &Item, kind: Kind, seconds: f64, time: FileTime) -> Result<Vqt, Code> {
        let phase = (seconds / PERIOD).fract();
        let sine = HEIGHT / 2.0 * (1.0 + (TAU * phase).sin());
        let number = match kind {
            Kind::Random => return Ok(Vqt::good(random(item, seconds)?, time)),
            Kind::Saw => HEIGHT * phase,
            Kind::Triangle => HEIGHT * (1.0 - (2.0 * phase - 1.0).abs()),
            Kind::Square if phase < 0.5 => 0.0,
            Kind::Square => HEIGHT,
            Kind::Counter(a_second) => (seconds * a_second).floor(),
            Kind::WriteOnly => return Err(Code::BAD_RIGHTS),
            Kind::Sine | Kind::Held | Kind::Of(_) | Kind::Failing => sine,
        };
        let quality = match kind {
            Kind::Of(quality) => quality,
            Kind::Failing if phase < 0.5 => Quality::DEVICE_FAILURE,
            _ => Quality::GOOD,
        };
        Ok(Vqt { data: Data::R8(number).coerce(item.canonical)?, quality, time })
    }
}

/// What an item of this type has before anybody wrote it.
fn empty_of(vt: VarType) -> Data {
    match vt.element() {
        Some(element) => Data::array(element, Vec::new()),
        None => Data::I4(0).coerce(vt).unwrap_or_default(),
    }
}

/// A value that looks like chance: the same for everybody who asks within a tenth of a second.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn random(item: &Item, seconds: f64) -> Result<Data, Code> {
    let tick = (seconds * 10.0) as u64;
    let draw = |n: u64| mixed(item.tag ^ mixed(tick) ^ mixed(n << 32));
    let number = |n| HEIGHT * (draw(n) >> 11) as f64 / (1_u64 << 53) as f64;
    let word = |n: u64| format!("Random {}", draw(n) % 1000);
    Ok(match item.canonical {
        VarType::BSTR => word(0).into(),
        VarType::BOOL => Data::Bool(draw(0) & 1 == 1),
        // Some day between 2000 and 2030.
        VarType::DATE => Data::Date(36_526.0 + number(0) * 109.58),
        vt => match vt.element() {
            Some(VarType::BSTR) => {
                Data::array(VarType::BSTR, (0..ELEMENTS).map(|n| word(n).into()).collect())
            }
            Some(element) => Data::array(element, (0..ELEMENTS).map(|n| number(n).into()).collect()),
            None => Data::R8(number(0)).coerce(vt)?,
        },
    })
}

/// A number in which every bit depends on every bit of another (the finalizer of splitmix64).
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Source for Simulation {
    fn find(&self, id: &str) -> Option<Arc<Item>> {
        self.table.find(id)
    }

    fn children(&self, branch: &str, after: Option<&str>) -> Option<Children> {
        self.table.children(branch, after)
    }

    fn child(&self, branch: &str, name: &str) -> Option<Child> {
        self.table.child(branch, name)
    }

    fn read(&self, items: &[Arc<Item>]) -> Vec<Result<Vqt, Code>> {
        let (seconds, time) = (self.begun.elapsed().as_secs_f64(), FileTime::now());
        let one = |item: &Arc<Item>| match self.kind(item) {
            Kind::Held => self.table.get(&item.id).ok_or(Code::UNKNOWN_ITEM),
            kind => Self::value(item, kind, seconds, time),
        };
        items.iter().map(one).collect()
    }

    fn write(&self, writes: &[Write]) -> Vec<Code> {
        self.table.write(writes)
    }

    fn watch(&self, item: &Arc<Item>, feed: Feed) -> bool {
        // All others change all the time: the server reads them when it wants a value.
        self.kind(item) == Kind::Held && self.table.watch(item, feed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(id: &str, seconds: f64) -> Vqt {
        let simulation = Simulation::new();
        let item = simulation.find(id).unwrap();
        Simulation::value(&item, simulation.kind(&item), seconds, FileTime::default()).unwrap()
    }

    #[test]
    fn waves_go_up_and_down_in_ten_seconds() {
        for (id, values) in [
            ("Saw-toothed Waves.Real8", [0.0, 25.0, 50.0, 75.0]),
            ("Triangle Waves.Real8", [0.0, 50.0, 100.0, 50.0]),
            ("Square Waves.Real8", [0.0, 0.0, 100.0, 100.0]),
            ("Sine Waves.Real8", [50.0, 100.0, 50.0, 0.0]),
        ] {
            for (quarter, value) in values.into_iter().enumerate() {
                let found = at(id, 10.0 + 2.5 * quarter as f64).data.number().unwrap();
                assert!((found - value).abs() < 1e-9, "{id} {quarter}: {found}");
            }
        }
        assert_eq!(at("Triangle Waves.Int2", 5.0).data, Data::I2(100));
        assert_eq!(at("Square Waves.Boolean", 7.5).data, Data::Bool(true));
        assert_eq!(at("Counters.Tenths", 12.34).data, Data::U4(123));
    }

    #[test]
    fn chance_is_the_same_for_all_within_a_tenth_of_a_second() {
        assert_eq!(at("Random.Real8", 1.01), at("Random.Real8", 1.09));
        assert_ne!(at("Random.Real8", 1.01), at("Random.Real8", 1.11));
        assert_ne!(at("Random.Real8", 1.01), at("Random.Real4", 1.01));
        for tick in 0..1000 {
            let number = at("Random.Int1", f64::from(tick) / 10.0).data.number().unwrap();
            assert!((0.0..=100.0).contains(&number));
        }
    }

    #[test]
    fn qualities_are_what_their_names_say() {
        assert!(at("Quality.Good", 1.0).quality.is_good());
        assert!(at("Quality.Bad", 1.0).quality.is_bad());
        let failing = [1.0, 6.0, 11.0, 16.0].map(|seconds| at("Quality.Failing", seconds).quality.is_bad());
        assert_eq!(failing, [true, false, true, false]);
    }

    #[test]
    fn what_is_written_is_held_where_it_may_be() {
        let simulation = Simulation::new();
        let write = |id: &str, data: Data| {
            let item = simulation.find(id).unwrap();
            simulation.write(&[Write { item, data, quality: None, time: None }])
        };
        assert_eq!(write("Bucket Brigade.Int4", Data::I4(7)), [Code::OK]);
        let held = simulation.find("Bucket Brigade.Int4").unwrap();
        assert_eq!(simulation.read(&[held])[0].as_ref().unwrap().data, Data::I4(7));
        assert_eq!(write("Write Only.Int4", Data::I4(7)), [Code::OK]);
        let closed = simulation.find("Write Only.Int4").unwrap();
        assert_eq!(closed.access, Access::WRITE);
        assert_eq!(simulation.read(&[closed]), [Err(Code::BAD_RIGHTS)]);
    }

    #[test]
    fn every_item_has_a_value_of_its_type() {
        let simulation = Simulation::new();
        let mut seen = 0;
        for branch in simulation.children("", None).unwrap() {
            for child in simulation.children(&branch.branch.unwrap(), None).unwrap() {
                let item = simulation.find(&child.item.unwrap()).unwrap();
                match simulation.read(std::slice::from_ref(&item)).remove(0) {
                    Ok(value) => assert_eq!(value.data.var_type(), item.canonical, "{}", item.id),
                    Err(code) => assert_eq!(code, Code::BAD_RIGHTS, "{}", item.id),
                }
                seen += 1;
            }
        }
        assert_eq!(seen, 6 * 8 + 2 * 6 + 1 + 3 + 3 + 5);
    }
}
