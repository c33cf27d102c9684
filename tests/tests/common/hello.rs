//! The services of `hello.wsdl` and `bench.wsdl`: servants, and what a client does.

use bench::IRemoteObject;
use duplex::{IHello, IHelloCallback, IHelloOnHello};
use everywire::model::Stub;
use everywire::{Bytes, Failure, Initiator, Kind, Node, Ref, Signaller};
use std::sync::Arc;
use std::sync::mpsc::channel;

use super::foreign::PATIENCE;

#[allow(unreachable_pub, missing_docs, clippy::pedantic)]
pub mod duplex {
    everywire::include_contract!("hello");
}

#[allow(unreachable_pub, missing_docs, clippy::pedantic)]
pub mod bench {
    everywire::include_contract!("services/bench");
}

/// The text that the races send.
pub const TEXT: &str = "Hello, World! 0123456789";

/// So many bytes: 0, 1, ... 255, 0, ...
pub fn bytes(n: usize) -> Bytes {
    (0..=255u8).cycle().take(n).collect()
}

/// The contract of the races.
#[derive(Debug)]
pub struct Remote;

impl IRemoteObject for Remote {
    fn get_bytes(&self, num_bytes: i32) -> Result<Bytes, Failure> {
        let wrong = || Failure::new(Kind::BadArgument, Initiator::User, "fewer than none");
        usize::try_from(num_bytes).map(bytes).map_err(|_| wrong())
    }
    fn put_bytes(&self, data: Bytes) -> Result<i32, Failure> {
        assert_eq!(data, bytes(data.len()));
        Ok(i32::try_from(data.len()).unwrap_or(i32::MAX))
    }
    fn void_call(&self) -> Result<(), Failure> {
        Ok(())
    }
    fn in_int(&self, x: i32) -> Result<(), Failure> {
        assert_eq!(x, 42);
        Ok(())
    }
    fn out_int(&self) -> Result<i32, Failure> {
        Ok(42)
    }
    fn in_out_int(&self, x: i32) -> Result<i32, Failure> {
        Ok(x + 1)
    }
    fn in_string(&self, s: &str) -> Result<(), Failure> {
        assert_eq!(s, TEXT);
        Ok(())
    }
    fn out_string(&self) -> Result<String, Failure> {
        Ok(TEXT.to_owned())
    }
    fn in_out_string(&self, s: &str) -> Result<String, Failure> {
        Ok(s.to_owned())
    }
}

/// Calls all of it.
pub fn use_bench(remote: &dyn IRemoteObject, largest: usize) {
    for size in [0, 1, 100, 1000, 65_536, largest] {
        let number = i32::try_from(size).expect("a size");
        assert_eq!(remote.get_bytes(number).expect("GetBytes"), bytes(size));
        assert_eq!(remote.put_bytes(bytes(size)).expect("PutBytes"), number);
    }
    remote.void_call().expect("VoidCall");
    remote.in_int(42).expect("InInt");
    assert_eq!(remote.out_int().expect("OutInt"), 42);
    assert_eq!(remote.in_out_int(41).expect("InOutInt"), 42);
    remote.in_string(TEXT).expect("InString");
    assert_eq!(remote.out_string().expect("OutString"), TEXT);
    assert_eq!(remote.in_out_string(TEXT).expect("InOutString"), TEXT);
}

/// The duplex service: whoever subscribed hears what is said.
pub struct Hello(pub Signaller<dyn IHello>);

impl IHello for Hello {
    fn subscribe(&self) -> Result<(), Failure> {
        Ok(())
    }
    fn unsubscribe(&self) -> Result<(), Failure> {
        Ok(())
    }
    fn say_hello(&self, message: &str) -> Result<(), Failure> {
        self.0.emit(&IHelloOnHello { message: message.to_owned() })
    }
    fn ask_back(&self, x: i32) -> Result<i32, Failure> {
        let nobody = || Failure::new(Kind::NoObject, Initiator::User, "nobody can be asked");
        let caller = everywire::caller().ok_or_else(nobody)?;
        Ok(Stub::<dyn IHelloCallback>::new(caller).ask(x)? + 1)
    }
}

/// Doubles.
#[derive(Debug)]
pub struct Doubler;

impl IHelloCallback for Doubler {
    fn on_hello(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }
    fn ask(&self, x: i32) -> Result<i32, Failure> {
        Ok(x * 2)
    }
}

/// Uses the duplex service at this address: hears, and is asked.
pub fn use_hello(address: &str) {
    let node = Node::new();
    let _doubler = node.export::<dyn IHelloCallback>("doubler", Arc::new(Doubler));
    let hello: Ref<dyn IHello> = node.connect(address).expect("an address");
    let (tell, heard) = channel();
    let _subscription = hello
        .signals()
        .on(move |said: IHelloOnHello| {
            // The test may be over.
            let _ = tell.send(said.message);
        })
        .expect("it can be heard");
    hello.subscribe().expect("Subscribe");
    hello.say_hello("first").expect("SayHello");
    assert_eq!(heard.recv_timeout(PATIENCE).expect("OnHello"), "first");
    for number in 0..20 {
        hello.say_hello(&format!("n{number}")).expect("SayHello");
    }
    for number in 0..20 {
        assert_eq!(heard.recv_timeout(PATIENCE).expect("OnHello"), format!("n{number}"));
    }
    assert_eq!(hello.ask_back(20).expect("AskBack"), 41);
    hello.unsubscribe().expect("Unsubscribe");
    assert_eq!(hello.ask_back(-1).expect("AskBack"), -1);
}
