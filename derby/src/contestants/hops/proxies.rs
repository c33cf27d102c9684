//! Proxies that others wrote: HAProxy, which passes streams or HTTP, and nginx, which passes HTTP. Each has one thread, a configuration of its
//! own in the directory of its contestant, and no rights.

use super::Hop;
use crate::broken;
use crate::contestants::{Missing, ServerPlace};
use crate::process::Launch;
use everywire_model::Failure;
use std::path::{Path, PathBuf};
use std::process::Command;

const HAPROXY: &str = "haproxy";
const NGINX: &str = "nginx";

/// HAProxy, one thread.
pub(super) struct Haproxy {
    /// Whether it reads requests and answers, or passes octets.
    pub(super) http: bool,
}

impl Hop for Haproxy {
    fn prepare(&self) -> Result<Option<String>, Missing> {
        let said = version(HAPROXY)?;
        // `HAProxy version 2.6.12-1+deb12u4 2026/01/02 - https://haproxy.org/`
        let number = said.split_whitespace().nth(2).unwrap_or_default();
        Ok(Some(format!("HAProxy {number}")))
    }

    fn launch(&self, stand: &ServerPlace<'_>, front: u16, back: u16) -> Result<Launch, Failure> {
        let mode = if self.http { "http\n  http-reuse always" } else { "tcp" };
        let text = format!(
            "global\n  nbthread 1\n  maxconn 2000\ndefaults\n  mode {mode}\n  timeout connect 10s\n  timeout client 10m\n  timeout server \
             10m\nlisten hop\n  bind 127.0.0.1:{front}\n  server backend 127.0.0.1:{back}\n"
        );
        let file = written(stand.dir, "haproxy.cfg", &text)?;
        // In the foreground, and one process.
        Ok(launch(HAPROXY).with(["-db", "-q", "-f"]).with([file]))
    }
}

/// nginx, one process.
pub(super) struct Nginx;

impl Hop for Nginx {
    fn prepare(&self) -> Result<Option<String>, Missing> {
        // `nginx version: nginx/1.22.1`
        let said = version(NGINX)?;
        Ok(Some(said.rsplit(": ").next().unwrap_or_default().replace('/', " ")))
    }

    fn launch(&self, stand: &ServerPlace<'_>, front: u16, back: u16) -> Result<Launch, Failure> {
        let dir = stand.dir.display();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("  {kind}_temp_path {dir}/{kind};\n"))
            .concat();
        let text = format!(
            "daemon off;\nmaster_process off;\nworker_processes 1;\npid {dir}/nginx.pid;\nerror_log stderr;\nevents {{ worker_connections 1024; \
             }}\nhttp {{\n{temporary}  access_log off;\n  tcp_nodelay on;\n  keepalive_requests 1000000000;\n  client_max_body_size 0;\n  \
             proxy_buffers 16 64k;\n  proxy_buffer_size 64k;\n  upstream backend {{ server 127.0.0.1:{back}; keepalive 64; keepalive_requests \
             1000000000; }}\n  server {{\n    listen 127.0.0.1:{front};\n    location / {{\n      proxy_pass http://backend;\n      \
             proxy_http_version 1.1;\n      proxy_set_header Connection \"\";\n      proxy_set_header Host $http_host;\n    }}\n  }}\n}}\n"
        );
        let file = written(stand.dir, "nginx.conf", &text)?;
        // Errors go where the configuration says even before that has been read.
        Ok(launch(NGINX).with(["-e", "stderr", "-p"]).with([stand.dir]).with(["-c"]).with([file]))
    }
}

fn written(dir: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    let path = dir.join(name);
    std::fs::write(&path, text).map_err(|error| broken(format!("{}: {error}", path.display())))?;
    Ok(path)
}

/// A program and the folder of libraries that came with it: that of the system (no folder), or one that
/// was unpacked into the user's cache. `None` if it is in neither.
fn found(name: &str) -> Option<(PathBuf, Option<PathBuf>)> {
    if let Some(program) = everywire_peers::find(name) {
        return Some((program, None));
    }
    let folder = everywire_peers::peer(name).folder()?;
    let program = folder.join("usr/sbin").join(name);
    let libraries = std::fs::read_dir(folder.join("usr/lib")).into_iter().flatten().flatten();
    let libraries =
        libraries.map(|entry| entry.path()).find(|path| path.to_string_lossy().ends_with("-linux-gnu"));
    program.is_file().then_some((program, libraries))
}

/// Whoever is not there was named when it was to be prepared.
fn launch(name: &str) -> Launch {
    match found(name) {
        Some((program, Some(libraries))) => Launch::new(program).where_is("LD_LIBRARY_PATH", libraries),
        Some((program, None)) => Launch::new(program),
        None => Launch::new(name),
    }
}

/// What a program says about itself, in one line.
fn version(name: &str) -> Result<String, Missing> {
    let missing = |what: String| Missing { what, install: everywire_peers::install_hint(&[name]) };
    let (program, libraries) = found(name).ok_or_else(|| missing(format!("`{name}` is not here")))?;
    let mut command = Command::new(&program);
    command.arg("-v").envs(libraries.map(|path| ("LD_LIBRARY_PATH", path)));
    let output = command.output().map_err(|error| missing(format!("{}: {error}", program.display())))?;
    // One of them says it on standard error.
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if !output.status.success() {
        return Err(missing(format!("{}: {}", program.display(), said.trim())));
    }
    Ok(said.lines().next().unwrap_or_default().to_owned())
}
