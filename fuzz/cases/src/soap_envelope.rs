//! SOAP envelopes of enemies: channels of every dialect and both sides, reliable or not, with calls, answers and time in
//! between. Calls that come are answered; bodies read at the shape of their operation or are refused.

use bytes::Bytes;
use everywire_model::visit::Nothing;
use everywire_model::{
    Answer, Call, Config, Event, Expects, Failure, Initiator, Interface, Kind, Method, Operation, Profile,
    SendBuffer, Shape, Signal, SignalFilter, Value,
};
use everywire_wcf::settings::{Binding, Settings};
use everywire_wcf::soap::{Dialect, Side, SoapChannel};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Gives the octets to this case.
pub fn soap_envelope(data: &[u8]) {
    let [choice, rest @ ..] = data else { return };
    let mut rest = rest;
    let (dialect, binding) = match choice & 3 {
        0 => (Dialect::NET_TCP, Binding::NetTcp),
        1 => (Dialect::BINARY, Binding::BinaryHttp),
        2 => (Dialect::WS, Binding::Ws),
        _ => (Dialect::BASIC, Binding::Basic),
    };
    let side = if choice & 4 == 0 { Side::Server } else { Side::Client };
    let mut settings = Settings::new(binding);
    settings.authority = "h".into();
    settings.reliable = choice & 8 != 0;
    settings.callback = (choice & 16 != 0).then(|| Bytes::from_static(b"k"));
    let settings = Arc::new(settings);
    let key = Bytes::from_static(b"k");
    let operation = Operation::new("Op", vec![], Shape::Void);
    let interface = Interface {
        name: "I".into(),
        id: "{urn:i}I".into(),
        operations: vec![operation.clone()].into(),
        signals: vec![Signal::new("Told", vec![])].into(),
        ..Interface::default()
    };
    let profile = Profile { key: key.clone(), ..Profile::default() };
    let mut exchange = SoapChannel::new(dialect, &Config::default(), &settings, side);
    exchange.opened(key.clone());
    if choice & 32 != 0 {
        exchange.subscribe(&profile, SignalFilter { interface: Some(&interface), signal: None });
    }
    let mut now = Instant::now();
    let failure = Failure::new(Kind::Internal, Initiator::Here, "fuzz");
    let mut out = SendBuffer::new();
    while let [step, low, high, more @ ..] = rest {
        let len = (usize::from(*low) | usize::from(*high) << 8).min(more.len());
        let (message, after) = more.split_at(len);
        rest = after;
        if step & 1 != 0 {
            let expects = if step & 2 == 0 { Expects::Reply } else { Expects::Nothing };
            let call = Call {
                profile: &profile,
                method: Method::Typed { interface: Some(&interface), operation: &operation },
                arguments: &Nothing,
                expects,
            };
            drop(exchange.start(now, &call, &mut out));
        }
        let action = (step & 4 != 0).then_some("urn:i/I/Op");
        if exchange.receive(now, Bytes::copy_from_slice(message), action, &key).is_err() {
            break;
        }
        while let Some(event) = exchange.poll() {
            let Event::Call(call) = event else { continue };
            assert!(call.body.base <= call.body.bytes.len());
            drop(call.body.read(|source| Value::decode(&operation.arguments, source)));
            drop(match step & 24 {
                0 => exchange.answer(call.id, Answer::Failed(&failure), &mut out),
                8 => exchange.answer(call.id, Answer::Done(&Nothing), &mut out),
                _ => continue,
            });
        }
        for _ in 0..64 {
            if exchange.flush(now, &mut out).is_none() {
                break;
            }
        }
        out.consume(out.len());
        if step & 32 != 0 {
            now += Duration::from_millis(700);
            if exchange.expire(now).is_err() {
                break;
            }
        }
    }
    exchange.disconnected(&failure);
    while exchange.poll().is_some() {}
    assert_eq!(exchange.outstanding(), 0);
}
