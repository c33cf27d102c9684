//! `everywire emit`: sends one signal, from an object that this process is for as long as that takes.
//!
//! Signals of a bus or of a DCOP server are sent by name: the program takes the name in the address,
//! emits, and lets go of it. Peers that are connected directly hear only the object itself, so there is
//! nobody to send to, and that is said.

use crate::cli_error::{CliError, Done};
use crate::complete;
use crate::contract::{self, Preprocess};
use crate::negative::unmarked;
use crate::output::{Envelope, Style, note, tinted};
use crate::target;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use everywire::model::units::{self, Deadline};
use everywire::model::{BindAddress, Emission, Operation, Profile, Sink, Wire};
use everywire::{Bytes, Failure, Kind, Node, Reference};
use everywire_dynamic::explicit::{self, MemberKind};
use everywire_dynamic::json::{NodeNotation, Types};
use everywire_dynamic::{operation, wire_of};
use serde_json::Value as Json;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = include_str!("../../help/emit.txt");

/// How long the signal may take to leave.
const GRACE: Duration = Duration::from_secs(5);

/// Emit a signal, under a name on a bus or at a DCOP server.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The object that the signal is from: a name, which this process takes meanwhile, and an object of it.
    #[arg(add = ArgValueCompleter::new(complete::addresses))]
    reference: String,
    /// The signal, with its interface before it (INTERFACE.SIGNAL) where only a signature is given.
    signal: String,
    /// Its fields by position, or NAME=VALUE.
    #[arg(allow_negative_numbers = true, value_parser = unmarked)]
    arguments: Vec<String>,
    /// The contract that has the signal.
    #[arg(
        short,
        long,
        value_name = "FILE",
        required_unless_present = "signature",
        conflicts_with = "signature"
    )]
    contract: Option<PathBuf>,
    #[command(flatten)]
    preprocess: Preprocess,
    /// The interface that has the signal.
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::interfaces))]
    interface: Option<String>,
    /// The types of the fields, without a contract: as on D-Bus (`su`), or the function on DCOP (`finished(QString)`).
    #[arg(long, value_name = "TYPES", allow_hyphen_values = true)]
    signature: Option<String>,
    /// Fields as a JSON object, @FILE, or - for standard input.
    #[arg(short, long, value_name = "JSON", allow_hyphen_values = true)]
    data: Option<String>,
    /// How long to wait for the name.
    #[arg(long, value_name = "TIME", value_parser = units::deadline, default_value = "5s")]
    deadline: Deadline,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
impl Arguments {
    /// The values given as words.
    pub(crate) fn words(&self) -> &[String] {
        &self.arguments
    }

    /// The values given as JSON, and the signature.
    pub(crate) fn texts(&self) -> (Option<&str>, Option<&str>) {
        (self.data.as_deref(), self.signature.as_deref())
    }
}

/// Emits.
pub(crate) fn run(arguments: &Arguments, style: Style) -> Done {
    let node = Node::from(Node::builder().deadline(arguments.deadline.0).shards(1).build());
    let text = target::text(&arguments.reference)?;
    let what = || format!("cannot emit `{}`", arguments.signal);
    let reference = node
        .parse(&text)
        .map_err(|failure| CliError::failure(format!("`{text}` is no reference"), &failure))?;
    let wire = wire_of(&reference).map_err(|failure| CliError::failure(what(), &failure))?;
    let (address, key) = place(&node, wire, &reference).map_err(|why| {
        CliError::usage(what(), why).hint("name an object behind a router, such as dbus:session/org.example.Bank/account or dcop:bank/account")
    })?;
    let known = match (&arguments.signature, &arguments.contract) {
        (Some(signature), _) => explicit::contract(
            wire,
            &arguments.signal,
            arguments.interface.as_deref(),
            signature,
            MemberKind::Signal,
        )?,
        (None, Some(path)) => contract::of_file(path, &arguments.preprocess)?,
        (None, None) => {
            return Err(CliError::usage(what(), "nobody says what its fields are")
                .hint("give --contract or --signature"));
        }
    };
    let found = match &arguments.signature {
        // A contract that was made for it has no other.
        Some(_) => known.contract.interfaces().find_map(|held| Some((&**held, held.signals.first()?))),
        None => None,
    };
    let (interface, signal) = match found {
        Some(found) => found,
        None => known.signal(&arguments.signal, arguments.interface.as_deref())?,
    };
    let words = NodeNotation::new(node.clone(), Types::of(&known.contract)).opening_files();
    let document: Option<Json> = arguments.data.as_deref().map(super::call::document).transpose()?;
    // Fields are given as arguments are.
    let mut like = Operation::new(signal.label.clone(), Vec::new(), everywire::model::Shape::Void);
    like.arguments = signal.fields.clone();
    let values = operation::arguments(&like, &arguments.arguments, document, &words)?;
    node.listen(&address).map_err(|failure| {
        let trouble = CliError::failure(what(), &failure);
        match failure.kind() {
            Kind::Refused => {
                trouble.hint("a signal counts from whoever has the name: whoever serves it there emits it")
            }
            _ => trouble,
        }
    })?;
    let failed = |failure: Failure| CliError::failure(what(), &failure);
    let encode = |sink: &mut dyn Sink| values.encode(&signal.fields, sink);
    node.emitter().emit(&Emission::typed(&key, interface, signal, &encode)).map_err(failed)?;
    node.stop_within(GRACE);
    if arguments.json {
        let notes = vec!["nobody tells who heard it".into()];
        Envelope { wire: Some(wire.name()), notes, ..Envelope::default() }.print();
    } else if style.out {
        note(&tinted("sent", "2", style.err));
    }
    Ok(())
}

/// Where to join to be the object, and its key.
/// Where to join to be the object, and its key.
///
/// # Errors
/// The address names no object, or its wire has no router there.
fn place(node: &Node, wire: &dyn Wire, reference: &Reference) -> Result<(String, Bytes), String> {
    let profile = reference.profiles.first().cloned().unwrap_or_default();
    let key = profile.key.clone();
    if key.is_empty() {
        return Err("the address names no object".into());
    }
    let above =
        Reference { profiles: vec![Profile { key: Bytes::new(), ..profile }], ..Reference::default() };
    let address = node.print_friendly(&above);
    match wire.listen(&address) {
        Ok(BindAddress::Join(_)) => Ok((address, key)),
        _ => Err(format!(
            "on {} without a router between, signals go to those who are connected to the object: to nobody, as this one has just begun",
            wire.name()
        )),
    }
}
