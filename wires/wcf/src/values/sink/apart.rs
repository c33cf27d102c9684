//! Members of structs that are no elements of their own, as XmlSerializer has them.
//!
//! XmlSerializer's contracts have attributes, text beside attributes, and lists without an element around
//! them. An attribute belongs into a start tag that may be closed already: its value is written apart
//! (`Output::begin_apart`) and inserted at the place that `begin_attributes` noted.

use super::frames::{Frame, Kind, ValueStart};
use super::{ElementSink, miscounted, misuse};
use crate::text;
use crate::values::graph::{Empty, Member, MemberForm, NamespaceId, Node};
use crate::values::output::{INSTANCE, Letter, Named, XML};
use everywire_model::Failure;
use everywire_model::visit::Visit;

impl ElementSink<'_> {
    /// The struct that the value that begins now is a member of, if it is one of its own: how many frames there are to it, and
    /// the member.
    fn direct(&self) -> Visit<Option<(usize, &Member)>> {
        let frame = self.frames.last().unwrap_or(&self.base);
        let Some(members) = self.graphs.members(frame)? else { return Ok(None) };
        Ok(Some((self.frames.len(), members.get(frame.index).ok_or_else(miscounted)?)))
    }

    /// The frame with this number, as `direct` gives it; 0 is the base.
    #[inline]
    pub(super) fn frame(&mut self, at: usize) -> Visit<&mut Frame> {
        match at.checked_sub(1) {
            Some(at) => self.frames.get_mut(at).ok_or_else(misuse),
            None => Ok(&mut self.base),
        }
    }

    /// Behind this member, as `direct` gives it, there is nothing of the header before it: that ends where another parameter
    /// begins, which is a member of the base, and not with the members of its own type.
    fn begin_member(&mut self, at: usize) {
        if at == 0 {
            self.end_header();
        }
    }

    /// Passes the member that begins now and holds nothing, if that is said by leaving it out.
    pub(super) fn leaves_out(&mut self) -> Visit<bool> {
        let Some((at, Member { place: MemberForm::Left(_) | MemberForm::Attribute(..), .. })) =
            self.direct()?
        else {
            return Ok(false);
        };
        self.begin_member(at);
        self.frame(at)?.index += 1;
        Ok(true)
    }

    /// Refuses an item of a list in an attribute that would not be read as it was written: blanks are what stands between items.
    #[inline]
    pub(super) fn check_word(&self, text: &str) -> Visit<()> {
        if !self.is_in_words() || !(text.is_empty() || text.contains([' ', '\t', '\r', '\n'])) {
            return Ok(());
        }
        let message =
            format!("an item of a list in an attribute that is empty or holds white space: {text:?}");
        Err(Failure::bad_argument(message))
    }

    /// Whether the value that begins now is an item of a list in an attribute.
    #[inline]
    fn is_in_words(&self) -> bool {
        let is_list = |frame: &Frame| frame.kind == Kind::Words;
        self.output.is_apart()
            && self.frames.iter().rev().find(|frame| frame.kind != Kind::Maybe).is_some_and(is_list)
    }

    /// Opens the list that begins now, if its items stand among the other members.
    pub(super) fn open_flat(&mut self, len: usize) -> Visit<bool> {
        let (at, namespace, node) = match self.direct()? {
            Some((at, Member { place: MemberForm::Items, namespace, node, .. })) => (at, *namespace, *node),
            Some((_, Member { place: MemberForm::Attribute(_, Empty::Refused), name, .. })) if len == 0 => {
                let message = format!(
                    "an empty list in the attribute {}: it is left out, and what is missing has the contract's default",
                    name.as_str()
                );
                return Err(Failure::bad_argument(message));
            }
            _ => return Ok(false),
        };
        self.begin_member(at);
        let frame = self.frame(at)?;
        let Frame { graph, kind, node: of, prefix, index, .. } = *frame;
        frame.index += 1;
        // Whether items may use the prefix of the struct, or say their namespace themselves.
        let is_own = match (self.graphs.node(graph, of), self.graphs.layout()) {
            (_, Some(layout)) if kind == Kind::Parameters => {
                let is_header = layout.headers.get(index).is_some_and(Option::is_some);
                layout.wrapper.is_some() && !is_header && namespace == layout.wrapper_namespace
            }
            (Ok(Node::Fields { own, .. }), _) => *own == namespace,
            _ => false,
        };
        self.push(Frame { graph, node, prefix, loose: !is_own, ..Frame::new(Kind::Items, len) })?;
        Ok(true)
    }

    /// Declares what the attributes of the struct that was opened need, and notes where they stand.
    #[cold]
    pub(super) fn begin_attributes(&mut self) -> Visit<()> {
        let frame = self.frames.last().unwrap_or(&self.base);
        let graph = frame.graph;
        let Some(members) = self.graphs.members(frame)? else { return Ok(()) };
        let spaces = members.iter().filter_map(|member| match member.place {
            MemberForm::Attribute(space, _) => space,
            _ => None,
        });
        let spaces: Vec<NamespaceId> = spaces.collect();
        for space in spaces {
            if self.graphs.namespace(graph, space)?.as_str() != text::XML
                && self.lettered(graph, space).is_none()
            {
                let prefix = self.fresh();
                self.declare(prefix, graph, space)?;
            }
        }
        let at = self.frames.len();
        // Structs at this depth or below it that were noted before are closed.
        self.tags.retain(|(of, _)| *of < at);
        self.tags.push((at, self.output.place()));
        Ok(())
    }

    /// Begins the value of an attribute, or of the text of an element: a member of the struct that has this frame.
    pub(super) fn start_apart(&mut self, at: usize, index: usize, scope: usize) -> Visit<ValueStart> {
        let frame = match at.checked_sub(1) {
            Some(at) => self.frames.get(at).ok_or_else(misuse)?,
            None => &self.base,
        };
        let graph = frame.graph;
        let tag = self.tags.iter().find(|(of, _)| *of == at).map(|(_, tag)| *tag);
        let members = self.graphs.members(frame)?.ok_or_else(misuse)?;
        let Member { name, node, place, .. } = members.get(index).ok_or_else(miscounted)?;
        let node = *node;
        let attribute = match place {
            MemberForm::Attribute(space, empty) => {
                let before = members.iter().take(index);
                // Behind members that are elements the start tag is closed.
                let is_late = before.clone().any(|member| !matches!(member.place, MemberForm::Attribute(..)));
                let prefix = match space {
                    None => 0,
                    Some(space) if self.graphs.namespace(graph, *space)?.as_str() == text::XML => XML,
                    Some(space) => self.lettered(graph, *space).ok_or_else(misuse)?,
                };
                let tag = if is_late { Some(tag.ok_or_else(misuse)?) } else { None };
                Some(Named { prefix, name: name.clone(), tag, left: *empty == Empty::Left })
            }
            _ => None,
        };
        self.output.begin_apart(attribute);
        Ok(ValueStart { declares: false, graph, node, scope })
    }

    /// The letter that a namespace has here; attributes are in none without one.
    fn lettered(&self, graph: usize, namespace: NamespaceId) -> Option<Letter> {
        self.declared((graph, namespace), |prefix| !matches!(prefix, 0 | INSTANCE))
    }
}
