//! Our client and a COM server under Wine that listens on TCP (`?dialect=wine`).

use crate::common::dcom_torture;
use crate::common::foreign::{contract, everywire, run, run_with, until};
use crate::common::wine;
use everywire::model::Variant;
use everywire::model::describe::{TextKind, text};
use everywire::model::shape::Shape;
use everywire::model::value::{TypedShape, Value};
use everywire::{Kind, Node, Ref};
use std::sync::Arc;
use std::time::Duration;
use wine::cupboard::{Contents, ICupboard, ILabels, IPantry, IScales, Jar, Size};
use wine::{Cupboard, Wine, awake};

fn connect(node: &Node, cupboard: &Cupboard) -> Ref<dyn ICupboard> {
    node.connect(&cupboard.reference).expect("it parses")
}

fn pantry(node: &Node, cupboard: &Ref<dyn ICupboard>) -> Ref<dyn IPantry> {
    let unknown = cupboard.pantry().expect("it answers").expect("an object");
    node.narrow(unknown).expect("it resolves")
}

fn jar(label: &str) -> Jar {
    Jar {
        kind: Contents::Frozen,
        grams: 500,
        shelf: -3,
        since: 1 << 40,
        price: 2.75,
        label: Some(label.to_owned()),
        note: "grün & süß".to_owned(),
        seal: [1, 2, 3],
        last: 77,
    }
}

#[test]
fn wine_takes_and_gives_every_kind_of_value() {
    awake(|| {
        let Some(cupboard) = Cupboard::start("wine_takes_and_gives_every_kind_of_value") else { return };
        let node = Node::new();
        let object = connect(&node, &cupboard);
        // Labels of different lengths move everything behind them.
        for label in ["", "x", "plum", "quince"] {
            let (turned, doubled) =
                object.turn(&jar(label), &Size { width: 2, height: 3, volume: 1 << 35 }).expect("it answers");
            let expected = Jar { grams: -500, since: (1 << 40) + 1, seal: [3, 2, 1], ..jar(label) };
            assert_eq!(turned, expected);
            assert_eq!(doubled, Size { width: 4, height: 6, volume: 1 << 36 });
        }
        // More than fits into a fragment.
        for count in [0, 1, 1000] {
            let jars = object.fill(count).expect("it answers");
            assert_eq!(jars.len(), count as usize);
            for (number, jar) in (0..).zip(&jars) {
                let kind = if number % 2 == 1 { Contents::Wet } else { Contents::Frozen };
                assert_eq!((jar.kind, jar.grams, jar.last), (kind, number, number * 7));
                assert_eq!((jar.since, jar.price), (i64::from(number) << 33, f64::from(number) / 2.0));
                assert_eq!((&jar.label, &*jar.note), (&Some(format!("jar {number}")), &*number.to_string()));
            }
        }
        let names = ["pear", "fig", "", "apple"].map(str::to_owned);
        let (sorted, lengths) = object.sort(&names).expect("it answers");
        assert_eq!((sorted.join(","), lengths), (",apple,fig,pear".to_owned(), vec![4, 3, 0, 5]));
        assert_eq!(object.sort(&[]).expect("it answers"), (vec![], vec![]));

        let scales = object.open(false).expect("it answers").expect("an object");
        assert_eq!(scales.weigh(4, 1 << 33).expect("it answers"), (1 << 34, 2_147_483_648.0));
        assert_eq!(scales.label("Grün").expect("it answers"), 4);
        for len in [0_u32, 1, 7, 100_000] {
            let load: Vec<u8> = (0..len).map(|number| (number % 251) as u8).collect();
            let reversed: Vec<u8> = load.iter().rev().copied().collect();
            assert_eq!(scales.reverse(load.into()).expect("it answers"), reversed);
        }

        let pantry = pantry(&node, &object);
        assert_eq!(pantry.add(40, 2).expect("it answers"), 42);
        for text in ["", "a", "Grüße", "𝄞 and more"] {
            assert_eq!(pantry.echo(text).expect("it answers"), text);
        }
        let bstr = || text(TextKind::Counted, None);
        let texts = ["one", "", "three"].map(|text| Value::Text(text.to_owned())).to_vec();
        let mixed = vec![
            Value::Variant(Box::new((TypedShape(Shape::I32), Value::Integer(7)))),
            Value::Variant(Box::new((TypedShape(bstr()), Value::Text("seven".to_owned())))),
        ];
        for (shape, value) in [
            (Shape::Void, Value::Nothing),
            (Shape::Bool, Value::Bool(true)),
            (Shape::I16, Value::Integer(-2)),
            (Shape::I32, Value::Integer(-70_000)),
            (Shape::I64, Value::Integer(1 << 60)),
            (Shape::F64, Value::Float(0.5)),
            (bstr(), Value::Text("in a VARIANT".to_owned())),
            (Shape::sequence(Shape::I32), Value::List(vec![Value::Integer(1), Value::Integer(2)])),
            (Shape::sequence(bstr()), Value::List(texts)),
            (Shape::sequence(Shape::Variant), Value::List(mixed)),
        ] {
            let given = Variant::new(shape, value);
            let same = pantry.same(&given).unwrap_or_else(|failure| panic!("{given:?}: {failure}"));
            assert_eq!(format!("{:?}", same.value()), format!("{:?}", given.value()));
        }
    });
}

