//! Contracts in kidl: operations named by whole signatures, types that have names from elsewhere.

use crate::bench_kidl::{DcopBenchmarkingService, DcopBenchmarkingServiceHello};
use crate::memory::World;
use crate::tape::TAPE;
use crate::types_kidl::{KURL, X, describe};
use everywire_model::{Bytes, Failure, Ref, Remote, Shape, TypedSignal};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

#[derive(Default)]
struct Bench(OnceLock<Ref<dyn DcopBenchmarkingService>>);

impl DcopBenchmarkingService for Bench {
    fn void_call(&self) -> Result<(), Failure> {
        Ok(())
    }
    fn in_int_call(&self, in_value: i64) -> Result<(), Failure> {
        assert_eq!(in_value, i64::MAX);
        Ok(())
    }
    fn out_int_call(&self) -> Result<i64, Failure> {
        Ok(42)
    }
    fn in_out_int_call(&self, in_value: i64) -> Result<i64, Failure> {
        Ok(in_value + 1)
    }
    fn in_string_call(&self, in_value: &str) -> Result<(), Failure> {
        assert_eq!(in_value, "in");
        Ok(())
    }
    fn out_string_call(&self) -> Result<String, Failure> {
        Ok("out".into())
    }
    fn in_out_string_call(&self, in_value: &str) -> Result<String, Failure> {
        Ok(in_value.to_uppercase())
    }
    fn get_bytes(&self, n: i32) -> Result<Bytes, Failure> {
        Ok(vec![5; n.try_into().unwrap()].into())
    }
    fn fire(&self, n: i32) -> Result<(), Failure> {
        let exported = self.0.get().unwrap();
        (0..n).try_for_each(|i| exported.signals().emit(&DcopBenchmarkingServiceHello { i }))
    }
}

#[test]
fn the_races_by_kidl() {
    let (world, servant) = (World::speaking(&TAPE), Arc::new(Bench::default()));
    assert!(servant.0.set(world.export::<dyn DcopBenchmarkingService>("bench", servant.clone())).is_ok());
    let object: Ref<dyn DcopBenchmarkingService> = world.object("bench").into_typed();
    object.void_call().unwrap();
    object.in_int_call(i64::MAX).unwrap();
    assert_eq!((object.out_int_call().unwrap(), object.in_out_int_call(1).unwrap()), (42, 2));
    object.in_string_call("in").unwrap();
    assert_eq!(object.out_string_call().unwrap(), "out");
    assert_eq!(object.in_out_string_call("loud").unwrap(), "LOUD");
    assert_eq!(object.get_bytes(3).unwrap(), vec![5; 3]);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listening = Arc::clone(&heard);
    let subscription = object
        .signals()
        .on(move |hello: DcopBenchmarkingServiceHello| listening.lock().unwrap().push(hello.i))
        .unwrap();
    object.fire(2).unwrap();
    assert_eq!(*heard.lock().unwrap(), [0, 1]);
    drop(subscription);
    assert_eq!(DcopBenchmarkingServiceHello::signal().name, "Hello(int)");
    let fire = &<dyn DcopBenchmarkingService>::interface().operations[8];
    assert_eq!((fire.name.as_ref(), fire.label.as_ref(), fire.oneway), ("fire(int)", "fire", true));
}

#[derive(Default)]
struct Types(Mutex<Vec<KURL>>);

impl X for Types {
    fn a(
        &self,
        s: &str,
        l: u64,
        m: i64,
        q: i16,
        c: u8,
        mm: &BTreeMap<String, i32>,
        k: &str,
    ) -> Result<u32, Failure> {
        assert_eq!((s, l, m, q, c, k), ("s", u64::MAX, -1, -2, 3, "k"));
        Ok(mm.values().sum::<i32>().try_into().unwrap())
    }
    fn b(&self, arg_1: Bytes) -> Result<Vec<String>, Failure> {
        Ok(vec![String::from_utf8(arg_1.to_vec()).unwrap(), "b".into()])
    }
    fn go(&self, u: &KURL) -> Result<(), Failure> {
        self.0.lock().unwrap().push(u.clone());
        Ok(())
    }
}

#[test]
fn types_that_have_names_from_elsewhere() {
    let (world, servant) = (World::speaking(&TAPE), Arc::new(Types::default()));
    let object = world.serve::<dyn X>("x", servant.clone());
    let map = BTreeMap::from([("one".to_owned(), 1), ("two".to_owned(), 2)]);
    assert_eq!(object.a("s", u64::MAX, -1, -2, 3, &map, "k").unwrap(), 3);
    assert_eq!(object.b(Bytes::from_static(b"a")).unwrap(), ["a", "b"]);
    let url = KURL {
        protocol: "http".into(),
        user: None,
        pass: None,
        host: Some("example.org".into()),
        path: "/".into(),
        path_encoded: None,
        // Empty is not null.
        query: Some(String::new()),
        r#ref: None,
        malformed: 0,
        port: 8080,
    };
    object.go(&url).unwrap();
    assert_eq!(*servant.0.lock().unwrap(), [url]);
}

#[test]
fn names_stay_in_the_description_where_rust_has_others() {
    let operation = &<dyn X>::interface().operations[0];
    let names: Vec<_> =
        operation.arguments.fields().iter().map(|field| field.shape.noun().to_string()).collect();
    assert_eq!(names, ["text", "unsigned long int", "long int", "short int", "unsigned char", "map", "text"]);
    assert_eq!(everywire_idl::kidl::types::name(&operation.arguments.fields()[2].shape).unwrap(), "long int");
    assert!(matches!(describe::LONG_INT.target, Shape::I64));
}
