//! Stub and skeleton joined by memory: what a servant gets and a caller gets back.

use crate::bench::{self, Benchmarking, BenchmarkingAsync, IRemoteObject};
use crate::everything::figures::{other::*, *};
use crate::memory::{World, block_on};
use crate::values::everything;
use everywire_model::{Bytes, Failure, Initiator, Kind, Object, Ref, Reference, Value, Variant};
use std::sync::{Arc, Mutex};

struct Bench;

impl Benchmarking for Bench {
    fn void_call(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn in_int_call(&self, v: i32) -> Result<(), Failure> {
        if v == 7 {
            Ok(())
        } else {
            Err(Failure::new(Kind::BadArgument, Initiator::User, format!("{v} is not 7")))
        }
    }

    fn out_int_call(&self) -> Result<i32, Failure> {
        Ok(42)
    }

    fn in_out_int_call(&self, v: i32) -> Result<i32, Failure> {
        Ok(v + 1)
    }

    fn in_string_call(&self, v: &str) -> Result<(), Failure> {
        Benchmarking::in_int_call(self, v.len().try_into().unwrap())
    }

    fn out_string_call(&self) -> Result<String, Failure> {
        Ok("out".into())
    }

    fn in_out_string_call(&self, v: &str) -> Result<String, Failure> {
        Ok(v.to_uppercase())
    }
}

#[everywire::async_trait]
impl BenchmarkingAsync for Bench {
    async fn void_call(&self) -> Result<(), Failure> {
        Benchmarking::void_call(self)
    }

    async fn in_int_call(&self, v: i32) -> Result<(), Failure> {
        Benchmarking::in_int_call(self, v)
    }

    async fn out_int_call(&self) -> Result<i32, Failure> {
        Benchmarking::out_int_call(self)
    }

    async fn in_out_int_call(&self, v: i32) -> Result<i32, Failure> {
        Benchmarking::in_out_int_call(self, v)
    }

    async fn in_string_call(&self, v: &str) -> Result<(), Failure> {
        Benchmarking::in_string_call(self, v)
    }

    async fn out_string_call(&self) -> Result<String, Failure> {
        Benchmarking::out_string_call(self)
    }

