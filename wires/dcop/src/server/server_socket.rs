//! Where a server listens, and the files by which applications find it and its cookie.
//!
//! The files are those of KDE's server: one names the server and its process, the authority file of ICE holds
//! the cookie, and a link has the name that KDE 2 looked for. They are made when the server listens
//! (`publish`) and taken back at its end (`take_back`), as far as they are still its own.
//!
//! Invariants: nobody finds the server before the cookie is there. The file that names it is replaced at
//! once, with mode 0600, so no reader sees half of it. A server that lives is not replaced: `ServerSocket::new`
//! looks for one first. The directory of sockets is used only if nobody else can put a socket there.

use crate::servers::{file_name, hostname, without_screen};
use everywire_auth::ice::{AuthorityFile, Entry};
use everywire_auth::{own_uid, system_random};
use everywire_model::{Endpoint, Failure, Initiator, Kind};
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Where sockets of ICE are: the same directory for all users, so it has to be sticky.
const DIRECTORY: &str = "/tmp/.ICE-unix";

/// The most that is read of a file that names a server, in bytes: it has two lines.
const FILE_LIMIT: u64 = 1024;

/// A socket, and what is to be told of it.
#[derive(Debug)]
pub(super) struct ServerSocket {
    /// The path of its socket.
    socket: String,
    /// How ICE calls that: `local/HOST:PATH`.
    network_id: String,
    /// Where to tell of it.
    files: Files,
    /// For the connection, and for the protocol; peers show the first one only.
    entries: [Entry; 2],
    /// Whether there is something to take back.
    published: bool,
}

/// The files of a user's session.
#[derive(Debug)]
pub(super) struct Files {
    /// Names the server.
    server: PathBuf,
    /// A link to that, under the name that KDE 2 looked for.
    old: Option<PathBuf>,
    /// Hold the cookie.
    authorities: Vec<AuthorityFile>,
}

impl Files {
    /// Those that the environment says.
    ///
    /// # Errors
    /// Neither a home nor a file is named.
    pub(super) fn find(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let home = variable("HOME").map(PathBuf::from);
        let authorities = match (variable("ICEAUTHORITY"), &home) {
            (Some(path), _) => vec![AuthorityFile::at(path)],
            // The programs of KDE 3 look at home; libraries that came later look at the directory of the session first.
            (None, home) => {
                let session = variable("XDG_RUNTIME_DIR").map(|path| Path::new(&path).join("ICEauthority"));
                let home = home.as_ref().map(|home| home.join(".ICEauthority"));
                home.into_iter().chain(session).map(AuthorityFile::at).collect()
            }
        };
        let display = variable("DISPLAY");
        let (server, old) = match (variable("DCOPAUTHORITY"), &home) {
            (Some(path), _) => (PathBuf::from(path), None),
            (None, Some(home)) => {
                let host = hostname();
                let name = file_name(&host, display.as_deref());
                let old = format!(".DCOPserver_{host}_{}", without_screen(display.as_deref()));
                (home.join(&name), (old != name).then(|| home.join(old)))
            }
            (None, None) => {
                let message = "neither HOME nor DCOPAUTHORITY says where to tell applications of the server";
                return Err(Failure::new(Kind::Refused, Initiator::User, message).with_hint("set HOME"));
            }
        };
        Ok(Self { server, old, authorities })
    }

    /// The network ids and the process of the server that was started last. Nothing, if there is no such file
    /// or it is of another form.
    fn recorded(&self) -> Option<(String, u32)> {
        let mut text = String::new();
        fs::File::open(&self.server).ok()?.take(FILE_LIMIT).read_to_string(&mut text).ok()?;
        let mut lines = text.lines();
        Some((lines.next()?.to_owned(), lines.next()?.trim().parse().ok()?))
    }

    /// The same, if it lives.
    pub(super) fn living(&self) -> Option<(String, u32)> {
        let (ids, process) = self.recorded()?;
        let sockets = ids.split(',').filter_map(|id| id.trim().split_once('/')?.1.split_once(':'));
        let answers = sockets.map(|(_, path)| path).any(|path| UnixStream::connect(path).is_ok());
        // A number may have gone to another process since; whoever listens at the socket is the server.
        (answers && Path::new("/proc").join(process.to_string()).exists()).then_some((ids, process))
    }
}

impl ServerSocket {
    /// At this socket, or at one of its own. Nothing is written yet but the directory of sockets.
    ///
    /// # Errors
    /// A server runs already, the path is not absolute, the directory is not safe, or there is no randomness.
    pub(super) fn new(socket: Option<&str>, files: Files) -> Result<Self, Failure> {
        if let Some((ids, process)) = files.living() {
            let message = format!("a DCOP server runs already: process {process} at {ids}");
            let hint =
                format!("end it, or set DCOPAUTHORITY to another file than {}", files.server.display());
            return Err(Failure::new(Kind::Refused, Initiator::User, message).with_hint(hint));
        }
        let socket = match socket {
            Some(path) if path.starts_with('/') => path.to_owned(),
            Some(path) => {
                let message = format!("the socket's path `{path}` is not absolute");
                return Err(Failure::bad_reference(message));
            }
            None => {
                prepare(Path::new(DIRECTORY))?;
                let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
                format!("{DIRECTORY}/dcop{}-{time}", std::process::id())
            }
        };
        let network_id = format!("local/{}:{socket}", hostname());
        let entries = [
            Entry::fresh("ICE", &network_id, system_random)?,
            Entry::fresh("DCOP", &network_id, system_random)?,
        ];
        Ok(Self { socket, network_id, files, entries, published: false })
    }

