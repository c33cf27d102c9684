//! Users and processes of this host, by name.

use std::collections::HashMap;
use std::fs;

/// The users that `/etc/passwd` names.
#[derive(Debug, Default)]
pub(super) struct Users(HashMap<u32, String>);

impl Users {
    /// Reads them; where that is not possible, nobody has a name.
    pub(super) fn read() -> Self {
        fs::read_to_string("/etc/passwd").map_or_else(|_| Self::default(), |text| Self::parse(&text))
    }

    /// Lines that are no accounts are passed over.
    fn parse(text: &str) -> Self {
        let mut users = HashMap::new();
        for line in text.lines() {
            let mut fields = line.split(':');
            if let (Some(name), _, Some(Ok(number))) =
                (fields.next(), fields.next(), fields.next().map(str::parse))
                && !name.is_empty()
            {
                // The first line for a number counts, as for the C library.
                users.entry(number).or_insert_with(|| name.to_owned());
            }
        }
        Self(users)
    }

    /// The user's name, or `uid` and the number.
    pub(super) fn name(&self, number: u32) -> String {
        self.0.get(&number).cloned().unwrap_or_else(|| format!("uid {number}"))
    }
}

/// The name of a process, as the kernel cuts it; nothing if it is gone or not to be seen.
pub(super) fn process_name(pid: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    // A process may name itself as it likes.
    Some(name.trim_end_matches('\n').chars().map(|c| if c.is_control() { '?' } else { c }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_named_by_the_first_line_that_has_their_number() {
        let users = Users::parse(
            "root:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/:\nbroken\n:x:7:7::/:\nann:x:1000:1::/:\n",
        );
        assert_eq!(users.name(0), "root");
        assert_eq!(users.name(1000), "ann");
        assert_eq!(users.name(7), "uid 7");
    }

    #[test]
    fn this_process_has_a_name() {
        assert!(process_name(std::process::id()).is_some_and(|name| !name.is_empty()));
        assert_eq!(process_name(u32::MAX), None);
    }
}
