//! Servant of `kitchen.dbus.xml`.

use crate::dbus_kitchen::org::example::{Kitchen, KitchenRich, KitchenTick};
use everywire::model::body::Handle;
use everywire::model::{Variant, describe::Shape};
use everywire::{Bytes, Failure, Initiator, Kind, Node, Ref, Value};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The error that `Divide` answers with.
pub const DIVISION_BY_ZERO: &str = "org.example.Error.DivisionByZero";

/// Where the kitchen is exported.
pub const KEY: &str = "org/example/Kitchen";

type Facts = BTreeMap<String, Variant>;
type Deep = Vec<Vec<Vec<Vec<(Bytes, BTreeMap<u64, (i32, Vec<(String, Variant)>)>)>>>>;

/// The kitchen.
pub struct Galley {
    held: Mutex<Held>,
    own: OnceLock<Ref<dyn Kitchen>>,
    bytes: Bytes,
}

struct Held {
    title: String,
    changes: u32,
    silent: i64,
    facts: Facts,
    remembered: Vec<String>,
}

impl Galley {
    /// A kitchen, exported.
    pub fn export(node: &Node, key: &str) -> Ref<dyn Kitchen> {
        let held = Held {
            title: "kitchen".into(),
            changes: 0,
            silent: -1,
            facts: BTreeMap::from([("answer".to_owned(), Variant::new(Shape::I32, Value::Integer(42)))]),
            remembered: Vec::new(),
        };
        let bytes = super::bytes(33 << 20);
        let galley = Arc::new(Self { held: Mutex::new(held), own: OnceLock::new(), bytes });
        let own = node.export(key, Arc::clone(&galley) as Arc<dyn Kitchen>);
        // It was not set before: the servant is new.
        let _ = galley.own.set(own.clone());
        own
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn own(&self) -> Result<&Ref<dyn Kitchen>, Failure> {
        self.own.get().ok_or_else(|| Failure::new(Kind::Internal, Initiator::Here, "not exported yet"))
    }
}

fn broken(error: &std::io::Error) -> Failure {
    Failure::new(Kind::Internal, Initiator::Here, format!("a pipe: {error}"))
}

/// The end of a pipe that the text can be read from.
///
/// # Errors
/// The system gives no pipe.
pub fn pipe_with(text: &str) -> Result<Handle, Failure> {
    let (reader, mut writer) = std::io::pipe().map_err(|error| broken(&error))?;
    writer.write_all(text.as_bytes()).map_err(|error| broken(&error))?;
    Ok(Arc::new(OwnedFd::from(reader)))
}

/// What can be read from a descriptor until its end.
///
/// # Errors
/// It cannot be read.
pub fn read_from(handle: &Handle) -> Result<String, Failure> {
    let own = handle.try_clone().map_err(|error| broken(&error))?;
    let mut text = String::new();
    File::from(own).read_to_string(&mut text).map_err(|error| broken(&error))?;
    Ok(text)
}

impl Kitchen for Galley {
    fn nothing(&self) -> Result<(), Failure> {
        Ok(())
    }
    fn echo_basics(
        &self,
        y: u8,
        b: bool,
        n: i16,
        q: u16,
        i: i32,
        u: u32,
        x: i64,
        t: u64,
        d: f64,
        s: &str,
        o: &str,
        g: &str,
    ) -> Result<(u8, bool, i16, u16, i32, u32, i64, u64, f64, String, String, String), Failure> {
        Ok((y, b, n, q, i, u, x, t, d, s.to_owned(), o.to_owned(), g.to_owned()))
    }
    fn echo_bytes(&self, v: Bytes) -> Result<Bytes, Failure> {
        Ok(v)
    }
    fn echo_texts(&self, texts: &[String], paths: &[String]) -> Result<(Vec<String>, Vec<String>), Failure> {
        Ok((texts.to_vec(), paths.to_vec()))
    }
    fn echo_numbers(
        &self,
        bools: &[bool],
        shorts: &[i16],
        longs: &[i64],
        doubles: &[f64],
    ) -> Result<(Vec<bool>, Vec<i16>, Vec<i64>, Vec<f64>), Failure> {
        Ok((bools.to_vec(), shorts.to_vec(), longs.to_vec(), doubles.to_vec()))
    }
    fn echo_struct(
        &self,
        v: &(i32, String, (u8, Vec<f64>), Facts),
    ) -> Result<(i32, String, (u8, Vec<f64>), Facts), Failure> {
        Ok(v.clone())
    }
    fn echo_dicts(
        &self,
        by_byte: &BTreeMap<u8, String>,
        by_path: &BTreeMap<String, Vec<String>>,
        nested: &BTreeMap<String, Facts>,
    ) -> Result<(BTreeMap<u8, String>, BTreeMap<String, Vec<String>>, BTreeMap<String, Facts>), Failure> {
        Ok((by_byte.clone(), by_path.clone(), nested.clone()))
    }
    fn echo_variant(&self, v: &Variant) -> Result<Variant, Failure> {
        Ok(v.clone())
    }
    fn echo_variants(&self, v: &[Variant]) -> Result<Vec<Variant>, Failure> {
        Ok(v.to_vec())
    }
    fn echo_deep(
        &self,
        v: &[Vec<Vec<Vec<(Bytes, BTreeMap<u64, (i32, Vec<(String, Variant)>)>)>>>],
    ) -> Result<Deep, Failure> {
        Ok(v.to_vec())
    }
    fn divide(&self, a: i32, b: i32) -> Result<(i32, i32), Failure> {
        match (a.checked_div(b), a.checked_rem(b)) {
            (Some(quotient), Some(remainder)) => Ok((quotient, remainder)),
            _ => {
                Err(Failure::new(Kind::BadArgument, Initiator::User, format!("{a} cannot be divided by {b}"))
                    .with_code(DIVISION_BY_ZERO))
            }
        }
    }
    fn total(&self, v: &[i32]) -> Result<i64, Failure> {
        Ok(v.iter().copied().map(i64::from).sum())
    }
    fn bytes(&self, n: u32) -> Result<Bytes, Failure> {
        match usize::try_from(n) {
            Ok(n) if n <= self.bytes.len() => Ok(self.bytes.slice(..n)),
            _ => Err(Failure::new(Kind::BadArgument, Initiator::User, format!("{n} bytes cannot be had"))),
        }
    }
    fn open(&self, text: &str) -> Result<Handle, Failure> {
        pipe_with(text)
    }
    fn read_all(&self, first: Handle, others: &[Handle]) -> Result<String, Failure> {
        std::iter::once(&first).chain(others).map(read_from).collect()
    }
    fn echo_handles(
        &self,
        first: Handle,
        others: &[(String, Handle)],
    ) -> Result<(Handle, Vec<(String, Handle)>), Failure> {
        Ok((first, others.to_vec()))
    }
    fn remember(&self, what: &str) -> Result<(), Failure> {
        self.held().remembered.push(what.to_owned());
        Ok(())
    }
    fn remembered(&self) -> Result<Vec<String>, Failure> {
        Ok(self.held().remembered.clone())
    }
    fn fire(&self, n: u32) -> Result<(), Failure> {
        let signals = self.own()?.signals();
        (0..n).try_for_each(|i| signals.emit(&KitchenTick { i, text: format!("tick {i}") }))
    }
    fn fire_rich(
        &self,
        facts: &Facts,
        pair: &(i32, String),
        paths: &[String],
        any: &Variant,
    ) -> Result<(), Failure> {
        let rich =
            KitchenRich { facts: facts.clone(), pair: pair.clone(), paths: paths.to_vec(), any: any.clone() };
        self.own()?.signals().emit(&rich)
    }
    fn title(&self) -> Result<String, Failure> {
        Ok(self.held().title.clone())
    }
    fn set_title(&self, value: &str) -> Result<(), Failure> {
        {
            let mut held = self.held();
            value.clone_into(&mut held.title);
            held.changes += 1;
        }
        let signals = self.own()?.signals();
        signals.changed("Title")?;
        signals.changed("Changes")
    }
    fn changes(&self) -> Result<u32, Failure> {
        Ok(self.held().changes)
    }
    fn fixed(&self) -> Result<(String, u32), Failure> {
        Ok(("fixed".into(), 7))
    }
    fn silent(&self) -> Result<i64, Failure> {
        Ok(self.held().silent)
    }
    fn set_silent(&self, value: i64) -> Result<(), Failure> {
        self.held().silent = value;
        self.own()?.signals().changed("Silent")
    }
    fn facts(&self) -> Result<Facts, Failure> {
        Ok(self.held().facts.clone())
    }
    fn set_facts(&self, value: &Facts) -> Result<(), Failure> {
        self.held().facts.clone_from(value);
        self.own()?.signals().changed("Facts")
    }
}
