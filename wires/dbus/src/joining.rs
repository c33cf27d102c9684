//! Joining a bus: its greeting, a name to own, or the right to overhear (specification, "Message Bus
//! Messages").
//!
//! A sequence of calls to the bus in the stage `Joining`: `Hello`; then, for who serves under a name,
//! `RequestName`, and `GetNameOwner` where somebody else has it, to tell the user who; for a monitor,
//! `BecomeMonitor`. When the last has been answered, the session is ready. Each is an entry in `waiting` like
//! a call of the user's, so a violation or the end of the connection clears it; none becomes an event. A
//! refusal of the bus ends the connection (`Unwelcome`), since nothing would be right without it.

use crate::greeting::shown;
use crate::heads::RouteHead;
use crate::pending_calls::Pending;
use crate::session::DbusSession;
use crate::standard::driver;
use crate::violations::ProtocolError;
use everywire_model::shape::Text;
use everywire_model::{
    Body, Encode, Event, Expects, Failure, Interface, MarshalList, Operation, Purpose, Sink, UnmarshalList,
    Visit,
};

/// Answers of `RequestName`, by the specification's numbers.
const PRIMARY_OWNER: u32 = 1;
const IN_QUEUE: u32 = 2;
const EXISTS: u32 = 3;
const ALREADY_OWNER: u32 = 4;

impl DbusSession {
    /// The first call on a bus; nothing else may be sent before. The unique name in its answer is not needed
    /// here.
    pub(crate) fn say_hello(&mut self) {
        self.ask_bus(driver::HELLO, &everywire_model::visit::Nothing, Pending::Hello);
    }

    /// Calls the bus. A limit that does not let such a call through lets nothing through.
    pub(crate) fn ask_bus(
        &mut self,
        operation: &'static Operation,
        arguments: &dyn Encode,
        pending: Pending,
    ) {
        let _ = self.try_bus(&driver::BUS, operation, arguments, Some(pending));
    }

    /// Calls the bus; with `pending` for an answer, without it as a call that wants none.
    ///
    /// # Errors
    /// The call does not encode, or exceeds the limit. Nothing was sent.
    pub(crate) fn try_bus(
        &mut self,
        interface: &'static Interface,
        operation: &'static Operation,
        arguments: &dyn Encode,
        pending: Option<Pending>,
    ) -> Visit<()> {
        let (serial, setup) = (self.take_serial(), self.setup());
        let Some(bus) = &self.bus else { return Ok(()) };
        let flags = crate::requests::flags(if pending.is_some() { Expects::Reply } else { Expects::Nothing });
        let route = self.routes.call(&bus.profile, Some(interface), operation)?;
        let mut head = RouteHead::new(route, serial, flags);
        Self::send(&mut self.out, &mut self.scratch, setup, &mut head, arguments)?;
        if let Some(pending) = pending {
            self.waiting.insert(serial, pending);
        }
        Ok(())
    }

    /// The bus answered something that calls wait for: goes on to the next step.
    ///
    /// # Errors
    /// The answer says that this side cannot have what it needs.
    pub(crate) fn joined(&mut self, pending: &Pending, body: &Body) -> Result<(), ProtocolError> {
        match pending {
            Pending::Hello => self.greeted(),
            Pending::RequestName => self.named(read::<(u32,)>(body, driver::REQUEST_NAME)?.0),
            Pending::Holder => {
                let (holder,) = read::<(String,)>(body, driver::GET_NAME_OWNER)?;
                let name = self.name();
                let what = format!(
                    "the name {name} belongs to {holder}; ?queue in the address waits for it, ?replace takes it if that is let"
                );
                Err(ProtocolError::Unwelcome { what })
            }
            _ => {
                self.become_ready();
                Ok(())
            }
        }
    }

    /// `Hello` was answered.
    fn greeted(&mut self) -> Result<(), ProtocolError> {
        let Some(bus) = &self.bus else { return Ok(()) };
        match bus.purpose {
            Purpose::Serving if !bus.name.is_empty() => {
                let (name, flags) = (shown(&bus.name), u32::from(bus.flags));
                let arguments = |sink: &mut dyn Sink| {
                    (name.as_str(), flags).marshal_list(&driver::REQUEST_NAME.arguments, sink)
                };
                self.ask_bus(driver::REQUEST_NAME, &arguments, Pending::RequestName);
            }
            Purpose::Monitoring => {
                let arguments = |sink: &mut dyn Sink| {
                    (Vec::<String>::new(), 0u32).marshal_list(&driver::BECOME_MONITOR.arguments, sink)
                };
                self.try_bus(&driver::MONITORING, driver::BECOME_MONITOR, &arguments, Some(Pending::Monitor))
                    .map_err(|failure| ProtocolError::Unwelcome { what: failure.message().to_owned() })?;
            }
            _ => self.become_ready(),
        }
        Ok(())
    }

    /// `RequestName` was answered with this number.
    fn named(&mut self, answer: u32) -> Result<(), ProtocolError> {
        match answer {
            // In the queue, calls come once all before have left.
            PRIMARY_OWNER | ALREADY_OWNER | IN_QUEUE => self.become_ready(),
            EXISTS => {
                let name = self.name();
                let arguments = |sink: &mut dyn Sink| sink.text(&Text::NARROW, &name);
                self.ask_bus(driver::GET_NAME_OWNER, &arguments, Pending::Holder);
            }
            other => {
                return Err(ProtocolError::Unwelcome {
                    what: format!("the bus answers {other} to a request for a name"),
                });
            }
        }
        Ok(())
    }

    /// What it means that the bus answered a step of joining with an error.
    pub(crate) fn unwelcome(&self, pending: &Pending, failure: &Failure) -> ProtocolError {
        let what = match pending {
            Pending::Hello => "does not greet this side".to_owned(),
            Pending::RequestName => format!("does not give the name {}", self.name()),
            Pending::Holder => format!("gave the name {} to somebody else", self.name()),
            _ => "does not let this side monitor".to_owned(),
        };
        let code = failure.code().unwrap_or_default();
        ProtocolError::Unwelcome { what: format!("the bus {what}: {} [{code}]", failure.message()) }
    }

    /// The name that this side wants to own; empty if none.
    fn name(&self) -> String {
        self.bus.as_ref().map(|bus| shown(&bus.name)).unwrap_or_default()
    }

    /// The bus says that this side has lost a name. If it served under that name and does not wait for it,
    /// calls will never come again: the connection counts as closed by the peer.
    pub(crate) fn name_lost(&mut self, name: &str) {
        let ours = self.bus.as_ref().is_some_and(|bus| bus.purpose == Purpose::Serving && bus.name == name);
        // Whoever waits in the queue gets it back; the others are served no longer.
        let waits = self.bus.as_ref().is_some_and(|bus| bus.flags & crate::address::DO_NOT_QUEUE == 0);
        if ours && !waits {
            self.events.push_back(Event::Closed);
        }
    }
}

/// The results of a call of the bus.
fn read<T: for<'a> UnmarshalList<'a>>(body: &Body, operation: &Operation) -> Result<T, ProtocolError> {
    body.decode(&operation.results).map_err(|failure| ProtocolError::Unwelcome {
        what: format!("the bus answers {} with something else: {failure}", operation.name),
    })
}
