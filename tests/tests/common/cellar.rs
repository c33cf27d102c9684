//! The services of `cellar.wsdl`, `hello.wsdl` and `bench.wsdl`: values, servants, and what a client does. The values are also
//! in `peers/mono/samples.cs`.

use super::foreign::until;
use contract::cellar::{ICellar, TakeError};
use contract::everywire_::cellar::{
    AnyWine, Champagne, Grape, Knot, Maybe, OutOfStock, Parcel, Primitives, Rack, Sparkling, Wine,
};
use contract::labels::{Broken, Label, Shelf};
use everywire::model::Variant;
use everywire::{Bytes, Failure, Initiator, Kind};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

#[allow(unreachable_pub, missing_docs, clippy::pedantic)]
pub mod contract {
    everywire::include_contract!("cellar");
}

pub const TEXT: &str = "Grüße <&> \"'\n\t€ 😀 ]]>";
const GUID: &str = "00112233-4455-6677-8899-aabbccddeeff";
const UTC: &str = "2020-01-02T03:04:05Z";
const UNSPECIFIED: &str = "1999-12-31T23:59:59.1234567";
const DECIMAL: &str = "123456789012345.6700";
const SPAN: &str = "P1DT2H3M4.5S";
const URI: &str = "http://example.test/a?b=c&d";
const BYTES: [u8; 7] = [0, 1, 2, 127, 128, 254, 255];

fn label(text: &str, year: i32) -> Label {
    Label { text: text.to_owned(), year }
}

fn labels() -> Vec<Label> {
    vec![label("one", 1901), label("", 0)]
}

fn stock() -> BTreeMap<String, i32> {
    BTreeMap::from([("red".to_owned(), 3), ("white".to_owned(), -4)])
}

fn places() -> BTreeMap<i32, Label> {
    BTreeMap::from([(7, label("seven", 1977)), (-1, label("minus", -1))])
}

fn primitives() -> Primitives {
    Primitives {
        boolean: true,
        byte: 200,
        bytes: Bytes::from_static(&BYTES),
        char: 'ß',
        date_time: UNSPECIFIED.to_owned(),
        decimal: DECIMAL.to_owned(),
        double: -0.1,
        guid: GUID.to_owned(),
        int16: -30_000,
        int32: -2_000_000_000,
        int64: -9_000_000_000_000_000_000,
        s_byte: -100,
        single: 1.5,
        string: TEXT.to_owned(),
        time_span: SPAN.to_owned(),
        u_int16: 60_000,
        u_int32: 4_000_000_000,
        u_int64: 18_000_000_000_000_000_000,
        uri: URI.to_owned(),
    }
}

fn maybe() -> Maybe {
    Maybe {
        date: Some(UTC.to_owned()),
        double: Some(2.0),
        grape: Some(Grape::Syrah),
        int: Some(0),
        nothing: None,
    }
}

fn maybe_not() -> Maybe {
    Maybe { date: None, double: None, grape: None, int: None, nothing: None }
}

fn rack() -> Rack {
    let last = Rack { front: None, labels: vec![], next: None, stock: stock() };
    Rack {
        front: Some(label("front", 2001)),
        labels: labels(),
        next: Some(Box::new(last)),
        stock: BTreeMap::new(),
    }
}

fn shelf() -> Shelf {
    Shelf { seldom: 0, third: "three".to_owned(), b: 2, a: 1 }
}

fn champagne() -> AnyWine {
    AnyWine::Champagne(Champagne { name: "Brut".to_owned(), bar: 6.25, house: "R.".to_owned() })
}

fn wines() -> Vec<AnyWine> {
    vec![
        AnyWine::Wine(Wine { name: "plain".to_owned() }),
        AnyWine::Sparkling(Sparkling { name: "Sekt".to_owned(), bar: 3.0 }),
        champagne(),
    ]
}

const LONGS: [i64; 4] = [0, -1, i64::MAX, i64::MIN];
const INTS: [i32; 6] = [1, -2, 70_000, 0, i32::MIN, i32::MAX];
const DOUBLES: [f64; 7] = [0.0, 1.5, -2.25, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e300];
const GRAPES: [Grape; 3] = [Grape::Syrah, Grape::PinotNoir, Grape::Riesling];

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// An absent text reads as an empty one.
fn strings() -> Vec<String> {
    texts(&["a", "", "", "d e"])
}

