//! Members of XmlSerializer contracts: attributes, texts beside them, flat lists, choices. Documents of both forms are read; what
//! was read and written once reads the same ever after, in both forms.

use everywire_model::body::Attachments;
use everywire_model::{Body, Budget, Bytes, Context, SendBuffer, Shape, Sink, Value};
use everywire_wcf::dictionary::Outgoing;
use everywire_wcf::plan::Plan;
use everywire_wcf::values::{BINARY, BodyContext, Form, ReaderQuotas, TEXT, XML, write_body};
use std::sync::{Arc, LazyLock};

const ORDERS: &str = include_str!("../../../wires/wcf/tests/contracts/orders.wsdl");

static SEND: LazyLock<(Arc<Plan>, Shape)> = LazyLock::new(|| {
    let contract = everywire_idl::wsdl::parse(ORDERS, "orders.wsdl").expect("a contract");
    let interface = contract.interfaces().next().expect("an interface");
    let operation = &interface.operations[0];
    (Plan::of(Some(interface), operation), operation.arguments.clone())
});

fn read(form: Form, bytes: &[u8], quotas: ReaderQuotas) -> Option<Value> {
    let reading = BodyContext { quotas, ..BodyContext::default() };
    let body = Body {
        bytes: Bytes::copy_from_slice(bytes),
        base: 0,
        little: true,
        dialect: if form == Form::Binary { BINARY } else { TEXT },
        context: Context::default(),
        budget: Budget::for_message(bytes.len() as u64),
        codec: &XML,
        beside: Some(Arc::new(Attachments { wire_state: Some(Arc::new(reading)), ..Attachments::default() })),
    };
    body.read(|source| Value::decode(&SEND.1, source)).ok()
}

fn written(form: Form, value: &Value) -> Option<Vec<u8>> {
    let mut out = SendBuffer::new();
    let encode = |sink: &mut dyn Sink| value.encode(&SEND.1, sink);
    write_body(form, &SEND.0.arguments, &mut Outgoing::statics(), &encode, &mut out).ok()?;
    Some(out.to_vec())
}

/// Gives the octets to this case.
pub fn wcf_members(data: &[u8]) {
    let [choice, document @ ..] = data else { return };
    let form = if choice & 1 == 0 { Form::Binary } else { Form::Text };
    let quotas = if choice & 2 == 0 { ReaderQuotas::default() } else { ReaderQuotas::CLASSIC };
    let Some(value) = read(form, document, quotas) else { return };
    // Decimals and dates may be spelled in another way once they were records.
    let Some(settled) = written(Form::Binary, &value).and_then(|bytes| read(Form::Binary, &bytes, quotas))
    else {
        return;
    };
    for form in [Form::Text, Form::Binary] {
        let bytes = written(form, &settled).expect("what was written is written again");
        if bytes.len() > 1 << 15 {
            continue;
        }
        let back = read(form, &bytes, ReaderQuotas::default());
        assert_eq!(back.as_ref(), Some(&settled), "{}", String::from_utf8_lossy(&bytes));
    }
}
