//! IConnectionPoint.
//!
//! States: the object that stands for a point is made when somebody asks for it, and again when the last one
//! is gone; the point itself, with its sinks, stays as long as the object that it belongs to.
//!
//! Invariants: Advise is answered when it is known how the sink is to be called, or that it cannot be. A sink
//! elsewhere is asked on a thread of its own, of which `ASKED` run at a time for a node. A sink whose account
//! or level makes calling it back impossible is refused at once.

use super::tables::{CallStyle, Point};
use crate::exporter::{Exporter, Proxy};
use crate::hresult::{CONNECT_E_CANNOTCONNECT, E_POINTER, RPC_S_SERVER_TOO_BUSY};
use crate::lock::lock;
use crate::standard::contracts::{CONNECTION_POINT, CONNECTION_POINT_CONTAINER_ID, CONNECTION_POINT_ID};
use crate::standard::enumerators::{ENUM_CONNECTIONS, over};
use crate::standard::guid::Guid;
use crate::standard::serving::{alive, hand_out, pointer, principal, refused, serve};
use crate::{IDISPATCH, iid_of};
use everywire_model::contract::InterfaceKind;
use everywire_model::object::no_operation;
use everywire_model::{Failure, Hold, Initiator, Interface, Kind, Reference, Request, Servant};
use std::sync::{Arc, Weak};

/// Sinks of other nodes that are asked for their interface at a time, each on a thread of its own.
/// Beyond that, Advise fails with RPC_S_SERVER_TOO_BUSY, and the client may try again.
pub const ASKED: usize = 64;
/// A sink and its cookie, as IEnumConnections tells them.
type Connection = (Option<Reference>, u32);

/// The servant of a connection point.
struct PointServant {
    exporter: Weak<Exporter>,
    point: Arc<Point>,
}

/// A connection point as an interface pointer: the object that stands for it is made when there is none.
///
/// # Errors
/// The principal has too many objects.
pub(super) fn pointer_to(
    exporter: &Arc<Exporter>,
    point: &Arc<Point>,
    principal: &str,
) -> Result<Reference, Failure> {
    let mut served = lock(&point.served);
    if let Some(key) = served.as_ref().filter(|key| !exporter.objects().servants(key).is_empty()) {
        return Ok(pointer(exporter, CONNECTION_POINT_ID, key));
    }
    let servant = PointServant { exporter: Arc::downgrade(exporter), point: Arc::clone(point) };
    let key = exporter.serve(vec![Arc::new(servant)], principal)?;
    let made = pointer(exporter, CONNECTION_POINT_ID, &key);
    *served = Some(key);
    Ok(made)
}

impl Servant for PointServant {
    fn interface(&self) -> &Interface {
        &CONNECTION_POINT
    }

    fn dispatch(&self, request: Request) {
        if request.index() == 2 {
            return self.advise(request);
        }
        request.run(|request| {
            let exporter = alive(&self.exporter)?;
            match request.index() {
                0 => request.reply::<_, Failure>(Ok((Guid(self.point.iid),))),
                1 => {
                    let container = pointer(&exporter, CONNECTION_POINT_CONTAINER_ID, &self.point.key);
                    hand_out(request, container)
                }
                3 => {
                    let (cookie,) = request.arguments::<(u32,)>()?;
                    self.point.unadvise(cookie)?;
                    request.reply::<_, Failure>(Ok(()))
                }
                4 => {
                    let sinks = lock(&self.point.sinks).clone();
                    let connections =
                        sinks.iter().map(|sink| (Some(sink.reference.clone()), sink.cookie)).collect();
                    let enumerator = over::<Connection>(Hold::Static(&ENUM_CONNECTIONS), connections);
                    hand_out(request, serve(&exporter, enumerator, &principal(request))?)
                }
                _ => Err(no_operation(&CONNECTION_POINT)),
            }
        });
    }
}

/// The node, a sink, and what is held of it if it is elsewhere.
type NewConnection = (Arc<Exporter>, Reference, Option<Arc<Proxy>>);

