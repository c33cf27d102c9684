//! The dialect of Samba's compiler, pidl: what differs from MIDL.
//!
//! Numbers have other names, and a `bitmap` is a number whose flags have names. Some attributes, and types such as `string` and
//! `DATA_BLOB`, say bytes that NDR has not, or that code of Samba writes: what needs them is left out with a note that names the
//! attribute and its line. Such names mean that only in a file that has words of pidl.

use super::super::ast::{Attribute, Item, ItemKind, Member, Members, TypeKind, TypeSpec, has};
use super::super::known;
use super::{Builder, Ty, Typed};
use everywire_model::contract::Constant;
use everywire_model::shape::Name;
use everywire_model::{Definition, Shape, Value};
use std::rc::Rc;

/// Attributes that other compilers have not.
const WORDS: &[&str] =
    &["charset", "flag", "gensize", "helper", "nopull", "nopush", "noprint", "pyhelper", "subcontext"];

/// Attributes after which other bytes travel than NDR has.
const BYTES: &[&str] = &[
    "align",
    "compression",
    "flag",
    IGNORE,
    "nodiscriminant",
    "noheader",
    "nopull",
    "nopush",
    "null_is_ffffffff",
    "obfuscation",
    "relative",
    "relative_base",
    "relative_short",
    "skip",
    "skip_noinit",
    "subcontext",
];

/// The one of them that MIDL has as well.
const IGNORE: &str = "ignore";

/// Flags that only change what a program prints.
const PRINTED: &[&str] = &["flag(LIBNDR_PRINT_ARRAY_HEX)", "flag(NDR_PAHEX)", "flag(NDR_SECRET)"];

/// Types of pidl that are numbers.
const NUMBERS: &[(&str, Shape)] = &[
    ("NTTIME_1sec", Shape::U64),
    ("NTTIME_hyper", Shape::U64),
    ("WERROR", Shape::U32),
    ("boolean16", Shape::U16),
    ("boolean32", Shape::U32),
    ("boolean8", Shape::Bool),
    ("int16", Shape::I16),
    ("int32", Shape::I32),
    ("int3264", Shape::I32),
    ("int64", Shape::I64),
    ("int8", Shape::I8),
    ("uint", Shape::U32),
    ("uint16", Shape::U16),
    ("uint16_t", Shape::U16),
    ("uint32", Shape::U32),
    ("uint3264", Shape::U32),
    ("uint32_t", Shape::U32),
    ("uint64", Shape::U64),
    ("uint64_t", Shape::U64),
    ("uint8", Shape::U8),
    ("uint8_t", Shape::U8),
];

/// Types whose bytes code of Samba writes.
const WRITTEN: &[&str] = &[
    "DATA_BLOB",
    "astring",
    "astring_array",
    "dnsp_name",
    "dnsp_string",
    "dns_string",
    "dom_sid0",
    "dom_sid2",
    "dom_sid28",
    "gid_t",
    "ipv4address",
    "ipv6address",
    "libndr_flags",
    "nbt_string",
    "nstring",
    "nstring_array",
    "pointer",
    "string",
    "string_array",
    "timespec",
    "timeval",
    "u16string",
    "udlongr",
    "uid_t",
    "utf8string",
];

/// Whether definitions are written in the dialect: one word of it anywhere tells.
pub(super) fn is_pidl(items: &[Item]) -> bool {
    items.iter().any(|item| {
        says(&item.attributes)
            || match &item.kind {
                ItemKind::Interface(interface) => {
                    is_pidl(&interface.items)
                        || interface.methods.iter().any(|method| {
                            is_pidl_type(&method.returns)
                                || method.parameters.as_deref().is_some_and(are_pidl)
                        })
                }
                ItemKind::Library(items) => is_pidl(items),
                ItemKind::Typedef(spec, _) | ItemKind::Type(spec) => is_pidl_type(spec),
                _ => false,
            }
    })
}

/// Whether one of these attributes is of pidl alone.
fn says(attributes: &[Attribute]) -> bool {
    attributes
        .iter()
        .map(|attribute| attribute.name.as_str())
        .any(|name| WORDS.contains(&name) || name != IGNORE && BYTES.contains(&name))
}

