//! What each route carries, and what it loses, before anything runs: `everywire broker FILE --check`.
//!
//! For each route and listener the operations of the interface are tried on both wires: what the wires'
//! capabilities say (oneways, exceptions, out parameters, signals), and whether values of each type can be
//! written. For the latter a value of each shape is made up and given to the wire's codec, in memory.
//!
//! States: none; a report is made and shown. Invariants: nothing connects and nothing listens, and at most the
//! name of the administrator's host is looked up; and an operation that is said to cross whole has values of
//! each of its types that both wires can write.
//!
//! What is not seen here: values that one wire has and the other not (a text with NUL, a number out of
//! range), limits of size, and what a target does. Those are failures of single calls.

use crate::admin;
use crate::anything;
use crate::config::{Config, CopyTo, Mistakes, Mode, WithPosition};
use crate::cross;
use crate::plan::{Plan, RoutePlan, TargetPlan, referents};
use crate::route::shown;
use crate::unreached::CatchAllRoutes;
use everywire::Bytes;
use everywire::layer::Pattern;
use everywire_model::{
    Capabilities, Codec, Failure, Initiator, Interface, Kind, Operation, Shape, Sink, Visit, Wire,
};
use std::fmt;

/// What becomes of one operation, or signal, of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fidelity {
    /// It crosses whole.
    Whole,
    /// It crosses, and loses something: each in one sentence.
    Loses(Vec<String>),
    /// It does not cross: why, in one sentence.
    Never(String),
}

/// What one route carries from one of its listeners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The route.
    pub route: String,
    /// The listener.
    pub listener: String,
    /// The wires: of the callers, and of the targets.
    pub wires: (&'static str, &'static str),
    /// The interface.
    pub interface: String,
    /// The key that callers name.
    pub key: String,
    /// Operations by name.
    pub operations: Vec<(String, Fidelity)>,
    /// Names of operations that are attempted again where they may have run: the route retries, and the contract or the route says that
    /// they may run twice.
    pub twice: Vec<String>,
    /// Signals by name.
    pub signals: Vec<(String, Fidelity)>,
    /// What targets call back with an answer, over the connection that a caller has made, by name.
    pub callbacks: Vec<(String, Fidelity)>,
    /// What holds for all calls of it, each in one sentence.
    pub notes: Vec<String>,
}

/// Looks at a configuration without running it.
///
/// # Errors
/// All that is wrong with it, each with its place.
pub fn check(config: Config) -> Result<Vec<Report>, Mistakes> {
    let node = everywire::Node::new();
    // Whatever else is wrong: whoever mends a file wants to know all of it.
    let mut mistakes = Mistakes::default();
    if let Some(admin) = &config.admin
        && let Err(why) = admin::check(admin)
    {
        mistakes.add(&config.file, admin.address.spot, why, None);
    }
    folders(&config, &mut mistakes);
    let plan = match Plan::of(config, &node) {
        Ok(plan) => mistakes.or(plan)?,
        Err(found) => {
            mistakes.0.extend(found.0);
            return mistakes.or(Vec::new());
        }
    };
    let mut reports = Vec::new();
    let takers = CatchAllRoutes::of(&plan);
    for (number, route) in plan.routes.iter().enumerate() {
        for at in &route.listens {
            if let (Some(listen), Some(wire)) = (plan.config.listens.get(*at), plan.wires.get(*at)) {
                let back = plan.calls_back.get(*at).copied().unwrap_or_default();
                let mut report = report(route, &listen.name, *wire, back);
                if wire.makes_objects() && gives_own(&plan, &route.key, *at) {
                    let note = "each caller that asks for the object has one of its own at the target, which ends with its caller";
                    report.notes.push(note.into());
                }
                if let Some(first) = takers.before(number, *at) {
                    let note = format!(
                        "no call comes here: the route `{first}` stands before it and takes them all"
                    );
                    report.notes.insert(0, note);
                }
                reports.push(report);
            }
        }
    }
    Ok(reports)
}

