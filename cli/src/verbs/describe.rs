//! `everywire describe`: what a contract says, or what a reference says and whether its object answers.
//!
//! The target is a contract if it is a file, or ends as contracts do; a reference otherwise. A contract
//! is printed in its own language unless another form is asked for (`--as`); one definition of it can
//! be picked by name.

mod document;
mod reference;
mod values;

use crate::cli_error::{CliError, Done};
use crate::contract::Preprocess;
use crate::output::{self, Envelope, line};
use crate::{complete, contract, opcda, target};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use everywire::model::units::{self, Deadline};
use everywire::model::{Contract, Definition, Shape};
use everywire_idl::Language;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = include_str!("../../help/describe.txt");

/// Describe a contract, or an object by its reference.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A contract file, an address, a reference, @FILE or @FILE:NAME.
    #[arg(add = ArgValueCompleter::new(complete::addresses))]
    target: String,
    /// One definition of the contract: its scoped name, or the module around it.
    name: Option<String>,
    /// How to print a contract: the name of a contract language (omg, dbus, kidl), or json.
    #[arg(long = "as", value_name = "FORM", value_parser = form)]
    form: Option<Form>,
    /// For a reference: the contract that describes the object's interface.
    #[arg(short, long, value_name = "FILE")]
    contract: Option<PathBuf>,
    #[command(flatten)]
    preprocess: Preprocess,
    /// For a reference: do not ask whether the object answers.
    #[arg(long)]
    offline: bool,
    /// For an OPC server: how many levels of its branches are shown.
    #[arg(long, value_name = "LEVELS", default_value_t = 3)]
    depth: usize,
    /// How long to wait for the object's answer.
    #[arg(long, value_name = "TIME", value_parser = units::deadline, default_value = "5s")]
    deadline: Deadline,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a contract is printed.
#[derive(Clone, Copy)]
enum Form {
    /// In a contract language.
    Language(&'static Language),
    Json,
}

/// What clap calls for `--as`.
fn form(word: &str) -> Result<Form, String> {
    if word == "json" {
        return Ok(Form::Json);
    }
    let languages = everywire_idl::languages();
    let found = languages.iter().find(|language| language.name == word);
    found.map(Form::Language).ok_or_else(|| {
        let names: Vec<_> = languages.iter().map(|language| language.name).collect();
        format!("known are {} and json", names.join(", "))
    })
}

/// Describes.
pub(crate) fn run(arguments: &Arguments) -> Done {
    let path = Path::new(&arguments.target);
    if path.is_file() || is_contract(path) {
        return describe_contract(arguments, path);
    }
    if arguments.name.is_some() {
        let why = format!("`{}` is no contract file", arguments.target);
        return Err(CliError::usage("only a contract has named definitions", why)
            .hint("for a reference, name the contract with --contract"));
    }
    let text = target::text(&arguments.target)?;
    if opcda::is_meant(&text) {
        let node = everywire::Node::from(
            everywire::Node::builder().deadline(arguments.deadline.0).shards(1).build(),
        );
        return opcda::describe(
            &node,
            &text,
            &opcda::OpcDescribeOptions { depth: arguments.depth, json: arguments.json },
        );
    }
    reference::describe(
        &text,
        &reference::DescribeOptions {
            with: arguments.contract.as_deref(),
            preprocess: &arguments.preprocess,
            ask: !arguments.offline,
            form: arguments.form,
            deadline: arguments.deadline.0,
            json: arguments.json,
        },
    )
}

/// Prints a contract, or one definition of it.
fn describe_contract(arguments: &Arguments, path: &Path) -> Done {
    let mut contract = contract::of_file(path, &arguments.preprocess)?.contract;
    if let Some(name) = &arguments.name {
        contract = pick(contract, name, path)?;
    }
    // Unless told otherwise, in the language that it was written in.
    let own = everywire_idl::language_of(path);
    match (arguments.form, own) {
        (None, _) if arguments.json => Envelope::of(document::contract(&contract)).print(),
        (Some(Form::Json), _) if arguments.json => Envelope::of(document::contract(&contract)).print(),
        (Some(Form::Json), _) | (None, None) => {
            line(&serde_json::to_string_pretty(&document::contract(&contract)).unwrap_or_default());
        }
        (Some(Form::Language(language)), _) | (None, Some(language)) => {
            let text = printed(&contract, language)?;
            if arguments.json {
                Envelope::of(text.into()).print()
            } else {
                output::text(text.strip_suffix('\n').unwrap_or(&text))
            }
        }
    }
    Ok(())
}

/// A contract in a contract language.
///
/// # Errors
/// It has something that the language cannot say.
fn printed(contract: &Contract, language: &Language) -> Done<String> {
    (language.print)(contract).map_err(|unprintable| {
        CliError::usage(
            format!("the contract cannot be printed as {}", language.title),
            unprintable.to_string(),
        )
        .hint("choose another form with --as")
    })
}

/// Whether a path ends like a contract's file, so that one that is missing is told as that.
fn is_contract(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let known =
        everywire_idl::languages().iter().any(|language| language.extensions.contains(&extension.as_str()));
    known && !path.to_string_lossy().contains("://")
}

/// The definitions with this name, with this last part of a name, or inside the module of this name.
fn pick(contract: Contract, name: &str, path: &Path) -> Done<Contract> {
    let inside = format!("{name}::");
    let all: Vec<String> =
        contract.definitions.iter().map(|definition| name_of(definition).to_owned()).collect();
    let exact = all.iter().any(|held| held == name || held.starts_with(&inside));
    let wanted = |held: &str| {
        if exact { held == name || held.starts_with(&inside) } else { contract::last_part(held) == name }
    };
    let definitions: Vec<_> =
        contract.definitions.into_iter().filter(|definition| wanted(name_of(definition))).collect();
    if definitions.is_empty() {
        let why = format!("{} defines {}", path.display(), all.join(", "));
        return Err(
            CliError::usage(format!("there is no definition `{name}`"), why).hint("choose one of these")
        );
    }
    Ok(Contract { definitions })
}

/// The scoped name of a definition.
fn name_of(definition: &Definition) -> &str {
    match definition {
        Definition::Type(Shape::Struct(shape)) | Definition::Exception(shape) => &shape.name,
        Definition::Type(Shape::Union(shape)) => &shape.name,
        Definition::Type(Shape::Enum(shape)) => &shape.name,
        Definition::Type(Shape::Alias(shape)) => &shape.name,
        Definition::Type(_) => "",
        Definition::Constant(constant) => &constant.name,
        Definition::Interface(interface) => &interface.name,
    }
}
