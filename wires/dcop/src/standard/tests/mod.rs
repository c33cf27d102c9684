//! The answers of an application, against those of KDE's library (the captured session).

use super::*;
use everywire_model::shape::Hold;
use everywire_model::visit::{Encode, Nothing};
use everywire_model::{
    Answer, Body, BoxFuture, Budget, CallId, Emission, Endpoint, Expects, Incoming, Link, Peer, Resolver,
    Wire,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

const KIDL: &str = "<!DOCTYPE DCOP-IDL><DCOP-IDL><SOURCE>b.h</SOURCE><CLASS><NAME>BenchIface</NAME>\
    <SUPER>DCOPObject</SUPER>\
    <FUNC><TYPE>void</TYPE><NAME>void_call</NAME></FUNC>\
    <FUNC><TYPE>int</TYPE><NAME>in_out_int_call</NAME><ARG><TYPE>int</TYPE><NAME>i</NAME></ARG></FUNC>\
    <FUNC><TYPE>QByteArray</TYPE><NAME>get_bytes</NAME><ARG><TYPE>int</TYPE><NAME>n</NAME></ARG></FUNC>\
    <FUNC><TYPE>unsigned long int</TYPE><NAME>l</NAME><ARG><TYPE>QMap&lt;QString,int&gt;</TYPE><NAME>m</NAME></ARG></FUNC>\
    <FUNC><TYPE>bool</TYPE><NAME>is_it</NAME></FUNC>\
    <FUNC><TYPE>ASYNC</TYPE><NAME>emit_hello</NAME><ARG><TYPE>int</TYPE><NAME>n</NAME></ARG></FUNC>\
    </CLASS></DCOP-IDL>";

/// Answers each call with its number of calls so far; refuses those that it is told to.
struct Bench {
    interface: Hold<Interface>,
    calls: Mutex<Vec<String>>,
    refuses: bool,
    /// What `is_it()` answers.
    is_it: AtomicBool,
}

impl Servant for Bench {
    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn dispatch(&self, mut request: Request) {
        self.calls.lock().unwrap().push(String::from_utf8(request.key().to_vec()).unwrap());
        if self.refuses {
            request.answer(Answer::Failed(&no_object(b"refused")));
        } else if self.interface.operations[request.index()].name == "is_it()" {
            request.reply(Ok::<_, Failure>((self.is_it.load(Ordering::Relaxed),))).unwrap();
        } else {
            request.answer(Answer::Done(&Nothing));
        }
    }
}

/// Exported objects, and what links beside them answered.
#[derive(Default)]
struct Exported {
    all: Mutex<BTreeMap<Bytes, Arc<Bench>>>,
}

impl Objects for Exported {
    fn keys(&self) -> Vec<Bytes> {
        self.all.lock().unwrap().keys().cloned().collect()
    }

    fn servants(&self, key: &[u8]) -> Vec<Arc<dyn Servant>> {
        let all = self.all.lock().unwrap();
        all.get(key).map(|held| Arc::clone(held) as Arc<dyn Servant>).into_iter().collect()
    }

    fn emit(&self, _: &Emission<'_>) -> Result<(), Failure> {
        Ok(())
    }

    fn aside(&self, done: Box<dyn Fn(Answer<'_>) + Send + Sync>) -> Arc<dyn Link> {
        Arc::new(Aside(done))
    }

    fn export(&self, _: Vec<Arc<dyn Servant>>) -> Bytes {
        unreachable!("nothing here exports")
    }

    fn withdraw(&self, _: &[u8]) {}

    fn classes(&self) -> Vec<(Bytes, everywire_model::Hold<Interface>)> {
        Vec::new()
    }

    fn create(&self, _: &[u8], _: &str) -> Option<Result<Bytes, Failure>> {
        None
    }

    fn publish(&self, _: &str, _: &[u8]) -> everywire_model::Reference {
        unreachable!("nothing here is published")
    }

    fn places(&self) -> Vec<everywire_model::BindAddress> {
        Vec::new()
    }

    fn listen(&self, _: &str) -> Result<everywire_model::BindAddress, Failure> {
        unreachable!("nobody here listens")
    }

    fn resolver(&self) -> Arc<dyn everywire_model::Resolver> {
        unreachable!("nothing here resolves")
    }

    fn attend(&self) {}
}

struct Aside(Box<dyn Fn(Answer<'_>) + Send + Sync>);

impl Link for Aside {
    fn answer(&self, _: CallId, answer: Answer<'_>) {
        (self.0)(answer);
    }

    fn spawn(&self, _: BoxFuture<'static, ()>) {}

    fn resolver(&self) -> Arc<dyn Resolver> {
        unreachable!("nothing here resolves")
    }

    fn peer(&self) -> Option<Peer> {
        None
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::InProcess { name: "test".into() }
    }
}

struct World {
    objects: Arc<Exported>,
    standard: Arc<dyn WireState>,
}

impl World {
    fn new() -> Self {
        let objects = Arc::new(Exported::default());
        let shared: Arc<dyn Objects> = Arc::clone(&objects) as Arc<dyn Objects>;
        Self { standard: crate::DCOP.wire_state(shared).unwrap(), objects }
    }

    fn export(&self, key: &'static str, refuses: bool) -> Arc<Bench> {
        let contract = everywire_idl::kidl::parse(KIDL, "b.kidl").unwrap();
        let interface = contract.interface("BenchIface").unwrap().clone();
        let bench = Arc::new(Bench { interface, calls: Mutex::default(), refuses, is_it: false.into() });
        self.objects.all.lock().unwrap().insert(Bytes::from_static(key.as_bytes()), Arc::clone(&bench));
        self.standard.exported(key.as_bytes(), &(Arc::clone(&bench) as Arc<dyn Servant>));
        bench
    }

    /// Asks as the runtime does for what the object itself does not answer; `None` if nobody does.
    fn ask(&self, key: &str, function: &'static str) -> Option<Result<Body, Failure>> {
        let outcome: Arc<Mutex<Option<Result<Body, Failure>>>> = Arc::default();
        let told = Arc::clone(&outcome);
        let link = self.objects.aside(Box::new(move |answer| {
            *told.lock().unwrap() = Some(match answer {
                Answer::Done(results) => crate::DATA_STREAM.codec_write(results),
                Answer::Failed(failure) => Err(failure.clone()),
                _ => panic!("an answer of another kind"),
            });
        }));
        let incoming = Incoming {
            id: CallId(1),
            sender: Bytes::new(),
            key: Bytes::copy_from_slice(key.as_bytes()),
            interface: Bytes::new(),
            operation: Bytes::from_static(function.as_bytes()),
            body: crate::DataStream::body(Bytes::new(), function.as_bytes().into(), 0, Budget::default()),
            expects: Expects::Reply,
        };
        let (servant, index) = self.standard.servants().into_iter().find_map(|servant| {
            let index = crate::DCOP.operation(servant.interface(), &incoming)?;
            Some((servant, index))
        })?;
        Arc::clone(&servant).dispatch(Request::new(index, incoming, link, servant));
        let mut outcome = outcome.lock().unwrap();
        outcome.take()
    }

    fn list(&self, key: &str, function: &'static str) -> Vec<String> {
        let body = self.ask(key, function).unwrap().unwrap();
        assert_eq!(&*body.context, b"QCStringList");
        body.decode::<(Vec<String>,)>(&OPERATIONS[0].results).unwrap().0
    }
}

impl crate::DataStream {
    fn codec_write(self, values: &dyn Encode) -> Result<Body, Failure> {
        everywire_model::Codec::write(&self, &mut |sink| values.encode(sink))
    }
}

#[test]
fn objects_tell_what_kde_objects_tell() {
    let world = World::new();
    world.export("bench", false);
    assert_eq!(world.list("bench", "interfaces()"), ["DCOPObject", "BenchIface"]);
    let functions = world.list("bench", "functions()");
    assert_eq!(
        functions,
        [
            "QCStringList interfaces()",
            "QCStringList functions()",
            "void void_call()",
            "int in_out_int_call(int i)",
            "QByteArray get_bytes(int n)",
            "unsigned long int l(QMap<QString,int> m)",
            "bool is_it()",
            "ASYNC emit_hello(int n)",
        ]
    );
    assert_eq!(world.list("DCOPClient", "objects()"), ["default", "bench"]);
    // Under both names of the default object, too.
    assert_eq!(world.list("", "functions()"), functions);
    assert_eq!(world.list("default", "functions()"), functions);
    let failure = world.ask("nobody", "functions()").unwrap().unwrap_err();
    assert_eq!(failure.kind(), Kind::NoObject);
    assert!(world.ask("bench", "objects()").unwrap().is_err());
    assert!(world.ask("bench", "nosuch()").is_none());
}

#[test]
fn the_default_object_is_the_one_that_was_exported_first() {
    let world = World::new();
    let (zebra, ant) = (world.export("zebra", false), world.export("ant", false));
    assert_eq!(world.list("DCOPClient", "objects()"), ["ant", "default", "zebra"]);
    assert!(world.ask("", "void_call()").unwrap().is_ok());
    assert!(world.ask("default", "void_call()").unwrap().is_ok());
    assert_eq!((zebra.calls.lock().unwrap().len(), ant.calls.lock().unwrap().len()), (2, 0));
    // It left: the next one is the default.
    world.objects.all.lock().unwrap().remove(&b"zebra"[..]);
    world.standard.withdrawn(b"zebra", zebra.interface());
    assert!(world.ask("", "void_call()").unwrap().is_ok());
    assert_eq!(*ant.calls.lock().unwrap(), ["ant"]);
    // An id that no object has is no default.
    assert!(world.ask("bee", "void_call()").is_none());
    assert_eq!(world.ask("", "nosuch()").unwrap().unwrap_err().kind(), Kind::NoOperation);
}

#[test]
fn an_id_with_a_star_means_all_objects_with_the_prefix() {
    let world = World::new();
    let all: Vec<_> = ["doc-1", "doc-2", "other"].map(|key| world.export(key, false)).into();
    assert!(world.ask("doc-*", "void_call()").unwrap().is_ok());
    let calls: Vec<_> = all.iter().map(|bench| bench.calls.lock().unwrap().len()).collect();
    assert_eq!(calls, [1, 1, 0]);
    // One that fails fails them all.
    world.export("doc-3", true);
    assert!(world.ask("doc-*", "void_call()").unwrap().is_err());
    assert_eq!(world.ask("none*", "void_call()").unwrap().unwrap_err().kind(), Kind::NoObject);
}

#[test]
fn a_search_finds_the_first_object_or_the_one_that_says_yes() {
    let world = World::new();
    let all: Vec<_> = ["doc-1", "doc-2", "doc-3", "other"].map(|key| world.export(key, false)).into();
    let search = |key: &str, function| {
        let answer = world.ask(key, function).unwrap();
        answer.map(|body| {
            found(&|sink: &mut dyn everywire_model::Sink| {
                body.pipe(&Shape::Struct(Hold::new(one_array())), sink)
            })
            .unwrap()
        })
    };
    assert_eq!(search("doc-*", "?").unwrap(), "doc-1");
    assert_eq!(search("default", "?").unwrap(), "doc-1");
    assert_eq!(search("none*", "?").unwrap_err().kind(), Kind::NoObject);
    assert_eq!(search("doc-*", "?is_it()").unwrap_err().kind(), Kind::NoObject);
    all[1].is_it.store(true, Ordering::Relaxed);
    all[3].is_it.store(true, Ordering::Relaxed);
    assert_eq!(search("doc-*", "?is_it()").unwrap(), "doc-2");
    // Whoever follows was not asked any more; one that refuses, or has no such function, is none.
    assert_eq!(all[2].calls.lock().unwrap().len(), 1);
    world.export("doc-1", true);
    assert_eq!(search("doc-*", "?is_it()").unwrap(), "doc-2");
    assert_eq!(search("doc-*", "?void_call()").unwrap_err().kind(), Kind::NoObject);
    assert_eq!(search("doc-*", "?nosuch()").unwrap_err().kind(), Kind::NoObject);
}

/// One array of bytes.
fn one_array() -> everywire_model::shape::Struct {
    let field = everywire_model::shape::Field { name: "id".into(), shape: Shape::sequence(Shape::U8) };
    everywire_model::shape::Struct { name: "".into(), id: "".into(), fields: vec![field].into() }
}
