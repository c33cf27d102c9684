//! Servants of `interop.idl`.

use crate::kitchen::interop::{
    self, Both, Brief, Card, Choice, Colour, Counter, Described, Doubles, Empty, Everything, Few, Grid,
    JudgeError, Kitchen, Listener, Many, Maybe, Named, Names, Octets, Painter, Pantry, Point, Points,
    Refused, Table, Tree,
};
use everywire::model::value::Value;
use everywire::model::{Reference, TypeCode, Variant};
use everywire::{Failure, Initiator, Kind, Node, Ref};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Someone with a name, a sum and a shade.
pub struct Person(Mutex<Traits>);

struct Traits {
    name: String,
    changes: i32,
    sum: i32,
    shade: Colour,
}

impl Person {
    /// With this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(Mutex::new(Traits { name: name.to_owned(), changes: 0, sum: 0, shade: Colour::Green }))
    }

    fn traits(&self) -> MutexGuard<'_, Traits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Named for Person {
    fn name(&self) -> Result<String, Failure> {
        Ok(self.traits().name.clone())
    }
    fn set_name(&self, value: &str) -> Result<(), Failure> {
        let mut traits = self.traits();
        traits.name = value.to_owned();
        traits.changes += 1;
        Ok(())
    }
    fn changes(&self) -> Result<i32, Failure> {
        Ok(self.traits().changes)
    }
    fn greet(&self, who: &str) -> Result<String, Failure> {
        Ok(format!("{}{who}", interop::GREETING))
    }
}

impl Counter for Person {
    fn add(&self, n: i32) -> Result<i32, Failure> {
        let mut traits = self.traits();
        traits.sum += n;
        Ok(traits.sum)
    }
}

impl Painter for Person {
    fn shade(&self) -> Result<Colour, Failure> {
        Ok(self.traits().shade)
    }
    fn set_shade(&self, value: Colour) -> Result<(), Failure> {
        self.traits().shade = value;
        Ok(())
    }
}

impl Both for Person {
    fn summary(&self) -> Result<String, Failure> {
        let traits = self.traits();
        Ok(format!("{} {} {}", traits.name, traits.sum, traits.shade as i32))
    }
}

/// Answers what it is asked, twice.
#[derive(Debug, Default)]
pub struct Doubler(pub Mutex<Vec<String>>);

impl Listener for Doubler {
    fn heard(&self, what: &str) -> Result<(), Failure> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(what.to_owned());
        Ok(())
    }
    fn ask(&self, n: i32) -> Result<i32, Failure> {
        Ok(n * 2)
    }
}

/// The kitchen.
pub struct Cook {
    node: Node,
    noted: AtomicI32,
}

impl Cook {
    /// A kitchen whose new objects live in this node.
    #[must_use]
    pub fn new(node: Node) -> Self {
        Self { node, noted: AtomicI32::new(0) }
    }

    fn person(&self, name: &str) -> Ref<dyn Both> {
        self.node.export_anonymous::<dyn Both>(Arc::new(Person::new(name)))
    }
}

