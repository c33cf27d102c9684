//! IConnectionPointContainer, of every object that emits signals.

use super::advising::sources_of;
use super::point::pointer_to;
use super::tables::Point;
use crate::exporter::Exporter;
use crate::hresult::CONNECT_E_NOCONNECTION;
use crate::standard::contracts::CONNECTION_POINT_CONTAINER;
use crate::standard::enumerators::{ENUM_CONNECTION_POINTS, over};
use crate::standard::guid::Guid;
use crate::standard::serving::{alive, hand_out, principal, refused, serve};
use everywire_model::object::no_operation;
use everywire_model::{Failure, Hold, Marshal, Request, Shape, Sink, Visit};
use std::sync::{Arc, Weak};

/// Answers IConnectionPointContainer.
pub(in super::super) fn answer_container(
    exporter: &Arc<Exporter>,
    request: &mut Request,
) -> Result<(), Failure> {
    let points = &exporter.standard().points;
    let who = principal(request);
    let pointer = match request.index() {
        0 => {
            let sources = sources_of(exporter, request.key()).into_iter();
            let points = sources.filter_map(|source| points.find(exporter, request.key(), source.iid));
            let listed = |point| Listed { exporter: exporter.weak(), point, principal: who.clone() };
            let listed = points.map(listed).collect();
            serve(exporter, over(Hold::Static(&ENUM_CONNECTION_POINTS), listed), &who)?
        }
        1 => {
            let (Guid(iid),) = request.arguments::<(Guid,)>()?;
            let point = points.find(exporter, request.key(), iid);
            pointer_to(exporter, &point.ok_or_else(|| refused(CONNECT_E_NOCONNECTION))?, &who)?
        }
        _ => return Err(no_operation(&CONNECTION_POINT_CONTAINER)),
    };
    hand_out(request, pointer)
}

/// A point in an enumerator. The object that stands for it is made, for whoever asked for the enumerator, when it is handed out.
#[derive(Clone)]
struct Listed {
    /// The node, which the enumerator must not keep alive.
    exporter: Weak<Exporter>,
    point: Arc<Point>,
    principal: String,
}

impl Marshal for Listed {
    fn marshal<S: Sink + ?Sized>(&self, shape: &Shape, sink: &mut S) -> Visit<()> {
        Some(pointer_to(&alive(&self.exporter)?, &self.point, &self.principal)?).marshal(shape, sink)
    }
}
