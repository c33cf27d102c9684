//! IConnectionPointContainer, of every object that emits signals.

use super::advising::sources_of;
use super::point::pointer_to;
use super::tables::Point;
use crate::exporter::Exporter;
use crate::hresult::CONNECT_E_NOCONNECTION;
use crate::standard::contracts::CONNECTION_POINT_CONTAINER;
use crate::standard::enumerators::{ENUM_CONNECTION_POINTS, prepared};
use crate::standard::guid::Guid;
use crate::standard::serving::{alive, hand_out, principal, refused, serve};
use everywire_model::object::no_operation;
use everywire_model::{Failure, Hold, Reference, Request};
use std::borrow::Cow;
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
            let interface = Hold::Static(&ENUM_CONNECTION_POINTS);
            serve(exporter, prepared(interface, exporter.weak(), points.collect(), pointers), &who)?
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

/// The objects that stand for points, made for whoever asks for the next ones.
fn pointers(
    exporter: &Weak<Exporter>,
    points: &[Arc<Point>],
    request: &Request,
) -> Result<Cow<'static, [Option<Reference>]>, Failure> {
    let (exporter, who) = (alive(exporter)?, principal(request));
    points.iter().map(|point| pointer_to(&exporter, point, &who).map(Some)).collect()
}
