//! Servant of `kitchen.kidl`.

use crate::dcop_kitchen::{Kitchen, KitchenTick, QColor, QDateTime, QPoint, QRect};
use everywire::model::Variant;
use everywire::{Bytes, Failure, Initiator, Kind, Node, Ref};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The kitchen of a DCOP application.
pub struct Scullery {
    remembered: Mutex<Vec<String>>,
    own: OnceLock<Ref<dyn Kitchen>>,
}

impl Scullery {
    /// A kitchen, exported.
    pub fn export(node: &Node, id: &str) -> Ref<dyn Kitchen> {
        let scullery = Arc::new(Self { remembered: Mutex::default(), own: OnceLock::new() });
        let own = node.export(id, Arc::clone(&scullery) as Arc<dyn Kitchen>);
        // It was not set before: the servant is new.
        let _ = scullery.own.set(own.clone());
        own
    }
}

impl Kitchen for Scullery {
    fn nothing(&self) -> Result<(), Failure> {
        Ok(())
    }
    fn echo_bool(&self, v: bool) -> Result<bool, Failure> {
        Ok(v)
    }
    fn echo_text(&self, v: &str) -> Result<String, Failure> {
        Ok(v.to_owned())
    }
    fn echo_narrow(&self, v: &str) -> Result<String, Failure> {
        Ok(v.to_owned())
    }
    fn echo_bytes(&self, v: Bytes) -> Result<Bytes, Failure> {
        Ok(v)
    }
    fn echo_texts(&self, v: &[String]) -> Result<Vec<String>, Failure> {
        Ok(v.to_vec())
    }
    fn echo_narrows(&self, v: &[String]) -> Result<Vec<String>, Failure> {
        Ok(v.to_vec())
    }
    fn echo_map(&self, v: &BTreeMap<String, i32>) -> Result<BTreeMap<String, i32>, Failure> {
        Ok(v.clone())
    }
    fn echo_nested(
        &self,
        v: &BTreeMap<String, Vec<String>>,
    ) -> Result<BTreeMap<String, Vec<String>>, Failure> {
        Ok(v.clone())
    }
    fn echo_doubles(&self, v: &[f64]) -> Result<Vec<f64>, Failure> {
        Ok(v.to_vec())
    }
    fn echo_point(&self, v: &QPoint) -> Result<QPoint, Failure> {
        Ok(v.clone())
    }
    fn echo_rect(&self, v: &QRect) -> Result<QRect, Failure> {
        Ok(v.clone())
    }
    fn echo_color(&self, v: QColor) -> Result<QColor, Failure> {
        Ok(v)
    }
    fn echo_time(&self, v: &QDateTime) -> Result<QDateTime, Failure> {
        Ok(v.clone())
    }
    fn echo_variant(&self, v: &Variant) -> Result<Variant, Failure> {
        Ok(v.clone())
    }
    fn echo_facts(&self, v: &BTreeMap<String, Variant>) -> Result<BTreeMap<String, Variant>, Failure> {
        Ok(v.clone())
    }
    fn spell(
        &self,
        c: char,
        uc: u8,
        s: i16,
        us: u16,
        i: i32,
        ui: u32,
        l: i64,
        ul: u64,
        ll: i64,
        f: f32,
        d: f64,
    ) -> Result<String, Failure> {
        Ok(format!("{c} {uc} {s} {us} {i} {ui} {l} {ul} {ll} {f} {d}"))
    }
    fn divide(&self, a: i32, b: i32) -> Result<i32, Failure> {
        a.checked_div(b).ok_or_else(|| Failure::new(Kind::BadArgument, Initiator::User, "division by zero"))
    }
    fn bytes(&self, n: i32) -> Result<Bytes, Failure> {
        match usize::try_from(n) {
            Ok(n) => Ok(super::bytes(n)),
            Err(_) => Err(Failure::new(Kind::BadArgument, Initiator::User, "no negative bytes")),
        }
    }
    fn remember(&self, what: &str) -> Result<(), Failure> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner).push(what.to_owned());
        Ok(())
    }
    fn remembered(&self) -> Result<Vec<String>, Failure> {
        Ok(self.remembered.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
    fn slow(&self, ms: i32) -> Result<String, Failure> {
        let time = Duration::from_millis(u64::try_from(ms).unwrap_or(0));
        everywire::blocking(|| std::thread::sleep(time));
        Ok("at last".into())
    }
    fn fire(&self, n: i32) -> Result<(), Failure> {
        let Some(own) = self.own.get() else { return Ok(()) };
        (0..n).try_for_each(|i| own.signals().emit(&KitchenTick { i, text: format!("tick {i}") }))
    }
}
