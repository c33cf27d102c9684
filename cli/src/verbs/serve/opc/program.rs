//! Items of a program that speaks JSON lines: it tells of values on its standard output, and hears of writes on its standard input.
//!
//! ```text
//! {"item":"Boiler.Temperature","value":20.5,"type":"R4","unit":"°C","low":0,"high":200}
//! {"item":"Boiler.Limit","value":90,"write":true}
//! {"item":"Boiler.Temperature","value":21.0}
//! {"item":"Boiler.Temperature","quality":"bad"}
//! ```
//!
//! The first line of an item describes it: `type` (unless given, that of the JSON value: R8, BOOL, BSTR), `write`, `unit`, `low` and
//! `high`, `description`. Later lines need `value` or `quality` (`good`, `bad`, `uncertain`, or the number of a quality word). A value that
//! its type has not makes the item bad: nobody takes the one before it for the present one. `NaN` and `Infinity` are values of R4 and R8. A write
//! goes in with a number, and is over when the program has answered; with `code`, the client hears that one:
//!
//! ```text
//! {"id":1,"item":"Boiler.Limit","value":95}
//! {"id":1}
//! {"id":1,"code":"OPC_E_RANGE"}
//! ```
//!
//! States: the program *runs* until it closes its output; then it *has ended*: all items are bad, writes fail, and the server ends.

use crate::cli_error::{CliError, Done};
use crate::opcda::{value_json, value_of_text};
use crate::output::note;
use crate::people;
use crate::program::child::{self, FAREWELL, GRACE, QUEUE};
use crate::program::lines::{self, Unreadable};
use everywire_opc::{
    Code, Data, FileTime, Item, Quality, ServerState, Table, VarType, Vqt, Write as Written,
};
use serde_json::{Map, Value as Json, json};
use std::collections::{HashMap, HashSet};
use std::io;
use std::process::{Child, ChildStdout};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the program may take for a write.
const ANSWER: Duration = Duration::from_secs(10);
/// A program, and the items that it has.
pub(super) struct Program {
    shared: Arc<Shared>,
    child: Arc<Mutex<Child>>,
    command: String,
}

/// What the threads share with the server's clients.
struct Shared {
    table: Arc<Table>,
    /// The names of the items that it has told of.
    known: Mutex<HashSet<String>>,
    /// What the program is to read; the thread that writes it ends when this is `None`.
    input: Mutex<Option<SyncSender<String>>>,
    /// Writes that have no answer yet.
    waiting: Mutex<PendingWrites>,
    ended: Mutex<ProgramEnd>,
}

/// Numbers of writes, and where their answers go.
#[derive(Default)]
struct PendingWrites {
    /// The number of the latest write; numbers begin with 1.
    last: u64,
    answers: HashMap<u64, SyncSender<Code>>,
}