/// Whether each caller of an object at a listener has one of its own: all routes of the object give such ones.
fn gives_own(plan: &Plan, key: &Bytes, listen: usize) -> bool {
    plan.routes
        .iter()
        .filter(|route| route.key == *key && route.listens.contains(&listen))
        .all(RoutePlan::gives_own)
}

/// Looks whether files of copies have a folder to be in. A broker that runs would try again and again, and copy nothing meanwhile.
fn folders(config: &Config, mistakes: &mut Mistakes) {
    for copy in config.routes.iter().flat_map(|route| &route.copies) {
        let (CopyTo::Lines(path) | CopyTo::Capture(path)) = &copy.to else { continue };
        if let Some(folder) =
            path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
        {
            let message = format!("there is no folder `{}` for the copies", folder.display());
            mistakes.add(&config.file, copy.spot, message, Some("make it, or name another place".into()));
        }
    }
}

/// What one route carries from one listener. On one wire, and where callers are sent to the target, nothing
/// is translated: then only what the wire itself cannot do is told.
fn report(route: &RoutePlan, listener: &str, near: &'static dyn Wire, back: bool) -> Report {
    let far = route.targets.first().map_or(near, |target| target.wire);
    let interface: &Interface = &route.interface;
    let whole = near.name() == far.name() || *route.config.mode == Mode::Redirect;
    let asked = |operation: &&Operation| {
        let pattern = route.config.matches.operation.as_ref();
        pattern.is_none_or(|pattern| pattern.fits(&operation.label) || pattern.fits(&operation.name))
    };
    let operations = interface.operations.iter().filter(asked).map(|operation| {
        let crossing = if whole { fits(operation, near) } else { crossing(operation, near, far) };
        let lost = unknown(route, operation).or_else(|| lost(route, operation, far));
        let crossing = match (crossing, lost) {
            (Fidelity::Never(why), _) | (_, Some(why)) => Fidelity::Never(why),
            (crossing, None) => partly(route, operation, crossing, (near, far)),
        };
        (operation.label.to_string(), crossing)
    });
    let twice = interface.operations.iter().enumerate().filter(|(index, operation)| {
        let named =
            |pattern: &WithPosition<Pattern>| pattern.fits(&operation.label) || pattern.fits(&operation.name);
        let twice = interface.is_idempotent(*index) || route.config.idempotent.iter().any(named);
        twice && !operation.oneway && route.config.retries > 0 && asked(operation)
    });
    let signals = interface.signals.iter().map(|signal| {
        let lacks = [near, far].into_iter().find(|wire| !wire.capabilities().signals);
        let crossing = match lacks {
            Some(wire) => Fidelity::Never(format!("{} carries no signals", wire.name())),
            None => [near, far]
                .into_iter()
                .find_map(|wire| unfit(wire, &signal.fields))
                .or_else(|| deaf(route, near, back))
                .map_or(Fidelity::Whole, Fidelity::Never),
        };
        (signal.label.to_string(), crossing)
    });
    let callbacks = route.back.iter().flat_map(|called| called.operations.iter());
    let callbacks = callbacks.filter(|operation| !operation.oneway).map(|operation| {
        let never = unheard(route, near, back).map(Fidelity::Never);
        (operation.label.to_string(), never.unwrap_or_else(|| fits(operation, near)))
    });
    Report {
        route: route.config.name.value.clone(),
        listener: listener.to_owned(),
        wires: (near.name(), far.name()),
        interface: interface.name.to_string(),
        key: everywire_model::reference::escape(&route.key),
        operations: operations.collect(),
        twice: twice.map(|(_, operation)| operation.label.to_string()).collect(),
        signals: signals.collect(),
        callbacks: callbacks.collect(),
        notes: notes(route, near),
    }
}

