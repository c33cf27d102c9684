//! An interface by hand, its signal, its stub and its skeleton, and servants.

use bytes::Bytes;
use everywire_model::*;
use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What generated code looks like to the runtime.
pub trait Probe: Send + Sync {
    fn add_one(&self, v: i32) -> Result<i32, Failure>;
    fn get_bytes(&self, n: i32) -> Result<Bytes, Failure>;
    fn wait_ms(&self, ms: i32) -> Result<i32, Failure>;
    fn call_back(&self, n: i32, to: Option<Ref<dyn Probe>>) -> Result<i32, Failure>;
    fn hello(&self) -> Result<(), Failure>;
    fn panic(&self) -> Result<(), Failure>;
}

pub fn interface() -> &'static Interface {
    static INTERFACE: OnceLock<Interface> = OnceLock::new();
    INTERFACE.get_or_init(|| {
        let field = |name: &'static str, shape| shape::Field { name: name.into(), shape };
        let input = |name, shape| Parameter { direction: Direction::In, field: field(name, shape) };
        let any = || Shape::Reference(Hold::new(shape::Referent { name: "".into(), id: "".into() }));
        let mut hello = Operation::new("hello", vec![], Shape::Void);
        hello.oneway = true;
        Interface {
            name: "probe".into(),
            id: "probe".into(),
            identities: Cow::Borrowed(&[]),
            types: None,
            notes: Cow::Borrowed(&[]),
            kind: everywire_model::InterfaceKind::Plain,
            bases: Cow::Borrowed(&[]),
            operations: Cow::Owned(vec![
                Operation::new("add_one", vec![input("v", Shape::I32)], Shape::I32),
                Operation::new("get_bytes", vec![input("n", Shape::I32)], Shape::sequence(Shape::U8)),
                Operation::new("wait_ms", vec![input("ms", Shape::I32)], Shape::I32),
                Operation::new("call_back", vec![input("n", Shape::I32), input("to", any())], Shape::I32),
                hello,
                Operation::new("panic", vec![], Shape::Void),
            ]),
            inherited: 0,
            attributes: Cow::Borrowed(&[]),
            signals: Cow::Owned(vec![
                Signal::new("ticked", vec![field("n", Shape::I32)]),
                Signal::new("other", vec![]),
            ]),
            doc: "".into(),
        }
    })
}

/// The signal `ticked`.
#[derive(Debug, PartialEq)]
pub struct Ticked(pub i32);

impl Emits<Ticked> for dyn Probe {}

impl TypedSignal for Ticked {
    fn interface() -> &'static Interface {
        interface()
    }
    fn signal() -> &'static Signal {
        &interface().signals[0]
    }
    fn read(body: &Body) -> Result<Self, Failure> {
        body.decode(&Self::signal().fields).map(|(n,)| Self(n))
    }
    fn write(&self, sink: &mut dyn Sink) -> Visit<()> {
        (self.0,).marshal_list(&Self::signal().fields, sink)
    }
}

pub struct Stub(pub Object);

impl Probe for Stub {
    fn add_one(&self, v: i32) -> Result<i32, Failure> {
        self.0.call(&interface().operations[0], (v,)).map(|(v,)| v)
    }
    fn get_bytes(&self, n: i32) -> Result<Bytes, Failure> {
        self.0.call(&interface().operations[1], (n,)).map(|(v,)| v)
    }
    fn wait_ms(&self, ms: i32) -> Result<i32, Failure> {
        self.0.call(&interface().operations[2], (ms,)).map(|(v,)| v)
    }
    fn call_back(&self, n: i32, to: Option<Ref<dyn Probe>>) -> Result<i32, Failure> {
        self.0.call(&interface().operations[3], (n, to)).map(|(v,)| v)
    }
    fn hello(&self) -> Result<(), Failure> {
        self.0.notify(&interface().operations[4], ())
    }
    fn panic(&self) -> Result<(), Failure> {
        self.0.call(&interface().operations[5], ())
    }
}

pub struct Skeleton(Arc<dyn Probe>);

impl Servant for Skeleton {
    fn interface(&self) -> &Interface {
        interface()
    }
    fn dispatch(&self, request: Request) {
        request.run(|request| match request.index() {
            0 => {
                let (v,) = request.arguments()?;
                request.reply(self.0.add_one(v).map(|v| (v,)))
            }
            1 => {
                let (n,) = request.arguments()?;
                request.reply(self.0.get_bytes(n).map(|v| (v,)))
            }
            2 => {
                let (ms,) = request.arguments()?;
                request.reply(self.0.wait_ms(ms).map(|v| (v,)))
            }
            3 => {
                let (n, to) = request.arguments::<(i32, Option<Reference>)>()?;
                let to = request.narrow(to)?;
                request.reply(self.0.call_back(n, to).map(|v| (v,)))
            }
            4 => request.reply(self.0.hello()),
            _ => request.reply(self.0.panic()),
        });
    }
}

impl Remote for dyn Probe {
    fn interface() -> &'static Interface {
        interface()
    }
    fn stub(object: Object) -> Arc<Self> {
        Arc::new(Stub(object))
    }
    fn skeleton(servant: Arc<Self>) -> Arc<dyn Servant> {
        Arc::new(Skeleton(servant))
    }
}

/// A servant that does what its operations say.
#[derive(Default)]
pub struct Honest {
    pub hellos: AtomicUsize,
}

impl Probe for Honest {
    fn add_one(&self, v: i32) -> Result<i32, Failure> {
        Ok(v.wrapping_add(1))
    }
    fn get_bytes(&self, n: i32) -> Result<Bytes, Failure> {
        Ok(Bytes::from(vec![7; usize::try_from(n).unwrap()]))
    }
    fn wait_ms(&self, ms: i32) -> Result<i32, Failure> {
        std::thread::sleep(Duration::from_millis(u64::try_from(ms).unwrap()));
        Ok(ms)
    }
    fn call_back(&self, n: i32, to: Option<Ref<dyn Probe>>) -> Result<i32, Failure> {
        match to {
            Some(to) if n > 0 => to.add_one(n),
            _ => Ok(0),
        }
    }
    fn hello(&self) -> Result<(), Failure> {
        self.hellos.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
    fn panic(&self) -> Result<(), Failure> {
        panic!("as asked")
    }
}

/// A servant whose `add_one` is the given function, and which is honest otherwise.
pub struct Does<F>(pub F);

impl<F: Fn(i32) -> i32 + Send + Sync> Probe for Does<F> {
    fn add_one(&self, v: i32) -> Result<i32, Failure> {
        Ok((self.0)(v))
    }
    fn get_bytes(&self, n: i32) -> Result<Bytes, Failure> {
        Honest::default().get_bytes(n)
    }
    fn wait_ms(&self, ms: i32) -> Result<i32, Failure> {
        Honest::default().wait_ms(ms)
    }
    fn call_back(&self, n: i32, to: Option<Ref<dyn Probe>>) -> Result<i32, Failure> {
        Honest::default().call_back(n, to)
    }
    fn hello(&self) -> Result<(), Failure> {
        Ok(())
    }
    fn panic(&self) -> Result<(), Failure> {
        Honest::default().panic()
    }
}
