//! The class `Pantry` of `pantry.midl`, described and served here.

use everywire::model::Variant;
use everywire::model::describe::*;
use everywire::model::{Emitter, MarshalList, Request, Servant, Sink};
use everywire::{Bytes, Failure, Initiator, Interface, Kind, Node};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak};

/// The class.
pub const CLASS: &str = "6f3a1c10-8d5e-4b7a-9c21-5b2d8e0f4a10";
/// A class that nobody serves.
pub const NO_CLASS: &str = "6f3a1c10-8d5e-4b7a-9c21-5b2d8e0f4aff";
const PANTRY_ID: &str = "6f3a1c10-8d5e-4b7a-9c21-5b2d8e0f4a01";
const SCALES_ID: &str = "6f3a1c10-8d5e-4b7a-9c21-5b2d8e0f4a02";
const EVENTS_ID: &str = "6f3a1c10-8d5e-4b7a-9c21-5b2d8e0f4a03";
const NOTES_ID: &str = "6f3a1c10-8d5e-4b7a-9c21-5b2d8e0f4a04";

const OPC_SERVER_ID: &str = "39c13a4d-011e-11d0-9675-0020afd8adb3";

const BSTR: Shape = text(TextKind::Counted, None);

static UNKNOWN: Interface = interface!("IUnknown", "00000000-0000-0000-c000-000000000046", [], 0, &[]);
static DISPATCH: Interface =
    interface!("IDispatch", "00020400-0000-0000-c000-000000000046", [&UNKNOWN], 0, &[]);

static SCALES_OPERATIONS: [Operation; 3] = [
    operation!("Weigh", (in "pieces": Shape::I32, inout "grams": Shape::I64, out "each": Shape::F64) -> Shape::Void),
    operation!("Reverse", (
        in "count": Shape::U32,
        in "load": counted!(Shape::U8, "count", Conformant),
        out "reversed": counted!(Shape::U8, "count", Conformant),
    ) -> Shape::Void),
    operation!("Label", (in "text": WIDE_TEXT, out "length": Shape::U32) -> Shape::Void),
];

/// Called by number.
pub static SCALES: Interface = interface!("IScales", SCALES_ID, [&UNKNOWN], 0, &SCALES_OPERATIONS);

static PANTRY_OPERATIONS: [Operation; 5] = [
    numbered(operation!("Add", (in "a": Shape::I32, in "b": Shape::I32) -> Shape::I32), 1),
    numbered(operation!("Echo", (in "text": BSTR) -> BSTR), 2),
    numbered(operation!("Same", (in "value": Shape::Variant) -> Shape::Variant), 3),
    numbered(operation!("Refuse", (in "code": Shape::I32) -> Shape::Void), 4),
    numbered(operation!("Fire", (in "times": Shape::I32) -> Shape::Void), 5),
];

/// Called by number and by name.
pub static PANTRY: Interface =
    of_kind(interface!("IPantry", PANTRY_ID, [&DISPATCH], 0, &PANTRY_OPERATIONS), InterfaceKind::Dual);

/// node-dcom asks each new object for this one, as if there were OPC servers only.
pub static OPC_SERVER: Interface = interface!("IOPCServer", OPC_SERVER_ID, [&UNKNOWN], 0, &[]);

static EVENTS_OPERATIONS: [Operation; 1] =
    [operation!("Ticked", (in "number": Shape::I32, in "text": WIDE_TEXT) -> Shape::Void)];

/// Events by number.
pub static EVENTS: Interface = interface!("IPantryEvents", EVENTS_ID, [&UNKNOWN], 0, &EVENTS_OPERATIONS);

static NOTES_OPERATIONS: [Operation; 1] =
    [numbered(operation!("Noted", (in "number": Shape::I32, in "text": BSTR) -> Shape::Void), 1)];

/// Events by name.
pub static NOTES: Interface = of_kind(
    interface!("_IPantryNotes", NOTES_ID, [&DISPATCH], 0, &NOTES_OPERATIONS),
    InterfaceKind::Dispatch,
);