    /// Where to listen.
    pub(super) fn endpoint(&self) -> Endpoint {
        Endpoint::Unix { path: self.socket.clone() }
    }

    /// It is what `DCOPSERVER` may say.
    pub(super) fn network_id(&self) -> &str {
        &self.network_id
    }

    /// What peers must show.
    pub(super) fn cookie(&self) -> Arc<[u8]> {
        let [connection, _] = &self.entries;
        connection.secret.as_slice().into()
    }

    /// Tells the world: first the cookie, then the server, so that nobody finds the one without the other.
    /// What a dead server has left in the authority files is removed. One authority file that can be written
    /// is enough.
    ///
    /// # Errors
    /// The cookie, or the file that names the server, cannot be written.
    pub(super) fn publish(&mut self) -> Result<(), Failure> {
        self.published = true;
        let mut failure = None;
        let mut written = false;
        let recorded = self.files.recorded().map(|(ids, _)| ids).unwrap_or_default();
        // An empty id would be that of cookies which are for no place.
        let dead = || recorded.split(',').map(str::trim).filter(|id| !id.is_empty());
        for authority in &self.files.authorities {
            // What a server left that could not say goodbye: of use to nobody, and in nobody's way.
            drop(authority.remove(|entry| dead().any(|id| id.as_bytes() == entry.netid)));
            match authority.add(&self.entries) {
                Ok(()) => written = true,
                Err(error) => failure = Some(Failure::from(error)),
            }
        }
        if !written {
            let none =
                || Failure::new(Kind::Refused, Initiator::User, "nothing says where to put the cookie");
            return Err(failure.unwrap_or_else(none));
        }
        let text = format!("{}\n{}\n", self.network_id, std::process::id());
        replace(&self.files.server, text.as_bytes()).map_err(|error| cannot(&self.files.server, &error))?;
        if let Some(old) = &self.files.old {
            if fs::symlink_metadata(old).is_ok_and(|about| about.is_symlink()) {
                // If it stays, the new link fails, too.
                drop(fs::remove_file(old));
            }
            // Nobody is left who needs it; without it everything works.
            drop(symlink(&self.files.server, old));
        }
        Ok(())
    }

    /// Takes back what was told, as far as it is still this server's. Done twice it does nothing.
    pub(super) fn take_back(&mut self) {
        if !std::mem::replace(&mut self.published, false) {
            return;
        }
        let ours = format!("{}\n{}\n", self.network_id, std::process::id());
        if fs::read(&self.files.server).is_ok_and(|text| text == ours.as_bytes()) {
            drop(fs::remove_file(&self.files.server));
            if let Some(old) = &self.files.old
                && fs::read_link(old).is_ok_and(|target| target == self.files.server)
            {
                drop(fs::remove_file(old));
            }
        }
        for authority in &self.files.authorities {
            // A file that cannot be changed keeps a cookie that opens nothing any more.
            drop(authority.remove(|entry| self.entries.contains(entry)));
        }
        drop(fs::remove_file(&self.socket));
    }
}