impl PointServant {
    /// A sink must have the interface, or IDispatch. One elsewhere is asked before the call is answered, on a thread of its
    /// own: it may be slow, or not to be reached at all.
    fn advise(&self, request: Request) {
        let begun = self.begin(&request);
        let (exporter, sink, proxy) = match begun {
            Ok(begun) => begun,
            Err(failure) => return request.finish(Err(failure)),
        };
        let point = Arc::clone(&self.point);
        // One that comes by the interface is not asked: the first call finds out whether it is there.
        let Some(proxy) = proxy.filter(|proxy| proxy.ipid(point.iid).is_none()) else {
            return answer(&exporter, &point, sink, request, None);
        };
        let asking = Arc::clone(&exporter.standard().points.asking);
        // The node holds one itself. Counted before it is looked at, so that there are never more; of two that come at once for the last
        // place, both may have to try again.
        if Arc::strong_count(&asking) > ASKED + 1 {
            return request.finish(Err(refused(RPC_S_SERVER_TOO_BUSY)));
        }
        let asks = move || {
            let manner = manner_of(&exporter, &proxy, &point);
            drop(asking);
            match manner {
                Ok(manner) => {
                    // By now it is known where it is.
                    let sink = exporter.located(&proxy, sink.profiles.first());
                    answer(&exporter, &point, sink, request, Some(manner));
                }
                Err(failure) => request.finish(Err(failure)),
            }
        };
        // A request that is dropped with its thread is answered all the same.
        let _ = std::thread::Builder::new().name("everywire-advise".to_owned()).spawn(asks);
    }

    /// What can be said of the sink without asking it.
    fn begin(&self, request: &Request) -> Result<NewConnection, Failure> {
        let exporter = alive(&self.exporter)?;
        let (sink,) = request.arguments::<(Option<Reference>,)>()?;
        let sink = sink.ok_or_else(|| refused(E_POINTER))?;
        // Asked before any thread or connection is used for it.
        Point::admit(&lock(&self.point.sinks), &principal(request))?;
        let way = sink.profiles.first().ok_or_else(|| refused(CONNECT_E_CANNOTCONNECT))?;
        let proxy = way.lease.share::<Proxy>();
        if let Some(lack) = proxy.as_ref().and_then(|proxy| proxy.security().lack()) {
            return Err(lack.at("calling the sink back"));
        }
        if proxy.is_none() {
            let held = exporter.objects().servants(&way.key);
            let fits = |held: &Arc<dyn Servant>| gives(held.interface(), &self.point.interface);
            if !held.is_empty() && !held.iter().any(fits) {
                return Err(refused(CONNECT_E_CANNOTCONNECT));
            }
        }
        Ok((exporter, sink, proxy))
    }
}

/// How a sink elsewhere is to be called.
/// Asks for the source interface first, then for IDispatch, as listeners written in scripting languages have
/// it.
fn manner_of(exporter: &Exporter, proxy: &Proxy, point: &Point) -> Result<CallStyle, Failure> {
    let cannot = |failure: Failure| {
        let what = format!("the sink cannot be asked for the interface: {failure}");
        Failure::new(Kind::Unreachable, Initiator::User, what)
            .with_code(format!("{CONNECT_E_CANNOTCONNECT:#010x}"))
    };
    if exporter.query(proxy, point.iid).map_err(cannot)? {
        return Ok(CallStyle::Directly);
    }
    match exporter.query(proxy, IDISPATCH).map_err(cannot)? {
        true => Ok(CallStyle::ByName),
        false => Err(refused(CONNECT_E_CANNOTCONNECT)),
    }
}

/// Advises the sink, and answers.
fn answer(
    exporter: &Exporter,
    point: &Arc<Point>,
    sink: Reference,
    request: Request,
    manner: Option<CallStyle>,
) {
    request.run(|request| {
        let object = exporter.objects().resolver().resolve(&sink)?;
        let object = object.typed(Hold::clone(&point.interface));
        let principal = principal(request);
        let account = exporter.standard().points.account(&principal);
        let cookie = point.advise((principal, account), sink, &object, manner)?;
        // From now on somebody looks after it.
        exporter.objects().attend();
        request.reply::<_, Failure>(Ok((cookie,)))
    });
}

/// Whether an object of one interface can be called by another.
fn gives(held: &Interface, wanted: &Interface) -> bool {
    let (own, iid) = (iid_of(held), iid_of(wanted));
    own == iid
        || (wanted.kind == InterfaceKind::Dispatch && own == IDISPATCH)
        || held.bases.iter().any(|base| gives(base, wanted))
}
