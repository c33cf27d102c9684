//! Servants to be asked: a lamp that answers at once, and one whose accessors answer when the test says so.

use everywire_model::contract::{Attribute, Interface, Operation};
use everywire_model::describe::{
    self, Enum, Notify, Shape, Struct, TEXT, attribute, enumeration, interface, notifying, operation, record,
    structure, variants,
};
use everywire_model::shape::{Field, Hold};
use everywire_model::{
    Answer, Direction, Failure, Handle, Initiator, Kind, Marshal, MarshalList, Parameter, Request, Servant,
    Sink,
};
use std::borrow::Cow;
use std::fs::File;
use std::sync::{Arc, Mutex};

static COLOR: Enum = variants!("demo::Color", "", { "red" = 0, "green" = 4 });
static TOO_BRIGHT: Struct = record!("demo::TooBright", "demo.TooBright", { "most": Shape::I32 });

static NAMED_OPERATIONS: [Operation; 2] =
    [operation!("_get_name", () -> TEXT), operation!("_set_name", (in "value": TEXT) -> Shape::Void)];
pub(super) static NAMED: Interface =
    interface!("demo::Named", "demo.Named", [], 0, &NAMED_OPERATIONS, [attribute("name", TEXT, 0, Some(1))]);

static LAMP_OPERATIONS: [Operation; 11] = [
    operation!("_get_name", () -> TEXT),
    operation!("_set_name", (in "value": TEXT) -> Shape::Void),
    operation!("_get_level", () -> Shape::I32),
    operation!("_set_level", (in "value": Shape::I32) -> Shape::Void, raises [&TOO_BRIGHT]),
    operation!("_get_color", () -> enumeration(&COLOR)),
    operation!("_set_color", (in "value": enumeration(&COLOR)) -> Shape::Void),
    operation!("_get_model", () -> TEXT),
    operation!("_get_ticks", () -> Shape::U64),
    operation!("_get_pin", () -> Shape::Void),
    operation!("_set_pin", (in "value": Shape::U16) -> Shape::Void),
    operation!("toggle", () -> Shape::Bool),
];
pub(super) static LAMP: Interface = interface!(
    "demo::Lamp",
    "demo.Lamp",
    [&NAMED],
    2,
    &LAMP_OPERATIONS,
    [
        attribute("name", TEXT, 0, Some(1)),
        notifying("level", Shape::I32, 2, Some(3), Notify::Value),
        notifying("color", enumeration(&COLOR), 4, Some(5), Notify::Change),
        notifying("model", TEXT, 6, None, Notify::Constant),
        notifying("ticks", Shape::U64, 7, None, Notify::Nothing),
        notifying("pin", Shape::U16, 8, Some(9), Notify::Value),
    ]
);

/// The attribute of the lamp with this name.
pub(super) fn lamp_attribute(name: &str) -> &'static Attribute {
    LAMP.attributes.iter().find(|held| held.name == name).unwrap()
}

/// Answers at once.
pub(super) struct Lamp {
    pub(super) name: Mutex<String>,
    pub(super) level: Mutex<i32>,
    pub(super) color: Mutex<i32>,
}

impl Lamp {
    pub(super) fn new(name: &str) -> Arc<Self> {
        Arc::new(Self { name: Mutex::new(name.to_owned()), level: Mutex::new(40), color: Mutex::new(4) })
    }
}

/// A member of the enumeration on the visit.
#[derive(Clone, Copy)]
struct Color(i32);

impl Marshal for Color {
    fn marshal<S: Sink + ?Sized>(&self, _: &Shape, sink: &mut S) -> Result<(), Failure> {
        sink.enumerant(&COLOR, self.0)
    }
}

impl<'a> everywire_model::Unmarshal<'a> for Color {
    fn unmarshal<S: everywire_model::Source<'a> + ?Sized>(
        _: &Shape,
        source: &mut S,
    ) -> Result<Self, Failure> {
        source.enumerant(&COLOR).map(Self)
    }
}

