//! IEnumConnections, and what all enumerators of connection points are asked alike.

use crate::exporter::Exporter;
use crate::hresult::{S_FALSE, S_OK};
use crate::standard::contracts::ENUM_CONNECTIONS;
use crate::standard::enumerators::Tape;
use crate::standard::serving::{alive, principal, serve};
use everywire_model::object::no_operation;
use everywire_model::{Failure, Interface, Reference, Request, Servant};
use std::sync::{Arc, Weak};

impl<T: Clone> Tape<T> {
    /// Answers what all enumerators are asked alike: Skip, Reset and Clone.
    pub(super) fn answer(
        &self,
        request: &mut Request,
        exporter: &Weak<Exporter>,
        interface: &Interface,
        cloned: impl FnOnce(Self) -> Arc<dyn Servant>,
    ) -> Result<(), Failure> {
        match request.index() {
            1 => {
                let (count,) = request.arguments::<(u32,)>()?;
                request.reply::<_, Failure>(Ok((success(self.skip(count)),)))
            }
            2 => {
                self.reset();
                request.reply::<_, Failure>(Ok(()))
            }
            3 => {
                let pointer = serve(&*alive(exporter)?, cloned(self.copy()), &principal(request))?;
                request.reply::<(Option<Reference>,), Failure>(Ok((Some(pointer),)))
            }
            _ => Err(no_operation(interface)),
        }
    }
}

/// The HRESULT of Next and Skip: `S_FALSE` if there were fewer items than were asked for.
pub(super) fn success(whole: bool) -> u32 {
    if whole { S_OK } else { S_FALSE }
}

/// Serves IEnumConnections.
pub(super) struct Connections {
    exporter: Weak<Exporter>,
    /// Sinks and cookies as they were when the enumerator was made.
    tape: Tape<(Reference, u32)>,
}

impl Connections {
    pub(super) fn new(exporter: &Weak<Exporter>, connections: Vec<(Reference, u32)>) -> Self {
        Self { exporter: Weak::clone(exporter), tape: Tape::new(connections) }
    }
}

impl Servant for Connections {
    fn interface(&self) -> &Interface {
        &ENUM_CONNECTIONS
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| match request.index() {
            0 => {
                let (count,) = request.arguments::<(u32,)>()?;
                let next = self.tape.next(count);
                let fetched = next.len() as u32;
                let next: Vec<_> = next.into_iter().map(|(sink, cookie)| (Some(sink), cookie)).collect();
                request.reply::<_, Failure>(Ok((count, next, fetched, success(fetched == count))))
            }
            _ => self.tape.answer(request, &self.exporter, self.interface(), |tape| {
                Arc::new(Self { exporter: Weak::clone(&self.exporter), tape })
            }),
        });
    }
}
