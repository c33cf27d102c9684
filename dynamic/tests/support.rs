//! A till that is served on each wire, in this process; its servant has no generated code either.

use everywire::layer::Layer;
use everywire::model::{Answer, Hold, Request, Servant, Sink, Source};
use everywire::{Failure, Initiator, Interface, Kind, Node, Value};
use everywire_dynamic::{DynamicObject, ObjectContract};
use serde_json::{Value as Json, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// The wires, by the schemes of their addresses.
pub(crate) const WIRES: [&str; 6] = ["iiop", "dbus", "dcop", "dcom", "net.tcp", "basic"];

/// What the till is, in OMG IDL: every wire can serve it.
pub(crate) const TILL: &str = "
module shop {
  exception Empty { long missing; };
  typedef sequence<string> Words;
  interface Till {
    attribute string title;
    readonly attribute long total;
    long add(in long amount) raises (Empty);
    string join(in Words words, in string between);
    long split(in long amount, out long rest);
    void fail(in string kind);
    long hang();
  };
};";

/// What a caller believes who has another contract: an operation that the till lacks, and one that it has with other arguments.
pub(crate) const OTHER_TILL: &str = "
module shop {
  interface Till {
    attribute string title;
    readonly attribute long total;
    long add(in string amount);
    string join(in long words);
    long split(in long amount, out long rest);
    void fail(in string kind);
    long hang();
    long gone(in long amount);
  };
};";

/// A directory of this process's own.
pub(crate) fn scratch(name: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("everywire-dynamic-{}-{number}-{name}", std::process::id()));
    // Left over from a process with the same number: it is nobody's any more.
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    path
}

/// Where to listen on a wire.
pub(crate) fn place(wire: &str) -> String {
    match wire {
        "iiop" | "dbus" | "dcom" => format!("{wire}+unix://{}", scratch(wire).join("socket").display()),
        "dcop" => {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            // A name belongs to one application.
            format!("dcop+unix://{}#shop{}", dcop_server(), NEXT.fetch_add(1, Ordering::Relaxed))
        }
        _ => format!("{wire}://127.0.0.1:0?security=none"),
    }
}

/// The socket of a DCOP server of this process's own.
pub(crate) fn dcop_server() -> &'static str {
    static SOCKET: OnceLock<String> = OnceLock::new();
    SOCKET.get_or_init(|| {
        let folder = scratch("dcop-server");
        for (name, file) in [("HOME", ""), ("ICEAUTHORITY", "authority"), ("DCOPAUTHORITY", "server")] {
            // SAFETY: each test has a process of its own, and no other thread of it runs yet.
            unsafe { std::env::set_var(name, folder.join(file)) };
        }
        let socket = folder.join("socket").display().to_string();
        let program = &everywire::wires::named("dcop").unwrap().programs()[0];
        let mut server = (program.open)(&[("socket", Some(socket.as_str()))]).unwrap();
        let stop = everywire::hub::Stop::new().unwrap();
        std::thread::spawn(move || {
            everywire::hub::run(&mut *server, &everywire::hub::Settings::default(), &stop).unwrap();
        });
        let begun = Instant::now();
        // Its file is the last thing that it writes.
        while !folder.join("server").exists() {
            assert!(begun.elapsed() < LONG, "the server did not come up");
            std::thread::sleep(Duration::from_millis(5));
        }
        socket
    })
}

/// A contract in OMG IDL.
pub(crate) fn contract(text: &str) -> ObjectContract {
    ObjectContract::new(everywire_idl::omg::parse(text, "till.idl").unwrap(), "till.idl")
}

/// A till on one wire.
pub(crate) struct Shop {
    node: Node,
    pub(crate) address: String,
    pub(crate) till: Arc<Till>,
}

impl Shop {
    pub(crate) fn open(wire: &str) -> Self {
        Self::behind(wire, None::<everywire::layer::Limit>)
    }

    /// The same behind a layer.
    pub(crate) fn behind(wire: &str, layer: Option<impl Layer + 'static>) -> Self {
        let mut builder = Node::builder();
        if let Some(layer) = layer {
            builder = builder.layer(layer);
        }
        let node = Node::from(builder.build());
        node.listen(&place(wire)).unwrap();
        let till = Arc::new(Till::new());
        let reference = node.export_servant("till", Arc::clone(&till) as Arc<dyn Servant>);
        let address = node.print_friendly(&reference);
        Self { node, address, till }
    }

    /// Ends the server at once, whatever is under way.
    pub(crate) fn end(&self) {
        self.node.stop_within(Duration::ZERO);
    }

    /// The till as somebody sees it who has its contract, and a node of their own.
    pub(crate) fn known(&self, contract_text: &str) -> DynamicObject {
        DynamicObject::with_contract(&Node::new(), &self.address, contract(contract_text)).unwrap()
    }
}

