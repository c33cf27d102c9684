//! Layouts: what the neutral shapes do not say, made once for each operation and direction.

use super::graph::{Graph, Member, NamespaceId};
use super::names::type_name;
use super::output::Output;
use super::sink::ElementSink;
use super::{Form, QName};
use crate::dictionary::{Outgoing, Term};
use everywire_model::Rope;
use everywire_model::shape::{Shape, Struct};
use everywire_model::visit::{Encode, Visit};

/// The namespace of contracts that name none.
const TEMPURI: &str = "http://tempuri.org/";

/// What stands around the values of an operation's arguments or results, and how each is written.
#[derive(Debug)]
pub struct Layout {
    /// Namespace and name.
    pub(super) wrapper: Option<(Term, Term)>,
    pub(super) wrapper_namespace: NamespaceId,
    /// Of the contract: that of the fields' elements.
    pub(super) namespace: NamespaceId,
    pub(super) members: Vec<Member>,
    /// For each field, the namespace and name of its header, if it is one.
    pub(super) headers: Vec<Option<(Term, Term)>>,
    /// Whether the wrapper declares the namespace of `i:nil`.
    pub(super) instance: bool,
    pub(super) graph: Graph,
}

impl Layout {
    /// A layout of the fields of a nameless struct. `wrapper`: the element around them, or none (bare); `namespace`: of the
    /// contract; `result`: the element of the field `return`; `headers`: fields that are headers of the message.
    pub fn new(
        wrapper: Option<QName>,
        namespace: &str,
        fields: &Shape,
        result: &str,
        headers: &[(String, QName)],
    ) -> Self {
        let fields = fields.fields();
        let (mut graph, mut members) = Graph::of_fields(fields, namespace);
        for (member, field) in members.iter_mut().zip(fields) {
            if field.name == "return" && !result.is_empty() {
                member.name = Term::new(result);
            }
        }
        let header = |name: &str| {
            let (_, header) = headers.iter().find(|(field, _)| field == name)?;
            Some((Term::new(&header.namespace), Term::new(&header.local)))
        };
        let headers = fields.iter().map(|field| header(&field.name)).collect();
        let namespace = graph.add_namespace(namespace);
        let wrapper_namespace =
            wrapper.as_ref().map_or(namespace, |name| graph.add_namespace(&name.namespace));
        let wrapper = wrapper.map(|name| (Term::new(&name.namespace), Term::new(&name.local)));
        Self { wrapper, wrapper_namespace, namespace, members, headers, instance: false, graph }
    }

    /// A layout of fields that nobody named.
    pub(super) fn loose(fields: &Shape) -> Self {
        Self::new(Some(QName::new(TEMPURI, "Values")), TEMPURI, fields, "Result", &[])
    }

    /// A layout of a struct as an element of its own.
    fn detail(shape: &Struct) -> Self {
        let (namespace, name) = type_name(&shape.id, &shape.name);
        let fields = Shape::Struct(everywire_model::shape::Hold::new(shape.clone()));
        let name = QName::new(namespace.clone().into_owned(), name.to_owned());
        Self { instance: true, ..Self::new(Some(name), &namespace, &fields, "", &[]) }
    }
}

/// Appends a body's content: the wrapper element with everything in it. Fields that are headers are returned apart, as
/// elements ready to stand among the envelope's. Large octets become splices of `out`.
///
/// # Errors
/// Whatever the values' own encoding reports; `out` is as before then, but words may have been learned
/// ([`Outgoing::forget`]).
pub fn write_body(
    form: Form,
    layout: &Layout,
    words: &mut Outgoing,
    encode: &dyn Encode,
    out: &mut Rope,
) -> Visit<Option<Vec<u8>>> {
    let mark = out.mark();
    let mut sink = ElementSink::new(Some(layout), Output::new(form, words, out));
    let written = encode.encode(&mut sink).and_then(|()| sink.finish());
    if written.is_err() {
        out.truncate(mark);
    }
    written
}

/// Appends one struct as an element that its contract names: the detail of a fault.
///
/// # Errors
/// As [`write_body`].
pub fn write_detail(
    form: Form,
    shape: &Struct,
    words: &mut Outgoing,
    fields: &dyn Encode,
    out: &mut Rope,
) -> Visit<()> {
    write_body(form, &Layout::detail(shape), words, fields, out).map(|_| ())
}