/// Why a wire on which signals are calls over the connection of whoever hears them carries none, if so: by what the addresses say.
fn deaf(route: &RoutePlan, near: &dyn Wire, back: bool) -> Option<String> {
    let own = |wire: &dyn Wire| wire.capabilities().signals_by_object;
    if own(near) && !back {
        return Some(format!("{} calls nobody back at the listener's address", near.name()));
    }
    let mut targets = route.targets.iter().filter(|target| own(target.wire));
    let lacks = targets.any(|target| target.called_back(&Bytes::new()).is_none());
    lacks.then(|| {
        format!(
            "{} calls nobody back at the targets' address",
            route.targets.first().map_or("", |target| target.wire.name())
        )
    })
}

/// Why what targets ask their callers, over the connections of those, does not reach the callers of this listener.
fn unheard(route: &RoutePlan, near: &dyn Wire, back: bool) -> Option<String> {
    if *route.config.mode == Mode::Redirect || (route.calls_back && back) {
        return None;
    }
    let far = route.targets.first().map_or(near, |target| target.wire);
    let lacks = [near, far].into_iter().find(|wire| !wire.capabilities().signals_by_object);
    let over = |wire: &dyn Wire| format!("{} calls nobody back over the caller's connection", wire.name());
    lacks.map(over).or_else(|| deaf(route, near, back))
}

/// What holds for all calls of a route from one listener, beside its operations.
fn notes(route: &RoutePlan, near: &dyn Wire) -> Vec<String> {
    if *route.config.mode == Mode::Redirect {
        return vec![
            "callers learn where the target is, and call it there: no call passes the broker".into(),
        ];
    }
    if !route.is_opaque() {
        // With a contract a target is one object. An empty key is one on some wires, and mostly it was forgotten.
        let unnamed = |target: &&TargetPlan| {
            let nothing = target.reference.profiles.iter().any(|way| way.key.is_empty());
            nothing && !target.wire.makes_objects()
        };
        let told = |target: &TargetPlan| {
            format!(
                "the target `{}` names no object: calls go to the one without a name",
                shown(&target.text)
            )
        };
        return route.targets.iter().find(unnamed).map(told).into_iter().collect();
    }
    // Nobody reads the bodies.
    let past = cross::has_references(near);
    let told = || "references in bodies lead past the broker, to the addresses that are in them".into();
    past.then(told).into_iter().collect()
}

/// References to what nobody knows: which calls such an object takes is said nowhere.
fn unknown(route: &RoutePlan, operation: &Operation) -> Option<String> {
    if *route.config.mode == Mode::Redirect {
        return None;
    }
    let passed = [&operation.arguments, &operation.results].into_iter().flat_map(referents);
    let (name, _) = passed.into_iter().find(|(_, id)| !route.passes(id))?;
    Some(format!("it passes references to {name}, which the contract does not define"))
}

/// References that callers pass would lead back to a listener of the targets' wire, and there is none.
fn lost(route: &RoutePlan, operation: &Operation, far: &dyn Wire) -> Option<String> {
    let passes = referents(&operation.arguments);
    let (name, _) =
        passes.first().filter(|_| route.callbacks.is_none() && *route.config.mode == Mode::Forward)?;
    let there = far.name();
    Some(format!(
        "it passes a {name}, which the target calls on {there}; add a listener of {there} that the target reaches"
    ))
}

/// References that promise no interface of the contract cross as far as they say themselves which one their object has, or as far as whoever
/// gets them can ask it.
fn partly(
    route: &RoutePlan,
    operation: &Operation,
    crossing: Fidelity,
    (near, far): (&dyn Wire, &dyn Wire),
) -> Fidelity {
    if *route.config.mode == Mode::Redirect {
        return crossing;
    }
    let any = |shape: &Shape| referents(shape).into_iter().find(|(_, id)| route.is_any(id));
    let sides = [(&operation.arguments, far), (&operation.results, near)];
    let mut passed = sides.into_iter().filter_map(|(shape, to)| Some((any(shape)?.0, to)));
    let Some((name, to)) = passed.next() else { return crossing };
    let told = if passed.all(|(_, to)| to.makes_objects()) && to.makes_objects() {
        format!(
            "a {name} is refused if it says that its object has an interface that the contract does not define"
        )
    } else {
        format!("a {name} is refused unless it says itself that its object has an interface of the contract")
    };
    match crossing {
        Fidelity::Whole => Fidelity::Loses(vec![told]),
        Fidelity::Loses(mut lost) => {
            lost.push(told);
            Fidelity::Loses(lost)
        }
        never @ Fidelity::Never(_) => never,
    }
}

