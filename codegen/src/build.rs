//! For build scripts: contracts in, source files out.
//!
//! One file for each contract, called like the contract, in `OUT_DIR` unless the script says otherwise. What
//! Cargo must watch is printed while the contracts are read: the contract and the files that it takes in by
//! `#include` and `import`, or the documents of a description. What a contract has and code cannot be made of is a warning of the build, so that nobody
//! misses an operation without knowing why.
//!
//! A contract that is wrong makes no file. All contracts are tried, so that all mistakes are shown by one
//! build.

use crate::rust::{self, Options};
use everywire_idl::Preprocessing;
use everywire_model::Contract;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// Generates code for a contract with the usual options; `everywire::include_contract!` takes it in.
///
/// ```no_run
/// // in the `main` of build.rs
/// everywire_codegen::compile("contracts/account.idl");
/// ```
///
/// A contract that is wrong ends the build script: what is wrong, and where, is in the build's output.
pub fn compile(contract: impl AsRef<Path>) {
    Builder::new().contract(contract).compile();
}

/// Generates code for contracts.
///
/// ```no_run
/// everywire_codegen::Builder::new()
///     .include("contracts/common")
///     .contract("contracts/account.idl")
///     .contract("contracts/audit.idl")
///     .compile();
/// ```
#[derive(Debug, Clone, Default)]
pub struct Builder {
    /// In the order in which they were named.
    contracts: Vec<PathBuf>,
    /// Directories and macros for the preprocessors.
    given: Preprocessing,
    /// Where to write; None for `OUT_DIR`.
    out: Option<PathBuf>,
    options: Options,
}

impl Builder {
    /// No contracts yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One more contract; its extension tells its language. Its file's name is that of the generated file.
    #[must_use]
    pub fn contract(mut self, path: impl AsRef<Path>) -> Self {
        self.contracts.push(path.as_ref().to_owned());
        self
    }

    /// One more directory to look for included files in; the contract's own comes first.
    #[must_use]
    pub fn include(mut self, directory: impl AsRef<Path>) -> Self {
        self.given.directories.push(directory.as_ref().to_owned());
        self
    }

    /// One more macro for the preprocessor of OMG IDL and MIDL: `NAME`, or `NAME=VALUE`.
    #[must_use]
    pub fn define(mut self, option: &str) -> Self {
        self.given = self.given.define(option);
        self
    }

    /// Where to write, instead of `OUT_DIR`.
    #[must_use]
    pub fn out_dir(mut self, directory: impl AsRef<Path>) -> Self {
        self.out = Some(directory.as_ref().to_owned());
        self
    }

    /// Every method of a MIDL object yields a `Success`: its results, and the HRESULT with which it succeeded. For contracts
    /// that others wrote; one's own says `[success]` before the methods that succeed in more than one way.
    #[must_use]
    pub fn success_codes(mut self) -> Self {
        self.options.success_codes = true;
        self
    }

    /// Only the blocking traits, with their stubs and skeletons: for programs without asynchronous calls, whose build then has half as much
    /// to compile of the contract.
    #[must_use]
    pub fn blocking_only(mut self) -> Self {
        (self.options.blocking, self.options.asynchronous) = (true, false);
        self
    }

    /// Only the asynchronous traits, with their stubs and skeletons.
    #[must_use]
    pub fn asynchronous_only(mut self) -> Self {
        (self.options.blocking, self.options.asynchronous) = (false, true);
        self
    }

    /// What to generate.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Generates, and ends the build script with exit status 1 if it cannot, after saying why.
    pub fn compile(&self) {
        if let Err(problem) = self.try_compile() {
            eprintln!("{problem}");
            std::process::exit(1);
        }
    }

    /// Generates; the paths of the files written, in the order of the contracts. All contracts are read, even if the
    /// first is wrong.
    ///
    /// # Errors
    /// What is wrong with the contracts, or a file that cannot be written.
    pub fn try_compile(&self) -> Result<Vec<PathBuf>, Problem> {
        let out = match &self.out {
            Some(out) => out.clone(),
            None => std::env::var_os("OUT_DIR").map(PathBuf::from).ok_or_else(|| {
                Problem(
                    "OUT_DIR is not set: call this from a build script, or say where to write by `out_dir`"
                        .into(),
                )
            })?,
        };
        let (mut written, mut problems) = (Vec::new(), Vec::new());
        for path in &self.contracts {
            // Before the contract is read: a wrong contract must be watched as well.
            for watched in included(path, &self.given.directories) {
                println!("cargo::rerun-if-changed={}", watched.display());
            }
            match self.one(path, &out) {
                Ok(file) if written.contains(&file) => problems.push(format!(
                    "{} and another contract both become {}",
                    path.display(),
                    file.display()
                )),
                Ok(file) => written.push(file),
                Err(problem) => problems.push(problem.0),
            }
        }
        if problems.is_empty() { Ok(written) } else { Err(Problem(problems.join("\n"))) }
    }