    async fn in_out_string_call(&self, v: &str) -> Result<String, Failure> {
        Benchmarking::in_out_string_call(self, v)
    }
}

#[test]
fn the_seven_functions() {
    let world = World::default();
    let object = world.serve::<dyn Benchmarking>("bench", Arc::new(Bench));
    object.void_call().unwrap();
    object.in_int_call(7).unwrap();
    assert_eq!(object.in_int_call(8).unwrap_err().message(), "8 is not 7");
    assert_eq!(object.out_int_call().unwrap(), 42);
    assert_eq!(object.in_out_int_call(-1).unwrap(), 0);
    object.in_string_call("seventy").unwrap();
    assert_eq!(object.out_string_call().unwrap(), "out");
    assert_eq!(object.in_out_string_call("loud").unwrap(), "LOUD");
}

#[test]
fn blocking_and_asynchronous_meet() {
    let world = World::default();
    world.serve::<dyn BenchmarkingAsync>("async", Arc::new(Bench));
    world.serve::<dyn Benchmarking>("blocking", Arc::new(Bench));
    let blocking: Ref<dyn Benchmarking> = world.object("async").into_typed();
    assert_eq!(blocking.in_out_string_call("loud").unwrap(), "LOUD");
    assert_eq!(blocking.in_int_call(8).unwrap_err().kind(), Kind::BadArgument);
    let asynchronous: Ref<dyn BenchmarkingAsync> = world.object("blocking").into_typed();
    block_on(async {
        asynchronous.void_call().await.unwrap();
        asynchronous.in_int_call(7).await.unwrap();
        assert_eq!(asynchronous.in_out_int_call(1).await.unwrap(), 2);
        assert_eq!(asynchronous.in_out_string_call("loud").await.unwrap(), "LOUD");
    });
}

#[test]
fn bytes() {
    struct Remote;
    impl IRemoteObject for Remote {
        fn get_bytes(&self, n: i32) -> Result<bench::OctetSeq, Failure> {
            Ok(Bytes::from(vec![5; n.try_into().unwrap()]))
        }
    }
    let object = World::default().serve::<dyn IRemoteObject>("bytes", Arc::new(Remote));
    assert_eq!(object.get_bytes(100_000).unwrap(), vec![5; 100_000]);
}

#[test]
fn a_sink_is_called_back() {
    #[derive(Default)]
    struct Firing(Mutex<Vec<Ref<dyn bench::Sink>>>);
    impl bench::Source for Firing {
        fn advise(&self, s: Option<Ref<dyn bench::Sink>>) -> Result<u32, Failure> {
            let mut sinks = self.0.lock().unwrap();
            sinks.extend(s);
            Ok(sinks.len().try_into().unwrap())
        }
        fn unadvise(&self, _: u32) -> Result<(), Failure> {
            self.0.lock().unwrap().clear();
            Ok(())
        }
    }
    impl bench::FiringSource for Firing {
        fn fire(&self, n: u32) -> Result<(), Failure> {
            for sink in self.0.lock().unwrap().iter() {
                (0..n).try_for_each(|_| sink.hello())?;
                sink.hello_sync()?;
            }
            Ok(())
        }
    }
    #[derive(Default)]
    struct Heard(Mutex<(u32, u32)>);
    impl bench::Sink for Heard {
        fn hello(&self) -> Result<(), Failure> {
            self.0.lock().unwrap().0 += 1;
            Ok(())
        }
        fn hello_sync(&self) -> Result<(), Failure> {
            self.0.lock().unwrap().1 += 1;
            Ok(())
        }
    }
    let world = World::default();
    let source = world.serve::<dyn bench::FiringSource>("source", Arc::new(Firing::default()));
    let heard = Arc::new(Heard::default());
    let sink = world.serve::<dyn bench::Sink>("sink", heard.clone());
    assert_eq!(source.advise(Some(sink)).unwrap(), 1);
    assert_eq!(source.advise(None).unwrap(), 1);
    source.fire(3).unwrap();
    // An object of the derived interface is one of the base.
    let base: Ref<dyn bench::Source> = world.object("source").into_typed();
    base.unadvise(1).unwrap();
    source.fire(3).unwrap();
    assert_eq!(*heard.0.lock().unwrap(), (3, 1));
}

#[derive(Default)]
struct Atelier {
    mood: Mutex<Option<node::State>>,
    forgotten: Mutex<Vec<(String, Numbers)>>,
}

impl Node for Atelier {
    fn name(&self) -> Result<String, Failure> {
        Ok("atelier".into())
    }
    fn weight(&self) -> Result<i32, Failure> {
        Ok(12)
    }
    fn set_weight(&self, _: i32) -> Result<(), Failure> {
        Err(Failure::new(Kind::Refused, Initiator::User, "too heavy"))
    }
    fn mood(&self) -> Result<node::State, Failure> {
        Ok(self.mood.lock().unwrap().unwrap_or(node::State::Idle))
    }
    fn set_mood(&self, value: node::State) -> Result<(), Failure> {
        *self.mood.lock().unwrap() = Some(value);
        Ok(())
    }
    fn ping(&self) -> Result<(), PingError> {
        Err(node::Gone { last: node::State::Busy }.into())
    }
}

impl Canvas for Atelier {
    fn draw(&self, name: &str, what: &Figure) -> Result<(), DrawError> {
        match (name, what) {
            ("radius", Figure::Radius(_)) => Ok(()),
            ("broken", _) => Err(Broken { tint: Color::Green, code: 4 }.into()),
            _ => Err(NotFound { name: name.into() }.into()),
        }
    }
    fn find(&self, name: &str) -> Result<Figure, CanvasError> {
        match name {
            "circle" => Ok(Figure::Radius(1.0)),
            "late" => Err(Failure::new(Kind::Busy, Initiator::Peer, "later").into()),
            other => Err(NotFound { name: other.into() }.into()),
        }
    }
    fn take(&self, name: &str) -> Result<Figure, CanvasError> {
        self.find(name)
    }
    fn mirror(&self, value: &Everything) -> Result<Everything, Failure> {
        Ok(value.clone())
    }
    fn turn(&self, by: &Matrix, tint: Color) -> Result<(Matrix, Color, Steps), Failure> {
        Ok(([by[1], by[0]], tint, vec!["swap".into()]))
    }
    fn load(
        &self,
        key: Blob,
        sum: &Digest,
        root: &Tree,
        content: &Variant,
    ) -> Result<(Blob, Variant), Failure> {
        let all = [key.as_ref(), sum, root.label.as_bytes()].concat();
        Ok((all.into(), content.clone()))
    }
    fn listen(
        &self,
        to: Option<Ref<dyn Listener>>,
        other: Option<Reference>,
    ) -> Result<(Option<Ref<dyn Listener>>, Option<Ref<dyn Listener>>, i32), Failure> {
        Ok((to, None, other.map_or(0, |other| other.profiles.len() as i32)))
    }
    fn forget(&self, request: &str, numbering: &[i32]) -> Result<(), Failure> {
        self.forgotten.lock().unwrap().push((request.into(), numbering.into()));
        Ok(())
    }
    fn lots(
        &self,
        a: i32,
        b: i32,
        c: i32,
        d: i32,
        e: &str,
        f: &str,
        g: &str,
        h: Color,
    ) -> Result<(), LotsError> {
        let fits = (a, b, c, d, e, f, g, h) == (1, 2, 3, 4, "5", "6", "7", Color::Red);
        if fits { Err(Empty {}.into()) } else { Ok(()) }
    }
    fn reply(&self, to: &Answer, _: &Perhaps, _: &Lettered) -> Result<Answer, Failure> {
        Ok(to.clone())
    }
}

fn atelier() -> (World, Arc<Atelier>, Ref<dyn Canvas>) {
    let (world, servant) = (World::default(), Arc::new(Atelier::default()));
    let canvas = world.serve::<dyn Canvas>("canvas", servant.clone());
    (world, servant, canvas)
}

#[test]
fn exceptions_come_back_as_they_were_raised() {
    let (_, _, canvas) = atelier();
    canvas.draw("radius", &Figure::Radius(1.0)).unwrap();
    assert!(matches!(
        canvas.draw("broken", &Figure::Radius(1.0)),
        Err(DrawError::Broken(Broken { tint: Color::Green, code: 4 }))
    ));
    assert!(
        matches!(canvas.draw("x", &Figure::Path(vec![])), Err(DrawError::NotFound(raised)) if raised.name == "x")
    );
    assert!(
        matches!(canvas.find("late"), Err(CanvasError::Failure(failure)) if failure.kind() == Kind::Busy)
    );
    assert!(matches!(canvas.ping(), Err(PingError::Gone(node::Gone { last: node::State::Busy }))));
    let error = canvas.lots(1, 2, 3, 4, "5", "6", "7", Color::Red).unwrap_err();
    assert_eq!(error.to_string(), "Empty");
}

#[test]
fn attributes_are_methods() {
    let (_, _, canvas) = atelier();
    assert_eq!((canvas.name().unwrap().as_str(), canvas.weight().unwrap()), ("atelier", 12));
    assert_eq!(canvas.set_weight(99).unwrap_err().kind(), Kind::Refused);
    canvas.set_mood(node::State::Busy).unwrap();
    assert_eq!(canvas.mood().unwrap(), node::State::Busy);
}

#[test]
fn values_of_every_kind_travel_both_ways() {
    let (_, servant, canvas) = atelier();
    assert_eq!(canvas.mirror(&everything()).unwrap(), everything());
    let (turned, tint, steps) = canvas.turn(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], Color::Green).unwrap();
    assert_eq!((turned[0][0], tint, steps.as_slice()), (4.0, Color::Green, &["swap".to_owned()][..]));
    let root = Tree { label: "!".into(), children: vec![] };
    let content = Variant::new(everywire_model::describe::TEXT, Value::Text("any".into()));
    let (loaded, answer) = canvas.load(Bytes::from_static(b"key"), b"sums", &root, &content).unwrap();
    assert_eq!((&loaded[..], answer), (&b"keysums!"[..], content));
    canvas.forget("me", &[1, 2]).unwrap();
    assert_eq!(*servant.forgotten.lock().unwrap(), [("me".to_owned(), vec![1, 2])]);
    let reply = canvas.reply(&Answer::Number(2, 22), &Perhaps::Empty(false), &Lettered::Number(1)).unwrap();
    assert_eq!(reply, Answer::Number(2, 22));
}

