//! The program `dcopserver`.

use super::server_socket::{Files, ServerSocket};
use super::{Server, Settings};
use everywire_model::hub::ProgramOption;
use everywire_model::{Failure, Hub, Initiator, Kind, Program};
use std::io::Write as _;

/// A server in place of KDE's; it stays in the foreground.
pub static PROGRAM: Program = Program {
    name: "dcopserver",
    about: "Let the DCOP applications of this session find and call each other",
    options: &[
        ProgramOption { name: "socket", value: Some("PATH"), help: "Listen at this socket" },
        ProgramOption { name: "max-message", value: Some("BYTES"), help: "Largest message [4194304]" },
        ProgramOption { name: "connections", value: Some("N"), help: "Connections at a time [1024]" },
        ProgramOption {
            name: "suicide",
            value: None,
            help: "End 10 s after the last application that is no daemon has left",
        },
        ProgramOption { name: "serverid", value: None, help: "Say where the running server is, and end" },
        ProgramOption { name: "nofork", value: None, help: "Stay in the foreground, as it does anyway" },
        ProgramOption { name: "nosid", value: None, help: "Stay in the session, as it does anyway" },
        ProgramOption { name: "nolocal", value: None, help: "Nothing; old scripts say it" },
    ],
    open,
};

/// Opens the program with the environment of this process.
fn open(options: &[(&str, Option<&str>)]) -> Result<Box<dyn Hub>, Failure> {
    open_in(options, &|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

/// # Errors
/// An option is unknown or has a wrong value; a server runs already, or, where one is asked for, none does.
fn open_in(
    options: &[(&str, Option<&str>)],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Box<dyn Hub>, Failure> {
    let mut settings = Settings::default();
    let (mut socket, mut suicide, mut serverid) = (None, false, false);
    for (name, value) in options {
        match (*name, *value) {
            ("socket", Some(path)) => socket = Some(path),
            ("max-message", Some(bytes)) => {
                settings = settings.with_message(number(name, bytes, 1024..=u64::from(u32::MAX))?);
            }
            ("connections", Some(count)) => {
                let count = number(name, count, 1..=1 << 20)?;
                settings.connections = usize::try_from(count).unwrap_or(usize::MAX);
            }
            ("suicide", _) => suicide = true,
            ("serverid", _) => serverid = true,
            ("nofork" | "nosid" | "nolocal", _) => {}
            _ => {
                let message = format!("dcopserver has no option --{name}, or it lacks its value");
                return Err(Failure::bad_argument(message));
            }
        }
    }
    let files = Files::find(variable)?;
    if serverid {
        let Some((ids, _)) = files.living() else {
            let message = "no DCOP server runs in this session";
            return Err(Failure::new(Kind::Unreachable, Initiator::Here, message));
        };
        let written = writeln!(std::io::stdout(), "{ids}");
        let unwritable =
            |error: std::io::Error| Failure::new(Kind::Refused, Initiator::Here, error.to_string());
        written.map_err(unwritable)?;
        return Ok(Box::new(Server::over(settings)));
    }
    let server = Server::announced(ServerSocket::new(socket, files)?, settings);
    Ok(Box::new(if suicide { server.ending_alone() } else { server }))
}

/// Reads the value of an option.
fn number(name: &str, text: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64, Failure> {
    text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
        let message = format!("--{name} is a number from {} to {}, not `{text}`", range.start(), range.end());
        Failure::bad_argument(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_model::Endpoint;

    #[test]
    fn options_are_checked() {
        let nothing = |name: &str| (name == "HOME").then(|| "/nonexistent".to_owned());
        let open = |options: &[(&str, Option<&str>)]| open_in(options, &nothing);
        for options in [
            ("max-message", Some("12")),
            ("max-message", Some("x")),
            ("connections", Some("0")),
            ("connections", None),
            ("other", None),
        ] {
            assert_eq!(open(&[options]).err().unwrap().kind(), Kind::BadArgument, "{options:?}");
        }
        assert_eq!(open(&[("serverid", None)]).err().unwrap().kind(), Kind::Unreachable);
        let hub = open(&[("socket", Some("/nonexistent/s")), ("suicide", None), ("nofork", None)]).unwrap();
        assert_eq!(hub.endpoints(), [Endpoint::Unix { path: "/nonexistent/s".into() }]);
    }
}
