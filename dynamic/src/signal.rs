//! Choosing a signal by its name: bare, or behind the name of its interface.

use crate::contract::ObjectContract;
use crate::mistake::{Mistake, Remedy};
use crate::wording::last_part;
use everywire_model::words::nearest;
use everywire_model::{Interface, Signal};

impl ObjectContract {
    /// The signal that this name means, and its interface: `Ticked`, or `org.example.Tank.Ticked`; of the `interface`, if one is named
    /// apart, which may be the last part of its name or its identity.
    ///
    /// # Errors
    /// There is no such signal, or several interfaces declare one.
    pub fn signal(&self, name: &str, interface: Option<&str>) -> Result<(&Interface, &Signal), Mistake> {
        // The interface may be named apart, or before the last dot.
        let asked = interface.or_else(|| name.rsplit_once('.').map(|(scope, _)| scope));
        let is = |held: &str| asked.is_none_or(|asked| asked == held || asked == last_part(held));
        let bare = name.rsplit('.').next().unwrap_or(name);
        let all = || {
            let meant = self.contract.interfaces().filter(|held| is(&held.name) || is(&held.id));
            meant.flat_map(|held| held.signals.iter().map(move |signal| (&**held, signal)))
        };
        let mut fits =
            all().filter(|(_, signal)| signal.label == bare || signal.name == bare || signal.name == *name);
        match (fits.next(), fits.next()) {
            (Some(found), None) => Ok(found),
            (Some((first, _)), Some(_)) => {
                let what = format!("`{name}` is more than one signal");
                Err(Mistake::operation(what, "several interfaces declare it")
                    // The name of a wire where signals have one; of other contracts the scoped name.
                    .hint(format!(
                        "write {}.{bare}",
                        if first.id.contains(':') { &first.name } else { &first.id }
                    ))
                    .remedy(Remedy::Interface))
            }
            (None, _) => {
                let names: Vec<&str> = all().map(|(_, signal)| signal.label.as_ref()).collect();
                let why = match names.is_empty() {
                    true => "there is none".to_owned(),
                    false => format!("there are {}", names.join(", ")),
                };
                let mistake = Mistake::operation(format!("there is no signal `{name}`"), why);
                Err(match nearest(bare, names.iter().copied()) {
                    Some(near) => mistake.hint(format!("did you mean `{near}`?")),
                    None => mistake.hint("choose one of these").remedy(Remedy::OtherInterface),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> ObjectContract {
        let text = r#"<node>
            <interface name="org.example.Tank"><signal name="Ticked"/><signal name="Emptied"/></interface>
            <interface name="org.example.Clock"><signal name="Ticked"/></interface>
        </node>"#;
        let read = everywire_idl::dbus_xml::parse(text, "tank.xml").unwrap_or_else(|error| panic!("{error}"));
        ObjectContract::new(read, "tank.xml")
    }

    #[test]
    fn a_signal_is_found_by_its_name_and_that_of_its_interface() {
        let known = known();
        let of = |name: &str, interface: Option<&str>| {
            known
                .signal(name, interface)
                .map(|(interface, signal)| format!("{} {}", interface.id, signal.name))
        };
        assert_eq!(of("Emptied", None).unwrap(), "org.example.Tank Emptied");
        assert_eq!(of("org.example.Clock.Ticked", None).unwrap(), "org.example.Clock Ticked");
        assert_eq!(of("Ticked", Some("Tank")).unwrap(), "org.example.Tank Ticked");
    }

    #[test]
    fn what_is_not_there_or_more_than_one_is_told_with_what_to_try() {
        let known = known();
        let wrong = |name: &str, interface: Option<&str>| {
            let mistake = known.signal(name, interface).unwrap_err();
            (mistake.to_string(), mistake.hint_with(|_| "").unwrap_or_default())
        };
        let (twice, hint) = wrong("Ticked", None);
        assert!(
            twice.contains("more than one signal") && hint.contains("org.example.Tank.Ticked"),
            "{twice}: {hint}"
        );
        let (missing, hint) = wrong("Emptyed", None);
        assert!(
            missing.contains("there are Ticked, Emptied, Ticked") && hint.contains("`Emptied`"),
            "{missing}: {hint}"
        );
        assert!(wrong("Ticked", Some("Bank")).0.contains("there is none"));
    }
}
