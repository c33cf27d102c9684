//! The program `dcopserver`.

use super::server_socket::{Files, ServerSocket};
use super::{Server, Settings};
use everywire_model::hub::ProgramOption;
use everywire_model::{Failure, Hub, Initiator, Kind, Program, units};
use std::io::Write as _;

/// A server in place of KDE's; it stays in the foreground.
pub static PROGRAM: Program = Program {
    name: "dcopserver",
    about: "Let the DCOP applications of this session find and call each other",
    options: &[
        ProgramOption { name: "socket", value: Some("PATH"), help: "Listen at this socket" },
        ProgramOption {
            name: "max-message",
            value: Some("SIZE"),
            help: "Largest message to pass on, such as 64MiB [4MiB]",
        },
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
                settings = settings.with_message(size(name, bytes)?);
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

/// Reads the largest message: at least the front of any, at most what the length in ICE's header can say.
fn size(name: &str, text: &str) -> Result<u64, Failure> {
    let read = units::size(text);
    let bad = |why: &str| Failure::bad_argument(format!("--{name} `{text}`: {why}"));
    let bytes = read.map_err(|why| bad(&why))?;
    let range = 1 << 10..=u64::from(u32::MAX);
    if range.contains(&bytes) { Ok(bytes) } else { Err(bad("it is a size from 1 KiB to below 4 GiB")) }
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
            ("max-message", Some("4GiB")),
            ("max-message", Some("16 miles")),
            ("connections", Some("0")),
            ("connections", None),
            ("other", None),
        ] {
            assert_eq!(open(&[options]).err().unwrap().kind(), Kind::BadArgument, "{options:?}");
        }
        assert_eq!(open(&[("serverid", None)]).err().unwrap().kind(), Kind::Unreachable);
        assert_eq!(
            ["1024", "16777216", "16MiB", "2GB"].map(|text| size("max-message", text).unwrap()),
            [1 << 10, 16 << 20, 16 << 20, 2_000_000_000]
        );
        let hub = open(&[("socket", Some("/nonexistent/s")), ("suicide", None), ("nofork", None)]).unwrap();
        assert_eq!(hub.endpoints(), [Endpoint::Unix { path: "/nonexistent/s".into() }]);
    }
}