/// Makes the directory of sockets, or makes sure that nobody else can replace what stands in it.
///
/// # Errors
/// It belongs to somebody else, is none, or may be written by others without being sticky.
fn prepare(directory: &Path) -> Result<(), Failure> {
    let refuse = |why: &str| {
        let message =
            format!("{} {why}, so that others could put a socket of theirs there", directory.display());
        Err(Failure::new(Kind::Refused, Initiator::Here, message).with_hint("remove it, or use --socket"))
    };
    match DirBuilder::new().mode(0o1777).create(directory) {
        // The mask of the process may have taken bits away.
        Ok(()) => fs::set_permissions(directory, Permissions::from_mode(0o1777)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
    .map_err(|error| cannot(directory, &error))?;
    let about = fs::symlink_metadata(directory).map_err(|error| cannot(directory, &error))?;
    let mode = about.mode();
    if !about.is_dir() {
        refuse("is no directory")
    } else if about.uid() != 0 && about.uid() != own_uid() {
        refuse("belongs to somebody else")
    } else if mode & 0o022 != 0 && mode & 0o1000 == 0 {
        refuse("can be written by others and is not sticky")
    } else {
        Ok(())
    }
}

/// Puts a file of mode 0600 in place of what is there, at once. It is written beside and renamed.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut salt = [0; 8];
    system_random(&mut salt)?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{:016x}", u64::from_ne_bytes(salt)));
    let fresh = Path::new(&name);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(fresh);
    let written = file.and_then(|mut file| {
        file.write_all(bytes)?;
        fs::rename(fresh, path)
    });
    if written.is_err() {
        // What it was made for failed; that is what the caller wants to know.
        drop(fs::remove_file(fresh));
    }
    written
}

/// The failure of a file operation.
fn cannot(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Kind::Refused, Initiator::Here, format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    /// A directory of this test's own.
    struct Home(PathBuf);

    impl Home {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("dcop-{name}-{}", std::process::id()));
            drop(fs::remove_dir_all(&path));
            DirBuilder::new().mode(0o700).create(&path).unwrap();
            Self(path)
        }

        fn files(&self) -> Files {
            let home = self.0.display().to_string();
            let variable = move |name: &str| match name {
                "HOME" => Some(home.clone()),
                "DISPLAY" => Some(":7.1".to_owned()),
                _ => None,
            };
            Files::find(&variable).unwrap()
        }

        fn names(&self) -> Vec<String> {
            let names = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Home {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri opens no file with O_NONBLOCK")]
    fn a_server_leaves_no_file_behind_that_says_it_lives() {
        let home = Home::new("files");
        let socket = home.0.join("socket").display().to_string();
        let mut place = ServerSocket::new(Some(&socket), home.files()).unwrap();
        place.publish().unwrap();
        let host = hostname();
        let (new, old) = (format!(".DCOPserver_{host}__7"), format!(".DCOPserver_{host}_:7"));
        assert_eq!(home.names(), [old.clone(), new.clone(), ".ICEauthority".to_owned()]);
        let file = home.0.join(&new);
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        let text = fs::read_to_string(home.0.join(&old)).unwrap();
        assert_eq!(text, format!("local/{host}:{socket}\n{}\n", std::process::id()));
        let authority = AuthorityFile::at(home.0.join(".ICEauthority"));
        let cookie = authority.find("ICE", place.network_id()).unwrap().unwrap().secret;
        assert_eq!(cookie, place.cookie().to_vec());
        assert_eq!(cookie.len(), 16);
        assert_ne!(authority.find("DCOP", place.network_id()).unwrap().unwrap().secret, cookie);
        place.take_back();
        assert_eq!(home.names(), [".ICEauthority"]);
        assert!(authority.read().unwrap().is_empty());
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no Unix sockets")]
    fn a_living_server_is_not_replaced_and_a_dead_one_is() {
        let home = Home::new("living");
        let socket = home.0.join("socket").display().to_string();
        let listener = UnixListener::bind(&socket).unwrap();
        ServerSocket::new(Some(&socket), home.files()).unwrap().publish().unwrap();
        let failure = ServerSocket::new(Some(&socket), home.files()).unwrap_err();
        assert!(failure.message().contains(&format!("process {}", std::process::id())), "{failure}");
        drop(listener);
        assert!(home.files().living().is_none());
        let other = home.0.join("other").display().to_string();
        let mut next = ServerSocket::new(Some(&other), home.files()).unwrap();
        next.publish().unwrap();
        let authority = AuthorityFile::at(home.0.join(".ICEauthority"));
        assert_eq!(authority.read().unwrap().len(), 2, "those of the dead one are gone");
        next.take_back();
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri opens no file with O_NONBLOCK")]
    fn cookies_of_others_stay_where_no_server_was_recorded() {
        let home = Home::new("cookies");
        let authority = AuthorityFile::at(home.0.join(".ICEauthority"));
        let other = Entry::fresh("ICE", "", system_random).unwrap();
        authority.add(std::slice::from_ref(&other)).unwrap();
        let socket = home.0.join("socket").display().to_string();
        ServerSocket::new(Some(&socket), home.files()).unwrap().publish().unwrap();
        assert!(authority.find("ICE", "").unwrap().is_some_and(|held| held.secret == other.secret));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri opens no file with O_NONBLOCK")]
    fn what_another_server_wrote_since_stays() {
        let home = Home::new("other");
        let socket = home.0.join("socket").display().to_string();
        let mut place = ServerSocket::new(Some(&socket), home.files()).unwrap();
        place.publish().unwrap();
        fs::write(&home.files().server, "local/h:/other\n1\n").unwrap();
        place.take_back();
        assert_eq!(fs::read_to_string(&home.files().server).unwrap(), "local/h:/other\n1\n");
    }

    #[test]
    fn c6_directories_that_others_control_are_refused() {
        let home = Home::new("directory");
        let directory = home.0.join("ice");
        prepare(&directory).unwrap();
        assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o7777, 0o1777);
        prepare(&directory).unwrap();
        fs::set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
        assert!(prepare(&directory).unwrap_err().message().contains("not sticky"));
        let link = home.0.join("link");
        symlink(&directory, &link).unwrap();
        assert!(prepare(&link).unwrap_err().message().contains("no directory"));
    }

    #[test]
    fn sockets_need_an_absolute_path() {
        let home = Home::new("relative");
        assert_eq!(ServerSocket::new(Some("x"), home.files()).unwrap_err().kind(), Kind::BadReference);
    }
}
