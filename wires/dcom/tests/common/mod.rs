//! Shapes of real interfaces, written by hand, and the captured stubs that they describe.

#![allow(dead_code, clippy::unwrap_used)] // each test file uses a part

use everywire_dcom::{NDR, NdrSink, NdrSource};
use everywire_model::shape::{
    Alias, Arm, Array, Enum, Field, Hold, Order, Pointer, PointerKind, Referent, Sequence, Shape, Struct,
    Text, TextKind, Union,
};
use everywire_model::value::TypedShape;
use everywire_model::{Body, Budget, Failure, Kind, Value};

pub(crate) fn fields(list: &[(&str, Shape)]) -> Vec<Field> {
    list.iter().map(|(name, shape)| Field { name: (*name).to_owned().into(), shape: shape.clone() }).collect()
}

pub(crate) fn structure(name: &str, list: &[(&str, Shape)]) -> Shape {
    let (name, id) = (name.to_owned().into(), "".into());
    Shape::Struct(Hold::new(Struct { name, id, fields: fields(list).into() }))
}

pub(crate) fn parameters(list: &[(&str, Shape)]) -> Shape {
    structure("", list)
}

pub(crate) fn pointer(kind: PointerKind, target: Shape) -> Shape {
    Shape::Pointer(Hold::new(Pointer { kind, target }))
}

pub(crate) fn unique(target: Shape) -> Shape {
    pointer(PointerKind::Unique, target)
}

pub(crate) fn array(len: u32, element: Shape) -> Shape {
    Shape::Array(Hold::new(Array { element, len }))
}

pub(crate) fn ordered(order: Order, element: Shape) -> Shape {
    Shape::Sequence(Hold::new(Sequence { element, bound: None, order, size: None }))
}

/// A sequence that the field `size` counts.
pub(crate) fn sized(order: Order, element: Shape, size: &str) -> Shape {
    let size = Some(size.to_owned().into());
    Shape::Sequence(Hold::new(Sequence { element, bound: None, order, size }))
}

pub(crate) fn alias(name: &str, target: Shape) -> Shape {
    Shape::Alias(Hold::new(Alias { name: name.to_owned().into(), id: "".into(), target }))
}

pub(crate) fn decimal() -> Shape {
    let fields = [
        ("wReserved", Shape::U16),
        ("scale", Shape::U8),
        ("sign", Shape::U8),
        ("Hi32", Shape::U32),
        ("Lo64", Shape::U64),
    ];
    alias("DECIMAL", structure("tagDEC", &fields))
}

pub(crate) fn integers(list: &[i128]) -> Value {
    Value::List(list.iter().map(|value| Value::Integer(*value)).collect())
}

pub(crate) fn record(list: &[Value]) -> Value {
    Value::Struct(list.iter().map(|value| (String::new(), value.clone())).collect())
}

pub(crate) fn variant(shape: Shape, value: Value) -> Value {
    Value::Variant(Box::new((TypedShape(shape), value)))
}

/// The value without the names of fields and arms.
pub(crate) fn unnamed(value: &Value) -> Value {
    match value {
        Value::Struct(fields) => record(&fields.iter().map(|(_, value)| unnamed(value)).collect::<Vec<_>>()),
        Value::List(items) => Value::List(items.iter().map(unnamed).collect()),
        Value::Map(pairs) => {
            Value::Map(pairs.iter().map(|(key, value)| (unnamed(key), unnamed(value))).collect())
        }
        Value::Union(label, Some(arm)) => {
            Value::Union(*label, Some(Box::new((arm.0.clone(), unnamed(&arm.1)))))
        }
        Value::Variant(content) => Value::Variant(Box::new((content.0.clone(), unnamed(&content.1)))),
        other => other.clone(),
    }
}

/// A sequence of MIDL's, whose count stands beside it.
pub(crate) fn sequence(element: Shape) -> Shape {
    ordered(Order::Conformant, element)
}

