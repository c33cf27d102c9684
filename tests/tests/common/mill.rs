//! The service of `mill.wsdl`, whose types XmlSerializer writes: values, a servant, and what a client does. The values are also in
//! `peers/mono/mill.cs`.

use contract::mill::{AnyParty, Firm, Grain, IMill, Label, Party, Price, Sack, SackItem};
use everywire::{Bytes, Failure, Initiator, Kind};
use std::fmt::Debug;

#[allow(unreachable_pub, missing_docs, clippy::pedantic)]
pub mod contract {
    everywire::include_contract!("mill");
}

fn label() -> Label {
    Label { count: 4_000_000_000, value: "<flour> & \"bran\"\n'fine'".to_owned() }
}

fn labels() -> Vec<Label> {
    vec![label(), Label { count: 0, value: "x".to_owned() }]
}

fn price() -> Price {
    Price { currency: "€".to_owned(), value: "37.50".to_owned() }
}

fn firm() -> AnyParty {
    AnyParty::Firm(Firm {
        key: "K \"1\" <&>\t\n".to_owned(),
        name: "Mill & Sons".to_owned(),
        register: -9_000_000_000,
        seat: "Uptown".to_owned(),
    })
}

fn full() -> Sack {
    let text = |text: &str| SackItem::Text(text.to_owned());
    Sack {
        filled: "2020-01-02T03:04:05Z".to_owned(),
        grain: Grain::DurumWheat,
        id: -17,
        lang: "de".to_owned(),
        mark: "A<1>".to_owned(),
        rank: Some(-3),
        seal: Bytes::from_static(&[0, 1, 254, 255]),
        sieves: "Fine Bran".to_owned(),
        sizes: vec![1, -2, 70_000],
        count: Some(0),
        from: Some(firm()),
        items: vec![text("first"), SackItem::Whole(5), SackItem::Price(price()), text("last")],
        label: labels(),
        lines: labels(),
        note: "note".to_owned(),
        number: vec![3, 0, -1],
        card: None,
        cash: Some("12.5".to_owned()),
        weeks: 9,
        weight: "1.250".to_owned(),
    }
}

fn empty() -> Sack {
    Sack {
        filled: "1999-12-31T00:00:00Z".to_owned(),
        grain: Grain::Wheat,
        id: 0,
        lang: String::new(),
        mark: String::new(),
        rank: None,
        seal: Bytes::new(),
        sieves: "Coarse".to_owned(),
        sizes: vec![],
        count: None,
        from: None,
        items: vec![],
        label: vec![],
        lines: vec![],
        note: String::new(),
        number: vec![],
        card: Some("visa".to_owned()),
        cash: None,
        weeks: 7,
        weight: "0".to_owned(),
    }
}

/// The value, if it is the one that the samples have.
fn same<T: PartialEq + Debug>(got: &T, wanted: T) -> Result<T, Failure> {
    if *got == wanted {
        return Ok(wanted);
    }
    Err(Failure::new(Kind::BadArgument, Initiator::User, format!("wanted {wanted:?} but got {got:?}")))
}

/// The service.
#[derive(Debug)]
pub struct Mill;

impl IMill for Mill {
    fn echo_sack(&self, v: &Option<Sack>) -> Result<Option<Sack>, Failure> {
        let is_full = v.as_ref().is_some_and(|sack| sack.rank.is_some());
        same(v, Some(if is_full { full() } else { empty() }))
    }
    fn echo_label(&self, v: &Option<Label>) -> Result<Option<Label>, Failure> {
        same(v, Some(label()))
    }
    fn echo_price(&self, v: &Option<Price>) -> Result<Option<Price>, Failure> {
        same(v, Some(price()))
    }
    fn echo_party(&self, v: &Option<AnyParty>) -> Result<Option<AnyParty>, Failure> {
        same(v, Some(firm()))
    }
    fn echo_labels(&self, v: &[Label]) -> Result<Vec<Label>, Failure> {
        same(&v.to_vec(), labels())
    }
    fn add(&self, a: i32, b: i32, note: &str) -> Result<i32, Failure> {
        same(&note, "sum")?;
        Ok(a + b)
    }
    fn sum(&self, n: &[i32]) -> Result<i32, Failure> {
        Ok(n.iter().sum())
    }
}

/// Sends all the values, and checks what comes back.
pub fn use_mill(mill: &dyn IMill) {
    assert_eq!(mill.echo_sack(&Some(full())).expect("EchoSack"), Some(full()));
    assert_eq!(mill.echo_sack(&Some(empty())).expect("EchoSack"), Some(empty()));
    assert_eq!(mill.echo_label(&Some(label())).expect("EchoLabel"), Some(label()));
    assert_eq!(mill.echo_price(&Some(price())).expect("EchoPrice"), Some(price()));
    assert_eq!(mill.echo_party(&Some(firm())).expect("EchoParty"), Some(firm()));
    assert_eq!(mill.echo_labels(&labels()).expect("EchoLabels"), labels());
    assert_eq!(mill.add(40, 2, "sum").expect("Add"), 42);
    let party = AnyParty::Party(Party { key: String::new(), name: "nobody".to_owned() });
    assert!(mill.echo_party(&Some(party)).is_err(), "another party");
}