/// The same for a type and all inside of it, which the parser has bounded (`limits::NESTING`).
fn is_pidl_type(spec: &TypeSpec) -> bool {
    match &spec.kind {
        TypeKind::Bitmap(_) => true,
        TypeKind::Struct(record) => record.members.as_deref().is_some_and(are_pidl),
        TypeKind::Union(union) => {
            let members = union.arms.iter().flatten().filter_map(|arm| arm.member.as_ref());
            members.into_iter().any(|member| are_pidl(std::slice::from_ref(member)))
        }
        TypeKind::SafeArray(element, _) => is_pidl_type(element),
        _ => false,
    }
}

/// The same for fields or parameters. Names that are declared together share what is looked at, which is looked at once.
fn are_pidl(members: &[Member]) -> bool {
    let mut before: Option<&Rc<TypeSpec>> = None;
    members.iter().any(|member| {
        let is_shared = before.is_some_and(|spec| Rc::ptr_eq(spec, &member.spec));
        before = Some(&member.spec);
        !is_shared && (says(&member.attributes) || is_pidl_type(&member.spec))
    })
}

impl Builder<'_> {
    /// A type that pidl knows without a definition.
    pub(super) fn of_pidl(&self, name: &str) -> Option<Ty> {
        if let Some((_, shape)) = NUMBERS.iter().find(|(known, _)| *known == name) {
            return Some(Ty::Value(Typed::leaf(shape.clone())));
        }
        match name {
            // 64 bits at an address that 4 divides: two numbers, the low one first.
            "NTTIME" | "dlong" | "udlong" if self.is_pidl => known::ty("FILETIME"),
            "time_t" if self.is_pidl => Some(Ty::Value(Typed::leaf(Shape::U32))),
            _ if self.is_pidl && WRITTEN.contains(&name) => {
                Some(Ty::Stays(Rc::from(format!("code of Samba writes `{name}`"))))
            }
            _ => None,
        }
    }

    /// Why what has these attributes travels otherwise than NDR says.
    pub(super) fn other_bytes(&self, attributes: &[Attribute]) -> Option<String> {
        let changes = |attribute: &&Attribute| {
            let is_other = self.is_pidl && BYTES.contains(&attribute.name.as_str());
            is_other && !PRINTED.contains(&self.report.text_of(attribute.span))
                || attribute.calls && attribute.name.ends_with("_is")
        };
        let attribute = attributes.iter().find(changes)?;
        let line = self.report.line_of(attribute.span) + 1;
        Some(format!(
            "`{}` in line {line} stands for bytes that NDR has not",
            self.report.text_of(attribute.span)
        ))
    }

    /// Names of flags, which are constants, and the number that has them.
    pub(super) fn bitmap(&mut self, members: &Members, attributes: &[Attribute]) -> Option<Ty> {
        let widths = [("8bit", Shape::U8), ("16bit", Shape::U16), ("64bit", Shape::U64)];
        let is_said = |width: &str| {
            attributes
                .iter()
                .any(|attribute| attribute.name.strip_prefix("bitmap").is_some_and(|said| said == width))
                || has(attributes, &format!("enum{width}"))
        };
        let shape =
            widths.into_iter().find(|(width, _)| is_said(width)).map_or(Shape::U32, |(_, shape)| shape);
        let most = (1i128 << (8 * shape.width().unwrap_or(4))) - 1;
        let mut next = 0;
        for (ident, value) in members.members.iter().flatten() {
            let value = match value {
                Some(expr) => self.integer(expr)?,
                None => next,
            };
            next = value + 1;
            if !(0..=most).contains(&value) {
                self.problem(ident.span, &format!("{value} has more bits than its type"));
                return None;
            }
            if self.declare(&ident.name, ident.span) {
                self.constants.insert(ident.name.clone(), value);
                let (name, doc) = (Name::from(ident.name.clone()), Name::default());
                let (shape, value) = (shape.clone(), Value::Integer(value));
                self.definitions.push(Definition::Constant(Constant { name, shape, value, doc }));
            }
        }
        Some(Ty::Value(Typed::leaf(shape)))
    }
}
