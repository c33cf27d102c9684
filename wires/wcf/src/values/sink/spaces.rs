//! Elements that are in another namespace than those around them, or in none.
//!
//! Data contracts seldom need this: their members are in the namespace of their type. WSDL of other
//! services does, where a schema names members of several namespaces, or of none.

use super::frames::{Kind, Scope, ValueStart};
use super::{ElementSink, TERMS, miscounted, misuse};
use crate::dictionary::Term;
use crate::values::graph::{NamespaceId, Node};
use crate::values::names::clark;
use crate::violations::unsupported;
use everywire_model::visit::Visit;

impl ElementSink<'_> {
    /// Starts an element of this namespace, which is declared there if need be; one in no namespace has no prefix.
    #[cold]
    pub(super) fn start_in(
        &mut self,
        begun: ValueStart,
        namespace: NamespaceId,
        name: &Term,
    ) -> Visit<ValueStart> {
        let graph = begun.graph;
        let is_nowhere = self.graphs.namespace(graph, namespace)?.as_str().is_empty();
        let (prefix, declares) = if is_nowhere {
            (0, self.usual()?.is_some())
        } else {
            let known = self.find(graph, namespace);
            (known.unwrap_or_else(|| self.fresh()), known.is_none())
        };
        self.output.start(prefix, name);
        if declares {
            self.declare(prefix, graph, namespace)?;
        }
        Ok(ValueStart { declares, ..begun })
    }

    /// The namespace that elements without a prefix are in here.
    pub(super) fn usual(&self) -> Visit<Option<(usize, NamespaceId)>> {
        let scope = self.scope.get(self.floor..).unwrap_or_default();
        let declared = scope.iter().rev().find(|known| known.prefix == 0);
        let (graph, namespace) = match (declared, self.default) {
            (Some(Scope { graph, namespace, .. }), _) => (*graph, *namespace),
            (None, Some(namespace)) if !self.output.is_in_part() => (0, namespace),
            _ => return Ok(None),
        };
        let is_one = !self.graphs.namespace(graph, namespace)?.as_str().is_empty();
        Ok(is_one.then_some((graph, namespace)))
    }

    /// Says which type in no namespace a value has. Its name would be read in the namespace that elements without a prefix are in
    /// (XML Schema part 1, 2.6.1): that is taken away, and the element has a prefix then. One that declares its own namespace
    /// cannot give it away: its type is left out.
    #[cold]
    pub(super) fn tell_type_of_none(
        &mut self,
        graph: usize,
        namespace: NamespaceId,
        local: &Term,
        declares: bool,
    ) -> Visit<()> {
        if let Some((of, around)) = self.usual()? {
            if declares {
                return self.declare_instance();
            }
            let prefix = self.fresh();
            if self.output.prefix_last(prefix) {
                self.declare(prefix, of, around)?;
            }
            self.declare(0, graph, namespace)?;
        }
        self.output.told_type(&TERMS.kind, 0, local);
        self.declare_instance()
    }

    /// A qualified name in Clark notation, of the element that just started; any other text as it is. One of no namespace would be
    /// read in the one that elements without a prefix are in (XML Schema part 2, 3.2.18): that is taken away, and the
    /// element has a prefix then, as .NET writes it.
    pub(super) fn qualified(&mut self, begun: ValueStart, value: &str) -> Visit<()> {
        let local = match clark(value) {
            Some((namespace, local)) if !namespace.is_empty() => {
                let prefix = self.fresh();
                self.output.qualified(prefix, &Term::new(namespace), local);
                return Ok(());
            }
            Some((_, local)) => local,
            None => value,
        };
        if !local.is_empty()
            && !local.contains(':')
            && let Some((graph, namespace)) = self.usual()?
        {
            if self.output.is_apart() || begun.declares {
                return Err(unsupported(
                    "a qualified name of no namespace in an attribute, in text beside attributes, or alone in a body: it would be read in the namespace around it",
                ));
            }
            let prefix = self.fresh();
            if self.output.prefix_last(prefix) {
                self.output.xmlns(prefix, self.graphs.namespace(graph, namespace)?);
            }
            self.output.xmlns(0, &Term::new(""));
        }
        self.output.chars(local);
        Ok(())
    }

    /// Starts an item of a list whose items stand among members of another namespace, or are headers, or have no element
    /// around them at all.
    #[cold]
    pub(super) fn start_item(&mut self, at: usize, scope: usize) -> Visit<ValueStart> {
        let frame = at.checked_sub(1).and_then(|at| self.frames.get(at)).ok_or_else(misuse)?;
        let graph = frame.graph;
        let member = match self.graphs.node(graph, frame.node)? {
            Node::Items { item, .. } => item,
            Node::Named { arms, .. } => arms.get(frame.arm).ok_or_else(miscounted)?,
            _ => return Err(misuse()),
        };
        let (namespace, name) = (member.namespace, member.name.clone());
        let begun = ValueStart { declares: false, graph, node: member.node, scope };
        if at == 1 && self.base.kind == Kind::Parameters {
            return self.start_loose(self.base.index.saturating_sub(1), begun);
        }
        self.start_in(begun, namespace, &name)
    }

    /// What an element without members declared for those in it, it declared for nobody.
    #[inline]
    pub(super) fn leave(&mut self, begun: ValueStart) {
        if begun.declares {
            self.scope.truncate(begun.scope);
        }
    }
}