/// On one wire an operation is what the wire makes of it.
fn fits(operation: &Operation, wire: &dyn Wire) -> Fidelity {
    let results = operation.results.fields();
    if results.len() > 1 && !wire.capabilities().out_parameters {
        let names: Vec<_> = results.iter().map(|field| field.name.as_ref()).collect();
        let names = names.join("`, `");
        return Fidelity::Never(format!("{} carries one result, not `{names}`", wire.name()));
    }
    let shapes = [&operation.arguments, &operation.results];
    shapes.into_iter().find_map(|shape| unfit(wire, shape)).map_or(Fidelity::Whole, Fidelity::Never)
}

/// What becomes of an operation between two wires: first whether it fits each of them, then what is lost
/// between them.
fn crossing(operation: &Operation, near: &dyn Wire, far: &dyn Wire) -> Fidelity {
    for wire in [near, far] {
        if let Fidelity::Never(why) = fits(operation, wire) {
            return Fidelity::Never(why);
        }
    }
    let mut lost = Vec::new();
    let (callers, targets): (Capabilities, Capabilities) = (near.capabilities(), far.capabilities());
    if operation.oneway && !callers.oneway {
        lost.push(format!("on {} its caller waits until the call was handed on", near.name()));
    }
    if operation.oneway && !targets.oneway {
        lost.push(format!("on {} the broker waits for an answer that nobody hears", far.name()));
    }
    if !operation.raises.is_empty() {
        let names: Vec<_> = operation.raises.iter().map(|raised| raised.name.as_ref()).collect();
        let names = names.join("`, `");
        for (wire, capabilities) in [(near, callers), (far, targets)] {
            if !capabilities.typed_exceptions {
                lost.push(format!(
                    "on {} `{names}` is a failure without fields to whoever is not ours",
                    wire.name()
                ));
            }
        }
    }
    let passed = [&operation.arguments, &operation.results].into_iter();
    let raised = operation.raises.iter().flat_map(|raised| raised.fields.iter().map(|field| &field.shape));
    let is_any = |shape: &Shape| matches!(shape, Shape::Variant);
    if passed.chain(raised).any(|shape| cross::any(shape, &mut Vec::new(), &is_any)) {
        lost.extend(anything::lost(near, far));
    }
    if lost.is_empty() { Fidelity::Whole } else { Fidelity::Loses(lost) }
}

/// Why whoever calls an operation can never be answered, if so: each result that there may be has something that one of the wires lacks.
/// Less than what a check tells, which says it of operations that may have some results and lack others.
pub(crate) fn unanswerable(operation: &Operation, near: &dyn Wire, far: &dyn Wire) -> Option<String> {
    let results = &operation.results;
    if operation.oneway {
        return None;
    }
    [near, far].into_iter().find_map(|wire| {
        if !wire.capabilities().handles && always(results, &|shape| matches!(shape, Shape::Handle)) {
            return Some(format!("{} carries no descriptors", wire.name()));
        }
        // What cannot be made up is not tried, nor is what may be something else.
        let open = |shape: &Shape| {
            use Shape::{Handle, Reference, TypeCode, Union, Variant};
            matches!(shape, Handle | Reference(_) | TypeCode | Union(_) | Variant)
        };
        if cross::any(results, &mut Vec::new(), &open) {
            return None;
        }
        let mut sample = Sample { left: PARTS, number: 0 };
        let written = wire.codec().write(&mut |sink| blank(results, sink, DEPTH, &mut sample));
        let lacks = |failure: &Failure| failure.kind() == Kind::Unsupported && sample.left > 0;
        written.err().filter(lacks).map(|failure| format!("{}: {}", wire.name(), failure.message()))
    })
}

