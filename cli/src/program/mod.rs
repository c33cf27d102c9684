//! Objects implemented by a program that speaks JSON lines on its standard input and output.
//!
//! A call goes in as one line and its answer comes out as one, in any order:
//!
//! ```text
//! {"id":1,"operation":"deposit","arguments":{"amount":5}}
//! {"id":1,"results":{"return":105}}
//! {"id":1,"raise":"Bank::Overdrawn","fields":{"missing":7}}
//! {"id":1,"fail":"the disk is full","code":"org.example.Full"}
//! {"signal":"Emptied","fields":{"by":"Ada"}}
//! {"changed":"balance"}
//! ```
//!
//! A oneway call has `"oneway":true` and wants no answer. Where headers came with a call it has
//! `"headers":{"NAME":"VALUE"}`, and results may have some beside them, too. What the program prints on
//! standard error is passed on.
//!
//! States: the program *runs* as long as the server. It *has ended* when it closes its output: the
//! calls that wait for it fail, and the next call starts it again.
//!
//! Invariants: numbers of calls are never used twice, also not after a new start. A call is answered
//! exactly once, by the program or for it. The lock of the process is not held while a call waits.

mod answer;
mod asked;
pub(crate) mod child;
pub(crate) mod lines;
mod pending;
mod process;
mod room;
mod settle;
mod tell;

use crate::output::note;
use everywire::layer::CallerIdentity;
use everywire::model::{Answer, Body, Constant, Contract, Expects, Hold, Operation, Request, Servant};
use everywire::{Failure, Interface};
use everywire_dynamic::headers;
use everywire_dynamic::json::{LimitedText, NodeNotation};
use pending::{Pending, lock};
pub(crate) use process::FailureHook;
use process::Process;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What an object tells of its contract beside its interface.
#[derive(Debug, Clone, Default)]
pub(crate) struct ContractExtras {
    constants: Arc<[Constant]>,
    listeners: Arc<[Hold<Interface>]>,
}

impl ContractExtras {
    /// What a contract has for objects of this interface.
    pub(crate) fn of(contract: &Contract, interface: &Interface) -> Self {
        let constants = contract.constants().cloned().collect();
        Self { constants, listeners: contract.listeners(interface).into() }
    }
}

/// An object whose operations a program carries out.
pub(crate) struct ProgramServant {
    interface: Hold<Interface>,
    constants: Arc<[Constant]>,
    listeners: Arc<[Hold<Interface>]>,
    command: String,
    /// How references and files are written in JSON.
    words: NodeNotation,
    /// The key of the object, by which its signals go out.
    key: String,
    /// The run of the program; `None` once it was stopped.
    process: Mutex<Option<Arc<Process>>>,
    /// The number of the next call, from 1.
    next: AtomicU64,
}

impl ProgramServant {
    /// Starts the program: `command` is a command line of the shell. Values are spelled by `words`,
    /// whose node serves the object under `key`. `hopeless` hears it if the program ends with a failure
    /// before it has said or was asked anything.
    ///
    /// # Errors
    /// The shell or a thread cannot be started. A program that the shell does not find is told to
    /// `hopeless`.
    pub(crate) fn start(
        interface: Hold<Interface>,
        command: &str,
        words: NodeNotation,
        key: &str,
        hopeless: FailureHook,
    ) -> io::Result<Self> {
        let process = Process::start(command, interface.clone(), words.clone(), key, hopeless)?;
        Ok(Self {
            interface,
            constants: Arc::default(),
            listeners: Arc::default(),
            command: command.to_owned(),
            words,
            key: key.to_owned(),
            process: Mutex::new(Some(Arc::new(process))),
            next: AtomicU64::new(1),
        })
    }

    /// The same object, which tells this of its contract.
    pub(crate) fn telling(self, told: ContractExtras) -> Self {
        Self { constants: told.constants, listeners: told.listeners, ..self }
    }

    /// Waits until the program has begun well, as far as that can be seen ([`settle`]), or has ended and its status was told.
    pub(crate) fn settle(&self) {
        let process = lock(&self.process).clone();
        if let Some(process) = process {
            process.settle();
        }
    }

