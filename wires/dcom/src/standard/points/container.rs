//! IConnectionPointContainer, of every object that emits signals, and IEnumConnectionPoints.

use super::advising::sources_of;
use super::point::pointer_to;
use super::tables::Point;
use crate::exporter::Exporter;
use crate::hresult::{CONNECT_E_NOCONNECTION, S_FALSE, S_OK};
use crate::standard::contracts::{CONNECTION_POINT_CONTAINER, ENUM_CONNECTION_POINTS};
use crate::standard::enumerators::Tape;
use crate::standard::guid::Guid;
use crate::standard::serving::{alive, principal, refused, serve};
use everywire_model::object::no_operation;
use everywire_model::{Failure, Interface, Reference, Request, Servant};
use std::sync::{Arc, Weak};

/// Serves it.
pub(in super::super) struct Container(pub(in super::super) Weak<Exporter>);

impl Servant for Container {
    fn interface(&self) -> &Interface {
        &CONNECTION_POINT_CONTAINER
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| {
            let exporter = alive(&self.0)?;
            match request.index() {
                0 => {
                    let points = sources_of(&exporter, request.key()).into_iter().filter_map(|source| {
                        exporter.standard().points.find(&exporter, request.key(), source.iid)
                    });
                    let enumerator = Enumerator::new(&self.0, points.collect());
                    let pointer = serve(&exporter, Arc::new(enumerator), &principal(request))?;
                    request.reply::<(Option<Reference>,), Failure>(Ok((Some(pointer),)))
                }
                1 => {
                    let (Guid(iid),) = request.arguments::<(Guid,)>()?;
                    let point = exporter.standard().points.find(&exporter, request.key(), iid);
                    let point = point.ok_or_else(|| refused(CONNECT_E_NOCONNECTION))?;
                    let pointer = pointer_to(&exporter, &point, &principal(request))?;
                    request.reply::<(Option<Reference>,), Failure>(Ok((Some(pointer),)))
                }
                _ => Err(no_operation(&CONNECTION_POINT_CONTAINER)),
            }
        });
    }
}

/// Serves IEnumConnectionPoints. The objects that stand for points are made when they are asked for.
struct Enumerator {
    /// The node, which the enumerator must not keep alive.
    exporter: Weak<Exporter>,
    tape: Tape<Arc<Point>>,
}

impl Enumerator {
    fn new(exporter: &Weak<Exporter>, points: Vec<Arc<Point>>) -> Self {
        Self { exporter: Weak::clone(exporter), tape: Tape::new(points) }
    }
}

impl Servant for Enumerator {
    fn interface(&self) -> &Interface {
        &ENUM_CONNECTION_POINTS
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| match request.index() {
            0 => {
                let (count,) = request.arguments::<(u32,)>()?;
                let (exporter, principal) = (alive(&self.exporter)?, principal(request));
                let points = self.tape.next(count);
                let pointers: Result<Vec<Option<Reference>>, Failure> =
                    points.iter().map(|point| pointer_to(&exporter, point, &principal).map(Some)).collect();
                let pointers = pointers?;
                let fetched = pointers.len() as u32;
                request.reply::<_, Failure>(Ok((count, pointers, fetched, success(fetched == count))))
            }
            1 => {
                let (count,) = request.arguments::<(u32,)>()?;
                request.reply::<_, Failure>(Ok((success(self.tape.skip(count)),)))
            }
            2 => {
                self.tape.reset();
                request.reply::<_, Failure>(Ok(()))
            }
            3 => {
                let copy = Self { exporter: Weak::clone(&self.exporter), tape: self.tape.copy() };
                let pointer = serve(&*alive(&self.exporter)?, Arc::new(copy), &principal(request))?;
                request.reply::<(Option<Reference>,), Failure>(Ok((Some(pointer),)))
            }
            _ => Err(no_operation(self.interface())),
        });
    }
}

/// The HRESULT of Next and Skip: `S_FALSE` if there were fewer items than were asked for.
fn success(whole: bool) -> u32 {
    if whole { S_OK } else { S_FALSE }
}