/// Whether each value of a shape has a part that is such.
fn always(shape: &Shape, is: &dyn Fn(&Shape) -> bool) -> bool {
    match shape {
        Shape::Struct(held) => held.fields.iter().any(|field| always(&field.shape, is)),
        Shape::Array(held) => held.len > 0 && always(&held.element, is),
        Shape::Alias(held) => always(&held.target, is),
        shape => is(shape),
    }
}

/// Why values of a shape cannot be written on a wire, if so.
fn unfit(wire: &dyn Wire, shape: &Shape) -> Option<String> {
    let capabilities = wire.capabilities();
    let holds = |is: &dyn Fn(&Shape) -> bool| cross::any(shape, &mut Vec::new(), is);
    if holds(&|shape| matches!(shape, Shape::Reference(_))) && !cross::has_references(wire) {
        return Some(format!("{} carries no object references", wire.name()));
    }
    if holds(&|shape| matches!(shape, Shape::Handle)) {
        // A descriptor cannot be made up to try it.
        let lacks = !capabilities.handles;
        return lacks.then(|| format!("{} carries no descriptors", wire.name()));
    }
    // The codec decides, not a table here: it is what will write the values.
    let codec: &dyn Codec = wire.codec();
    let mut why = None;
    // Zeros; and, as a number may count the elements beside it, what does.
    for number in [0, 1] {
        let mut sample = Sample { left: PARTS, number };
        match codec.write(&mut |sink| blank(shape, sink, 0, &mut sample)) {
            Ok(_) => return None,
            // What was written until then had nothing that the wire lacks.
            Err(_) if sample.left == 0 => return None,
            Err(failure) => why = why.or_else(|| Some(format!("{}: {}", wire.name(), failure.message()))),
        }
    }
    why
}

/// How deep values are made up. From there on sequences, maps and optional values are empty, so that types
/// that contain themselves end.
const DEPTH: usize = 6;

/// The most parts of a value, and octets of an array, that are made up. A fixed array may be far larger than the contract that has it.
const PARTS: usize = 1 << 20;

/// A value that is being made up.
struct Sample {
    /// Parts that there may still be.
    left: usize,
    /// What its whole numbers are.
    number: u8,
}

/// Writes a value of a shape: one number, empty texts, one element in each sequence. It fails with nothing `left` where more parts would
/// be written than there may be.
fn blank(shape: &Shape, sink: &mut dyn Sink, depth: usize, sample: &mut Sample) -> Visit<()> {
    spend(sample, 1)?;
    let deeper = depth + 1;
    let some = usize::from(depth < DEPTH);
    // What counts elements, and they, are equally deep.
    let number = if some > 0 { sample.number } else { 0 };
    match shape {
        Shape::Void => Ok(()),
        Shape::Bool => sink.bool(false),
        Shape::U8 => sink.u8(number),
        Shape::I8 => sink.i8(0),
        Shape::U16 => sink.u16(number.into()),
        Shape::I16 => sink.i16(number.into()),
        Shape::U32 => sink.u32(number.into()),
        Shape::I32 => sink.i32(number.into()),
        Shape::U64 => sink.u64(number.into()),
        Shape::I64 => sink.i64(number.into()),
        Shape::F32 => sink.f32(0.0),
        Shape::F64 => sink.f64(0.0),
        Shape::Char => sink.char('a', false),
        Shape::WideChar => sink.char('a', true),
        Shape::Text(text) => sink.text(text, sample_text(text.kind)),
        Shape::Enum(members) => {
            sink.enumerant(members, members.members.first().map_or(0, |(_, value)| *value))
        }
        Shape::Reference(_) => sink.reference(None),
        Shape::TypeCode | Shape::Handle => Ok(()),
        Shape::Alias(alias) => blank(&alias.target, sink, depth, sample),
        Shape::Struct(held) => {
            sink.open(shape, held.fields.len())?;
            held.fields.iter().try_for_each(|field| blank(&field.shape, sink, deeper, sample))?;
            sink.close(shape)
        }
        Shape::Sequence(_) | Shape::Array(_) => {
            let len = match shape {
                Shape::Array(array) => usize::try_from(array.len).unwrap_or(usize::MAX),
                _ => some,
            };
            let element = shape.element().map_or(&Shape::Void, Shape::resolved);
            if matches!(element, Shape::U8) {
                spend(sample, len)?;
                return sink.bytes(shape, &vec![0; len]);
            }
            sink.open(shape, len)?;
            (0..len).try_for_each(|_| blank(element, sink, deeper, sample))?;
            sink.close(shape)
        }
        Shape::Map(map) => {
            sink.open(shape, some)?;
            if some > 0 {
                blank(&map.key, sink, deeper, sample)?;
                blank(&map.value, sink, deeper, sample)?;
            }
            sink.close(shape)
        }
        Shape::Optional(target) => maybe(shape, target, sink, some, depth, sample),
        Shape::Pointer(pointer) => maybe(shape, &pointer.target, sink, some, depth, sample),
        Shape::Union(union) => {
            let label = union.arms.first().and_then(|arm| arm.labels.first().copied()).unwrap_or_default();
            let arm = union.select(label);
            sink.open(shape, arm.map_or(0, |arm| arm + 1))?;
            everywire_model::pipe::put_discriminator(&union.discriminator, label, sink)?;
            if let Some(arm) = arm.and_then(|arm| union.arms.get(arm)) {
                blank(&arm.field.shape, sink, deeper, sample)?;
            }
            sink.close(shape)
        }
        Shape::Variant => {
            sink.open(shape, 1)?;
            sink.content(&Shape::I32)?;
            sink.i32(0)?;
            sink.close(shape)
        }
    }
}

