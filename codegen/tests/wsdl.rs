//! Contracts in WSDL: what a description says beside types reaches the generated tables, and calls work.

use crate::bench_wsdl::{self, IRemoteObject};
use crate::clock_wsdl::clock;
use crate::clock_wsdl::example::clocks::{AnyDial, Dial, Hands, Kind, PairOfintstringHjsKd, SunDial};
use crate::memory::World;
use crate::tape::TAPE;
use everywire_model::contract::note;
use everywire_model::{Bytes, Failure, Ref};
use std::sync::Arc;

struct Bench;

impl IRemoteObject for Bench {
    fn get_bytes(&self, num_bytes: i32) -> Result<Bytes, Failure> {
        Ok(vec![7; num_bytes.try_into().unwrap()].into())
    }
    fn put_bytes(&self, data: Bytes) -> Result<i32, Failure> {
        Ok(data.len().try_into().unwrap())
    }
    fn void_call(&self) -> Result<(), Failure> {
        Ok(())
    }
    fn in_int(&self, _: i32) -> Result<(), Failure> {
        Ok(())
    }
    fn out_int(&self) -> Result<i32, Failure> {
        Ok(42)
    }
    fn in_out_int(&self, x: i32) -> Result<i32, Failure> {
        Ok(x + 1)
    }
    fn in_string(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }
    fn out_string(&self) -> Result<String, Failure> {
        Ok("out".into())
    }
    fn in_out_string(&self, s: &str) -> Result<String, Failure> {
        Ok(s.to_uppercase())
    }
}

#[test]
fn the_bench_works() {
    let world = World::speaking(&TAPE);
    let remote: Ref<dyn IRemoteObject> = world.serve("bench", Arc::new(Bench));
    assert_eq!(remote.get_bytes(3).unwrap(), vec![7; 3]);
    assert_eq!(remote.put_bytes(vec![1, 2].into()).unwrap(), 2);
    assert_eq!(remote.in_out_int(41).unwrap(), 42);
    assert_eq!(remote.in_out_string("x").unwrap(), "X");
}

#[test]
fn notes_reach_the_tables() {
    let hello = &bench_wsdl::describe::I_HELLO;
    assert_eq!(note(&hello.notes, "wcf:callback"), Some("{http://tempuri.org/}IHelloCallback"));
    let signal = hello.signal(b"OnHello").unwrap();
    let (sink, number) = signal.sink.as_ref().unwrap();
    let told = &sink.operations[*number];
    assert_eq!(note(&told.notes, "wcf:action"), Some("http://tempuri.org/IHello/OnHello"));
    let clock = &clock::describe::I_CLOCK;
    let set = clock.operations.iter().find(|operation| operation.name == "Set").unwrap();
    assert_eq!(note(&set.notes, "wcf:initiating"), Some("false"));
}

/// A type that holds itself, or one that extends it.
#[test]
fn types_contain_their_family() {
    let dial = || Dial {
        alarm: None,
        colours: vec!["red".into()],
        hands: Hands { hour: 1, minute: 2 },
        inner: None,
        kind: Kind::Tower,
        offset: PairOfintstringHjsKd { first: 1, second: "x".into() },
        span: "PT1S".into(),
    };
    let sun = SunDial {
        alarm: None,
        colours: Vec::new(),
        hands: Hands { hour: 0, minute: 0 },
        inner: Some(Box::new(AnyDial::Dial(dial()))),
        kind: Kind::Wall,
        offset: PairOfintstringHjsKd { first: 0, second: String::new() },
        span: String::new(),
        latitude: 0.5,
    };
    assert_eq!(AnyDial::SunDial(sun.clone()), AnyDial::SunDial(sun));
}