fn guids() -> Vec<String> {
    texts(&[GUID, "00000000-0000-0000-0000-000000000000"])
}

/// The same, or a failure that says what came.
fn same<T: Debug + ?Sized>(got: &T, wanted: &T) -> Result<(), Failure> {
    // What is no number is not even itself.
    let (got, wanted) = (format!("{got:?}"), format!("{wanted:?}"));
    if got == wanted {
        return Ok(());
    }
    Err(Failure::new(Kind::BadArgument, Initiator::User, format!("wanted {wanted}, got {got}")))
}

/// Gives back what came if it is what was to come.
fn echo<T: Debug + ?Sized + ToOwned>(got: &T, wanted: &T) -> Result<T::Owned, Failure> {
    same(got, wanted).map(|()| got.to_owned())
}

/// The service: it takes the values above alone.
#[derive(Debug, Default)]
pub struct Cellar {
    notes: Mutex<Vec<String>>,
    noted: Condvar,
    /// Values of any type that came.
    pub objects: Mutex<Vec<Variant>>,
}

impl ICellar for Cellar {
    fn echo_boolean(&self, v: bool) -> Result<bool, Failure> {
        echo(&v, &true)
    }
    fn echo_byte(&self, v: u8) -> Result<u8, Failure> {
        echo(&v, &200)
    }
    fn echo_s_byte(&self, v: i8) -> Result<i8, Failure> {
        echo(&v, &-100)
    }
    fn echo_int16(&self, v: i16) -> Result<i16, Failure> {
        echo(&v, &-30_000)
    }
    fn echo_u_int16(&self, v: u16) -> Result<u16, Failure> {
        echo(&v, &60_000)
    }
    fn echo_int32(&self, v: i32) -> Result<i32, Failure> {
        echo(&v, &-2_000_000_000)
    }
    fn echo_u_int32(&self, v: u32) -> Result<u32, Failure> {
        echo(&v, &4_000_000_000)
    }
    fn echo_int64(&self, v: i64) -> Result<i64, Failure> {
        echo(&v, &-9_000_000_000_000_000_000)
    }
    fn echo_u_int64(&self, v: u64) -> Result<u64, Failure> {
        echo(&v, &18_000_000_000_000_000_000)
    }
    fn echo_single(&self, v: f32) -> Result<f32, Failure> {
        echo(&v, &1.5)
    }
    fn echo_double(&self, v: f64) -> Result<f64, Failure> {
        echo(&v, &-0.1)
    }
    fn echo_decimal(&self, v: &str) -> Result<String, Failure> {
        echo(v, DECIMAL)
    }
    fn echo_char(&self, v: char) -> Result<char, Failure> {
        echo(&v, &'ß')
    }
    fn echo_string(&self, v: &str) -> Result<String, Failure> {
        echo(v, TEXT)
    }
    fn echo_date_time(&self, v: &str) -> Result<String, Failure> {
        echo(v, UTC)
    }
    fn echo_time_span(&self, v: &str) -> Result<String, Failure> {
        echo(v, SPAN)
    }
    fn echo_guid(&self, v: &str) -> Result<String, Failure> {
        echo(v, GUID)
    }
    fn echo_uri(&self, v: &str) -> Result<String, Failure> {
        echo(v, URI)
    }
    fn echo_bytes(&self, v: Bytes) -> Result<Bytes, Failure> {
        echo(&v, &Bytes::from_static(&BYTES))
    }
    fn echo_grape(&self, v: Grape) -> Result<Grape, Failure> {
        echo(&v, &Grape::PinotNoir)
    }