/// Takes some of what is left; a failure where there is not so much, and then nothing is left.
fn spend(sample: &mut Sample, parts: usize) -> Visit<()> {
    let rest = sample.left.checked_sub(parts);
    sample.left = rest.unwrap_or_default();
    let message = "this value is too large to be made up";
    rest.map(drop).ok_or_else(|| Failure::new(Kind::LimitExceeded, Initiator::User, message))
}

/// A value that may be absent, made up as present above the depth.
fn maybe(
    shape: &Shape,
    target: &Shape,
    sink: &mut dyn Sink,
    some: usize,
    depth: usize,
    sample: &mut Sample,
) -> Visit<()> {
    sink.open(shape, some)?;
    if some > 0 {
        blank(target, sink, depth, sample)?;
    }
    sink.close(shape)
}

/// A text that every wire takes.
fn sample_text(kind: everywire_model::shape::TextKind) -> &'static str {
    use everywire_model::shape::TextKind;
    match kind {
        TextKind::Path => "/",
        TextKind::Signature => "i",
        _ => "a",
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { route, listener, wires: (near, far), interface, key, twice, .. } = self;
        writeln!(f, "route {route}: {interface} from {listener} ({near}, key {key}) to {far}")?;
        self.notes.iter().try_for_each(|note| writeln!(f, "  {note}"))?;
        let unasked = || self.signals.iter().chain(&self.callbacks);
        let width = self.operations.iter().chain(unasked()).map(|(name, _)| name.chars().count()).max();
        let width = width.unwrap_or_default();
        let all = [("", &self.operations), ("signal ", &self.signals), ("callback ", &self.callbacks)];
        for (tag, (name, crossing)) in
            all.iter().flat_map(|(tag, list)| list.iter().map(move |one| (tag, one)))
        {
            let again = if tag.is_empty() && twice.contains(name) { ", may run twice" } else { "" };
            match crossing {
                Fidelity::Whole => writeln!(f, "  {name:width$}  {tag}crosses{again}")?,
                Fidelity::Never(why) => writeln!(f, "  {name:width$}  {tag}does not cross: {why}")?,
                Fidelity::Loses(lost) => {
                    writeln!(f, "  {name:width$}  {tag}crosses{again}, but {}", lost.join("; "))?;
                }
            }
        }
        Ok(())
    }
}