/// Whether the program has closed its output, and who is to be told of that, once.
#[derive(Default)]
struct ProgramEnd {
    is_over: bool,
    tell: Option<Box<dyn FnOnce() + Send>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Program {
    /// Starts the program: a command line of the shell.
    pub(super) fn start(command: &str) -> Done<Self> {
        let failed = |error: io::Error| CliError::local(format!("cannot start `{command}`"), &error);
        let (child, input, output) = child::start(command).map_err(failed)?;
        let (asked, lines) = sync_channel(QUEUE);
        let shared = Arc::new(Shared {
            table: Arc::new(Table::new()),
            known: Mutex::default(),
            input: Mutex::new(Some(asked)),
            waiting: Mutex::default(),
            ended: Mutex::default(),
        });
        let writer = Arc::downgrade(&shared);
        shared.table.on_write(move |write| writer.upgrade().map_or(Code::FAIL, |shared| shared.write(write)));
        let reader = Arc::clone(&shared);
        child::on_a_thread("program-output", move || reader.read(output)).map_err(failed)?;
        child::on_a_thread("program-input", move || child::feed(input, &lines)).map_err(failed)?;
        Ok(Self { shared, child: Arc::new(Mutex::new(child)), command: command.to_owned() })
    }

    pub(super) fn table(&self) -> &Arc<Table> {
        &self.shared.table
    }

    /// Its process, for whoever ends it.
    pub(super) fn child(&self) -> Arc<Mutex<Child>> {
        Arc::clone(&self.child)
    }

    /// Has somebody told when the program has ended; at once, if it has.
    pub(super) fn on_end(&self, tell: impl FnOnce() + Send + 'static) {
        let mut ended = lock(&self.shared.ended);
        if ended.is_over {
            drop(ended);
            return tell();
        }
        ended.tell = Some(Box::new(tell));
    }

    /// Closes its input, waits for its end, and says how that was, if nobody asked for it.
    pub(super) fn stop(&self) -> Done {
        let ended_itself = lock(&self.shared.ended).is_over;
        lock(&self.shared.input).take();
        let (done, over) = sync_channel(1);
        self.on_end(move || {
            // Whoever waited may have given up.
            let _ = done.try_send(());
        });
        let in_time = over.recv_timeout(FAREWELL).is_ok();
        // One that closed its output may run on, whatever it was asked.
        let status = child::end(&self.child, if in_time { GRACE } else { Duration::ZERO })
            .map_err(|error| CliError::local("cannot wait for the program", &error))?;
        if ended_itself {
            let error = io::Error::other(format!("it ended ({status})"));
            return Err(CliError::local(format!("`{}` gives no values any more", self.command), &error));
        }
        Ok(())
    }
}

impl Shared {
    /// The thread that reads the program's lines. One that makes no sense is told in a note.
    fn read(&self, output: ChildStdout) {
        child::each_line(output, |line| {
            let taken = match lines::object(line) {
                Ok(said) => self.take(&said),
                Err(Unreadable { why, ids }) => {
                    // Whoever writes need not wait for an answer that nobody can read.
                    let answer = |id| lock(&self.waiting).answers.remove(&id);
                    for answer in ids.into_iter().filter_map(answer) {
                        let _ = answer.try_send(Code::FAIL);
                    }
                    Err(why)
                }
            };
            if let Err(why) = taken {
                note(&format!("program: {why}: {}", people::octets(line)));
            }
        });
        self.end();
    }

    /// Takes one line: the answer to a write, or an item's description or value.
    fn take(&self, said: &Map<String, Json>) -> Result<(), String> {
        if let Some(id) = said.get("id").and_then(lines::id) {
            let code = said.get("code").map_or(Ok(Code::OK), code_of);
            // One that nobody waits for came too late. A code that means nothing says at least that the write failed.
            if let Some(answer) = lock(&self.waiting).answers.remove(&id) {
                let _ = answer.try_send(*code.as_ref().unwrap_or(&Code::FAIL));
            }
            return code.map(drop);
        }
        let id = said.get("item").and_then(Json::as_str).ok_or("the line has neither `item` nor `id`")?;
        let quality = said.get("quality").map_or(Ok(Quality::GOOD), quality_of);
        if !lock(&self.known).contains(id) {
            let quality = quality?;
            let item = described(id, said)?;
            let value = match said.get("value") {
                Some(value) => data_of(value, item.canonical)?,
                None => Data::Empty,
            };
            // Known only now: after a line with a mistake the next one describes it.
            lock(&self.known).insert(id.to_owned());
            self.table.add(item, value.clone());
            return self.put(id, value, quality);
        }
        let known = everywire_opc::Source::find(&*self.table, id).ok_or("there is no such item")?;
        let held = || self.table.get(id).map_or(Data::Empty, |held| held.data);
        let told = match said.get("value") {
            Some(value) => data_of(value, known.canonical),
            None if said.contains_key("quality") => Ok(held()),
            None => return Err("the line has neither `value` nor `quality`".into()),
        };
        match (told, quality) {
            (Ok(data), Ok(quality)) => self.put(id, data, quality),
            (Err(why), _) | (_, Err(why)) => {
                // There is a new value, and it is not known: the one before it is good no more. That value and
                // type disagree is a mistake of the server's configuration (OPC DA 2.05a, 6.8).
                self.put(id, held(), Quality::CONFIG_ERROR)?;
                Err(why)
            }
        }
    }

