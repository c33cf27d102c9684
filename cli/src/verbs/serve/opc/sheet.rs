//! Items in a file of comma-separated values.
//!
//! ```text
//! item,type,value,access,unit,low,high,description
//! Boiler.Temperature,R4,20.5,,°C,0,200,in the middle
//! Boiler.Limit,R4,90,write
//! Boiler.Running,,true
//! ```
//!
//! Columns stand in any order; all but `item` may be missing. Without a type, numbers are R8, `true` and `false` BOOL, all else BSTR.
//! `access` is `read` unless it is `write`, which is both. Items are named by paths with points. The file is read again when it has
//! changed: then items are as it says, for clients that have them as well, and new ones appear; one whose row is gone is out of service.

use crate::cli_error::{CliError, Done};
use crate::output::note;
use everywire_opc::{Data, FileTime, Item, Quality, Table, VarType, Vqt};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, SystemTime};

/// How often it is looked whether the file has changed.
const LOOK: Duration = Duration::from_millis(500);

/// The items of a file.
pub(super) struct Sheet {
    table: Arc<Table>,
    /// Whoever looks at the file ends with this.
    _watched: Sender<()>,
}

/// A row: the item, and its value.
type Row = (Item, Data);

impl Sheet {
    /// Reads the file, and looks at it from now on.
    pub(super) fn open(file: &Path) -> Done<Self> {
        let mut seen = stamp(file);
        let rows = read(file).map_err(|why| wrong(file, why))?;
        let table = Arc::new(Table::new());
        let mut present = HashMap::new();
        update(&table, rows, &mut present);
        let (watched, ended) = channel();
        let (items, file) = (Arc::clone(&table), file.to_owned());
        let look = move || {
            while matches!(ended.recv_timeout(LOOK), Err(RecvTimeoutError::Timeout)) {
                let now = stamp(&file);
                if now == seen {
                    continue;
                }
                seen = now;
                match read(&file) {
                    Ok(rows) => update(&items, rows, &mut present),
                    // It may be half written: the next change is looked at again.
                    Err(why) => note(&format!("{}: {why}; the items stay as they are", file.display())),
                }
            }
        };
        std::thread::Builder::new()
            .name("items".into())
            .spawn(look)
            .map_err(|error| CliError::local("cannot start a thread", &error))?;
        Ok(Self { table, _watched: watched })
    }

    pub(super) fn table(&self) -> &Arc<Table> {
        &self.table
    }
}

/// What tells that a file has changed: its time and its size. `None` while it is not there.
fn stamp(file: &Path) -> Option<(SystemTime, u64)> {
    let found = fs::metadata(file).ok()?;
    Some((found.modified().ok()?, found.len()))
}

/// Gives items the values that stand in the file now, and describes them as it does. A value that a client wrote stays until the value
/// or the type in its row changes. `present` are the rows of the last time.
fn update(table: &Table, rows: Vec<Row>, present: &mut HashMap<String, Row>) {
    let mut named = HashSet::new();
    let mut new = Vec::new();
    for (item, value) in rows {
        named.insert(item.id.clone());
        match present.insert(item.id.clone(), (item.clone(), value.clone())) {
            Some((known, before)) if known.canonical == item.canonical && before == value => {
                // The item is there: it was in the file.
                if known != item {
                    let _ = table.describe(item);
                }
            }
            _ => new.push((item, value)),
        }
    }
    table.extend(new);
    present.retain(|id, _| {
        let stays = named.contains(id);
        if !stays {
            let _ = table.put(id, Vqt::bad(Quality::OUT_OF_SERVICE, FileTime::now()));
        }
        stays
    });
}

