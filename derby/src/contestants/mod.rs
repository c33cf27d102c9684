//! Who races: raw sockets and raw memory as the measure of the machine, our own wires, and the real
//! rivals.
//!
//! Each kind has a file with a function `all`. This is the one place of the derby that knows how a wire
//! or a foreign program is started and spoken to; what others see of a contestant is `Contestant` and
//! `Setup`.
//!
//! Invariant: names are unique and begin with the family, so that `--only omniorb` picks all of
//! omniORB's.

mod contestant;
pub mod dbus;
mod frames;
mod hops;
mod missing;
mod mono;
pub mod omniorb;
mod opc_clients;
mod opcua;
pub mod ours;
pub mod published;
pub(crate) mod raw;
mod router;
pub(crate) mod spoken;
mod wine;
mod workshop;

pub(crate) use contestant::OPERATION;
pub use contestant::{Contestant, Intermediary, ServerPlace, Setup};
pub use missing::Missing;
pub use router::{Route, Router};

use everywire_model::Failure;

/// All contestants, the raw ones first, whether they can race here or not: that is found out by
/// `prepare`.
pub fn all(against: Option<&str>) -> Result<Vec<Contestant>, Failure> {
    let mut all = raw::all();
    all.extend(ours::all());
    all.extend(omniorb::all());
    all.extend(dbus::all());
    all.extend(mono::all());
    all.extend(wine::all());
    all.extend(opcua::all());
    all.extend(opc_clients::all());
    all.extend(hops::all());
    if let Some(reference) = against {
        all.push(ours::against(reference)?);
    }
    Ok(all)
}

/// Those picked by name, by the beginning of names up to a `-`, or by the name of a wire; everybody if nothing is picked.
///
/// # Errors
/// Nobody has such a name.
pub fn picked(all: Vec<Contestant>, only: &[String]) -> Result<Vec<Contestant>, Failure> {
    let fits = |contestant: &Contestant, pick: &str| {
        contestant.wire == Some(pick)
            || contestant.name.strip_prefix(pick).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    for pick in only {
        if !all.iter().any(|contestant| fits(contestant, pick)) {
            let known: Vec<_> = all.iter().map(|contestant| contestant.name.as_str()).collect();
            return Err(crate::unknown(format!("there is no contestant `{pick}`"))
                .with_hint(format!("contestants are {}", known.join(", "))));
        }
    }
    Ok(all.into_iter().filter(|c| only.is_empty() || only.iter().any(|pick| fits(c, pick))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(only: &[&str]) -> Result<Vec<String>, Failure> {
        let only: Vec<_> = only.iter().map(ToString::to_string).collect();
        Ok(picked(all(None)?, &only)?.into_iter().map(|contestant| contestant.name).collect())
    }

    #[test]
    fn contestants_are_picked_by_name_and_by_family() {
        assert_eq!(names(&["raw-tcp"]).unwrap(), ["raw-tcp"]);
        assert_eq!(names(&["raw"]).unwrap(), ["raw-unix", "raw-tcp", "raw-shm"]);
        assert!(names(&["omniorb"]).unwrap().contains(&"omniorb-unix".to_owned()));
        let wire = names(&["dbus"]).unwrap();
        assert!(wire.contains(&"sdbus-broker".to_owned()) && wire.contains(&"zbus-unix".to_owned()));
        assert!(names(&["om"]).unwrap_err().hint().unwrap().contains("omniorb-tcp"));
    }

    #[test]
    fn names_are_unique_and_begin_with_the_family() {
        let all = all(None).unwrap();
        for contestant in &all {
            assert!(contestant.name.starts_with(contestant.family));
            assert_eq!(all.iter().filter(|other| other.name == contestant.name).count(), 1);
        }
    }
}
