//! Options of an address that are the same on every wire. The runtime takes them off before the wire reads the rest.

use crate::failure::Failure;
use std::borrow::Cow;

/// Options by name and value, in the order in which they stand in an address.
pub type OptionList<'a> = Vec<(&'a str, &'a str)>;

/// Takes the options of these names off an address such as `iiop://host:1?idle=5s&other=1#key`. Returns the rest of the address
/// and what was found. An option without `=` is none of these.
///
/// # Errors
///
/// One of them stands there twice.
pub fn take<'a>(address: &'a str, names: &[&str]) -> Result<(Cow<'a, str>, OptionList<'a>), Failure> {
    let Some((place, options)) = address.split_once('?') else { return Ok((address.into(), Vec::new())) };
    let (options, rest) = options.split_at(options.find('#').unwrap_or(options.len()));
    let mut found = OptionList::new();
    let mut others = Vec::new();
    for option in options.split('&') {
        match option.split_once('=') {
            Some((name, _)) if found.iter().any(|(known, _)| *known == name) => {
                return Err(wrong(address, &format!("`{name}=` stands there twice")));
            }
            Some((name, value)) if names.contains(&name) => found.push((name, value)),
            _ => others.push(option),
        }
    }
    if found.is_empty() {
        return Ok((address.into(), found));
    }
    let mark = if others.is_empty() { "" } else { "?" };
    Ok((format!("{place}{mark}{}{rest}", others.join("&")).into(), found))
}

/// An option of an address to listen at is wrong, and why.
#[must_use]
pub fn wrong(address: &str, why: &str) -> Failure {
    // What stands before the `?` may hold a password.
    let scheme = address.split(':').next().unwrap_or_default();
    Failure::bad_reference(format!("not an address to listen at: {why}"))
        .at(format_args!("an address of `{scheme}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_asked_for_stays_where_it_is() {
        let address = "x://[::]:1?a=b&idle=5s&c&memory=1MiB#/p?idle=1";
        let (rest, found) = take(address, &["idle", "memory"]).unwrap();
        assert_eq!(rest, "x://[::]:1?a=b&c#/p?idle=1");
        assert_eq!(found, [("idle", "5s"), ("memory", "1MiB")]);
        assert_eq!(take("x://h:1?a=b", &["idle"]).unwrap(), ("x://h:1?a=b".into(), vec![]));
        assert_eq!(take("x://h:1?idle=#k", &["idle"]).unwrap().0, "x://h:1#k");
        let failure = take("x://me:secret@h:1?idle=1s&idle=2s", &["idle"]).unwrap_err();
        assert!(failure.message().contains("twice") && !failure.to_string().contains("secret"), "{failure}");
    }
}
