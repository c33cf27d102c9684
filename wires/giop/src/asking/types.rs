//! Types that a repository tells by type codes, as a contract's reader would have made them: with scoped
//! names, each made once.
//!
//! A type code names its types without their scopes, and its reader takes for scopes what stands in the
//! repository id. That id holds a prefix, too (`IDL:omg.org/CosNaming/Name:1.0` is `CosNaming::Name`). Which
//! prefixes there are is seen on interfaces, whose id and scoped name are both told; a part with a dot in it
//! is none of IDL's names. Where an id shows nothing, the repository is asked.
//!
//! States: a type is known by its kind and id. It is *open* while its parts are made, then *made*, and never
//! changes after. A part that names an open type gets a cell (`Hold::Later`), which is filled when the type
//! is complete. If making such a type fails after its cell was given out, the whole contract is `broken`,
//! since somebody may hold a cell that nothing fills.
//!
//! Bounds: levels (`DEPTH`) and parts (`NODES`) of all types together, since a type code of a few octets can
//! stand for a large type and a repository may send many of them; the octets that all of that takes here (`OCTETS`), since
//! each use of a name is a copy of it; and those of `cells`.

use super::cells::Account;
use super::questions::Questions;
use crate::typecodes;
use everywire_model::describe::{
    Alias, Arm, Array, Enum, Field, Hold, Name, Operation, Referent, Sequence, Shape, Struct, Union,
};
use everywire_model::long_double;
use everywire_model::{Definition, Failure, Initiator, TypeCode};
use std::any::Any;
use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::{LazyLock, OnceLock};

/// Deepest nesting of types: that of type codes, and of what a type that contains itself adds.
const DEPTH: usize = 64;
/// Most types and parts of types of one contract.
const NODES: usize = 100_000;
/// Most octets that the types of one contract take here, and as many that its inherited operations do: 64 MiB.
const OCTETS: usize = 64 << 20;
/// What a part of a type is taken to cost beside its name: about what it takes.
const PART: usize = 128;

/// Tells type codes apart, by keys that nobody outside of the process knows: nobody can make two with one pair of hashes.
static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);