pub(crate) fn wide() -> Shape {
    Shape::Text(Text::WIDE)
}

pub(crate) fn bstr() -> Shape {
    Shape::Text(Text { kind: TextKind::Counted, bound: None })
}

pub(crate) fn enumeration(bits: u8, members: &[(&str, i32)]) -> Shape {
    let members: Vec<_> = members.iter().map(|(name, value)| ((*name).to_owned().into(), *value)).collect();
    Shape::Enum(Hold::new(Enum {
        name: "Enumeration".into(),
        id: "".into(),
        members: members.into(),
        bits,
        open: false,
    }))
}

pub(crate) fn union(discriminator: Shape, arms: &[(i64, &str, Shape)]) -> Shape {
    let arms = arms.iter().map(|(label, name, shape)| Arm {
        labels: vec![*label].into(),
        default: false,
        field: Field { name: (*name).to_owned().into(), shape: shape.clone() },
    });
    let arms: Vec<Arm> = arms.collect();
    Shape::Union(Hold::new(Union { name: "Union".into(), id: "".into(), discriminator, arms: arms.into() }))
}

pub(crate) fn guid() -> Shape {
    structure("GUID", &[("a", Shape::U32), ("b", Shape::U16), ("c", Shape::U16), ("d", array(8, Shape::U8))])
}

pub(crate) fn interface() -> Shape {
    Shape::Reference(Hold::new(Referent { name: "IUnknown".into(), id: "".into() }))
}

fn filetime() -> Shape {
    structure("FILETIME", &[("low", Shape::U32), ("high", Shape::U32)])
}

fn this() -> (&'static str, Shape) {
    let version = structure("COMVERSION", &[("major", Shape::U16), ("minor", Shape::U16)]);
    let shape = structure(
        "ORPCTHIS",
        &[
            ("version", version),
            ("flags", Shape::U32),
            ("reserved", Shape::U32),
            ("cid", guid()),
            ("extensions", unique(Shape::U32)),
        ],
    );
    ("this", shape)
}

fn that() -> (&'static str, Shape) {
    ("that", structure("ORPCTHAT", &[("flags", Shape::U32), ("extensions", unique(Shape::U32))]))
}

pub(crate) fn dispparams() -> Shape {
    structure(
        "DISPPARAMS",
        &[
            ("rgvarg", unique(sequence(Shape::Variant))),
            ("named", unique(sequence(Shape::I32))),
            ("cArgs", Shape::U32),
            ("cNamedArgs", Shape::U32),
        ],
    )
}

fn excepinfo() -> Shape {
    structure(
        "EXCEPINFO",
        &[
            ("wCode", Shape::U16),
            ("wReserved", Shape::U16),
            ("source", bstr()),
            ("description", bstr()),
            ("help", bstr()),
            ("context", Shape::U32),
            ("pvReserved", Shape::U32),
            ("deferred", Shape::U32),
            ("scode", Shape::U32),
        ],
    )
}

fn stdobjref() -> Shape {
    structure(
        "STDOBJREF",
        &[
            ("flags", Shape::U32),
            ("refs", Shape::U32),
            ("oxid", Shape::U64),
            ("oid", Shape::U64),
            ("ipid", guid()),
        ],
    )
}

