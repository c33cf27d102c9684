//! zbus calling bench.dbus.xml. Everything runs on one thread, under `zbus::block_on`: nobody is woken but by the socket.
//!
//!   client REF-FILE race calls|signals|bytes [PLAN]

mod bench;
mod measure;

use bench::{Result, TEXT};
use futures_util::StreamExt;
use measure::{Plan, measure};
use std::process::ExitCode;
use zbus::connection::Builder;

#[zbus::proxy(interface = "benchmarking.dbus.interface")]
trait Benchmarking {
    #[zbus(name = "void_call")]
    fn void_call(&self) -> zbus::Result<()>;
    #[zbus(name = "in_int_call")]
    fn in_int_call(&self, v: i32) -> zbus::Result<()>;
    #[zbus(name = "out_int_call")]
    fn out_int_call(&self) -> zbus::Result<i32>;
    #[zbus(name = "in_out_int_call")]
    fn in_out_int_call(&self, v: i32) -> zbus::Result<i32>;
    #[zbus(name = "in_string_call")]
    fn in_string_call(&self, v: &str) -> zbus::Result<()>;
    #[zbus(name = "out_string_call")]
    fn out_string_call(&self) -> zbus::Result<String>;
    #[zbus(name = "in_out_string_call")]
    fn in_out_string_call(&self, v: &str) -> zbus::Result<String>;
    #[zbus(name = "get_bytes")]
    fn get_bytes(&self, n: i32) -> zbus::Result<serde_bytes::ByteBuf>;
    #[zbus(name = "fire", no_reply)]
    fn fire(&self, n: u32) -> zbus::Result<()>;
    #[zbus(signal, name = "Hello")]
    fn hello(&self, i: u32) -> zbus::Result<()>;
}

/// In one burst.
const SIGNALS: u32 = 1000;

fn main() -> ExitCode {
    match zbus::block_on(run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("client: {error}");
            ExitCode::FAILURE
        }
    }
}

fn require(held: bool, what: &str) -> Result<()> {
    if held { Ok(()) } else { Err(format!("wrong answer: {what}").into()) }
}

async fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [ref_file, _, race, plan @ ..] = &arguments[..] else {
        return Err("usage: client REF-FILE race calls|signals|bytes [PLAN]".into());
    };
    let plan = Plan::parse(plan)?;
    let text = std::fs::read_to_string(ref_file)?;
    let reference = text.lines().find_map(|line| line.strip_prefix("benchmarking\tdbus:"));
    let (address, rest) = reference.and_then(|text| text.split_once('#')).ok_or("no reference")?;
    let (name, path) = rest.split_at(rest.find('/').ok_or("no path")?);

    let builder = Builder::address(address);
    let connection = if name.is_empty() { builder.p2p().build().await? } else { builder.build().await? };
    // A peer has no name, and minds none.
    let proxy = BenchmarkingProxy::builder(&connection)
        .destination(if name.is_empty() { bench::NAME } else { name }.to_owned())
        .path(path.to_owned())
        .cache_properties(zbus::proxy::CacheProperties::No)
        .build()
        .await?;
    match race.as_str() {
        "calls" => calls(&proxy, &plan).await,
        "signals" => signals(&proxy, &plan).await,
        "bytes" => bytes(&proxy, &plan).await,
        other => Err(format!("unknown race {other}").into()),
    }
}

async fn calls(proxy: &BenchmarkingProxy<'_>, plan: &Plan) -> Result<()> {
    let n = plan.calls;
    measure(plan, "void_call", n, 1, async || Ok(proxy.void_call().await?)).await?;
    measure(plan, "in_int_call", n, 1, async || Ok(proxy.in_int_call(42).await?)).await?;
    measure(plan, "out_int_call", n, 1, async || require(proxy.out_int_call().await? == 42, "out_int_call")).await?;
    measure(plan, "in_out_int_call", n, 1, async || require(proxy.in_out_int_call(42).await? == 43, "in_out_int_call"))
        .await?;
    measure(plan, "in_string_call", n, 1, async || Ok(proxy.in_string_call(TEXT).await?)).await?;
    measure(plan, "out_string_call", n, 1, async || require(proxy.out_string_call().await? == TEXT, "out_string_call"))
        .await?;
    measure(plan, "in_out_string_call", n, 1, async || {
        require(proxy.in_out_string_call(TEXT).await? == TEXT, "in_out_string_call")
    })
    .await
}

async fn signals(proxy: &BenchmarkingProxy<'_>, plan: &Plan) -> Result<()> {
    let mut stream = proxy.receive_hello().await?;
    measure(plan, "Hello", (plan.calls / 100).max(1), SIGNALS.into(), async || {
        proxy.fire(SIGNALS).await?;
        for i in 0..SIGNALS {
            let signal = stream.next().await.ok_or("disconnected")?;
            require(*signal.args()?.i() == i, "Hello")?;
        }
        Ok(())
    })
    .await
}

async fn bytes(proxy: &BenchmarkingProxy<'_>, plan: &Plan) -> Result<()> {
    let large = (plan.calls / plan.large_divisor).max(1);
    for (operation, n, calls) in [("GetBytes 100 B", 100, plan.calls), ("GetBytes 1 MB", 1_000_000, large)] {
        measure(plan, operation, calls, 1, async || {
            require(i32::try_from(proxy.get_bytes(n).await?.len()) == Ok(n), operation)
        })
        .await?;
    }
    Ok(())
}