impl Kitchen for Cook {
    fn echo_everything(&self, v: &Everything) -> Result<Everything, Failure> {
        Ok(v.clone())
    }
    fn echo_points(&self, v: &[Point]) -> Result<Points, Failure> {
        Ok(v.to_vec())
    }
    fn echo_names(&self, v: &[String]) -> Result<Names, Failure> {
        Ok(v.to_vec())
    }
    fn echo_doubles(&self, v: &[f64]) -> Result<Doubles, Failure> {
        Ok(v.to_vec())
    }
    fn echo_octets(&self, v: Octets) -> Result<Octets, Failure> {
        Ok(v)
    }
    fn echo_few(&self, v: &[i32]) -> Result<Few, Failure> {
        Ok(v.to_vec())
    }
    fn echo_table(&self, v: &[Doubles]) -> Result<Table, Failure> {
        Ok(v.to_vec())
    }
    fn echo_grid(&self, v: &Grid) -> Result<Grid, Failure> {
        Ok(*v)
    }
    fn echo_brief(&self, v: &str) -> Result<Brief, Failure> {
        Ok(v.to_owned())
    }
    fn echo_tree(&self, v: &Tree) -> Result<Tree, Failure> {
        Ok(v.clone())
    }
    fn next_colour(&self, v: Colour) -> Result<Colour, Failure> {
        Ok(match v {
            Colour::Red => Colour::Green,
            Colour::Green => Colour::Blue,
            Colour::Blue => Colour::Red,
        })
    }
    fn mix(&self, a: i32, b: f64, both: &Point) -> Result<(String, f64, Point), Failure> {
        Ok((a.to_string(), f64::from(a) + b, Point { x: both.y, y: both.x }))
    }
    fn judge(&self, code: i32) -> Result<i32, JudgeError> {
        match code {
            13 => {
                Err(Failure::new(Kind::Refused, Initiator::User, "thirteen is not allowed").declined().into())
            }
            ..0 => Err(Refused { why: "negative".to_owned(), code, mood: Colour::Blue }.into()),
            0 => Err(Empty {}.into()),
            _ => Ok(code + 1),
        }
    }
    fn make(&self, name: &str) -> Result<Option<Ref<dyn Both>>, Failure> {
        Ok(Some(self.person(name)))
    }
    fn find(&self, name: &str) -> Result<Option<Ref<dyn Named>>, Failure> {
        if name.is_empty() {
            return Ok(None);
        }
        let person = self.person(name);
        Ok(Some(self.node.narrow(person.reference().clone())?))
    }
    fn names_of(&self, objects: &[Option<Reference>]) -> Result<Names, Failure> {
        objects
            .iter()
            .map(|object| match object {
                Some(reference) => self.node.narrow::<dyn Named>(reference.clone())?.name(),
                None => Ok("nil".to_owned()),
            })
            .collect()
    }
    fn card_for(&self, label: &str) -> Result<Card, Failure> {
        Ok(Card { label: label.to_owned(), owner: Some(self.person(label).reference().clone()) })
    }
    fn owner_of(&self, v: &Card) -> Result<String, Failure> {
        match &v.owner {
            Some(owner) => self.node.narrow::<dyn Named>(owner.clone())?.name(),
            None => Err(Failure::new(Kind::BadArgument, Initiator::User, "the card has no owner")),
        }
    }
    fn tell(&self, l: Option<Ref<dyn Listener>>, n: i32) -> Result<i32, Failure> {
        let listener = l.ok_or_else(|| Failure::new(Kind::BadArgument, Initiator::User, "nobody listens"))?;
        for i in 0..n {
            listener.heard(&i.to_string())?;
        }
        listener.ask(n)
    }
    fn note(&self, _: &str) -> Result<(), Failure> {
        self.noted.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
    fn noted(&self) -> Result<i32, Failure> {
        Ok(self.noted.load(Ordering::SeqCst))
    }
}

/// The pantry.
#[derive(Debug, Clone, Copy)]
pub struct Larder;

impl Pantry for Larder {
    fn echo_wchar(&self, v: char) -> Result<char, Failure> {
        Ok(v)
    }
    fn echo_wstring(&self, v: &str) -> Result<String, Failure> {
        Ok(v.to_owned())
    }
    fn echo_choice(&self, v: &Choice) -> Result<Choice, Failure> {
        Ok(v.clone())
    }
    fn echo_maybe(&self, v: &Maybe) -> Result<Maybe, Failure> {
        Ok(v.clone())
    }
    fn echo_many(&self, v: &Many) -> Result<Many, Failure> {
        Ok(v.clone())
    }
    fn echo_any(&self, v: &Variant) -> Result<Variant, Failure> {
        Ok(v.clone())
    }
    fn echo_anys(&self, v: &[Variant]) -> Result<Vec<Variant>, Failure> {
        Ok(v.to_vec())
    }
    fn echo_code(&self, v: &TypeCode) -> Result<TypeCode, Failure> {
        Ok(v.clone())
    }
    fn echo_codes(&self, v: &[TypeCode]) -> Result<Vec<TypeCode>, Failure> {
        Ok(v.to_vec())
    }
    fn echo_described(&self, v: &Described) -> Result<Described, Failure> {
        Ok(v.clone())
    }
    fn identify(&self, v: &TypeCode) -> Result<String, Failure> {
        // CORBA's number of the one kind without an identity that anybody asks for.
        Ok(match (v.id(), v.kind()) {
            ("", "i32") => "3".to_owned(),
            ("", kind) => kind.to_owned(),
            (id, _) => id.to_owned(),
        })
    }
    fn describe(&self, v: &Variant) -> Result<String, Failure> {
        use everywire::model::Shape;
        Ok(match (v.shape().resolved(), &*v.value()) {
            (Shape::I32, Value::Integer(number)) => format!("long {number}"),
            (Shape::Text(_), Value::Text(text)) => format!("string {text}"),
            (Shape::Struct(shape), Value::Struct(fields)) if shape.id == "IDL:interop/Point:1.0" => {
                match fields.as_slice() {
                    [(_, Value::Integer(x)), (_, Value::Integer(y))] => format!("Point {x} {y}"),
                    _ => "other".to_owned(),
                }
            }
            _ => "other".to_owned(),
        })
    }
}