    /// Tells the program that no calls come any more, by closing its input; it still answers those that it has.
    pub(crate) fn tell_end(&self) {
        if let Some(process) = &*lock(&self.process) {
            process.tell_end();
        }
    }

    /// Ends the program: first kindly, by closing its input, and by a signal if it takes too long. It
    /// waits for that.
    pub(crate) fn stop(&self) {
        let process = lock(&self.process).take();
        if let Some(process) = process {
            process.stop();
        }
    }

    /// Kills the program.
    pub(crate) fn kill(&self) {
        if let Some(process) = &*lock(&self.process) {
            process.kill();
        }
    }

    /// The program, started again if it has ended.
    fn process(&self) -> io::Result<Arc<Process>> {
        let mut held = lock(&self.process);
        match &*held {
            Some(process) if !process.is_over() => Ok(Arc::clone(process)),
            _ => {
                let (interface, words) = (self.interface.clone(), self.words.clone());
                // It could start before: those who call hear of it.
                let told = Arc::new(|status: &str| note(&format!("program: ended ({status})")));
                let fresh = Arc::new(Process::start(&self.command, interface, words, &self.key, told)?);
                *held = Some(Arc::clone(&fresh));
                Ok(fresh)
            }
        }
    }

    /// The line of a call. Its arguments are written while they are read: a value of a few octets would be a node of some hundred bytes.
    ///
    /// # Errors
    /// They do not fit the contract, or are longer as text than the message may cost.
    fn line(&self, id: u64, operation: &Operation, body: &Body) -> Result<Vec<u8>, Failure> {
        // What the text of the arguments may be, the budget of the message says; what is around it is short.
        let mut line = LimitedText::new(usize::MAX);
        line.push_str("{\"id\":")?;
        line.push(&id)?;
        line.push_str(",\"operation\":")?;
        line.push(&*operation.name)?;
        line.push_str(",\"arguments\":")?;
        body.read(|source| line.pass(&operation.arguments, source, &self.words))
            .map_err(|failure| failure.at(format_args!("arguments of {}", operation.name)))?;
        let beside = headers::beside(body);
        if !beside.is_empty() {
            line.push_str(",\"headers\":")?;
            line.push(&headers::json(&beside))?;
        }
        line.push_str(if operation.oneway { ",\"oneway\":true}\n" } else { "}\n" })?;
        Ok(line.into_bytes())
    }

    /// Hands a call to the program: its arguments are read first, so one that does not fit the
    /// contract is answered here.
    fn forward(&self, request: Request) {
        let index = request.index();
        let Some(operation) = self.interface.operations.get(index) else { return };
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let line = match self.line(id, operation, request.body()) {
            Ok(line) => Arc::new(line),
            Err(failure) => {
                let mut request = request;
                return request.answer(Answer::Failed(&failure));
            }
        };
        let caller = CallerIdentity::of_call(&request).source();
        // Whoever waits for an answer, also to a oneway operation, hears of a refusal.
        let unheard = request.expects() == Expects::Nothing;
        let mut call = Some(Pending { request, index });
        // A program that ended between two calls is started again once.
        for _ in 0..2 {
            match self.process() {
                Ok(process) => {
                    if process.send(id, &caller, &line, operation.oneway, unheard, &mut call) {
                        return;
                    }
                }
                Err(error) => return answer::not_started(call.take(), &error),
            }
        }
        answer::not_started(call.take(), &io::Error::other("it ended as soon as it was started"));
    }
}

impl Servant for ProgramServant {
    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn constants(&self) -> Vec<Constant> {
        self.constants.to_vec()
    }

    fn listeners(&self) -> Vec<Hold<Interface>> {
        self.listeners.to_vec()
    }

    fn dispatch(&self, request: Request) {
        self.forward(request);
    }

    /// The program reads the calls of a connection in their order, also where one of them had to wait for room.
    fn keeps_order(&self) -> bool {
        true
    }
}