/// Adds up, and fails as it is told.
pub(crate) struct Till {
    interface: Hold<Interface>,
    state: Mutex<(String, i64)>,
    /// Calls of `hang`, which are answered when the till is dropped.
    hanging: Mutex<Vec<Request>>,
    /// Rings when one more hangs.
    hangs: Condvar,
}

impl Till {
    pub(crate) fn new() -> Self {
        let interface = contract(TILL).interface("Till").unwrap().clone();
        Self {
            interface,
            state: Mutex::new(("Till 1".into(), 0)),
            hanging: Mutex::default(),
            hangs: Condvar::new(),
        }
    }

    /// Waits until a call hangs.
    pub(crate) fn await_hanging(&self) {
        let held = self.hanging.lock().unwrap();
        drop(self.hangs.wait_while(held, |held| held.is_empty()).unwrap());
    }

    /// Answers what hangs.
    pub(crate) fn wake(&self) {
        self.hanging.lock().unwrap().clear();
    }

    fn answer(&self, name: &str, given: &[Value]) -> Result<Vec<Value>, Wrong> {
        let mut state = self.state.lock().unwrap();
        let integer = |at: usize| match given.get(at) {
            Some(Value::Integer(number)) => i64::try_from(*number).unwrap(),
            other => panic!("{name}: {other:?}"),
        };
        Ok(match name {
            "_get_title" => vec![Value::Text(state.0.clone())],
            "_set_title" => {
                let Some(Value::Text(title)) = given.first() else { panic!("{given:?}") };
                state.0.clone_from(title);
                vec![]
            }
            "_get_total" => vec![Value::Integer(state.1.into())],
            "add" => {
                let total = state.1 + integer(0);
                if total < 0 {
                    return Err(Wrong::Empty(-total));
                }
                state.1 = total;
                vec![Value::Integer(total.into())]
            }
            "join" => {
                let (Some(Value::List(words)), Some(Value::Text(between))) = (given.first(), given.get(1))
                else {
                    panic!("{given:?}")
                };
                let words: Vec<&str> = words
                    .iter()
                    .map(|word| match word {
                        Value::Text(word) => word.as_str(),
                        other => panic!("{other:?}"),
                    })
                    .collect();
                vec![Value::Text(words.join(between))]
            }
            "split" => vec![Value::Integer((integer(0) / 2).into()), Value::Integer((integer(0) % 2).into())],
            "fail" => {
                let Some(Value::Text(word)) = given.first() else { panic!("{given:?}") };
                let kind = Kind::of_word(word).unwrap();
                return Err(Wrong::Failed(Failure::new(kind, Initiator::Peer, format!("told to: {word}"))));
            }
            other => panic!("{other}"),
        })
    }
}

enum Wrong {
    Empty(i64),
    Failed(Failure),
}

impl Servant for Till {
    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn dispatch(&self, mut request: Request) {
        let operation = &self.interface.operations[request.index()];
        let decode = |source: &mut dyn Source<'_>| Value::decode(&operation.arguments, source);
        let given: Vec<Value> = match request.body().read(decode) {
            Ok(Value::Struct(given)) => given.into_iter().map(|(_, value)| value).collect(),
            Ok(other) => panic!("{other:?}"),
            Err(failure) => return request.answer(Answer::Failed(&failure)),
        };
        if operation.name == "hang" {
            self.hanging.lock().unwrap().push(request);
            self.hangs.notify_all();
            return;
        }
        match self.answer(&operation.name, &given) {
            Ok(results) => {
                let names = operation.results.fields().iter().map(|field| field.name.to_string());
                let results = Value::Struct(names.zip(results).collect());
                request.answer(Answer::Done(&|sink: &mut dyn Sink| results.encode(&operation.results, sink)));
            }
            Err(Wrong::Failed(failure)) => request.answer(Answer::Failed(&failure)),
            Err(Wrong::Empty(missing)) => {
                let shape = &operation.raises[0];
                let fields = Value::Struct(vec![("missing".into(), Value::Integer(missing.into()))]);
                let whole = everywire::model::Shape::Struct(shape.clone());
                let fields = |sink: &mut dyn Sink| fields.encode(&whole, sink);
                request.answer(Answer::Raised { shape, fields: &fields });
            }
        }
    }
}

/// The only result of a call.
pub(crate) fn only(results: Json) -> Json {
    results.as_object().and_then(|results| results.values().next()).cloned().unwrap_or(json!(null))
}

/// Long enough for whatever is not under test.
pub(crate) const LONG: Duration = Duration::from_secs(300);
/// A deadline that is to pass, though not before its call was sent: a busy machine may take seconds for that.
pub(crate) const SHORT: Duration = Duration::from_secs(10);