/// The shape of a captured stub, by the name it has in `golden/stubs.tsv`.
pub(crate) fn shape_of(name: &str) -> Shape {
    let hresult = ("hresult", Shape::U32);
    let itemdef = structure(
        "OPCITEMDEF",
        &[
            ("szAccessPath", unique(wide())),
            ("szItemID", unique(wide())),
            ("bActive", Shape::U32),
            ("hClient", Shape::U32),
            ("dwBlobSize", Shape::U32),
            ("pBlob", unique(sequence(Shape::U8))),
            ("vt", Shape::U16),
            ("wReserved", Shape::U16),
        ],
    );
    let itemresult = structure(
        "OPCITEMRESULT",
        &[
            ("hServer", Shape::U32),
            ("vt", Shape::U16),
            ("wReserved", Shape::U16),
            ("dwAccessRights", Shape::U32),
            ("dwBlobSize", Shape::U32),
            ("pBlob", unique(sequence(Shape::U8))),
        ],
    );
    let itemstate = structure(
        "OPCITEMSTATE",
        &[
            ("hClient", Shape::U32),
            ("ftTimeStamp", filetime()),
            ("wQuality", Shape::U16),
            ("wReserved", Shape::U16),
            ("vDataValue", Shape::Variant),
        ],
    );
    let errors = || unique(sequence(Shape::U32));
    let source = enumeration(16, &[("cache", 1), ("device", 2)]);
    let remqi = structure("REMQIRESULT", &[("hResult", Shape::U32), ("std", stdobjref())]);
    let dsa = structure(
        "DUALSTRINGARRAY",
        &[
            ("wNumEntries", Shape::U16),
            ("wSecurityOffset", Shape::U16),
            ("aStringArray", sequence(Shape::U16)),
        ],
    );
    match name.trim_end_matches(|c: char| c == '.' || c.is_ascii_digit()) {
        "AddItems.request" | "AddItems.request.two" => {
            parameters(&[this(), ("dwCount", Shape::U32), ("pItemArray", sequence(itemdef))])
        }
        "AddItems.response" => parameters(&[
            that(),
            ("ppAddResults", unique(sequence(itemresult))),
            ("ppErrors", errors()),
            hresult,
        ]),
        "RemQueryInterface.request" => parameters(&[
            this(),
            ("ripid", guid()),
            ("cRefs", Shape::U32),
            ("cIids", Shape::U16),
            ("iids", sequence(guid())),
        ]),
        "RemQueryInterface.response" => {
            parameters(&[that(), ("ppQIResults", unique(sequence(remqi))), hresult])
        }
        "RemRelease.request" => {
            let reference = structure(
                "REMINTERFACEREF",
                &[("ipid", guid()), ("public", Shape::U32), ("private", Shape::U32)],
            );
            parameters(&[this(), ("cInterfaceRefs", Shape::U16), ("refs", sequence(reference))])
        }
        "SyncIO.Read.request" => parameters(&[
            this(),
            ("dwSource", source),
            ("dwCount", Shape::U32),
            ("phServer", sequence(Shape::U32)),
        ]),
        "SyncIO.Read.response.empty" | "SyncIO.Read.response.r" | "SyncIO.Read.response.junk" => {
            parameters(&[
                that(),
                ("ppItemValues", unique(sequence(itemstate))),
                ("ppErrors", errors()),
                hresult,
            ])
        }
        "OnDataChange.request" => parameters(&[
            this(),
            ("dwTransid", Shape::U32),
            ("hGroup", Shape::U32),
            ("hrMasterquality", Shape::U32),
            ("hrMastererror", Shape::U32),
            ("dwCount", Shape::U32),
            ("phClientItems", sequence(Shape::U32)),
            ("pvValues", sequence(Shape::Variant)),
            ("pwQualities", sequence(Shape::U16)),
            ("pftTimeStamps", sequence(filetime())),
            ("pErrors", sequence(Shape::U32)),
        ]),
        "Invoke.request" | "Invoke.request.noargs" => parameters(&[
            this(),
            ("dispIdMember", Shape::I32),
            ("riid", guid()),
            ("lcid", Shape::U32),
            ("dwFlags", Shape::U32),
            ("pDispParams", pointer(PointerKind::Ref, dispparams())),
            ("cVarRef", Shape::U32),
            ("rgVarRefIdx", sequence(Shape::U32)),
            ("rgVarRef", sequence(Shape::Variant)),
        ]),
        "Invoke.response.dispatch" | "Invoke.response.empty" => parameters(&[
            that(),
            ("pVarResult", Shape::Variant),
            ("pExcepInfo", excepinfo()),
            ("pArgErr", Shape::U32),
            ("rgVarRef", sequence(Shape::Variant)),
            hresult,
        ]),
        "GetTypeInfo.response" => parameters(&[that(), ("ppTInfo", interface()), hresult]),
        "ServerAlive2.response" => parameters(&[
            ("major", Shape::U16),
            ("minor", Shape::U16),
            ("bindings", unique(dsa)),
            ("reserved", Shape::U32),
            ("status", Shape::U32),
        ]),
        "AddGroup.request.utgard" => parameters(&[
            this(),
            ("szName", wide()),
            ("bActive", Shape::U32),
            ("dwRequestedUpdateRate", Shape::U32),
            ("hClientGroup", Shape::U32),
            ("pTimeBias", unique(Shape::I32)),
            ("pPercentDeadband", unique(Shape::F32)),
            ("dwLCID", Shape::U32),
            ("riid", guid()),
        ]),
        "SetState.request" => parameters(&[
            this(),
            ("pRequestedUpdateRate", unique(Shape::U32)),
            ("pActive", unique(Shape::U32)),
            ("pTimeBias", unique(Shape::I32)),
            ("pPercentDeadband", unique(Shape::F32)),
            ("pLCID", unique(Shape::U32)),
            ("phClientGroup", unique(Shape::U32)),
        ]),
        other => panic!("no shape for {other}"),
    }
}

