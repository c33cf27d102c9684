//! zbus serving bench.dbus.xml. Each connection runs on one thread, under `zbus::block_on`.
//!
//!   server --ref-file FILE (--bus ADDRESS | --listen SOCKET) [--publish SOCKET]

mod bench;

use bench::{NAME, Result, TEXT};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::ExitCode;
use zbus::connection::Builder;
use zbus::object_server::SignalEmitter;
use zbus::{fdo, interface};

const PATH: &str = "/benchmarking/dbus";

struct Seven;

#[interface(name = "benchmarking.dbus.interface")]
impl Seven {
    #[zbus(name = "void_call")]
    fn void_call(&self) {}

    #[zbus(name = "in_int_call")]
    fn in_int_call(&self, _v: i32) {}

    #[zbus(name = "out_int_call")]
    fn out_int_call(&self) -> i32 {
        42
    }

    #[zbus(name = "in_out_int_call")]
    fn in_out_int_call(&self, v: i32) -> i32 {
        v.wrapping_add(1)
    }

    #[zbus(name = "in_string_call")]
    fn in_string_call(&self, _v: &str) {}

    #[zbus(name = "out_string_call")]
    fn out_string_call(&self) -> &str {
        TEXT
    }

    #[zbus(name = "in_out_string_call")]
    fn in_out_string_call(&self, v: &str) -> String {
        v.to_owned()
    }

    #[zbus(name = "get_bytes")]
    fn get_bytes(&self, n: i32) -> fdo::Result<serde_bytes::ByteBuf> {
        match usize::try_from(n) {
            Ok(n) if n <= 64 << 20 => Ok(serde_bytes::ByteBuf::from(vec![0x55; n])),
            _ => Err(fdo::Error::InvalidArgs("no such number of bytes".into())),
        }
    }

    #[zbus(name = "fire")]
    async fn fire(&self, n: u32, #[zbus(signal_emitter)] emitter: SignalEmitter<'_>) -> fdo::Result<()> {
        for i in 0..n {
            Self::hello(&emitter, i).await?;
        }
        Ok(())
    }

    #[zbus(signal, name = "Hello")]
    async fn hello(emitter: &SignalEmitter<'_>, i: u32) -> zbus::Result<()>;
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        arguments.chunks(2).find_map(|pair| match pair {
            [word, value] if word == name => Some(value.as_str()),
            _ => None,
        })
    };
    let ref_file = value("--ref-file").ok_or("--ref-file is missing")?;
    if let Some(address) = value("--bus") {
        return zbus::block_on(async {
            let connection = Builder::address(address).serve_at(PATH, Seven).name(NAME).build().await?;
            let published = value("--publish").map(|path| format!("unix:path={path}"));
            publish(ref_file, &format!("{}#{NAME}", published.as_deref().unwrap_or(address)))?;
            connection.closed().await;
            Err("the bus is gone".into())
        });
    }
    let path = value("--listen").ok_or("--bus or --listen is missing")?;
    let listener = UnixListener::bind(path)?;
    publish(ref_file, &format!("unix:path={}#", value("--publish").unwrap_or(path)))?;
    for stream in listener.incoming().flatten() {
        std::thread::spawn(move || {
            if let Err(error) = zbus::block_on(answer(stream)) {
                eprintln!("server: {error}");
            }
        });
    }
    Ok(())
}

/// Until the peer is gone.
async fn answer(stream: UnixStream) -> Result<()> {
    let connection =
        Builder::unix_stream(stream).server(zbus::Guid::generate()).p2p().serve_at(PATH, Seven).build().await?;
    connection.closed().await;
    Ok(())
}

/// The file appears only when it is whole.
fn publish(ref_file: &str, place: &str) -> Result<()> {
    let partial = format!("{ref_file}.partial");
    std::fs::write(&partial, format!("benchmarking\tdbus:{place}{PATH}\n"))?;
    Ok(std::fs::rename(&partial, ref_file)?)
}
