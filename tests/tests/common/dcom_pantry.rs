//! The class `Pantry` of `pantry.midl`.

use contract::{IOPCServer, IPantry, IScales, Pantry, PantryNoted, PantryTicked};
use everywire::model::Variant;
use everywire::{Bytes, Failure, Initiator, Kind, Node, Ref, Signaller};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[allow(unreachable_pub, missing_docs, clippy::pedantic)]
pub mod contract {
    everywire::include_contract!("pantry");
}

#[allow(unused_imports)]
pub use contract::describe::{
    I_PANTRY as PANTRY, I_PANTRY_EVENTS as EVENTS, I_SCALES as SCALES, PANTRY as PANTRY_CLASS,
};

/// A class that nobody serves.
#[allow(dead_code)]
pub const NO_CLASS: &str = "6f3a1c10-8d5e-4b7a-9c21-5b2d8e0f4aff";

/// The class.
pub const CLASS: &str = "6f3a1c10-8d5e-4b7a-9c21-5b2d8e0f4a10";

/// Serves one object for all who ask for the class.
pub fn serve_one(node: &Node) -> Ref<dyn Pantry> {
    let events = Signaller::new(Arc::downgrade(&node.emitter()), Bytes::from_static(b"shelf"));
    node.export::<dyn Pantry>("shelf", Arc::new(Shelf { events, living: Arc::default() }))
}

/// Serves the class; the counter says how many of its objects live.
pub fn serve(node: &Node) -> Arc<AtomicUsize> {
    let living = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&living);
    let emitter = Arc::downgrade(&node.emitter());
    node.export_class::<dyn Pantry>(CLASS, move |key| {
        counter.fetch_add(1, Ordering::SeqCst);
        let events = Signaller::new(emitter.clone(), key.clone());
        Ok(Arc::new(Shelf { events, living: Arc::clone(&counter) }))
    });
    living
}

struct Shelf {
    events: Signaller<dyn Pantry>,
    living: Arc<AtomicUsize>,
}

impl Drop for Shelf {
    fn drop(&mut self) {
        self.living.fetch_sub(1, Ordering::SeqCst);
    }
}

impl IScales for Shelf {
    fn weigh(&self, pieces: i32, grams: i64) -> Result<(i64, f64), Failure> {
        let each = f64::from(i32::try_from(grams).unwrap_or(i32::MAX)) / f64::from(pieces);
        Ok((grams * 2, each))
    }

    fn reverse(&self, load: Bytes) -> Result<Bytes, Failure> {
        Ok(load.iter().rev().copied().collect())
    }

    fn label(&self, text: &str) -> Result<u32, Failure> {
        Ok(u32::try_from(text.chars().count()).unwrap_or(u32::MAX))
    }
}

impl IPantry for Shelf {
    fn add(&self, a: i32, b: i32) -> Result<i32, Failure> {
        Ok(a.wrapping_add(b))
    }

    fn echo(&self, text: &str) -> Result<String, Failure> {
        Ok(text.to_owned())
    }

    fn same(&self, value: &Variant) -> Result<Variant, Failure> {
        Ok(value.clone())
    }

    fn refuse(&self, code: i32) -> Result<(), Failure> {
        let refusal = Failure::new(Kind::Internal, Initiator::User, "refused, as was asked for");
        Err(refusal.with_code(format!("{code:#010x}")))
    }

    fn fire(&self, times: i32) -> Result<(), Failure> {
        for number in 0..times {
            self.events.emit(&PantryTicked { number, text: format!("Ticked {number}") })?;
            self.events.emit(&PantryNoted { number, text: format!("Noted {number}") })?;
        }
        Ok(())
    }

    fn delegate(&self, scales: Option<Ref<dyn IScales>>, text: &str) -> Result<i32, Failure> {
        let nobody = || Failure::new(Kind::BadArgument, Initiator::User, "nobody is asked");
        let length = scales.ok_or_else(nobody)?.label(text)?;
        Ok(i32::try_from(length).unwrap_or(i32::MAX))
    }
}

impl IOPCServer for Shelf {}

impl Pantry for Shelf {}
