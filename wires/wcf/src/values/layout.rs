//! Layouts: what the neutral shapes do not say, made once for each operation and direction.
//!
//! A layout has the graph of the shapes, and beyond it what belongs to an operation: the wrapper element
//! (`{NAMESPACE}Operation`), the namespace of its members, the name of the result (`OperationResult`), and
//! which parameters are headers.

use super::graph::{Graph, Member, MemberForm, NamespaceId, Node};
use super::output::Output;
use super::{Form, QName};
use crate::dictionary::{Outgoing, Term};
use everywire_idl::wsdl::names::{self, TEMPURI};
use everywire_model::SendBuffer;
use everywire_model::shape::{Hold, Shape, Struct};

/// What stands around the values of an operation's arguments or results, and how each is written.
#[derive(Debug)]
pub struct Layout {
    /// Namespace and name.
    /// `None` where the message's parts stand in the body as they are (bare).
    pub(super) wrapper: Option<(Term, Term)>,
    pub(super) wrapper_namespace: NamespaceId,
    pub(super) members: Vec<Member>,
    /// For each field, the namespace and name of its header, if it is one.
    pub(super) headers: Vec<Option<(Term, Term)>>,
    /// Whether there is a wrapper with all the values in it.
    /// Then a message begins with a start tag that a template holds.
    is_plain: bool,
    /// Whether the wrapper declares the namespace of `i:nil`.
    /// Details of faults do, as Microsoft writes them.
    pub(super) instance: bool,
    /// The type that the wrapper tells (`i:type`).
    pub(super) told: Option<(NamespaceId, Term)>,
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
        // A parameter may be called `return`, too, and stands behind what the operation returns.
        let mut returned = members.iter_mut().zip(fields).filter(|(_, field)| field.name == "return");
        if let Some((member, _)) = returned.next().filter(|_| !result.is_empty()) {
            member.name = Term::new(result);
            // Each item is an element of that name then.
            if let (MemberForm::Items, Some(Node::Items { item, .. })) =
                (member.place, graph.nodes.get_mut(member.node))
            {
                item.name = member.name.clone();
            }
        }
        // Fields that travel beside the body are taken out of it by the sink.
        let header = |name: &str| {
            let (_, header) = headers.iter().find(|(field, _)| field == name)?;
            Some((Term::new(&header.namespace), Term::new(&header.local)))
        };
        let headers: Vec<_> = fields.iter().map(|field| header(&field.name)).collect();
        let is_plain = wrapper.is_some() && headers.iter().all(Option::is_none);
        let namespace = graph.add_namespace(namespace);
        let wrapper_namespace =
            wrapper.as_ref().map_or(namespace, |name| graph.add_namespace(&name.namespace));
        let wrapper = wrapper.map(|name| (Term::new(&name.namespace), Term::new(&name.local)));
        Self { wrapper, wrapper_namespace, members, headers, is_plain, instance: false, told: None, graph }
    }

    /// Namespace and name of the element around the values.
    pub(crate) fn wrapper(&self) -> Option<(&str, &str)> {
        let (namespace, local) = self.wrapper.as_ref()?;
        Some((namespace.as_str(), local.as_str()))
    }

    /// Whether the first value is in the body, and no header.
    pub(crate) fn begins_in_body(&self) -> bool {
        matches!(self.headers.first(), Some(None))
    }

    /// Whether there are no values.
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether an element of this name is the wrapper, and not the first of the values.
    pub(crate) fn is_wrapped_by(&self, local: &str) -> bool {
        self.wrapper.is_some() && self.members.first().is_none_or(|member| member.name.as_str() != local)
    }

    /// Whether the wrapper's start is the same for all values, and [`Layout::put_start`] can write it: in binary form, where
    /// nothing of the values is a header.
    pub(crate) fn has_start(&self, form: Form) -> bool {
        form == Form::Binary && self.is_plain && !self.instance
    }

    /// Appends the wrapper's start, if [`Layout::has_start`]; [`write_rest`] writes what follows.
    pub(crate) fn put_start(&self, words: &mut Outgoing, out: &mut SendBuffer) {
        if let Some((namespace, name)) = &self.wrapper {
            let mut output = Output::new(Form::Binary, words, out);
            output.start(0, name);
            output.xmlns(0, namespace);
        }
    }

    /// A layout of fields that nobody named.
    pub(super) fn loose(fields: &Shape) -> Self {
        Self::new(Some(QName::new(TEMPURI, "Values")), TEMPURI, fields, "Result", &[])
    }

    /// A layout of a struct as an element of its own.
    /// The wrapper is `element`, or has the struct's own name; its members are in the struct's namespace. `told`: it tells its
    /// type.
    pub(super) fn detail(shape: &Struct, element: Option<&QName>, told: bool) -> Self {
        let own = names::type_name(&shape.id, &shape.name);
        let name = element.unwrap_or(&own).clone();
        let fields = Shape::Struct(Hold::new(shape.clone()));
        let mut layout = Self { instance: true, ..Self::new(Some(name), &own.namespace, &fields, "", &[]) };
        if told {
            layout.told = Some((layout.graph.add_namespace(&own.namespace), Term::new(&own.local)));
        }
        layout
    }
}