/// What a type is known by within one contract: the noun of its kind, and its id.
pub(super) type Key = (&'static str, String);

/// The types of one contract. Filled while interfaces are made; `into_definitions` ends it.
#[derive(Default)]
pub(super) struct Types {
    /// What ids begin with before their scopes: with its slash, or empty.
    prefixes: HashSet<String>,
    /// Scoped names by ids.
    names: HashMap<String, String>,
    /// Types that are made.
    made: HashMap<Key, Shape>,
    /// Types that are being made: what stands for them within themselves.
    open: HashMap<Key, Box<dyn Any>>,
    /// The hashes of all type codes that were read so far.
    read: [u64; 2],
    /// The same at the type code that is read; nothing for types of constants, whose octets are not kept. They come last.
    code: Option<[u64; 2]>,
    /// What types take here, and what of it cells keep.
    account: Account,
    /// Octets that inherited operations take.
    inherited: usize,
    /// Exceptions by their ids. They are apart from `made`, because an exception is no type of a value.
    exceptions: HashMap<String, Hold<Struct>>,
    /// All of them in the order in which they were completed, so each comes after what it is made of.
    definitions: Vec<Definition>,
    /// Parts that were looked at, for the bound.
    nodes: usize,
    /// A type that contains itself could not be made: others may hold a part that is missing.
    broken: Option<Failure>,
}

impl Types {
    /// The types of a contract that somebody at this host tells.
    pub(super) fn told_at(host: String) -> Self {
        Self { account: Account::of(host), ..Self::default() }
    }

    /// All named types and exceptions, each after those that it is made of.
    ///
    /// # Errors
    /// A type that contains itself could not be made.
    pub(super) fn into_definitions(self) -> Result<Vec<Definition>, Failure> {
        match self.broken {
            Some(failure) => Err(failure),
            None => Ok(self.definitions),
        }
    }

    /// Notes a scoped name that the repository told together with an id. What the id has in front of the
    /// scopes is remembered as a prefix, if it ends at a `/`.
    pub(super) fn learn(&mut self, id: &str, scoped: &str) {
        self.names.insert(id.to_owned(), scoped.to_owned());
        if let Some(prefix) = path(id).and_then(|path| path.strip_suffix(&scoped.replace("::", "/")))
            && (prefix.is_empty() || prefix.ends_with('/'))
        {
            self.prefixes.insert(prefix.to_owned());
        }
    }

    /// The scoped name of something with this id; `bare` is its name without scopes, which is used where
    /// nothing better is known. May ask the repository once for each id.
    pub(super) fn name(&mut self, id: &str, bare: &str, questions: &mut Questions) -> Name {
        let bare = bare.rsplit("::").next().unwrap_or(bare);
        if let Some(known) = self.names.get(id) {
            self.account.told += known.len();
            return Name::from(known.clone());
        }
        let scoped = match self.by_id(id, bare) {
            Some(scoped) => scoped,
            None if id.is_empty() => bare.to_owned(),
            None => questions.name_of(id).unwrap_or_else(|| bare.to_owned()),
        };
        self.account.told += id.len() + scoped.len();
        self.names.insert(id.to_owned(), scoped.clone());
        Name::from(scoped)
    }

    /// The scoped name that an id shows by itself, if a known prefix fits. Nothing if the result does not end
    /// with the bare name: then the id was given by a pragma and says nothing about scopes.
    fn by_id(&self, id: &str, bare: &str) -> Option<String> {
        let path = path(id)?;
        let known = self.prefixes.iter().filter_map(|prefix| path.strip_prefix(prefix.as_str()));
        let shortest = known.min_by_key(|rest| rest.len())?;
        // Not even the longest prefix may be that of this id.
        let parts: Vec<&str> = shortest.split('/').collect();
        let from = parts.iter().rposition(|part| part.contains('.')).map_or(0, |at| at + 1);
        let scoped = parts.get(from..)?.join("::");
        (scoped.rsplit("::").next() == Some(bare)).then_some(scoped)
    }

    /// A type code is read from now on. What was read before counts, too, since a part with a known id is taken as it was
    /// told first: without that, what one repository tells would change the types of another one.
    fn begin(&mut self, code: &TypeCode) {
        self.code = None;
        let encoded = code.encoded();
        self.account.told += encoded.len();
        if !encoded.is_empty() {
            for (hash, key) in self.read.iter_mut().zip(KEYS.iter()) {
                *hash = key.hash_one((*hash, encoded));
            }
            self.code = Some(self.read);
        }
    }

    /// The shape of the type that a code describes.
    ///
    /// # Errors
    /// Values of it cannot be held here, or there is too much of it.
    pub(super) fn of(&mut self, code: &TypeCode, questions: &mut Questions) -> Result<Shape, Failure> {
        self.begin(code);
        match code.shape() {
            _ if let Some(failure) = &self.broken => Err(failure.clone()),
            Some(shape) => self.shape(shape, DEPTH, questions),
            None => Err(unsupported(&format!("a {}", code.kind()))),
        }
    }

    /// The exception that a code describes.
    ///
    /// # Errors
    /// As [`Types::of`].
    pub(super) fn exception(
        &mut self,
        code: &TypeCode,
        questions: &mut Questions,
    ) -> Result<Hold<Struct>, Failure> {
        self.begin(code);
        let described = code.shape().and_then(typecodes::exception);
        let described = described.ok_or_else(|| unsupported("something that is no exception"))?;
        if let Some(made) = self.exceptions.get(described.id.as_ref()) {
            return Ok(made.clone());
        }
        let fields = self.fields(&described.fields, DEPTH, questions)?;
        let name = self.name(&described.id, &described.name, questions);
        let made = Hold::new(Struct { name, id: described.id.clone(), fields: fields.into() });
        self.exceptions.insert(described.id.to_string(), made.clone());
        self.definitions.push(Definition::Exception(made.clone()));
        Ok(made)
    }

    /// An interface inherits an operation, which is a copy of it.
    ///
    /// # Errors
    /// There are too many.
    pub(super) fn inherits(&mut self, operation: &Operation) -> Result<(), Failure> {
        let part = |name: &Name| PART + name.len();
        let parameters = operation.parameters.iter().map(|parameter| part(&parameter.field.name));
        self.inherited += part(&operation.name) + part(&operation.label) + parameters.sum::<usize>();
        bounded(self.inherited)
    }

    /// The same fields with types as this contract has them.
    fn fields(
        &mut self,
        fields: &[Field],
        depth: usize,
        questions: &mut Questions,
    ) -> Result<Vec<Field>, Failure> {
        let made = fields.iter().map(|field| {
            self.account.told += field.name.len();
            let shape = self.shape(&field.shape, depth, questions)?;
            Ok(Field { name: field.name.clone(), shape })
        });
        made.collect()
    }

    /// A shape as the type code's reader made it, made anew with scoped names and each named type once.
    /// `depth` is how many levels may still follow.
    ///
    /// # Errors
    /// A bound was met, or this side cannot hold values of the type.
    fn shape(&mut self, shape: &Shape, depth: usize, questions: &mut Questions) -> Result<Shape, Failure> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(Failure::over_limit(Initiator::Peer, "levels of a type", DEPTH + 1, DEPTH));
        };
        self.nodes += 1;
        if self.nodes > NODES {
            return Err(Failure::over_limit(Initiator::Peer, "types of one contract", self.nodes, NODES));
        }
        self.account.told += PART;
        bounded(self.account.told)?;
        Ok(match shape {
            Shape::Struct(held) => self.once(("struct", held.id.to_string()), |types| {
                let fields = types.fields(&held.fields, depth, questions)?.into();
                let name = types.name(&held.id, &held.name, questions);
                Ok(Struct { name, id: held.id.clone(), fields })
            })?,
            Shape::Union(held) => self.once(("union", held.id.to_string()), |types| {
                let discriminator = types.shape(&held.discriminator, depth, questions)?;
                let mut arms = Vec::with_capacity(held.arms.len());
                for arm in held.arms.iter() {
                    types.account.told += arm.field.name.len() + size_of_val(&*arm.labels);
                    let shape = types.shape(&arm.field.shape, depth, questions)?;
                    let field = Field { name: arm.field.name.clone(), shape };
                    arms.push(Arm { labels: arm.labels.clone(), default: arm.default, field });
                }
                let name = types.name(&held.id, &held.name, questions);
                Ok(Union { name, id: held.id.clone(), discriminator, arms: arms.into() })
            })?,
            Shape::Enum(held) => self.once(("enum", held.id.to_string()), |types| {
                types.account.told += held.members.iter().map(|(name, _)| PART + name.len()).sum::<usize>();
                let name = types.name(&held.id, &held.name, questions);
                Ok(Enum { name, ..(**held).clone() })
            })?,
            // A remark without a name: a fixed-point number. Exceptions are told apart, and boxes are no values here.
            Shape::Alias(_) if typecodes::is_fixed(shape) => shape.clone(),
            Shape::Alias(held) if held.name.is_empty() => return Err(unsupported("a value box")),
            Shape::Alias(held) => self.once(("alias", held.id.to_string()), |types| {
                let target = types.shape(&held.target, depth, questions)?;
                let name = types.name(&held.id, &held.name, questions);
                Ok(Alias { name, id: held.id.clone(), target })
            })?,
            Shape::Sequence(held) => {
                let element = self.shape(&held.element, depth, questions)?;
                Shape::Sequence(Hold::new(Sequence { element, ..(**held).clone() }))
            }
            Shape::Array(held) if long_double::is_array(held) => shape.clone(),
            Shape::Array(held) => {
                let element = self.shape(&held.element, depth, questions)?;
                Shape::Array(Hold::new(Array { element, len: held.len }))
            }
            Shape::Reference(held) if !held.id.is_empty() => {
                let name = self.name(&held.id, &held.name, questions);
                Shape::Reference(Hold::new(Referent { name, id: held.id.clone() }))
            }
            plain => plain.clone(),
        })
    }

    /// A type with a name: as it was made before, as a cell if it is being made, or made now. One without an
    /// id is made each time, since nothing tells it from others.
    fn once<T: Named>(
        &mut self,
        key: Key,
        make: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<Shape, Failure> {
        if key.1.is_empty() {
            return make(self).map(|made| T::shape(Hold::new(made)));
        }
        if let Some(made) = self.made.get(&key) {
            return Ok(made.clone());
        }
        if let Some(open) = self.open.get_mut(&key).and_then(|open| open.downcast_mut::<Cell<T>>()) {
            let cell = match *open {
                Some(cell) => cell,
                None => self.account.cell(self.code, key)?,
            };
            *open = Some(cell);
            return Ok(T::shape(Hold::Later(cell)));
        }
        self.open.insert(key.clone(), Box::new(None as Cell<T>));
        let made = make(self);
        let cell =
            self.open.remove(&key).and_then(|open| open.downcast::<Cell<T>>().ok()).and_then(|open| *open);
        let held = match (made, cell) {
            (Ok(made), Some(cell)) => {
                // It may be filled already: the type codes were the same.
                let _ = cell.set(made);
                Hold::Later(cell)
            }
            (Ok(made), None) => Hold::new(made),
            (Err(failure), None) => return Err(failure),
            (Err(failure), Some(_)) => {
                // Others may hold the cell, which nothing will fill.
                self.broken = Some(failure.clone());
                return Err(failure);
            }
        };
        let made = T::shape(held);
        self.made.insert(key, made.clone());
        self.definitions.push(Definition::Type(made.clone()));
        Ok(made)
    }
}