    /// Gives an item a value, as of now.
    fn put(&self, id: &str, data: Data, quality: Quality) -> Result<(), String> {
        self.table.put(id, Vqt { data, quality, time: FileTime::now() }).map_err(|code| code.to_string())
    }

    /// A client writes: the program is asked, and waited for at most `ANSWER`. A program that has
    /// ended, does not read, or does not answer fails the write. It hears of values alone, so quality or
    /// time without one cannot be written.
    fn write(&self, write: &Written) -> Code {
        if write.data == Data::Empty {
            return Code::NOT_SUPPORTED;
        }
        let (answer, answered) = sync_channel(1);
        let id = {
            let mut waiting = lock(&self.waiting);
            waiting.last += 1;
            let id = waiting.last;
            waiting.answers.insert(id, answer);
            id
        };
        let asked = json!({"id": id, "item": write.item.id, "value": value_json(&write.data)});
        // A program that does not read its input is not waited for.
        let sent =
            lock(&self.input).as_ref().is_some_and(|input| input.try_send(format!("{asked}\n")).is_ok());
        let code = if sent { answered.recv_timeout(ANSWER).unwrap_or(Code::FAIL) } else { Code::FAIL };
        lock(&self.waiting).answers.remove(&id);
        code
    }

    /// The program has closed its output: the server says so by its state, all items are bad, and
    /// waiting writes fail.
    fn end(&self) {
        self.table.set_state(ServerState::CommFault);
        for id in lock(&self.known).iter() {
            let _ = self.table.put(id, Vqt::bad(Quality::NOT_CONNECTED, FileTime::now()));
        }
        // Nobody asks any more, and whoever waits for an answer waits no longer.
        lock(&self.input).take();
        lock(&self.waiting).answers.clear();
        let tell = {
            let mut ended = lock(&self.ended);
            ended.is_over = true;
            ended.tell.take()
        };
        if let Some(tell) = tell {
            tell();
        }
    }
}

/// An item as its first line describes it. Limits make it an analog item only if both are there.
fn described(id: &str, said: &Map<String, Json>) -> Result<Item, String> {
    let text = |name: &str| said.get(name).and_then(Json::as_str).map(ToOwned::to_owned);
    let vt = match text("type") {
        Some(name) => {
            name.parse().map_err(|_| format!("`{name}` is no type, such as R4, I2, BOOL, BSTR, R8[]"))?
        }
        None => match said.get("value") {
            Some(Json::Bool(_)) => VarType::BOOL,
            Some(Json::String(_)) => VarType::BSTR,
            Some(Json::Array(_)) => VarType::R8.array(),
            _ => VarType::R8,
        },
    };
    let mut item = Item::new(id, vt);
    if said.get("write").and_then(Json::as_bool).unwrap_or_default() {
        item = item.writable();
    }
    let number = |name: &str| said.get(name).and_then(Json::as_f64);
    if let (Some(low), Some(high)) = (number("low"), number("high")) {
        item = item.analog(low, high, String::new());
    }
    (item.unit, item.description) = (text("unit"), text("description"));
    Ok(item)
}

/// A JSON value as one of this type, by the rules of OPC for other types than its own.
fn data_of(json: &Json, vt: VarType) -> Result<Data, String> {
    let data = match (json, vt.element()) {
        (Json::Array(items), Some(element)) => {
            let items = items.iter().map(|item| data_of(item, element)).collect::<Result<_, _>>()?;
            return Ok(Data::array(element, items));
        }
        (Json::Null, _) => return Ok(Data::Empty),
        (Json::Bool(value), _) => Data::Bool(*value),
        (Json::String(text), _) => {
            return value_of_text(text, vt).map_err(|code| format!("{json} is no {vt}: {code}"));
        }
        (Json::Number(number), _) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(value), ..) => value.into(),
            (_, Some(value), _) => value.into(),
            (.., value) => value.unwrap_or_default().into(),
        },
        (Json::Array(_) | Json::Object(_), _) => return Err(format!("{json} is no {vt}")),
    };
    data.coerce(vt).map_err(|code| format!("{json} is no {vt}: {code}"))
}