#[test]
fn references_travel_typed_and_untyped() {
    struct Ear(Mutex<Vec<String>>);
    impl Listener for Ear {
        fn changed(&self, r#where: Option<Ref<dyn Canvas>>, name: &str) -> Result<(), Failure> {
            let canvas = r#where.map_or_else(|| "nowhere".into(), |canvas| canvas.name().unwrap());
            self.0.lock().unwrap().push(format!("{name} at {canvas}"));
            Ok(())
        }
    }
    let (world, _, canvas) = atelier();
    let ear = Arc::new(Ear(Mutex::default()));
    let listener = world.serve::<dyn Listener>("ear", ear.clone());
    let other = canvas.reference().clone();
    let (back, previous, count) = canvas.listen(Some(listener), Some(other)).unwrap();
    assert!(previous.is_none());
    assert_eq!(count, 1);
    let back = back.unwrap();
    back.changed(Some(canvas), "figure").unwrap();
    back.changed(None, "figure").unwrap();
    assert_eq!(*ear.0.lock().unwrap(), ["figure at atelier", "figure at nowhere"]);
}

#[test]
fn names_that_clash_get_out_of_the_way() {
    struct Two;
    let two = Option2 { it: Point { x: 1.0, y: 2.0 }, foo_bar: 3, foo_bar_2: 4 };
    impl Source for Two {
        fn some(&self, ew: &Point) -> Result<(), Failure> {
            assert_eq!(ew.x, 1.0);
            Ok(())
        }
    }
    // Only what differs from the bases is its own: the rest is reached by the base's trait.
    let world = World::default();
    let source = world.serve::<dyn Source>("source", Arc::new(Two));
    source.some(&two.it).unwrap();
    let object: Object = world.object("source");
    let both: Ref<dyn Both> = object.into_typed();
    both.some(&two.it).unwrap();
    assert_eq!(both.get().unwrap_err().kind(), Kind::NoOperation);
    assert_eq!(both.name().unwrap_err().kind(), Kind::NoOperation);
}