/// What stands for a type within itself; `None` as long as no part has needed it.
type Cell<T> = Option<&'static OnceLock<T>>;

/// The kinds of types that have a name and an id, so that one function serves all four.
trait Named: Sized + Send + Sync + 'static {
    /// The description as a shape of this kind.
    fn shape(held: Hold<Self>) -> Shape;
}

macro_rules! named {
    ($($kind:ident)*) => {$(
        impl Named for $kind {
            fn shape(held: Hold<Self>) -> Shape {
                Shape::$kind(held)
            }
        }
    )*};
}

named!(Struct Union Enum Alias);

/// What stands between `IDL:` and the version in a repository id: prefix, scopes and name, joined by `/`.
/// Nothing for ids of another format.
fn path(id: &str) -> Option<&str> {
    id.strip_prefix("IDL:")?.rsplit_once(':').map(|(path, _)| path)
}

/// # Errors
/// What one contract takes here is over the bound.
fn bounded(octets: usize) -> Result<(), Failure> {
    if octets <= OCTETS {
        return Ok(());
    }
    Err(Failure::over_limit(Initiator::Peer, "bytes of one contract", octets, OCTETS))
}

/// This side cannot hold such values; operations that need them are left out.
#[cold]
pub(super) fn unsupported(what: &str) -> Failure {
    Failure::unsupported(format!("{what} is not supported"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_model::Kind;
    use everywire_model::shape::Order;

    /// Types as they are after these type codes were begun.
    fn after(codes: &[&'static str]) -> Types {
        let mut types = Types::default();
        for &code in codes {
            types.begin(&TypeCode::new(Shape::Void).with_encoded(code.into()));
        }
        types
    }

    /// A struct that contains a sequence of itself, and where its cell is.
    fn tree(types: &mut Types, id: &str) -> Result<usize, Failure> {
        let key = || ("struct", id.to_owned());
        let made = types.once(key(), |types| {
            let element = types.once::<Struct>(key(), |_| Err(unsupported("it is open")))?;
            let sequence = Sequence { element, bound: None, order: Order::Free, size: None };
            let shape = Shape::Sequence(Hold::new(sequence));
            let fields = vec![Field { name: "branches".into(), shape }].into();
            Ok(Struct { name: "Tree".into(), id: key().1.into(), fields })
        })?;
        let Shape::Struct(Hold::Later(cell)) = made else { panic!("{made:?}") };
        assert_eq!(cell.get().map(|tree| tree.fields.len()), Some(1));
        Ok(std::ptr::from_ref(cell).addr())
    }

    /// What was read before counts, since a part of a known id is taken as it was told first.
    #[test]
    fn who_asks_for_the_same_type_codes_again_gets_the_same_cells() {
        let cell = |codes| tree(&mut after(codes), "IDL:Tree:1.0");
        let first = cell(&["leaf", "tree"]).unwrap();
        assert_eq!(cell(&["leaf", "tree"]).unwrap(), first);
        for others in [&["tree"][..], &["wrong leaf", "tree"], &["leaf", "other tree"], &["tree", "leaf"]] {
            assert_ne!(cell(others).unwrap(), first, "{others:?}");
        }
        assert_eq!(cell(&["leaf", ""]).unwrap_err().kind(), Kind::Unsupported);
    }

    /// A type code names one type with a long name many times by indirections of eight octets.
    #[test]
    #[cfg_attr(miri, ignore = "long names, which takes an hour")]
    fn names_that_are_used_many_times_are_bounded_together() {
        let named = Referent { name: "N".repeat(64 << 10).into(), id: "IDL:N:1.0".into() };
        let field = |at: usize| Field {
            name: at.to_string().into(),
            shape: Shape::Reference(Hold::new(named.clone())),
        };
        let fields = |count: usize| (0..count).map(field).collect::<Vec<_>>();
        let told =
            |count| Struct { name: "Bag".into(), id: "IDL:Bag:1.0".into(), fields: fields(count).into() };
        let told = |count| TypeCode::new(Shape::Struct(Hold::new(told(count))));
        Types::default().of(&told(100), &mut Questions::nobody()).unwrap();
        let failure = Types::default().of(&told(2000), &mut Questions::nobody()).unwrap_err();
        assert_eq!(failure.kind(), Kind::LimitExceeded);
    }

    /// One repository must not use up what is for all.
    #[test]
    #[cfg_attr(miri, ignore = "many cells, which takes minutes")]
    fn one_contract_has_a_bounded_number_of_cells() {
        let mut types = after(&["a forest"]);
        for index in 0..super::super::cells::CELLS_OF_ONE {
            tree(&mut types, &format!("IDL:Tree{index}:1.0")).unwrap();
        }
        assert_eq!(tree(&mut types, "IDL:Last:1.0").unwrap_err().kind(), Kind::LimitExceeded);
        tree(&mut after(&["another forest"]), "IDL:Last:1.0").unwrap();
    }
}