#[test]
fn wine_is_called_by_name_and_its_failures_come_through() {
    awake(|| {
        let Some(cupboard) = Cupboard::start("wine_is_called_by_name_and_its_failures_come_through") else {
            return;
        };
        let node = Node::new();
        let pantry = pantry(&node, &connect(&node, &cupboard));
        let labels: Ref<dyn ILabels> = node.narrow(pantry.reference().clone()).expect("it resolves");
        assert_eq!(labels.add(40, 2).expect("it answers"), 42);
        assert_eq!(labels.echo("süß").expect("it answers"), "süß");
        labels.refuse(0).expect("nothing is refused");
        let denied = 0x8007_0005_u32.cast_signed();
        for failure in
            [labels.refuse(denied), pantry.refuse(denied)].map(|refused| refused.expect_err("refused"))
        {
            assert_eq!(failure.code(), Some("0x80070005"), "{failure}");
        }
        // An interface that the object does not have.
        let scales: Ref<dyn IScales> = node.narrow(pantry.reference().clone()).expect("it resolves");
        let failure = scales.label("x").expect_err("no scales");
        assert_eq!(failure.code(), Some("0x80004002"), "{failure}");
        assert_eq!(pantry.add(1, 1).expect("it answers all the same"), 2);
    });
}

#[test]
fn objects_that_are_let_go_die_in_wine() {
    awake(|| {
        let Some(cupboard) = Cupboard::start("objects_that_are_let_go_die_in_wine") else { return };
        let node = Node::new();
        let object = connect(&node, &cupboard);
        assert_eq!(object.living().expect("it answers"), 0);
        // The second has a free-threaded marshaler.
        for free in [false, true] {
            let scales: Vec<_> =
                (0..20).map(|_| object.open(free).expect("it answers").expect("an object")).collect();
            assert_eq!(object.living().expect("it answers"), 20);
            for scales in &scales {
                scales.label("they are called").expect("it answers");
            }
            drop(scales);
            until("they die", || object.living().expect("it answers") == 0);
        }
        // References go there and back, and none is lost or kept too long.
        let scales = object.open(false).expect("it answers").expect("an object");
        for _ in 0..20 {
            let (back, length) = object.lend(Some(scales.clone()), "four").expect("it answers");
            assert_eq!((back.expect("an object").label("three").expect("it answers"), length), (5, 4));
        }
        assert!(object.lend(None, "nobody").expect("it answers").0.is_none());
        assert_eq!(pantry(&node, &object).delegate(Some(scales.clone()), "label").expect("it answers"), 5);
        assert_eq!(object.living().expect("it answers"), 1);
        drop(scales);
        until("the last dies", || object.living().expect("it answers") == 0);
        // What a node holds when it ends, it gives back.
        let other = Node::new();
        let held = connect(&other, &cupboard).open(false).expect("it answers").expect("an object");
        assert_eq!(object.living().expect("it answers"), 1);
        drop(held);
        drop(other);
        until("it dies", || object.living().expect("it answers") == 0);
    });
}

/// Nobody is called by Wine who is not in a process of its own.
#[derive(Debug)]
struct Ours;

impl IScales for Ours {
    fn weigh(&self, _: i32, _: i64) -> Result<(i64, f64), everywire::Failure> {
        Ok((0, 0.0))
    }
    fn reverse(&self, load: everywire::Bytes) -> Result<everywire::Bytes, everywire::Failure> {
        Ok(load)
    }
    fn label(&self, _: &str) -> Result<u32, everywire::Failure> {
        Ok(0)
    }
}

