//! What `examples/dmz/README.md` has to be pasted does what is said there.

use crate::support::{PROGRAM, Scratch};
use everywire_peers::{free_port, here};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What stands before what is pasted: an end for all that was begun, and a few words of HTTP where there is no curl.
const PREPARED: &str = r#"trap 'kill $(jobs -p) 2>/dev/null' EXIT
trap 'exit 1' TERM
command -v curl > /dev/null || curl() {
    local place=${2#http://}
    exec 3<> "/dev/tcp/${place%%:*}/$(echo "${place#*:}" | cut -d/ -f1)"
    printf 'GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' >&3
    cat <&3
}"#;

/// The blocks of shell of a page.
fn pasted(page: &str) -> String {
    let blocks = page.split("```sh\n").skip(1);
    blocks.filter_map(|block| block.split_once("```")).map(|(block, _)| block).collect()
}

#[test]
fn the_published_scenario_runs_as_its_page_says() {
    if !here("the_published_scenario_runs_as_its_page_says", &["mono"]) {
        return;
    }
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/dmz");
    let scratch = Scratch::new();
    // Ports that nobody has, nor gets while the compilers run, for those of the page.
    let ports: BTreeMap<&str, String> =
        ["9001", "9101", "9002"].into_iter().map(|port| (port, free_port().unwrap().to_string())).collect();
    for entry in fs::read_dir(example).unwrap() {
        let path = entry.unwrap().path();
        let mut text = fs::read_to_string(&path).unwrap();
        // All at once: another port may hold one of these in it.
        for port in ports.keys() {
            text = text.replace(port, &format!("<{port}>"));
        }
        for (port, other) in &ports {
            text = text.replace(&format!("<{port}>"), other);
        }
        fs::write(scratch.path(path.file_name().unwrap().to_str().unwrap()), text).unwrap();
    }
    let page = fs::read_to_string(scratch.path("README.md")).unwrap();
    let script = pasted(&page);
    assert!(script.contains("kill %1 %2"), "{script}");
    let programs = Path::new(PROGRAM).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("timeout")
        // With jobs, as at a terminal; whatever goes wrong, nothing of it is left.
        .args(["--kill-after=5", "540", "bash", "-m", "-c"])
        .arg(format!("{PREPARED}\n{script}"))
        .current_dir(scratch.path(""))
        .env("PATH", format!("{}:{path}", programs.display()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let read = |name: &str| fs::read_to_string(scratch.path(name)).unwrap_or_default();
    let all = format!("{said}\n{}\n{}", String::from_utf8_lossy(&output.stderr), read("broker.log"));
    assert!(said.contains("GetOrders  crosses"), "{all}");
    assert_eq!(said.matches("order 2 of customer 2: 19").count(), 2, "{all}");
    assert!(said.contains("GetOrders(2), checked by edge, asked by nobody"), "{all}");
    assert!(said.contains("GetOrders(2), checked by nobody, asked by somebody"), "{all}");
    assert!(said.contains("refused: ") && said.contains("refused at the edge"), "{all}");
    assert!(said.contains(r#"calls_total{route="checked",outcome="done"} 1"#), "{all}");
    // The wrong call came no further than the edge.
    assert_eq!(read("backend.log").matches("GetOrders").count(), 2, "{all}");
    let copies = read("checked.ndjson");
    assert!(copies.contains(r#""arguments":{"numOrders":2}"#), "{copies}");
    assert!(copies.contains(r#""Customer":"customer 2""#) && !copies.contains("Checked"), "{copies}");
    assert!(
        read("quick.ndjson").contains(r#"{"name":"{urn:example:dmz}Customer","value":"somebody"}"#),
        "{all}"
    );
}