/// The captured stubs: name and bytes.
pub(crate) fn stubs() -> Vec<(String, Vec<u8>)> {
    let rows = include_str!("../golden/stubs.tsv").lines();
    rows.map(|row| {
        let mut columns = row.split('\t');
        (columns.next().unwrap().to_owned(), unhex(columns.nth(1).unwrap()))
    })
    .collect()
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

pub(crate) fn body(bytes: &[u8], little: bool) -> Body {
    let bytes = bytes.to_vec().into();
    let budget = Budget::default();
    Body {
        bytes,
        base: 0,
        little,
        dialect: 0,
        budget,
        codec: &NDR,
        context: everywire_model::Context::default(),
        beside: None,
    }
}

/// The value, and how many bytes were not read.
pub(crate) fn decode(bytes: &[u8], little: bool, shape: &Shape) -> Result<(Value, usize), Failure> {
    let body = body(bytes, little);
    let mut source = NdrSource::new(&body);
    let value = Value::decode(shape, &mut source)?;
    Ok((value, source.rest()))
}

pub(crate) fn encode(value: &Value, little: bool, shape: &Shape) -> Vec<u8> {
    let mut sink = NdrSink::new(little);
    value.encode(shape, &mut sink).unwrap();
    sink.into_bytes().unwrap()
}

/// Cuts the stub everywhere and changes each of its bytes: nothing else than a value or a named failure may come out.
#[track_caller]
pub(crate) fn withstands(bytes: &[u8], little: bool, shape: &Shape) {
    for cut in 0..bytes.len() {
        if let Err(failure) = decode(&bytes[..cut], little, shape) {
            assert!(code(&failure).starts_with("ndr "), "cut at {cut}: {failure}");
        }
    }
    let mut bytes = bytes.to_vec();
    for at in 0..bytes.len() {
        let held = bytes[at];
        for byte in [0x00, 0x01, 0x7f, 0x80, 0xff] {
            bytes[at] = byte;
            if let Err(failure) = decode(&bytes, little, shape) {
                let kinds = [Kind::Malformed, Kind::LimitExceeded, Kind::Unsupported];
                assert!(kinds.contains(&failure.kind()), "byte {at} as {byte:02x}: {failure}");
            }
        }
        bytes[at] = held;
    }
}

pub(crate) fn code(failure: &Failure) -> &str {
    failure.code().unwrap_or_default()
}
