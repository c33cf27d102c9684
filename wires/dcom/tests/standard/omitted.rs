//! Arguments that a caller by name leaves out.

use super::{BSTR, WAIT, code, house, invoke, variant};
use everywire_dcom::hresult;
use everywire_model::describe::{self, Hold, InterfaceKind, Operation, Shape, interface, of_kind, operation};
use everywire_model::shape::Alias;
use everywire_model::value::Value;
use everywire_model::*;
use std::borrow::Cow;
use std::sync::Arc;

static KETTLE: Interface = of_kind(
    interface!("IKettle", "7a1e0b1c-0c55-4d0e-9b6e-3f6d7c1b0006", [], 0, &KETTLE_OPERATIONS),
    InterfaceKind::Dual,
);
/// As the reader of MIDL keeps `[defaultvalue(90)]` and `[optional, defaultvalue("tea")]`.
static KETTLE_NOTES: [(Cow<'static, str>, Cow<'static, str>); 3] = [
    (Cow::Borrowed("defaultvalue:degrees"), Cow::Borrowed("90")),
    (Cow::Borrowed("optional:what"), Cow::Borrowed("")),
    (Cow::Borrowed("defaultvalue:what"), Cow::Borrowed("\"tea\"")),
];
static KETTLE_OPERATIONS: [Operation; 1] = [describe::noted(
    operation!("Boil", (in "cups": Shape::I16, in "degrees": Shape::F32, in "what": BSTR) -> BSTR),
    &KETTLE_NOTES,
)];

/// Tells what it is given.
struct Kettle;

impl Servant for Kettle {
    fn interface(&self) -> &Interface {
        &KETTLE
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| {
            let (cups, degrees, what) = request.arguments::<(i16, f32, String)>()?;
            request.reply::<_, Failure>(Ok((format!("{cups} {degrees} {what}"),)))
        });
    }
}

#[test]
fn an_argument_that_is_left_out_is_what_the_contract_says() {
    let house = house();
    house.server.export_servant("kettle", Arc::new(Kettle));
    let kettle = house.client.object(&format!("{}/kettle?level=none", house.place)).unwrap();
    let kettle = kettle.with_deadline(Some(WAIT));
    let (two, text) = (variant(Shape::I32, Value::Integer(2)), variant(BSTR, Value::Text("mate".into())));
    // Left out in the middle: VT_ERROR with DISP_E_PARAMNOTFOUND.
    let scode = Alias { name: "SCODE".into(), id: "".into(), target: Shape::I32 };
    let missing = Value::Integer(hresult::DISP_E_PARAMNOTFOUND.cast_signed().into());
    let missing = variant(Shape::Alias(Hold::new(scode)), missing);
    for (given, expected) in
        [(vec![two.clone()], "2 90 tea"), (vec![two, missing.clone(), text], "2 90 mate")]
    {
        assert_eq!(invoke(&kettle, "boil", &given).unwrap(), Value::Text(expected.into()));
    }
    let few = invoke(&kettle, "boil", &[missing]).unwrap_err();
    assert_eq!(code(&few), hresult::DISP_E_PARAMNOTOPTIONAL);
}