/// A quality by its name, or as the number of a quality word.
fn quality_of(json: &Json) -> Result<Quality, String> {
    let number = json.as_u64().and_then(|word| u16::try_from(word).ok()).map(Quality);
    let named = match json.as_str() {
        Some("good") => Some(Quality::GOOD),
        Some("bad") => Some(Quality::BAD),
        Some("uncertain") => Some(Quality::UNCERTAIN),
        _ => None,
    };
    number.or(named).ok_or_else(|| format!("{json} is no quality: good, bad, uncertain, or a number"))
}

/// A code by its name in the standard, or as `0x...`.
fn code_of(json: &Json) -> Result<Code, String> {
    let text = json.as_str().unwrap_or_default();
    let number = text.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok()).map(Code);
    number
        .or_else(|| Code::named(text))
        .ok_or_else(|| format!("{json} is no code, such as OPC_E_RANGE or 0x80004005"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_opc::{Access, Source};
    use std::time::Instant;

    /// A program that tells of items, answers two writes, and ends with its input.
    const BOILER: &str = r#"
        echo '{"item":"T","value":20.5,"type":"R4","unit":"C","low":0,"high":200}'
        echo '{"item":"L","value":90,"write":true}'
        echo 'no JSON'
        echo '{"item":"T","quality":"bad"}'
        echo '{"item":"Last","value":"x"}'
        read line; echo "{\"item\":\"Heard\",\"value\":\"$(echo "$line" | tr -d '"')\"}"; echo '{"id":1}'
        read line; echo '{"id":2,"code":"OPC_E_RANGE"}'
        read line; exit 3
    "#;

    fn until(what: &str, is_so: impl Fn() -> bool) {
        let limit = Instant::now() + Duration::from_secs(60);
        while !is_so() {
            assert!(Instant::now() < limit, "{what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn write(table: &Table, id: &str, value: f64) -> Vec<Code> {
        let item = table.find(id).unwrap();
        table.write(&[Written { item, data: value.into(), quality: None, time: None }])
    }

    #[test]
    fn a_program_tells_of_values_and_hears_of_writes() {
        let program = Program::start(BOILER).unwrap();
        let table = program.table();
        until("all lines are read", || table.find("Last").is_some());
        let held = table.get("T").unwrap();
        assert_eq!((held.data, held.quality), (Data::R4(20.5), Quality::BAD));
        assert_eq!(table.find("T").unwrap().span(), Some(200.0));
        assert_eq!(table.find("L").unwrap().access, Access::BOTH);
        assert_eq!(write(table, "L", 95.5), [Code::OK]);
        assert_eq!(table.get("L").unwrap().data, Data::R8(95.5));
        assert_eq!(table.get("Heard").unwrap().data, "{id:1,item:L,value:95.5}".into());
        assert_eq!(value_json(&Data::R4(0.1)), json!(0.1), "with the digits that it has");
        assert_eq!(write(table, "L", 1e9), [Code::RANGE]);
        assert_eq!(table.get("L").unwrap().data, Data::R8(95.5));
        program.stop().unwrap();
    }

    #[test]
    fn a_program_that_ends_leaves_bad_values() {
        let program = Program::start("echo '{\"item\":\"L\",\"value\":90,\"write\":true}'; exit 3").unwrap();
        let (ended, over) = sync_channel(1);
        program.on_end(move || ended.send(()).unwrap());
        over.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(program.table().get("L").unwrap().quality, Quality::NOT_CONNECTED);
        assert_eq!(program.table().state(), ServerState::CommFault);
        assert_eq!(write(program.table(), "L", 1.0), [Code::FAIL]);
        let trouble = program.stop().unwrap_err();
        assert!(trouble.why().contains("it ended (exit status: 3)"), "{}", trouble.why());
    }

    #[test]
    fn a_program_that_closed_its_output_and_runs_on_is_ended() {
        let program = Program::start("exec sleep 1000 >&-").unwrap();
        let (ended, over) = sync_channel(1);
        program.on_end(move || ended.send(()).unwrap());
        over.recv_timeout(Duration::from_secs(60)).unwrap();
        let (stopped, done) = sync_channel(1);
        std::thread::spawn(move || stopped.send(program.stop().is_err()));
        assert_eq!(done.recv_timeout(Duration::from_secs(60)), Ok(true), "it is waited for");
    }

    #[test]
    fn a_line_with_a_mistake_spoils_no_later_one() {
        let mistakes = r#"
            echo '{"item":"A","value":"x","type":"R4"}'
            echo '{"item":"A","type":"nonsense"}'
            echo '{"item":"A","value":1.5,"type":"R4"}'
            echo '{"item":"Last","value":"x"}'
            read line
        "#;
        let program = Program::start(mistakes).unwrap();
        let table = program.table();
        until("all lines are read", || table.find("Last").is_some());
        assert_eq!(table.get("A").map(|held| held.data), Some(Data::R4(1.5)));
        program.stop().unwrap();
    }

    /// Whoever reads the item would take the value before for the present one.
    #[test]
    fn a_value_that_does_not_fit_makes_its_item_bad() {
        let program = Program::start("cat").unwrap();
        let table = program.table();
        let take = |line: &str| program.shared.take(&lines::object(line.as_bytes()).unwrap());
        take(r#"{"item":"I","value":7,"type":"I2"}"#).unwrap();
        take(r#"{"item":"R","value":20.5}"#).unwrap();
        for (item, wrong) in [
            ("I", r#"{"item":"I","value":70000}"#),
            ("I", r#"{"item":"I","value":NaN}"#),
            ("I", r#"{"item":"I","value":{"a":1}}"#),
            ("R", r#"{"item":"R","value":"hot"}"#),
            ("R", r#"{"item":"R","value":21.5,"quality":"fine"}"#),
        ] {
            take(&format!(r#"{{"item":"{item}","value":9}}"#)).unwrap();
            table.put(item, Vqt { time: FileTime(1), ..table.get(item).unwrap() }).unwrap();
            take(wrong).unwrap_err();
            let held = table.get(item).unwrap();
            assert_eq!(held.quality, Quality::CONFIG_ERROR, "{wrong}");
            assert!(held.data.number() == Some(9.0) && held.time > FileTime(1), "{wrong}: {held:?}");
        }
        take(r#"{"item":"R","value":-Infinity}"#).unwrap();
        let held = table.get("R").unwrap();
        assert_eq!((held.data, held.quality), (Data::R8(f64::NEG_INFINITY), Quality::GOOD));
        program.stop().unwrap();
    }

    #[test]
    fn an_answer_with_a_wrong_code_is_an_answer() {
        let program = Program::start("cat").unwrap();
        let (answer, answered) = sync_channel(1);
        lock(&program.shared.waiting).answers.insert(7, answer);
        let line = json!({"id": 7, "code": "no code"});
        let why = program.shared.take(line.as_object().unwrap()).unwrap_err();
        assert!(why.contains("no code"), "{why}");
        assert_eq!(answered.try_recv(), Ok(Code::FAIL), "nobody waits for the time to be over");
        program.stop().unwrap();
    }
}
