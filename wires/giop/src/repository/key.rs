//! Keys of the repository's objects: `InterfaceRepository` is the repository, `InterfaceRepository/KIND/ID` a definition, by the name
//! of its interface in module CORBA and its repository id. A type without an id has that of the definition which uses it, `#` and a number.

use crate::contracts::corba::DefinitionKind as Of;
use crate::contracts::corba::describe;
use bytes::Bytes;
use everywire_model::Interface;

/// The key of the repository. `corbaloc:...` of it is how clients that want a repository find one.
pub(crate) const ROOT: &[u8] = b"InterfaceRepository";

/// A kind of definition.
pub(crate) struct Definition {
    /// Its number.
    pub(crate) kind: Of,
    /// Its word in keys.
    word: &'static str,
    /// What its objects answer.
    pub(crate) interface: &'static Interface,
    /// The repository id that is published: the one that every client of a repository knows.
    pub(crate) type_id: &'static str,
}

macro_rules! definitions {
    ($($kind:ident $word:literal $interface:ident;)*) => {
        &[$(Definition {
            kind: Of::$kind,
            word: $word,
            interface: &describe::$interface,
            type_id: concat!("IDL:omg.org/CORBA/", $word, ":1.0"),
        }),*]
    };
}

/// All kinds that there are here. The first is the repository itself: `definition` and `parse` rely on that.
/// Each kind has a servant that stands by for all nodes.
pub(crate) const DEFINITIONS: &[Definition] = definitions! {
    DkRepository "Repository" REPOSITORY;
    DkModule "ModuleDef" MODULE_DEF;
    DkInterface "InterfaceDef" EXT_INTERFACE_DEF;
    DkOperation "OperationDef" OPERATION_DEF;
    DkAttribute "AttributeDef" EXT_ATTRIBUTE_DEF;
    DkConstant "ConstantDef" CONSTANT_DEF;
    DkException "ExceptionDef" EXCEPTION_DEF;
    DkStruct "StructDef" STRUCT_DEF;
    DkUnion "UnionDef" UNION_DEF;
    DkEnum "EnumDef" ENUM_DEF;
    DkAlias "AliasDef" ALIAS_DEF;
    DkPrimitive "PrimitiveDef" PRIMITIVE_DEF;
    DkString "StringDef" STRING_DEF;
    DkWstring "WstringDef" WSTRING_DEF;
    DkFixed "FixedDef" FIXED_DEF;
    DkSequence "SequenceDef" SEQUENCE_DEF;
    DkArray "ArrayDef" ARRAY_DEF;
};

/// The kind with this number. One that is not here gives that of the repository.
pub(crate) fn definition(kind: Of) -> &'static Definition {
    DEFINITIONS.iter().find(|definition| definition.kind == kind).unwrap_or(&DEFINITIONS[0])
}

/// The key of a definition. The repository's key has no id.
pub(crate) fn of(kind: Of, id: &str) -> Bytes {
    if kind == Of::DkRepository {
        return Bytes::from_static(ROOT);
    }
    let word = definition(kind).word;
    [ROOT, b"/", word.as_bytes(), b"/", id.as_bytes()].concat().into()
}

/// The kind and the id that a key says; nothing if it is not one of the repository's. The id may contain any
/// character, `/` too.
pub(crate) fn parse(key: &[u8]) -> Option<(&'static Definition, &str)> {
    let rest = key.strip_prefix(ROOT)?;
    if rest.is_empty() {
        return Some((&DEFINITIONS[0], ""));
    }
    let (word, id) = std::str::from_utf8(rest.strip_prefix(b"/")?).ok()?.split_once('/')?;
    let found = DEFINITIONS.iter().skip(1).find(|definition| definition.word == word)?;
    Some((found, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_read_back() {
        for (kind, id) in [(Of::DkInterface, "IDL:a/B:1.0"), (Of::DkSequence, "IDL:a/B/c:1.0#3")] {
            let key = of(kind, id);
            let (definition, back) = parse(&key).unwrap();
            assert_eq!((definition.kind, back), (kind, id));
        }
        assert_eq!(
            parse(&of(Of::DkRepository, "x")).map(|(found, id)| (found.kind, id)),
            Some((Of::DkRepository, ""))
        );
        for other in [
            "",
            "InterfaceRepositoryX",
            "InterfaceRepository/",
            "InterfaceRepository/Repository/x",
            "InterfaceRepository/Odd/x",
        ] {
            assert!(parse(other.as_bytes()).is_none(), "{other}");
        }
    }
}