impl Servant for Lamp {
    fn interface(&self) -> &Interface {
        &LAMP
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| match request.index() {
            0 => request.reply::<_, Failure>(Ok((self.name.lock().unwrap().clone(),))),
            1 => {
                (*self.name.lock().unwrap(),) = request.arguments()?;
                request.reply::<(), Failure>(Ok(()))
            }
            2 => request.reply::<_, Failure>(Ok((*self.level.lock().unwrap(),))),
            3 => {
                let (level,): (i32,) = request.arguments()?;
                if level > 100 {
                    let fields = |sink: &mut dyn Sink| (100i32,).marshal_list(&structure(&TOO_BRIGHT), sink);
                    request.answer(Answer::Raised { shape: &TOO_BRIGHT, fields: &fields });
                    return Ok(());
                }
                *self.level.lock().unwrap() = level;
                request.reply::<(), Failure>(Ok(()))
            }
            4 => request.reply::<_, Failure>(Ok((Color(*self.color.lock().unwrap()),))),
            5 => {
                let (color,): (Color,) = request.arguments()?;
                *self.color.lock().unwrap() = color.0;
                request.reply::<(), Failure>(Ok(()))
            }
            6 => request.reply::<_, Failure>(Ok(("L-1".to_owned(),))),
            7 => request.reply::<_, Failure>(Ok((u64::MAX,))),
            other => panic!("operation {other} is not asked for here"),
        });
    }
}

/// One property of any shape, whose accessor answers when [`Slow::answer`] is called, in any order.
pub(super) struct Slow {
    interface: Interface,
    pub(super) waiting: Mutex<Vec<Request>>,
}

impl Slow {
    /// With these names of properties, all of this shape.
    pub(super) fn new(names: &[&str], shape: &Shape) -> Arc<Self> {
        let mut operations = Vec::new();
        let mut attributes = Vec::new();
        for name in names {
            attributes.push(Attribute {
                name: Cow::Owned((*name).to_owned()),
                shape: shape.clone(),
                getter: operations.len(),
                setter: Some(operations.len() + 1),
                notify: Notify::Value,
            });
            operations.push(Operation::new(format!("_get_{name}"), Vec::new(), shape.clone()));
            let field = Field { name: Cow::Borrowed("value"), shape: shape.clone() };
            let parameter = Parameter { direction: Direction::In, field };
            operations.push(Operation::new(format!("_set_{name}"), vec![parameter], Shape::Void));
        }
        let interface = Interface {
            name: Cow::Borrowed("demo::Slow"),
            id: Cow::Borrowed("IDL:demo/Slow:1.0"),
            operations: Cow::Owned(operations),
            attributes: Cow::Owned(attributes),
            ..interface!("", "", [], 0, &[])
        };
        Arc::new(Self { interface, waiting: Mutex::default() })
    }

    /// Answers the request with this number among those that wait.
    pub(super) fn answer<R: MarshalList>(&self, index: usize, value: R) {
        let mut request = self.waiting.lock().unwrap().remove(index);
        request.reply::<R, Failure>(Ok(value)).unwrap();
    }

    /// Fails it.
    pub(super) fn fail(&self, index: usize, code: &str) {
        let mut request = self.waiting.lock().unwrap().remove(index);
        let failure = Failure::new(Kind::Internal, Initiator::Peer, "broken").with_code(code);
        request.reply::<(), Failure>(Err(failure)).unwrap();
    }
}

impl Servant for Slow {
    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn dispatch(&self, request: Request) {
        self.waiting.lock().unwrap().push(request);
    }
}

/// An open file, as a handle.
pub(super) fn handle() -> Handle {
    Arc::new(File::open("/dev/null").unwrap().into())
}

/// Another name for a shape, and one that contains others.
pub(super) fn nested() -> Shape {
    Shape::Optional(Hold::new(describe::structure(&TOO_BRIGHT)))
}