    fn echo_booleans(&self, v: &[bool]) -> Result<Vec<bool>, Failure> {
        echo(v, &[true, false, true])
    }
    fn echo_ints(&self, v: &[i32]) -> Result<Vec<i32>, Failure> {
        echo(v, &INTS)
    }
    fn echo_longs(&self, v: &[i64]) -> Result<Vec<i64>, Failure> {
        echo(v, &LONGS)
    }
    fn echo_doubles(&self, v: &[f64]) -> Result<Vec<f64>, Failure> {
        echo(v, &DOUBLES)
    }
    fn echo_strings(&self, v: &[String]) -> Result<Vec<String>, Failure> {
        echo(v, &strings())
    }
    fn echo_dates(&self, v: &[String]) -> Result<Vec<String>, Failure> {
        echo(v, &texts(&[UTC, UNSPECIFIED]))
    }
    fn echo_guids(&self, v: &[String]) -> Result<Vec<String>, Failure> {
        echo(v, &guids())
    }
    fn echo_grapes(&self, v: &[Grape]) -> Result<Vec<Grape>, Failure> {
        echo(v, &GRAPES)
    }
    fn echo_labels(&self, v: &[Label]) -> Result<Vec<Label>, Failure> {
        echo(v, &labels())
    }
    fn echo_stock(&self, v: &BTreeMap<String, i32>) -> Result<BTreeMap<String, i32>, Failure> {
        echo(v, &stock())
    }
    fn echo_places(&self, v: &BTreeMap<i32, Label>) -> Result<BTreeMap<i32, Label>, Failure> {
        echo(v, &places())
    }

    fn echo_primitives(&self, v: &Option<Primitives>) -> Result<Option<Primitives>, Failure> {
        echo(v, &Some(primitives()))
    }
    fn echo_maybe(&self, v: &Option<Maybe>) -> Result<Option<Maybe>, Failure> {
        let all = v.as_ref().is_some_and(|maybe| maybe.int.is_some());
        echo(v, &Some(if all { maybe() } else { maybe_not() }))
    }
    fn echo_maybe_int(&self, v: &Option<i32>) -> Result<Option<i32>, Failure> {
        echo(v, &v.map(|_| -2_000_000_000))
    }
    fn echo_any(&self, v: &Option<Parcel>) -> Result<Option<Parcel>, Failure> {
        let objects = v.iter().map(|held| held.value.clone());
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).extend(objects);
        Ok(v.clone())
    }
    fn echo_knot(&self, v: &Option<Knot>) -> Result<Option<Knot>, Failure> {
        Ok(v.clone())
    }
    fn echo_rack(&self, v: &Option<Rack>) -> Result<Option<Rack>, Failure> {
        echo(v, &Some(rack()))
    }
    fn echo_shelf(&self, v: &Option<Shelf>) -> Result<Option<Shelf>, Failure> {
        echo(v, &Some(shelf()))
    }
    fn echo_wine(&self, v: &Option<AnyWine>) -> Result<Option<AnyWine>, Failure> {
        echo(v, &Some(champagne()))
    }
    fn echo_wines(&self, v: &[AnyWine]) -> Result<Vec<AnyWine>, Failure> {
        echo(v, &wines())
    }

    fn buy(
        &self,
        item: &Option<Label>,
        count: i32,
        customer: &str,
        priority: i32,
    ) -> Result<(String, String), Failure> {
        same(item, &Some(label("one", 1901)))?;
        same(customer, "Ann")?;
        same(&priority, &9)?;
        let cents = i64::from(count) * 1250;
        Ok((format!("{}.{:02}", cents / 100, cents % 100), "till 3".to_owned()))
    }
    fn take(&self, kind: i32) -> Result<i32, TakeError> {
        match kind {
            0 => Ok(17),
            1 => Err(OutOfStock { left: 2, name: "Brut".to_owned() }.into()),
            2 => Err(Broken { why: "dropped".to_owned() }.into()),
            3 => {
                let closed = Failure::new(Kind::Refused, Initiator::User, "closed today");
                Err(closed.with_code("{urn:codes}Closed").into())
            }
            _ => Err(Failure::new(Kind::Internal, Initiator::User, "the roof leaks").into()),
        }
    }
    fn note(&self, text: &str) -> Result<(), Failure> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
        self.noted.notify_all();
        Ok(())
    }
    fn notes(&self) -> Result<Vec<String>, Failure> {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody answers a note, so the question may come first.
        let wait = self.noted.wait_timeout_while(notes, Duration::from_secs(300), |notes| notes.is_empty());
        Ok(std::mem::take(&mut *wait.unwrap_or_else(PoisonError::into_inner).0))
    }
    fn nothing(&self) -> Result<(), Failure> {
        Ok(())
    }
    fn split(&self, v: i32, text: &str) -> Result<(i32, String, i32), Failure> {
        Ok((v - v / 2, text.repeat(2), v / 2))
    }
    fn ring(&self, times: i32) -> Result<String, Failure> {
        Ok(vec!["ding"; usize::try_from(times).unwrap_or(0)].join(" "))
    }
}

