//! IConnectionPoint.

use super::Point;
use super::enumerators::Connections;
use crate::exporter::{Exporter, Proxy};
use crate::hresult::{CONNECT_E_CANNOTCONNECT, E_POINTER};
use crate::standard::contracts::{CONNECTION_POINT, CONNECTION_POINT_CONTAINER_ID, CONNECTION_POINT_ID};
use crate::standard::guid::Guid;
use crate::standard::serving::{alive, lock, pointer, principal, refused, serve};
use crate::{IDISPATCH, iid_of};
use everywire_model::contract::InterfaceKind;
use everywire_model::object::no_operation;
use everywire_model::{Failure, Hold, Interface, Reference, Request, Servant};
use std::sync::{Arc, Weak};

/// Serves one.
struct Served {
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
    let servant = Served { exporter: Arc::downgrade(exporter), point: Arc::clone(point) };
    let key = exporter.serve(vec![Arc::new(servant)], principal)?;
    let made = pointer(exporter, CONNECTION_POINT_ID, &key);
    *served = Some(key);
    Ok(made)
}

impl Servant for Served {
    fn interface(&self) -> &Interface {
        &CONNECTION_POINT
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| {
            let exporter = alive(&self.exporter)?;
            match request.index() {
                0 => request.reply::<_, Failure>(Ok((Guid(self.point.iid),))),
                1 => {
                    let container = pointer(&exporter, CONNECTION_POINT_CONTAINER_ID, &self.point.key);
                    request.reply::<(Option<Reference>,), Failure>(Ok((Some(container),)))
                }
                2 => {
                    let (sink,) = request.arguments::<(Option<Reference>,)>()?;
                    let sink = sink.ok_or_else(|| refused(E_POINTER))?;
                    let cookie = self.advise(&exporter, sink, principal(request))?;
                    request.reply::<_, Failure>(Ok((cookie,)))
                }
                3 => {
                    let (cookie,) = request.arguments::<(u32,)>()?;
                    self.point.unadvise(cookie)?;
                    request.reply::<_, Failure>(Ok(()))
                }
                4 => {
                    let sinks = lock(&self.point.sinks).clone();
                    let connections =
                        sinks.iter().map(|sink| (sink.reference.clone(), sink.cookie)).collect();
                    let enumerator = Connections::new(&self.exporter, connections);
                    let pointer = serve(&exporter, Arc::new(enumerator), &principal(request))?;
                    request.reply::<(Option<Reference>,), Failure>(Ok((Some(pointer),)))
                }
                _ => Err(no_operation(&CONNECTION_POINT)),
            }
        });
    }
}

impl Served {
    /// A sink of this process must have the interface. Others are asked for it by the first call: one that has neither the
    /// interface nor IDispatch is then forgotten.
    fn advise(&self, exporter: &Exporter, sink: Reference, principal: String) -> Result<u32, Failure> {
        let here = sink.profiles.first().filter(|profile| profile.lease.get::<Proxy>().is_none());
        if let Some(here) = here {
            let held = exporter.objects().servants(&here.key);
            let fits = |held: &Arc<dyn Servant>| gives(held.interface(), &self.point.interface);
            if !held.is_empty() && !held.iter().any(fits) {
                return Err(refused(CONNECT_E_CANNOTCONNECT));
            }
        }
        if sink.profiles.is_empty() {
            return Err(refused(CONNECT_E_CANNOTCONNECT));
        }
        let object = exporter.objects().resolver().resolve(&sink)?;
        let object = object.typed(Hold::clone(&self.point.interface));
        let cookie = self.point.advise(principal, sink, &object)?;
        // From now on somebody looks after it.
        exporter.objects().attend();
        Ok(cookie)
    }
}

/// Whether an object of one interface can be called by another.
fn gives(held: &Interface, wanted: &Interface) -> bool {
    let (own, iid) = (iid_of(held), iid_of(wanted));
    own == iid
        || (wanted.kind == InterfaceKind::Dispatch && own == IDISPATCH)
        || held.bases.iter().any(|base| gives(base, wanted))
}