    /// Reads one contract and writes its file; the path of the file.
    fn one(&self, path: &Path, out: &Path) -> Result<PathBuf, Problem> {
        let contract = self.read(path)?;
        for interface in contract.interfaces() {
            for what in everywire_model::contract::left_out(&interface.notes) {
                println!("cargo::warning={}: {} lacks {what}", path.display(), interface.name);
            }
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // The first line of the file names the contract, unless the caller names something else.
        let options = match self.options.source.as_str() {
            "" => Options { source: name.into_owned(), ..self.options.clone() },
            _ => self.options.clone(),
        };
        let text = rust::generate(&contract, &options);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let file = out.join(format!("{stem}.rs"));
        std::fs::create_dir_all(out)
            .and_then(|()| std::fs::write(&file, text))
            .map_err(|error| Problem(format!("cannot write {}: {error}", file.display())))?;
        Ok(file)
    }

    fn read(&self, path: &Path) -> Result<Contract, Problem> {
        everywire_idl::read_with(path, &self.given).map_err(|diagnostics| Problem(diagnostics.to_string()))
    }
}

/// Why nothing was generated: text for people, a mistake of the contract with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem(String);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Problem {}

/// The contract and all it takes in, as far as the files exist: what a change of must lead to a new build.
/// The text is searched without conditions and comments: a file that is watched for nothing costs a build,
/// one that is not watched gives wrong code. A file that is not UTF-8 is watched, and what it includes is not
/// found.
fn included(contract: &Path, directories: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut pending = vec![contract.to_owned()];
    #[cfg(feature = "wsdl")]
    if everywire_idl::language_of(contract).is_some_and(|language| language.name == "wsdl") {
        pending.extend(everywire_idl::wsdl::files(contract));
    }
    while let Some(path) = pending.pop() {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let beside = path.parent().map(Path::to_owned);
        if !found.insert(path) {
            continue;
        }
        for name in named(&text) {
            let candidates = beside.iter().chain(directories).map(|directory| directory.join(&name));
            pending.extend(candidates.filter(|candidate| candidate.is_file()).take(1));
        }
    }
    found
}

/// The files that a text takes in by `#include`, and by `import` and `importlib` of MIDL, which reads `x.idl` for `x.tlb`.
fn named(text: &str) -> Vec<PathBuf> {
    let includes = text.lines().filter_map(|line| {
        let directive = line.trim_start().strip_prefix('#')?.trim_start();
        let name = directive.strip_prefix("include")?.trim().trim_start_matches(['"', '<']);
        name.split(['"', '>']).next().map(PathBuf::from)
    });
    let imports = text.split("import").skip(1).flat_map(|rest| {
        let library = rest.starts_with("lib");
        let names = rest.split(';').next().unwrap_or_default().split('"').skip(1).step_by(2);
        names.map(
            move |name| if library { Path::new(name).with_extension("idl") } else { PathBuf::from(name) },
        )
    });
    includes.chain(imports).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// What a contract takes in is watched, in whatever way it says so.
    #[test]
    fn all_that_a_contract_takes_in_is_watched() {
        let folder = std::env::temp_dir().join(format!("everywire-watched-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let files = [
            (
                "main.midl",
                "import \"a.idl\" , \"b.idl\";\n[uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B003)] library L { importlib(\"c.tlb\"); };",
            ),
            ("a.idl", "  #include \"d.h\"\n"),
            ("b.idl", "interface IB { import \"a.idl\"; }"),
            ("c.idl", ""),
            ("d.h", ""),
            ("other.idl", ""),
            (
                "mill.wsdl",
                "<w:definitions xmlns:w='http://schemas.xmlsoap.org/wsdl/' xmlns:s='http://www.w3.org/2001/XMLSchema'><w:types>\
            <s:schema><s:import namespace='urn:k' schemaLocation='kinds.xsd'/></s:schema></w:types></w:definitions>",
            ),
            (
                "kinds.xsd",
                "<s:schema xmlns:s='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:k'><s:include schemaLocation='more.xsd'/></s:schema>",
            ),
            ("more.xsd", "<s:schema xmlns:s='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:k'/>"),
        ];
        files.iter().for_each(|(name, text)| std::fs::write(folder.join(name), text).unwrap());
        let watched = |name: &str| -> Vec<String> {
            let found = included(&folder.join(name), &[]);
            found.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(watched("main.midl"), ["a.idl", "b.idl", "c.idl", "d.h", "main.midl"]);
        assert_eq!(watched("mill.wsdl"), ["kinds.xsd", "mill.wsdl", "more.xsd"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
