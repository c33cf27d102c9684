//! Where each value's element gets its name from, and which namespaces are declared around it.
//!
//! Frames stand for open composites. A frame that has no element of its own (`Maybe`, `Variant`, `Derived`,
//! `Told`) hands the question on to the one below: `begin_inside` goes down to the first that names
//! elements. A frame names a node by two numbers, that of its graph (0 is the layout's) and its own.
//!
//! Always: `index <= len`; `scope` is how long the list of declarations was before the frame's element.

use super::{ElementSink, TERMS, behind, miscounted, misuse};
use crate::dictionary::Term;
use crate::limits::MAX_DEPTH;
use crate::nbfx::Item;
use crate::values::Form;
use crate::values::graph::{Graph, Member, MemberForm, NamespaceId, Node, NodeId, XSI_ID};
use crate::values::layout::Layout;
use crate::values::output::{INSTANCE, Letter};
use everywire_model::shape::Shape;
use everywire_model::visit::Visit;
use everywire_model::{Failure, Initiator};

/// An open composite.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    /// Values begun so far.
    pub(super) index: usize,
    /// How many there must be.
    pub(super) len: usize,
    /// The number of its graph.
    pub(super) graph: usize,
    pub(super) node: NodeId,
    /// The arm of a union.
    pub(super) arm: usize,
    /// Prefix of the elements in it.
    pub(super) prefix: Letter,
    /// How many namespaces were declared before its element.
    pub(super) scope: usize,
    /// Whether an element ends with it.
    pub(super) ends: bool,
    /// Whether each item says its own namespace.
    pub(super) loose: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kind {
    /// Nothing is open, or one value without a name.
    #[default]
    Root,
    /// Fields of the operation.
    Parameters,
    Fields,
    Choice,
    /// The value has the element of this frame, and one of several types.
    Derived,
    Items,
    /// The items of a list in one text.
    Words,
    /// The element of one of several names.
    Named,
    /// An array record: items are only counted.
    Array(Item),
    Pairs,
    /// The value has the element of this frame.
    Maybe,
    /// The same; its type is not known yet.
    Variant,
    /// The element was started with its type.
    Told,
}

/// A value that begins: its node, and how many namespaces were declared before its element.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueStart {
    /// Whether its element declared its own namespace only.
    pub(super) declares: bool,
    pub(super) graph: usize,
    pub(super) node: NodeId,
    pub(super) scope: usize,
}

/// A declared namespace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope {
    pub(super) prefix: Letter,
    pub(super) graph: usize,
    pub(super) namespace: NamespaceId,
}

/// The graphs that frames point into: of the layout first, then those of shapes that came with values.
pub(in crate::values) struct Graphs<'s> {
    layout: Option<&'s Layout>,
    /// A layout made of the shape that was opened.
    pub(super) own: Option<Box<Layout>>,
    pub(super) more: Vec<Graph>,
}

impl<'s> Graphs<'s> {
    pub(super) fn new(layout: Option<&'s Layout>) -> Self {
        Self { layout, own: None, more: Vec::new() }
    }

    pub(super) fn layout(&self) -> Option<&Layout> {
        self.layout.or(self.own.as_deref())
    }

    pub(super) fn get(&self, index: usize) -> Visit<&Graph> {
        let graph = match index.checked_sub(1) {
            None => self.layout().map(|layout| &layout.graph),
            Some(index) => self.more.get(index),
        };
        graph.ok_or_else(misuse)
    }

    pub(super) fn node(&self, graph: usize, node: NodeId) -> Visit<&Node> {
        self.get(graph)?.nodes.get(node).ok_or_else(misuse)
    }

    /// The members that the values of a frame are, if it is that of a struct.
    pub(super) fn members(&self, frame: &Frame) -> Visit<Option<&[Member]>> {
        Ok(match frame.kind {
            Kind::Parameters => self.layout().map(|layout| &*layout.members),
            Kind::Fields => match self.node(frame.graph, frame.node)? {
                Node::Fields { members, .. } => Some(members),
                _ => None,
            },
            _ => None,
        })
    }