#[test]
fn what_cannot_be_had_from_wine_is_said() {
    awake(|| {
        let Some(mut cupboard) = Cupboard::start("what_cannot_be_had_from_wine_is_said") else { return };
        let node = Node::new();
        node.listen("dcom://127.0.0.1:0?level=none").expect("a port");
        let object = connect(&node, &cupboard);
        let ours: Ref<dyn IScales> = node.export("ours", Arc::new(Ours));
        let failure = object.lend(Some(ours), "x").expect_err("it cannot be called");
        assert!(failure.kind() == Kind::Unsupported && failure.to_string().contains("Wine"), "{failure}");

        let refused = |address: &str, part: &str| {
            let failure = node.parse(address).expect_err("it is refused");
            assert!(format!("{failure}").contains(part), "{address}: {failure}");
        };
        refused(&format!("{}?dialect=wine", cupboard.moniker), "does not say");
        refused(&format!("{}&level=integrity", cupboard.reference), "level=none");
        refused(
            &format!("{}&users=nobody", cupboard.moniker.clone() + "?dialect=wine&at=localhost:1"),
            "nobody",
        );
        refused(
            &format!("dcom://127.0.0.1:{}?dialect=wine", cupboard.port),
            "neither activates nor resolves",
        );
        refused(&format!("{}?dialect=other", cupboard.moniker), "dialect");

        // What is printed leads there again.
        let scales = object.open(true).expect("it answers").expect("an object");
        let text = node.print(scales.reference());
        let again: Ref<dyn IScales> = node.connect(&text).expect("it parses");
        assert_eq!(again.label("again").expect("it answers"), 5);

        // An answer that nobody waited for is not taken for the next one.
        let other = Node::new();
        let calm: Ref<dyn ICupboard> = other.connect(&cupboard.reference).expect("it parses");
        assert_eq!(calm.living().expect("it answers"), 1);
        // Connected already: this much is for the answer.
        let hasty = other.object(&cupboard.reference).expect("it parses");
        let hasty = hasty.with_deadline(Some(Duration::from_millis(100)));
        let waiting: Ref<dyn ICupboard> = hasty.into_typed();
        let failure = waiting.wait().expect_err("nobody fires");
        assert_eq!(failure.kind(), Kind::TimedOut, "{failure}");
        assert_eq!(object.living().expect("it answers"), 1);
        pantry(&node, &object).fire(1).expect("it answers");
        assert_eq!(calm.living().expect("it answers"), 1);

        cupboard.crash();
        let failure = object.living().expect_err("it is gone");
        assert_eq!(failure.kind(), Kind::Unreachable, "{failure}");
    });
}

#[test]
fn the_program_calls_wine() {
    awake(|| {
        let Some(cupboard) = Cupboard::start("the_program_calls_wine") else { return };
        let file = contract("cupboard.midl");
        let call = |reference: &str, words: &[&str]| {
            let mut command = everywire();
            command.args(["call", reference]).args(words).arg("-c").arg(&file);
            let said = run_with(&mut command, b"");
            assert!(said.success, "{words:?}: {}{}", said.out, said.err);
            said.out.trim().to_owned()
        };
        assert_eq!(call(&cupboard.reference, &["Living"]), "0");
        let scales = call(&cupboard.reference, &["Open", "true"]);
        assert!(scales.starts_with("objref:") && scales.ends_with("?dialect=wine"), "{scales}");
        let pantry = call(&cupboard.reference, &["Pantry"]);
        assert_eq!(call(&pantry, &["Add", "40", "2", "--interface", "IPantry"]), "42");
        assert_eq!(call(&pantry, &["Echo", "by name", "--interface", "ILabels"]), "by name");

        // The object tells what can be called by name.
        let said = run_with(everywire().args(["call", &pantry, "Echo", "without a contract"]), b"");
        assert!(said.success && said.out.trim() == "without a contract", "{}{}", said.out, said.err);
        let said = run_with(everywire().args(["describe", &pantry, "--as", "midl"]), b"");
        let told = "[id(6)] long Delegate([in] IScales *scales, [in] BSTR text);";
        assert!(said.success && said.out.contains(told), "{}{}", said.out, said.err);
        let said = run_with(everywire().args(["describe", &cupboard.reference]), b"");
        assert!(
            said.success && said.out.contains("whoever reaches the port can call"),
            "{}{}",
            said.out,
            said.err
        );
    });
}

#[test]
fn wine_calls_our_procedures() {
    awake(|| {
        let Some(wine) = Wine::find("wine_calls_our_procedures") else { return };
        let node = Node::new();
        let address = node.listen("dcom://127.0.0.1:0?level=none").expect("a port");
        dcom_torture::serve(&node);
        let port = address.split(['?', '/']).find_map(|part| part.rsplit_once(':')?.1.parse::<u16>().ok());
        let said = run(wine.run("caller.exe").arg(port.expect("a port").to_string()));
        assert_eq!(said.trim(), "ok");
    });
}
