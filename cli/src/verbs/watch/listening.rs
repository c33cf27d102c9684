//! Watching on wires without signals, where an object calls its listeners back: CORBA.
//!
//! The node of this program listens at an address that the object can call, a listener is served there, and the object is given it by the
//! operation that `everywire_dynamic::listening` finds. From then on each call of the object is a signal.
//!
//! Nothing comes over this side's own connection, so nobody says when the object is gone: it is asked each `PROBE` whether it is there.

use super::Arguments;
use crate::cli_error::{CliError, Done};
use everywire::model::signal::Listener;
use everywire::model::{Contract, Endpoint, Hold, SignalEvent, Subscription, Wire};
use everywire::{Interface, Node, Object};
use everywire_dynamic::listening::{Registration, registration};
use everywire_dynamic::watching::SignalFilter;
use std::net::UdpSocket;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often the object is asked whether it is there.
const PROBE: Duration = Duration::from_secs(2);

/// Has the node listen where an object can call it. Before the object is called first: only connections that are made from then on can carry
/// its calls, too.
///
/// # Errors
/// This program cannot listen.
pub(super) fn open(arguments: &Arguments, wire: &dyn Wire, object: &Object, node: &Node) -> Done {
    let address = match &arguments.on {
        Some(address) => address.clone(),
        None => near(wire, object)?,
    };
    node.listen(&address).map(drop).map_err(|failure| {
        CliError::failure(format!("cannot listen for calls of the object on `{address}`"), &failure)
    })
}

/// The way in which an object takes listeners.
///
/// # Errors
/// The object takes none.
pub(super) fn prepare(
    arguments: &Arguments,
    object: &Object,
    (contract, own): (&Contract, &[Hold<Interface>]),
) -> Done<Registration> {
    let type_id = &object.reference().type_id;
    let exact = own.iter().find(|interface| !type_id.is_empty() && interface.id == *type_id);
    let meant = exact.map_or(own, std::slice::from_ref);
    let wanted =
        SignalFilter { interface: arguments.interface.as_deref(), signal: arguments.signal.as_deref() };
    registration(contract, meant, wanted).map_err(|mistake| {
        super::not_watched(arguments, mistake).adding(
            "there are no signals on this wire: an object calls the callback objects that it was given",
        )
    })
}

/// Gives the object a listener. The subscription takes it back.
///
/// # Errors
/// The object cannot be called, or does not take it.
pub(super) fn subscribe(
    object: &Object,
    node: &Node,
    registration: &Registration,
    listener: &Listener,
) -> Result<Subscription, everywire_dynamic::CallError> {
    let registered = registration.begin(object, node, Listener::clone(listener))?;
    let (end, ended) = channel::<()>();
    let (asked, listener) = (object.clone(), Listener::clone(listener));
    std::thread::spawn(move || {
        while ended.recv_timeout(PROBE) == Err(RecvTimeoutError::Timeout) {
            if let Err(failure) = asked.target().probe() {
                return listener(SignalEvent::Disconnected(failure));
            }
        }
    });
    Ok(Subscription::new(move || drop((end, registered))))
}

/// An address of this machine at which the object can call: a free port of the address by which this side reaches it, or a socket.
///
/// # Errors
/// A listener there would need files or accounts that nobody named.
fn near(wire: &dyn Wire, object: &Object) -> Done<String> {
    let scheme = wire.schemes().first().copied().unwrap_or_default();
    let endpoint = object.reference().profiles.first().and_then(|profile| profile.endpoints.first());
    match endpoint {
        Some(Endpoint::Tcp { host, port }) => {
            let reached = UdpSocket::bind("[::]:0")
                .or_else(|_| UdpSocket::bind("0.0.0.0:0"))
                .and_then(|socket| socket.connect((host.as_str(), *port)).and_then(|()| socket.local_addr()));
            let reached = reached
                .map_err(|error| CliError::local(format!("no address of this machine leads to {host}"), &error))?;
            let plain = match reached.ip().to_canonical() {
                std::net::IpAddr::V4(ip) => format!("{scheme}://{ip}:0"),
                std::net::IpAddr::V6(ip) => format!("{scheme}://[{ip}]:0"),
            };
            // Where the wire can carry calls both ways, and the server wants that, the object need not reach this machine.
            let both_ways = format!("{plain}?bidirectional=on");
            Ok(if wire.listen(&both_ways).is_ok() { both_ways } else { plain })
        }
        Some(Endpoint::Unix { .. } | Endpoint::Shm { .. }) => {
            let socket = std::env::temp_dir().join(format!("everywire-watch-{}.sock", std::process::id()));
            Ok(format!("{scheme}+unix://{}", socket.display()))
        }
        _ => Err(CliError::usage(
            "this program cannot be called back",
            "the object calls back over a connection of its own, and nobody said how that one is protected",
        )
        .hint("say with --on ADDRESS where this program listens, such as --on 'iiops://HOST:0?cert=FILE&key=FILE'")),
    }
}