    pub(super) fn namespace(&self, graph: usize, namespace: NamespaceId) -> Visit<&Term> {
        self.get(graph)?.namespaces.get(namespace).ok_or_else(misuse)
    }
}

impl Frame {
    pub(super) fn new(kind: Kind, len: usize) -> Self {
        Self { kind, len, ..Self::default() }
    }

    pub(super) fn is_open(&self) -> bool {
        self.kind != Kind::Root
    }
}

impl ElementSink<'_> {
    pub(super) fn push(&mut self, mut frame: Frame) -> Visit<()> {
        // The envelope and its body are around every value.
        let limit = MAX_DEPTH - 2;
        if self.frames.len() + 1 >= limit {
            return Err(Failure::over_limit(Initiator::User, "nesting of elements", limit + 1, limit));
        }
        if !frame.ends && frame.kind != Kind::Told {
            frame.scope = self.scope.len();
        }
        self.frames.push(frame);
        Ok(())
    }

    /// Starts the element of a scalar that begins now.
    #[inline]
    pub(super) fn begin_scalar(&mut self) -> Visit<()> {
        self.output.within()?;
        if self.is_started
            && self.base.kind == Kind::Parameters
            && self.frames.is_empty()
            && let Some(layout) = self.graphs.layout
            && self.base.index < self.base.len
            && let Some(member) = layout.members.get(self.base.index)
            && member.namespace == layout.wrapper_namespace
        {
            self.base.index += 1;
            self.output.start(0, &member.name);
            return Ok(());
        }
        let begun = self.begin()?;
        self.leave(begun);
        Ok(())
    }

    /// Starts the element of the value that begins now; that of a value with its own type was started with the type.
    #[inline]
    pub(super) fn begin(&mut self) -> Visit<ValueStart> {
        if self.frames.is_empty() && self.base.kind == Kind::Parameters {
            let index = self.base.index;
            if index >= self.base.len {
                return Err(miscounted());
            }
            self.base.index += 1;
            return self.start_parameter(index, self.scope.len());
        }
        self.begin_inside()
    }

    fn begin_inside(&mut self) -> Visit<ValueStart> {
        let scope = self.scope.len();
        // Each frame that only passes the value on has begun one value, too.
        let mut derived = None;
        let mut at = self.frames.len();
        loop {
            let frame = self.frame(at)?;
            if frame.index >= frame.len {
                return Err(miscounted());
            }
            frame.index += 1;
            match frame.kind {
                Kind::Maybe | Kind::Variant => {}
                Kind::Derived => derived = Some((frame.graph, frame.node, frame.arm)),
                Kind::Told => {
                    let Frame { graph, node, scope, .. } = *frame;
                    return Ok(ValueStart { declares: false, graph, node, scope });
                }
                _ => break,
            }
            at = at.checked_sub(1).ok_or_else(misuse)?;
        }
        let begun = self.start(at, scope)?;
        match derived {
            None => Ok(begun),
            Some((graph, node, arm)) => self.tell_arm(begun, graph, node, arm),
        }
    }

    /// Starts the next element of a frame, whose index was counted up already.
    fn start(&mut self, at: usize, scope: usize) -> Visit<ValueStart> {
        let frame = match at.checked_sub(1) {
            Some(at) => self.frames.get(at).ok_or_else(misuse)?,
            None => &self.base,
        };
        let (graph, index) = (frame.graph, frame.index - 1);
        let (member, own) = match frame.kind {
            Kind::Root => {
                self.output.start(0, &TERMS.values);
                let (graph, node) = self.loose;
                return Ok(ValueStart { declares: false, graph, node, scope });
            }
            Kind::Parameters => return self.start_parameter(index, scope),
            kind if frame.loose && !matches!(kind, Kind::Fields | Kind::Choice) => {
                return self.start_item(at, scope);
            }
            kind => match (self.graphs.node(graph, frame.node)?, kind) {
                (Node::Fields { members, own, .. }, Kind::Fields) => (members.get(index), own),
                (Node::Choice { discriminator, own, .. }, Kind::Choice) if index == 0 => {
                    (Some(discriminator), own)
                }
                (Node::Choice { arms, own, .. }, Kind::Choice) => (arms.get(frame.arm), own),
                (Node::Items { item, own, .. }, Kind::Items) => (Some(item), own),
                (Node::Named { arms, own }, Kind::Named) => (arms.get(frame.arm), own),
                (Node::Items { item, .. }, Kind::Words) => {
                    let node = item.node;
                    self.output.word(index);
                    return Ok(ValueStart { declares: false, graph, node, scope });
                }
                (Node::Pairs { value, own, .. }, Kind::Pairs) if index % 2 == 1 => (Some(value), own),
                (Node::Pairs { key, own, pair, .. }, Kind::Pairs) => {
                    if index > 0 {
                        self.output.end();
                    }
                    self.output.start(frame.prefix, pair);
                    (Some(key), own)
                }
                _ => return Err(misuse()),
            },
        };
        let member = member.ok_or_else(miscounted)?;
        match member.place {
            MemberForm::Attribute(..) | MemberForm::Text => return self.start_apart(at, index, scope),
            MemberForm::Left(Some(choice)) => {
                let is_own = member.namespace == *own;
                let (prefix, namespace, name) = (frame.prefix, member.namespace, member.name.clone());
                let begun = ValueStart { declares: false, graph, node: member.node, scope };
                self.choose(at, index, choice)?;
                if !is_own {
                    return self.start_in(begun, namespace, &name);
                }
                self.output.start(prefix, &name);
                return Ok(begun);
            }
            _ => {}
        }
        let begun = ValueStart { declares: false, graph, node: member.node, scope };
        if member.namespace == *own && !frame.loose {
            self.output.start(frame.prefix, &member.name);
            return Ok(begun);
        }
        let (namespace, name) = (member.namespace, member.name.clone());
        self.start_in(begun, namespace, &name)
    }

    #[inline]
    fn start_parameter(&mut self, index: usize, scope: usize) -> Visit<ValueStart> {
        let layout = self.graphs.layout().ok_or_else(misuse)?;
        let Member { name, node, namespace, place } = layout.members.get(index).ok_or_else(miscounted)?;
        let begun = ValueStart { declares: false, graph: 0, node: *node, scope };
        if let MemberForm::Left(Some(choice)) = *place {
            self.choose(0, index, choice)?;
            return self.start_loose(index, begun);
        }
        if self.is_started && *namespace == layout.wrapper_namespace {
            self.output.start(0, name);
            return Ok(begun);
        }
        self.start_loose(index, begun)
    }

    /// Starts the element of a parameter that may be a header, or stand without a wrapper.
    pub(super) fn start_loose(&mut self, index: usize, begun: ValueStart) -> Visit<ValueStart> {
        self.end_header();
        let layout = self.graphs.layout().ok_or_else(misuse)?;
        let Member { name, namespace, place, .. } = layout.members.get(index).ok_or_else(miscounted)?;
        if let Some(Some((space, name))) = layout.headers.get(index) {
            self.output.begin_part();
            self.output.start(b'h', name);
            self.output.xmlns(b'h', space);
            self.floor = self.scope.len();
            return Ok(begun);
        }
        if let MemberForm::Attribute(..) | MemberForm::Text = place {
            return self.start_apart(0, index, begun.scope);
        }
        if layout.wrapper.is_some() && *namespace != layout.wrapper_namespace {
            let (namespace, name) = (*namespace, name.clone());
            return self.start_in(begun, namespace, &name);
        }
        let bare = layout.wrapper.is_none().then_some(*namespace);
        self.output.start(0, name);
        if let Some(namespace) = bare {
            self.declare(0, 0, namespace)?;
        }
        Ok(ValueStart { declares: bare.is_some(), ..begun })
    }

    /// Takes the element that a header was written as out of the body.
    #[inline]
    pub(super) fn end_header(&mut self) {
        if let Some(part) = self.output.take_part() {
            self.headers.get_or_insert_default().extend_from_slice(&part);
            self.floor = 0;
        }
    }

    /// Opens the nameless struct: the wrapper, unless there is none.
    pub(super) fn open_root(&mut self, shape: &Shape) -> Visit<()> {
        let len = shape.fields().len();
        if self.graphs.layout().is_none() {
            self.graphs.own = Some(Box::new(Layout::loose(shape)));
        }
        let layout = self.graphs.layout().ok_or_else(misuse)?;
        if layout.members.len() != len {
            return Err(miscounted());
        }
        (self.base.kind, self.base.len, self.base.index) = (Kind::Parameters, len, 0);
        if self.is_started {
            self.default = Some(layout.wrapper_namespace);
            self.base.ends = true;
        } else if let Some((namespace, name)) = &layout.wrapper {
            self.output.start(0, name);
            self.output.xmlns(0, namespace);
            self.default = Some(layout.wrapper_namespace);
            self.base.ends = true;
            if layout.instance {
                match layout.told.clone() {
                    Some((namespace, local)) => self.tell_type(0, namespace, &local, true)?,
                    None => self.declare_instance()?,
                }
                self.begin_attributes()?;
            }
        }
        Ok(())
    }

    /// Starts the element of a composite, whose node has the values.
    fn begin_composite(&mut self) -> Visit<ValueStart> {
        let begun = self.begin()?;
        Ok(ValueStart { node: behind(self.graphs.get(begun.graph)?, begun.node), ..begun })
    }

    pub(super) fn open_fields(&mut self, len: usize) -> Visit<()> {
        let begun = self.begin_composite()?;
        let Node::Fields { own, others, members, apart, .. } = self.graphs.node(begun.graph, begun.node)?
        else {
            return Err(misuse());
        };
        if members.len() != len {
            return Err(miscounted());
        }
        let (own, others, apart) = (*own, others.clone(), *apart);
        let (prefix, loose) = self.place_of(begun.graph, own)?;
        for other in others {
            self.place_of(begun.graph, other)?;
        }
        self.open_element(begun, Frame { prefix, loose, ..Frame::new(Kind::Fields, len) })?;
        if apart { self.begin_attributes() } else { Ok(()) }
    }

    pub(super) fn open_items(&mut self, len: usize) -> Visit<()> {
        if self.open_flat(len)? {
            return Ok(());
        }
        let begun = self.begin_composite()?;
        if self.output.begin_words() {
            return self.push_within(begun, Frame::new(Kind::Words, len));
        }
        let (own, kind) = match self.graphs.node(begun.graph, begun.node)? {
            Node::Items { own, array: Some(item), .. } if len > 0 && self.output.form == Form::Binary => {
                (*own, Kind::Array(*item))
            }
            Node::Items { own, .. } => (*own, Kind::Items),
            Node::Pairs { own, .. } => (*own, Kind::Pairs),
            _ => return Err(misuse()),
        };
        let (prefix, loose) = self.place_of(begun.graph, own)?;
        // Neither an array record nor a pair has a place for the declaration.
        let kind = if loose && matches!(kind, Kind::Array(_)) { Kind::Items } else { kind };
        if loose && kind == Kind::Pairs && self.usual()?.is_some() {
            return Err(crate::violations::unsupported("a map whose pairs are in no namespace"));
        }
        self.open_element(begun, Frame { prefix, loose, ..Frame::new(kind, len) })?;
        if let Kind::Array(kind) = kind
            && let Node::Items { item, .. } = self.graphs.node(begun.graph, begun.node)?
        {
            self.output.array(prefix, &item.name, kind, len);
        }
        Ok(())
    }

    pub(super) fn open_union(&mut self, len: usize) -> Visit<()> {
        let arm = len.checked_sub(1);
        // Which kind of union it is says the node of the value that begins now.
        let (graph, node) = self.upcoming()?;
        let node = behind(self.graphs.get(graph)?, node);
        match self.graphs.node(graph, node)? {
            Node::Derived(_) => {
                let arm = arm.ok_or_else(miscounted)?;
                self.push(Frame { graph, node, arm, ..Frame::new(Kind::Derived, 2) })
            }
            Node::Named { .. } => {
                let arm = arm.ok_or_else(miscounted)?;
                let list = self.frames.last_mut().ok_or_else(misuse)?;
                let (prefix, loose) = (list.prefix, list.loose);
                list.index += 1;
                self.push(Frame { graph, node, arm, prefix, loose, ..Frame::new(Kind::Named, 2) })
            }
            Node::Choice { own, .. } => {
                let own = *own;
                let begun = self.begin_composite()?;
                let (prefix, loose) = self.place_of(graph, own)?;
                let len = if arm.is_some() { 2 } else { 1 };
                let arm = arm.unwrap_or(usize::MAX);
                self.open_element(begun, Frame { prefix, loose, arm, ..Frame::new(Kind::Choice, len) })
            }
            _ => Err(misuse()),
        }
    }

    fn open_element(&mut self, begun: ValueStart, frame: Frame) -> Visit<()> {
        if self.output.is_apart() {
            return Err(misuse());
        }
        self.declare_instance()?;
        self.push_within(begun, frame)
    }

    /// Opens a composite that ends what was begun.
    fn push_within(&mut self, ValueStart { graph, node, scope, .. }: ValueStart, frame: Frame) -> Visit<()> {
        self.push(Frame { graph, node, scope, ends: true, ..frame })
    }

    /// The node of the value that begins next.
    fn upcoming(&self) -> Visit<(usize, NodeId)> {
        let passing = |frame: &&Frame| !matches!(frame.kind, Kind::Maybe | Kind::Variant);
        let frame = self.frames.iter().rev().find(passing).unwrap_or(&self.base);
        let index = frame.index;
        let member = match frame.kind {
            Kind::Root => return Ok(self.loose),
            Kind::Told => return Ok((frame.graph, frame.node)),
            Kind::Parameters => self.graphs.layout().and_then(|layout| layout.members.get(index)),
            _ => match self.graphs.node(frame.graph, frame.node)? {
                Node::Fields { members, .. } => members.get(index),
                Node::Choice { arms, .. } | Node::Named { arms, .. } => arms.get(frame.arm),
                Node::Items { item, .. } => Some(item),
                Node::Pairs { key, .. } if index % 2 == 0 => Some(key),
                Node::Pairs { value, .. } => Some(value),
                _ => None,
            },
        };
        member.map(|member| (frame.graph, member.node)).ok_or_else(miscounted)
    }

    /// The prefix of a namespace for what is inside the element that just started, declared there if need be. No prefix stands
    /// for no namespace (Namespaces in XML 1.0, 2.2): elements in none say so one by one (`loose`), where that must be said.
    fn place_of(&mut self, graph: usize, namespace: NamespaceId) -> Visit<(Letter, bool)> {
        if let Some(prefix) = self.find(graph, namespace) {
            return Ok((prefix, false));
        }
        if self.graphs.namespace(graph, namespace)?.as_str().is_empty() {
            return Ok((0, true));
        }
        let prefix = self.fresh();
        self.declare(prefix, graph, namespace)?;
        Ok((prefix, false))
    }

    /// The next letter: `a`, `h` and `s` are the envelope's, `i` is the schema instance. Beyond the last one, letters hide
    /// those of outer elements.
    pub(super) fn fresh(&self) -> Letter {
        const LETTERS: &[Letter] = b"bcdefgjklmnopqrtuvwxyz";
        let scope = self.scope.get(self.floor..).unwrap_or_default();
        let declared = scope.iter().filter(|known| !matches!(known.prefix, 0 | INSTANCE)).count();
        LETTERS.get(declared % LETTERS.len()).copied().unwrap_or(b'b')
    }

    pub(super) fn declare(&mut self, prefix: Letter, graph: usize, namespace: NamespaceId) -> Visit<()> {
        self.output.xmlns(prefix, self.graphs.namespace(graph, namespace)?);
        self.scope.push(Scope { prefix, graph, namespace });
        Ok(())
    }

    pub(super) fn declare_instance(&mut self) -> Visit<()> {
        let scope = self.scope.get(self.floor..).unwrap_or_default();
        if !scope.iter().any(|known| known.prefix == INSTANCE) {
            self.output.xmlns(INSTANCE, &TERMS.instance);
            self.scope.push(Scope { prefix: INSTANCE, graph: 0, namespace: XSI_ID });
        }
        Ok(())
    }

    /// An element that holds nothing.
    pub(super) fn nil(&mut self) -> Visit<()> {
        self.check_word("")?;
        let begun = self.begin()?;
        self.output.nil(&TERMS.nil);
        self.declare_instance()?;
        self.output.end();
        self.scope.truncate(begun.scope);
        Ok(())
    }

    /// Writes which of the derived types the value has, unless it is the first.
    fn tell_arm(&mut self, begun: ValueStart, graph: usize, node: NodeId, arm: usize) -> Visit<ValueStart> {
        let Node::Derived(arms) = self.graphs.node(graph, node)? else { return Err(misuse()) };
        let node = *arms.get(arm).ok_or_else(misuse)?;
        if arm > 0 {
            let Node::Fields { own, name, .. } = self.graphs.node(graph, node)? else { return Err(misuse()) };
            let (own, name) = (*own, name.clone());
            self.tell_type(graph, own, &name, begun.declares)?;
        }
        Ok(ValueStart { declares: false, graph, node, scope: begun.scope })
    }

    /// Says of the element that just started which type its value has; `declares`: whether it declares the namespace that it
    /// is in itself.
    pub(super) fn tell_type(
        &mut self,
        graph: usize,
        namespace: NamespaceId,
        local: &Term,
        declares: bool,
    ) -> Visit<()> {
        if self.graphs.namespace(graph, namespace)?.as_str().is_empty() {
            return self.tell_type_of_none(graph, namespace, local, declares);
        }
        let known = self.find(graph, namespace);
        let prefix = known.unwrap_or_else(|| self.fresh());
        self.output.told_type(&TERMS.kind, prefix, local);
        if known.is_none() {
            self.declare(prefix, graph, namespace)?;
        }
        self.declare_instance()
    }

    /// The prefix that a namespace has, unless it is hidden by one declared later.
    pub(super) fn find(&self, graph: usize, namespace: NamespaceId) -> Option<Letter> {
        // The wrapper's namespace is around everything but headers.
        let usual = || {
            let known = self.default.filter(|_| !self.output.is_in_part())?;
            let is_hidden = self.scope.iter().skip(self.floor).any(|later| later.prefix == 0);
            (self.is_same((0, known), (graph, namespace)) && !is_hidden).then_some(0)
        };
        self.declared((graph, namespace), |_| true).or_else(usual)
    }

    /// The innermost such prefix that was declared for a namespace: one that was declared again means something else.
    pub(super) fn declared(&self, of: (usize, NamespaceId), such: fn(Letter) -> bool) -> Option<Letter> {
        let scope = self.scope.get(self.floor..).unwrap_or_default();
        let hidden = |at: usize, prefix| scope.iter().skip(at).any(|later| later.prefix == prefix);
        let found = scope.iter().enumerate().rev().find(|(at, known)| {
            such(known.prefix)
                && self.is_same((known.graph, known.namespace), of)
                && !hidden(at + 1, known.prefix)
        });
        found.map(|(_, known)| known.prefix)
    }

    fn is_same(&self, known: (usize, NamespaceId), other: (usize, NamespaceId)) -> bool {
        known == other
            || (known.0 != other.0
                && self.graphs.namespace(known.0, known.1).ok()
                    == self.graphs.namespace(other.0, other.1).ok())
    }
}