/// Calls every operation of a service that takes the values above; panics where an answer is not as it should be.
pub fn use_all(cellar: &dyn ICellar, strings_of_theirs: &[&str]) {
    macro_rules! echoes {
        ($($operation:ident: $value:expr;)*) => {$(
            let value = $value;
            let got = cellar.$operation(value.clone()).unwrap_or_else(|failure| panic!("{}: {failure}", stringify!($operation)));
            assert_eq!(format!("{got:?}"), format!("{value:?}"), "{}", stringify!($operation));
        )*};
    }
    macro_rules! echoes_by_reference {
        ($($operation:ident: $value:expr;)*) => {$(
            let value = $value;
            let got = cellar.$operation(&value).unwrap_or_else(|failure| panic!("{}: {failure}", stringify!($operation)));
            assert_eq!(format!("{got:?}"), format!("{value:?}"), "{}", stringify!($operation));
        )*};
    }
    echoes! {
        echo_boolean: true;
        echo_byte: 200;
        echo_s_byte: -100;
        echo_int16: -30_000;
        echo_u_int16: 60_000;
        echo_int32: -2_000_000_000;
        echo_u_int32: 4_000_000_000;
        echo_int64: -9_000_000_000_000_000_000;
        echo_u_int64: 18_000_000_000_000_000_000;
        echo_single: 1.5;
        echo_double: -0.1;
        echo_decimal: DECIMAL;
        echo_char: 'ß';
        echo_string: TEXT;
        echo_date_time: UTC;
        echo_time_span: SPAN;
        echo_guid: GUID;
        echo_uri: URI;
        echo_bytes: Bytes::from_static(&BYTES);
        echo_grape: Grape::PinotNoir;
    }
    echoes_by_reference! {
        echo_booleans: [true, false, true];
        echo_ints: INTS;
        echo_longs: LONGS;
        echo_doubles: DOUBLES;
        echo_dates: texts(&[UTC, UNSPECIFIED]);
        echo_guids: guids();
        echo_grapes: GRAPES;
        echo_labels: labels();
        echo_stock: stock();
        echo_places: places();
        echo_primitives: Some(primitives());
        echo_maybe: Some(maybe());
        echo_maybe: Some(maybe_not());
        echo_maybe_int: Some(-2_000_000_000);
        echo_maybe_int: None::<i32>;
        echo_rack: Some(rack());
        echo_shelf: Some(shelf());
        echo_wine: Some(champagne());
        echo_wines: wines();
    }
    assert_eq!(cellar.echo_strings(&strings()).expect("echo_strings"), texts(strings_of_theirs));

    let bought = cellar.buy(&Some(label("one", 1901)), 3, "Ann", 9).expect("buy");
    assert_eq!(bought, ("37.50".to_owned(), "till 3".to_owned()));
    cellar.note("one-way").expect("note");
    // Nobody answers a note: the question may overtake it.
    let mut notes = Vec::new();
    until("the note arrives", || {
        notes = cellar.notes().expect("notes");
        !notes.is_empty()
    });
    assert_eq!(notes, ["one-way"]);
    cellar.nothing().expect("nothing");
    assert_eq!(cellar.split(7, "ab").expect("split"), (4, "abab".to_owned(), 3));
    assert_eq!(cellar.ring(2).expect("ring"), "ding ding");
    fails(cellar);
}

/// The faults of a service.
pub fn fails(cellar: &dyn ICellar) {
    assert_eq!(cellar.take(0).expect("take"), 17);
    match cellar.take(1) {
        Err(TakeError::OutOfStock(raised)) => {
            assert_eq!(raised, OutOfStock { left: 2, name: "Brut".to_owned() })
        }
        other => panic!("take 1: {other:?}"),
    }
    match cellar.take(2) {
        Err(TakeError::Broken(raised)) => assert_eq!(raised, Broken { why: "dropped".to_owned() }),
        other => panic!("take 2: {other:?}"),
    }
    for kind in [3, 4] {
        match cellar.take(kind) {
            Err(TakeError::Failure(failure)) => assert_eq!(failure.initiator(), Initiator::Peer, "{failure}"),
            other => panic!("take {kind}: {other:?}"),
        }
    }
    assert_eq!(cellar.take(0).expect("take after faults"), 17);
}
