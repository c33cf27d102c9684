//! The servant: a plain type that implements the generated traits.

use crate::{Boiler, BoilerBoiled, IBoiler, IGauge};
use everywire::{Failure, Initiator, Kind, Node, Ref, Signaller};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The class, as the contract has it.
pub const CLASS: &str = "9fd8ca65-850d-4f8d-b1bb-a2fcc8d6d105";
/// The HRESULT of heating beyond the limit.
pub const TOO_HOT: &str = "0x80040a01";

/// Heats no water, but says that it does.
pub struct Kettle {
    state: Mutex<State>,
    /// Fires the events of this object, without holding the node that holds the object.
    events: Signaller<dyn Boiler>,
}

struct State {
    temperature: f64,
    limit: f64,
    gauges: Vec<Ref<dyn IGauge>>,
}

impl Kettle {
    /// Serves the class: whoever asks for an object gets a new one.
    pub fn serve(node: &Node) {
        let emitter = Arc::downgrade(&node.emitter());
        node.export_class::<dyn Boiler>(CLASS, move |key| {
            let state = Mutex::new(State { temperature: 20.0, limit: 90.0, gauges: Vec::new() });
            Ok(Arc::new(Self { state, events: Signaller::new(emitter.clone(), key.clone()) }))
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IBoiler for Kettle {
    fn temperature(&self) -> Result<f64, Failure> {
        Ok(self.state().temperature)
    }

    fn limit(&self) -> Result<f64, Failure> {
        Ok(self.state().limit)
    }

    fn set_limit(&self, degrees: f64) -> Result<(), Failure> {
        self.state().limit = degrees;
        Ok(())
    }

    fn heat(&self, by: f64) -> Result<f64, Failure> {
        let (degrees, limit, gauges) = {
            let mut state = self.state();
            if state.temperature + by > state.limit {
                let message = format!("{} degrees are the limit", state.limit);
                return Err(Failure::new(Kind::BadArgument, Initiator::User, message).with_code(TOO_HOT));
            }
            state.temperature += by;
            (state.temperature, state.limit, state.gauges.clone())
        };
        // Nothing is locked meanwhile: whoever is called may call back.
        for gauge in gauges {
            if gauge.moved(degrees).is_err() {
                self.state().gauges.retain(|kept| kept.reference() != gauge.reference());
            }
        }
        if degrees >= limit {
            self.events.emit(&BoilerBoiled { degrees, text: "switched off".to_owned() })?;
        }
        Ok(degrees)
    }

    fn attach(&self, gauge: Option<Ref<dyn IGauge>>) -> Result<(), Failure> {
        self.state().gauges.extend(gauge);
        Ok(())
    }
}

impl Boiler for Kettle {}
