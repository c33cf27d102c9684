//! The objects of the tests: a lamp that hands out others.

use everywire_model::contract::{Interface, Operation, Signal};
use everywire_model::describe::{ANY_OBJECT, InterfaceKind, Shape, interface, of_kind, operation, signal};
use everywire_model::object::no_operation;
use everywire_model::{Failure, Reference, Request, Servant};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) const LAMP_ID: &str = "6f0e8c5a-0b1d-4b0e-9a3c-7d1f0d9a1b01";
pub(crate) const SWITCH_ID: &str = "6f0e8c5a-0b1d-4b0e-9a3c-7d1f0d9a1b02";
pub(crate) const CLASS_ID: &str = "6f0e8c5a-0b1d-4b0e-9a3c-7d1f0d9a1bcc";

static SWITCH_OPERATIONS: [Operation; 1] = [operation!("press", () -> Shape::I32)];
/// A base of the lamp.
pub(crate) static SWITCH: Interface =
    interface!("Switch", "6f0e8c5a-0b1d-4b0e-9a3c-7d1f0d9a1b02", [], 0, &SWITCH_OPERATIONS);

static LAMP_OPERATIONS: [Operation; 3] = [
    operation!("press", () -> Shape::I32),
    operation!("neighbour", () -> ANY_OBJECT),
    operation!("remember", (in "other": ANY_OBJECT) -> Shape::Void),
];
/// The lamp.
pub(crate) static LAMP: Interface =
    interface!("Lamp", "6f0e8c5a-0b1d-4b0e-9a3c-7d1f0d9a1b01", [&SWITCH], 1, &LAMP_OPERATIONS);

/// A class of lamps.
pub(crate) static LAMP_CLASS: Interface = of_kind(
    interface!("LampClass", "6f0e8c5a-0b1d-4b0e-9a3c-7d1f0d9a1bcc", [&LAMP], 0, &[]),
    InterfaceKind::Class,
);

/// Serves it.
#[derive(Default)]
pub(crate) struct Lamp {
    pub(crate) pressed: AtomicI32,
    pub(crate) neighbour: Mutex<Option<Reference>>,
}

impl Lamp {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }
}

impl Servant for Lamp {
    fn interface(&self) -> &Interface {
        &LAMP
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| match request.index() {
            0 => request.reply::<_, Failure>(Ok((self.pressed.fetch_add(1, Ordering::Relaxed) + 1,))),
            1 => request.reply::<_, Failure>(Ok((self.neighbour.lock().unwrap().clone(),))),
            2 => {
                let (other,) = request.arguments::<(Option<Reference>,)>()?;
                *self.neighbour.lock().unwrap() = other;
                request.reply::<(), Failure>(Ok(()))
            }
            _ => Err(no_operation(&LAMP)),
        });
    }
}

static BELL_SIGNALS: [Signal; 1] = [signal!("Rang", {})];
/// Whatever rings.
pub(crate) static BELL: Interface =
    interface!("Bell", "6f0e8c5a-0b1d-4b0e-9a3c-7d1f0d9a1b03", [], 0, &[], [], signals & BELL_SIGNALS);

/// Serves it.
pub(crate) struct Bell;

impl Servant for Bell {
    fn interface(&self) -> &Interface {
        &BELL
    }

    fn dispatch(&self, request: Request) {
        request.finish(Err(no_operation(&BELL)));
    }
}