/// The rows of a file.
///
/// # Errors
/// What is wrong, and in which line.
fn read(file: &Path) -> Result<Vec<Row>, String> {
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    let mut records = records(&text)?.into_iter();
    let columns = Columns::of(&records.next().map(|(_, headers)| headers).unwrap_or_default())?;
    let mut seen = HashSet::new();
    let mut rows = Vec::new();
    for (line, record) in records {
        let row = columns.row(&record).map_err(|why| format!("line {line}: {why}"))?;
        if !seen.insert(row.0.id.clone()) {
            return Err(format!("line {line}: the item `{}` stands there a second time", row.0.id));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// The values of a line.
type Record = Vec<String>;

/// The lines of a text of comma-separated values with their numbers (RFC 4180): a value in quotes may hold commas, line ends, and quotes
/// that are doubled. Blanks around a value do not count, nor do empty lines and those that begin with `#`.
///
/// # Errors
/// A quote that does not end, or does not end a value.
fn records(text: &str) -> Result<Vec<(usize, Record)>, String> {
    let mut records = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while !rest.is_empty() {
        let here = line;
        if rest.starts_with(['#', '\n', '\r']) {
            let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
            rest = rest.get(end..).unwrap_or_default();
            line += 1;
            continue;
        }
        let mut record = Record::new();
        loop {
            let (value, behind) = value(rest).map_err(|why| format!("line {here}: {why}"))?;
            line += rest.len().checked_sub(behind.len()).and_then(|end| rest.get(..end)).map_or(0, line_ends);
            record.push(value);
            match behind.strip_prefix(',') {
                Some(more) => rest = more,
                None => {
                    // A line ends, or the text.
                    rest = behind.trim_start_matches('\r').strip_prefix('\n').unwrap_or_default();
                    line += 1;
                    break;
                }
            }
        }
        records.push((here, record));
    }
    Ok(records)
}

fn line_ends(text: &str) -> usize {
    text.matches('\n').count()
}

/// The value that a text begins with, and what stands behind it: a comma, a line end, or nothing.
fn value(text: &str) -> Result<(String, &str), String> {
    let blank = |sign: char| sign == ' ' || sign == '\t';
    let Some(mut quoted) = text.trim_start_matches(blank).strip_prefix('"') else {
        let (value, behind) = text.split_at(text.find([',', '\n']).unwrap_or(text.len()));
        return Ok((value.trim().to_owned(), behind));
    };
    let mut value = String::new();
    loop {
        let (part, behind) = quoted.split_once('"').ok_or("a quote does not end")?;
        value.push_str(part);
        if let Some(more) = behind.strip_prefix('"') {
            value.push('"');
            quoted = more;
            continue;
        }
        let behind = behind.trim_start_matches(blank);
        // A carriage return alone ends no line.
        let end = behind.trim_start_matches('\r');
        let ends = behind.starts_with(',') || end.is_empty() || end.starts_with('\n');
        return if ends { Ok((value, behind)) } else { Err("something stands behind a quote".into()) };
    }
}

/// The place of each column that the file has, by its name.
struct Columns(HashMap<&'static str, usize>);

impl Columns {
    const NAMES: [&'static str; 8] =
        ["item", "type", "value", "access", "unit", "low", "high", "description"];

    /// Reads the first line.
    fn of(headers: &Record) -> Result<Self, String> {
        let mut places = HashMap::new();
        for (place, header) in headers.iter().enumerate() {
            let known = Self::NAMES.into_iter().find(|name| name.eq_ignore_ascii_case(header));
            let name = known.ok_or_else(|| {
                format!("line 1: there is no column `{header}`; columns are {}", Self::NAMES.join(", "))
            })?;
            places.insert(name, place);
        }
        if places.contains_key("item") {
            Ok(Self(places))
        } else {
            Err("line 1: no column is called `item`".into())
        }
    }

    /// What stands in a column of a row; `None` if the column is not there, or empty.
    fn get<'r>(&self, record: &'r Record, name: &str) -> Option<&'r str> {
        self.0
            .get(name)
            .and_then(|place| record.get(*place))
            .map(String::as_str)
            .filter(|text| !text.is_empty())
    }

    /// A row as an item with its value.
    fn row(&self, record: &Record) -> Result<Row, String> {
        let id = self.get(record, "item").ok_or("the row names no item")?;
        let text = self.get(record, "value");
        let vt = match self.get(record, "type") {
            Some(name) => name.parse().map_err(|_| {
                format!("`{name}` is no type: I1, I2, I4, I8, UI1, UI2, UI4, UI8, R4, R8, BOOL, BSTR, DATE, CY, or one with [] behind it")
            })?,
            None => type_of(text.unwrap_or_default()),
        };
        let mut item = Item::new(id, vt);
        match self.get(record, "access").unwrap_or("read") {
            "read" => {}
            "write" => item = item.writable(),
            other => return Err(format!("`{other}` is no access: it is `read`, or `write` for both")),
        }
        let number = |name| {
            let text = self.get(record, name);
            let parsed = text
                .map(|text| text.parse::<f64>().map_err(|_| format!("`{text}` is no number for `{name}`")));
            parsed.transpose()
        };
        let unit = self.get(record, "unit");
        match (number("low")?, number("high")?) {
            (Some(low), Some(high)) if low < high => item = item.analog(low, high, unit.unwrap_or_default()),
            (Some(low), Some(high)) => {
                return Err(format!("`low` is {low}, which is not below `high`, {high}"));
            }
            (None, None) => {}
            _ => return Err("`low` and `high` go together".into()),
        }
        item.unit = unit.map(ToOwned::to_owned);
        item.description = self.get(record, "description").map(ToOwned::to_owned);
        let value = value_of(text, vt).map_err(|why| format!("the value of `{id}`: {why}"))?;
        Ok((item, value))
    }
}

/// The type of what stands in a row without one.
fn type_of(text: &str) -> VarType {
    match text {
        "true" | "false" => VarType::BOOL,
        text if text.parse::<f64>().is_ok() => VarType::R8,
        _ => VarType::BSTR,
    }
}

/// A value as text; the elements of an array are parted by semicolons.
fn value_of(text: Option<&str>, vt: VarType) -> Result<Data, String> {
    let one = |text: &str, vt: VarType| {
        Data::from(text).coerce(vt).map_err(|code| format!("`{text}` is no {vt}: {code}"))
    };
    match (text, vt.element()) {
        (None, Some(element)) => Ok(Data::array(element, Vec::new())),
        (None, None) if vt == VarType::BSTR => Ok("".into()),
        (None, None) => one("0", vt),
        (Some(text), None) => one(text, vt),
        (Some(text), Some(element)) => {
            let items = text.split(';').map(|part| one(part.trim(), element)).collect::<Result<_, _>>()?;
            Ok(Data::array(element, items))
        }
    }
}

/// The file cannot be served.
fn wrong(file: &Path, why: String) -> Box<CliError> {
    let file: PathBuf = file.to_owned();
    CliError::usage(format!("the items in {} cannot be served", file.display()), why)
        .hint("`everywire serve --help` shows such a file")
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_opc::{
        Access, Code, Engine, EngineeringUnits, GroupState, ItemDef, Moment, Settings, Source,
    };

    fn rows(text: &str) -> Result<Vec<Row>, String> {
        let file =
            std::env::temp_dir().join(format!("everywire-sheet-{}-{}", std::process::id(), text.len()));
        fs::write(&file, text).unwrap();
        let rows = read(&file);
        fs::remove_file(&file).unwrap();
        rows
    }

    #[test]
    fn rows_become_items_with_values() {
        let text = "item,type,value,access,unit,low,high,description\n\
            # the boiler\n\
            Boiler.Temperature,R4,20.5,,°C,0,200,\"in the middle, above\"\n\
            Boiler.Limit,R4,90,write\n\
            Boiler.Running,,true\n\
            Boiler.Name,,one\n\
            Boiler.Level,,0.25\n\
            Boiler.Curve,R8[],1; 2.5 ;3\n";
        let rows = rows(text).unwrap();
        let values: Vec<_> = rows.iter().map(|(_, value)| value.clone()).collect();
        let curve = Data::array(VarType::R8, vec![1.0.into(), 2.5.into(), 3.0.into()]);
        assert_eq!(values, [20.5_f32.into(), 90_f32.into(), true.into(), "one".into(), 0.25.into(), curve]);
        let (temperature, limit) = (&rows[0].0, &rows[1].0);
        assert_eq!(temperature.units, EngineeringUnits::Analog { low: 0.0, high: 200.0 });
        assert_eq!(temperature.unit.as_deref(), Some("°C"));
        assert_eq!(temperature.description.as_deref(), Some("in the middle, above"));
        assert_eq!((temperature.access, limit.access), (Access::READ, Access::BOTH));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, why) in [
            ("name,value\na,1\n", "line 1: there is no column `name`"),
            ("type,value\nR4,1\n", "line 1: no column is called `item`"),
            ("item,type,value\na,R4,1\nb,R5,1\n", "line 3: `R5` is no type"),
            ("item,type,value\na,I2,70000\n", "line 2: the value of `a`: `70000` is no VT_I2"),
            ("item,low,high\na,5,1\n", "line 2: `low` is 5"),
            ("item,low\na,5\n", "line 2: `low` and `high` go together"),
            ("item,access\na,all\n", "line 2: `all` is no access"),
            ("item,value\na,1\na,2\n", "line 3: the item `a` stands there a second time"),
            ("item,value\n,1\n", "line 2: the row names no item"),
        ] {
            let said = rows(text).unwrap_err();
            assert!(said.starts_with(why), "{said}");
        }
    }

    #[test]
    fn values_in_quotes_hold_anything() {
        let text = "a, b ,c\r\n\n# no, comment\n\"1,2\", \"say \"\"x\"\"\" ,\"two\nlines\"\nlast,,";
        let found = records(text).unwrap();
        let of = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            found,
            [
                (1, of(&["a", "b", "c"])),
                (4, of(&["1,2", "say \"x\"", "two\nlines"])),
                (6, of(&["last", "", ""]))
            ]
        );
        assert_eq!(records("a\n\"b").unwrap_err(), "line 2: a quote does not end");
        assert_eq!(records("\"b\"c").unwrap_err(), "line 1: something stands behind a quote");
        // Without a line feed no line ends: what follows must not get lost.
        assert_eq!(records("\"b\"\rc\nd\n").unwrap_err(), "line 1: something stands behind a quote");
        assert_eq!(records("\"b\"\r").unwrap(), [(1, of(&["b"]))]);
    }

    #[test]
    fn a_file_that_changes_changes_the_items() {
        let table = Table::new();
        let first = rows("item,value,access\na,1,write\nb,2,\n").unwrap();
        let mut present = HashMap::new();
        update(&table, first, &mut present);
        // A client wrote.
        table.set("a", 7.0).unwrap();
        update(&table, rows("item,value,access\na,1,write\nc,3,\n\n").unwrap(), &mut present);
        assert_eq!(table.get("a").unwrap().data, Data::R8(7.0), "its row is the same");
        assert_eq!(table.get("b").unwrap().quality, Quality::OUT_OF_SERVICE);
        assert!(table.find("c").is_some());
        update(&table, rows("item,value,access\na,2,write\nb,2,\n\n\n").unwrap(), &mut present);
        assert_eq!(table.get("a").unwrap().data, Data::R8(2.0));
        assert!(table.get("b").unwrap().quality.is_good(), "it is back");
    }

    #[test]
    fn a_row_that_changes_describes_its_item_anew() {
        let table = Arc::new(Table::new());
        let engine = Engine::new(Arc::clone(&table) as Arc<dyn Source>, Settings::default());
        let mut present = HashMap::new();
        let header = "item,type,value,access,unit,low,high,description\n";
        let mut reload = |row: &str| update(&table, rows(&format!("{header}{row}")).unwrap(), &mut present);
        reload("a,I2,1,write,°C,0,10,one\n");
        let client = engine.client().unwrap();
        let now = Moment::default();
        let group = client.add_group(GroupState::default()).unwrap();
        let item = ItemDef { id: "a".to_owned(), ..ItemDef::default() };
        let handles: Vec<_> =
            group.add_items(&[item], now).unwrap().into_iter().map(|added| added.unwrap().server).collect();
        let write = |value: f64| group.write(&handles, &[Data::R8(value).into()]).unwrap();
        assert_eq!(write(7.0), [Code::OK]);
        // What is not its value or its type leaves what was written.
        reload("a,I2,1,write,K,0,20,another\n");
        let known = table.find("a").unwrap();
        assert_eq!((known.unit.as_deref(), known.description.as_deref()), (Some("K"), Some("another")));
        assert_eq!(known.units, EngineeringUnits::Analog { low: 0.0, high: 20.0 });
        assert_eq!(table.get("a").unwrap().data, Data::I2(7));
        // Whoever has the item may write no more, and again.
        reload("a,I2,1,read,K,0,20,another\n");
        assert_eq!((write(8.0), table.get("a").unwrap().data), (vec![Code::BAD_RIGHTS], Data::I2(7)));
        group.set_listeners(1);
        let begun = group.begin_write(&handles, &[Data::R8(8.0).into()], 1).unwrap();
        assert_eq!(begun, (0, vec![Code::BAD_RIGHTS]));
        // Another type has the value of its row, and takes values of its own.
        reload("a,R8,1,write,K,0,20,another\n");
        assert_eq!(table.get("a").unwrap().data, Data::R8(1.0));
        assert_eq!((write(2.5), table.get("a").unwrap().data), (vec![Code::OK], Data::R8(2.5)));
    }
}