static SIGNALS: [Signal; 2] = [
    sunk(signal!("Ticked", { "number": Shape::I32, "text": WIDE_TEXT }), &EVENTS, 0),
    sunk(signal!("Noted", { "number": Shape::I32, "text": BSTR }), &NOTES, 0),
];

/// The class: the interfaces of its objects with their operations, and what they fire.
pub static PANTRY_CLASS: LazyLock<Interface> = LazyLock::new(|| {
    let mut class =
        of_kind(interface!("Pantry", CLASS, [&PANTRY, &SCALES, &OPC_SERVER], 0, &[]), InterfaceKind::Class);
    class.operations = [&PANTRY, &SCALES].iter().flat_map(|face| face.operations.iter().cloned()).collect();
    class.signals = Cow::Borrowed(&SIGNALS);
    class.inherited = class.operations.len();
    class
});

/// Serves the class; the counter says how many of its objects live.
pub fn serve(node: &Node) -> Arc<AtomicUsize> {
    let living = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&living);
    let emitter = Arc::downgrade(&node.emitter());
    node.export_class_servants(CLASS, Hold::Static(&PANTRY_CLASS), move |key| {
        counter.fetch_add(1, Ordering::SeqCst);
        Ok(vec![Arc::new(Pantry {
            key: key.clone(),
            emitter: Weak::clone(&emitter),
            living: Arc::clone(&counter),
        }) as Arc<dyn Servant>])
    });
    living
}

struct Pantry {
    key: Bytes,
    emitter: Weak<dyn Emitter>,
    living: Arc<AtomicUsize>,
}

impl Drop for Pantry {
    fn drop(&mut self) {
        self.living.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Servant for Pantry {
    fn interface(&self) -> &Interface {
        &PANTRY_CLASS
    }

    fn dispatch(&self, request: Request) {
        let name = PANTRY_CLASS.operations[request.index()].name.clone();
        request.run(|request| match &*name {
            "Weigh" => {
                let (pieces, grams): (i32, i64) = request.arguments()?;
                let each = f64::from(i32::try_from(grams).unwrap_or(i32::MAX)) / f64::from(pieces);
                request.reply::<_, Failure>(Ok((grams * 2, each)))
            }
            "Reverse" => {
                let (_, load): (u32, Bytes) = request.arguments()?;
                let reversed: Vec<u8> = load.iter().rev().copied().collect();
                request.reply::<_, Failure>(Ok((Bytes::from(reversed),)))
            }
            "Label" => {
                let (text,): (String,) = request.arguments()?;
                let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
                request.reply::<_, Failure>(Ok((length,)))
            }
            "Add" => {
                let (a, b): (i32, i32) = request.arguments()?;
                request.reply::<_, Failure>(Ok((a.wrapping_add(b),)))
            }
            "Echo" => {
                let (text,): (String,) = request.arguments()?;
                request.reply::<_, Failure>(Ok((text,)))
            }
            "Same" => {
                let (value,): (Variant,) = request.arguments()?;
                request.reply::<_, Failure>(Ok((value,)))
            }
            "Refuse" => {
                let (code,): (i32,) = request.arguments()?;
                let refusal = Failure::new(Kind::Internal, Initiator::User, "refused, as was asked for")
                    .with_code(format!("{code:#010x}"));
                request.reply::<(), Failure>(Err(refusal))
            }
            "Fire" => {
                let (times,): (i32,) = request.arguments()?;
                self.fire(times)?;
                request.reply::<(), Failure>(Ok(()))
            }
            other => unreachable!("{other}"),
        });
    }
}

impl Pantry {
    fn fire(&self, times: i32) -> Result<(), Failure> {
        let Some(emitter) = self.emitter.upgrade() else { return Ok(()) };
        for number in 0..times {
            for signal in &SIGNALS {
                let fields = (number, format!("{} {number}", signal.name));
                emitter.emit(&self.key, &PANTRY_CLASS, signal, &|sink: &mut dyn Sink| {
                    fields.marshal_list(&signal.fields, sink)
                })?;
            }
        }
        Ok(())
    }
}
