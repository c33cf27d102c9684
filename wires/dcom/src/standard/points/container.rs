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

/// Answers IConnectionPointContainer.
pub(in super::super) fn answer_container(
    exporter: &Arc<Exporter>,
    request: &mut Request,
) -> Result<(), Failure> {
    let points = &exporter.standard().points;
    let pointer = match request.index() {
        0 => {
            let sources = sources_of(exporter, request.key()).into_iter();
            let points = sources.filter_map(|source| points.find(exporter, request.key(), source.iid));
            let enumerator = Enumerator { exporter: exporter.weak(), tape: Tape::new(points.collect()) };
            serve(exporter, Arc::new(enumerator), &principal(request))?
        }
        1 => {
            let (Guid(iid),) = request.arguments::<(Guid,)>()?;
            let point = points.find(exporter, request.key(), iid);
            pointer_to(exporter, &point.ok_or_else(|| refused(CONNECT_E_NOCONNECTION))?, &principal(request))?
        }
        _ => return Err(no_operation(&CONNECTION_POINT_CONTAINER)),
    };
    request.reply::<(Option<Reference>,), Failure>(Ok((Some(pointer),)))
}

/// Serves IEnumConnectionPoints. The objects that stand for points are made when they are asked for.
struct Enumerator {
    /// The node, which the enumerator must not keep alive.
    exporter: Weak<Exporter>,
    tape: Tape<Arc<Point>>,
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
