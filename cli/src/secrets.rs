//! Passwords in addresses: people may write them, nothing shows them.

/// What stands for a password.
const HIDDEN: &str = "***";

/// The text with the password of each address `SCHEME://USER:PASSWORD@HOST` in it hidden. An address
/// ends at white space or at a quote. Whatever is printed for people and may hold an address goes
/// through this: failures, notes, what was generated from where.
pub(crate) fn hidden(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let end = after.find(|c: char| c.is_whitespace() || "`'\"".contains(c)).unwrap_or(after.len());
        let (address, left) = after.split_at(end);
        out.push_str(&of_address(address).unwrap_or_else(|| address.to_owned()));
        rest = left;
    }
    out + rest
}

/// What follows `://`, if there is a password in it. One that is not written as it ought to be, with a slash in it, is one all
/// the same.
fn of_address(address: &str) -> Option<String> {
    let (user, after) = address.split_once(':')?;
    let (secret, place) = after.rsplit_once('@')?;
    let begins_object = |text: &str| text.contains(['/', '#']);
    let port = secret.split(['/', '#']).next().unwrap_or_default();
    let is_port = begins_object(secret) && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    // Hints say how to write one.
    let is_example = secret == "PASSWORD";
    (!begins_object(user) && !is_port && !is_example).then(|| format!("{user}:{HIDDEN}@{place}"))
}

#[cfg(test)]
mod tests {
    use super::hidden;

    #[test]
    fn passwords_are_hidden_and_nothing_else() {
        for (given, shown) in [
            ("a://ada:secret@host:1/x", "a://ada:***@host:1/x"),
            (
                "cannot reach `a://D;ada:s/e@c@h`, nor a://b:c@d",
                "cannot reach `a://D;ada:***@h`, nor a://b:***@d",
            ),
            ("a://ada@host:1/x", "a://ada@host:1/x"),
            ("a://host:2809/key@home", "a://host:2809/key@home"),
            ("a+unix:///run/x:y#key@home", "a+unix:///run/x:y#key@home"),
            ("a://USER:PASSWORD@HOST", "a://USER:PASSWORD@HOST"),
            ("a:b@c", "a:b@c"),
            ("", ""),
        ] {
            assert_eq!(hidden(given), shown);
        }
    }
}
