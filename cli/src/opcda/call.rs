//! `everywire call opcda://HOST/SERVER/ITEM read`, and `write VALUE`.

use super::shown::{json, read as data_of, time};
use super::{address, connect};
use crate::cli_error::{CliError, Done};
use crate::output::{Envelope, note, shown};
use everywire::{Failure, Node};
use everywire_opc::Code;
use everywire_opc::remote::{Address, DataAccess, refused};
use serde_json::json;

/// Reads or writes an item.
pub(crate) fn call(node: &Node, text: &str, operation: &str, words: &[String], as_json: bool) -> Done {
    let place = address(text)?;
    let Some(item) = place.item() else {
        return Err(CliError::usage(format!("cannot {operation}"), format!("`{place}` names no item"))
            .hint("write opcda://HOST/PROGID/ITEM"));
    };
    match (operation, words) {
        ("read", []) => read(&connect(node, &place)?, &place, item, as_json),
        ("write", [word]) => write(&connect(node, &place)?, &place, item, word, as_json),
        _ => Err(CliError::usage(
            "cannot call an item so",
            format!("`{operation}` with {} arguments", words.len()),
        )
        .hint("everywire call opcda://HOST/PROGID/ITEM read, or write VALUE")),
    }
}

/// Reads the item's value, with quality and time, and prints it.
fn read(server: &DataAccess, place: &Address, item: &str, as_json: bool) -> Done {
    let what = || format!("cannot read `{place}`");
    let answer = server.read(&[item]).map_err(|failure| CliError::of_call(what(), &failure))?;
    let value = one(answer).map_err(|code| CliError::of_call(what(), &refused(place, item, code)))?;
    let when = time(value.time);
    if as_json {
        Envelope::of(json!({
            "item": item, "value": json(&value.data), "type": value.data.var_type().to_string(),
            "quality": value.quality.0, "status": value.quality.to_string(), "timestamp": when,
        }))
        .print();
    } else {
        shown(&format!("{}\t{}\t{}", value.data, value.quality, when.unwrap_or_default()));
    }
    Ok(())
}

/// Writes a word as a value of the item's own type, which the server is asked for first.
fn write(server: &DataAccess, place: &Address, item: &str, word: &str, as_json: bool) -> Done {
    let what = || format!("cannot write `{place}`");
    let failed = |failure: Failure| CliError::of_call(what(), &failure);
    let refused = |code: Code| CliError::of_call(what(), &refused(place, item, code));
    let info = one(server.infos(&[item]).map_err(failed)?).map_err(refused)?;
    let value = data_of(word, info.canonical)
        .map_err(|code| CliError::usage(what(), format!("`{word}` is no {}: {code}", info.canonical)))?;
    let code = one(server.write(&[(item, value)]).map_err(failed)?).map_err(refused)?;
    if as_json {
        Envelope { status: (code != Code::OK).then(|| code.signed()), ..Envelope::of(json!({"item": item})) }
            .print();
    } else if code != Code::OK {
        note(&format!("succeeded with {code}"));
    }
    Ok(())
}

/// What was answered about the one item; a server that answered nothing counts as failed.
fn one<T>(answer: Vec<Result<T, Code>>) -> Result<T, Code> {
    answer.into_iter().next().unwrap_or(Err(Code::FAIL))
}
