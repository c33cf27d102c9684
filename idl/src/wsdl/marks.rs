//! What XmlSerializer says of a member and no shape does: that it is an attribute, the element's text, a list without an element
//! around it, or left out where it holds nothing.
//!
//! Such a member's shape is an alias without a name around what it holds; the alias's identity is the mark. To everybody but
//! this contract language and its wire the alias is what it stands for.
//!
//! | mark | |
//! | --- | --- |
//! | `@NAME`, `@{NAMESPACE}NAME` | an attribute; with `!` behind it one that must be there, with `=VALUE` one that has this value where it is missing, with `~VALUE` one that has no other value |
//! | `#` | the text of the element |
//! | `*` | the same element as often as need be |
//! | `*\|` | elements of several names as often as need be: the list's items are unions, whose arms have those names |
//! | `-`, `-{NAMESPACE}` | an element that is in no namespace, or in this one, not in that of its type; any mark of elements may follow |
//! | `?`, `?NUMBER` | an element that is left out where it holds nothing, and the choice of the struct that it is of; with `=VALUE` behind it, what it is where it is missing |

use everywire_model::shape::{Alias, Name};
use everywire_model::{Hold, Shape};
use std::fmt::{self, Display, Formatter};

/// The identity of a union whose arms are elements of these names, in a list ([`Mark::Choices`]).
pub const CHOICES: &str = "|";

/// What a mark says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark<'s> {
    /// An attribute.
    Attribute(Attribute<'s>),
    /// An element as others, but for its namespace ([`within`]).
    Element,
    /// The text of the element around it.
    Text,
    /// A list whose items stand among the other members, called as the member is.
    Items,
    /// The same, each item called by the arm that it is of.
    Choices,
    /// An element that is not there where it holds nothing; the number of the choice that it is of, and its value where it is
    /// missing.
    Left(Option<u32>, Option<&'s str>),
}

/// An attribute. It borrows from the identity of the alias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attribute<'s> {
    /// Its namespace; empty for most.
    pub namespace: &'s str,
    /// Its name.
    pub name: &'s str,
    /// Whether it must be there.
    pub required: bool,
    /// Its value where it is missing.
    pub default: Option<&'s str>,
    /// Whether it has no other value.
    pub fixed: bool,
}

impl<'s> Mark<'s> {
    /// The mark on a shape, if there is one.
    #[inline]
    #[must_use]
    pub fn of(shape: &'s Shape) -> Option<Self> {
        match shape {
            Shape::Alias(alias) if alias.name.is_empty() => Self::parse(&alias.id),
            _ => None,
        }
    }

    /// Reads a mark.
    ///
    /// ```
    /// use everywire_idl::wsdl::marks::{Attribute, Mark};
    /// let attribute = Attribute { namespace: "urn:x", name: "Id", default: Some("5"), ..Attribute::default() };
    /// assert_eq!(Mark::parse("@{urn:x}Id=5"), Some(Mark::Attribute(attribute)));
    /// assert_eq!(Mark::Attribute(attribute).to_string(), "@{urn:x}Id=5");
    /// assert_eq!(Mark::parse("?2"), Some(Mark::Left(Some(2), None)));
    /// assert_eq!(Mark::parse("-{urn:x}*"), Some(Mark::Items));
    /// assert_eq!(Mark::parse("{urn:x}Id"), None);
    /// let attribute = Attribute { namespace: "urn:{x}", name: "Id", default: Some("}"), ..Attribute::default() };
    /// assert_eq!(Mark::parse(&Mark::Attribute(attribute).to_string()), Some(Mark::Attribute(attribute)));
    /// ```
    #[must_use]
    pub fn parse(text: &'s str) -> Option<Self> {
        match placed(text) {
            None => Self::parse_alone(text),
            Some((_, "")) => Some(Self::Element),
            Some((_, rest)) => {
                let mark = Self::parse_alone(rest)?;
                (!matches!(mark, Self::Attribute(_) | Self::Text)).then_some(mark)
            }
        }
    }

    /// A mark without the namespace before it.
    fn parse_alone(text: &'s str) -> Option<Self> {
        let (kind, rest) = text.split_at_checked(1)?;
        Some(match (kind, rest) {
            ("@", _) => {
                let (namespace, rest) = match rest.strip_prefix('{') {
                    Some(rest) => split_namespace(rest)?,
                    None => ("", rest),
                };
                let end = rest.find(['=', '~']).unwrap_or(rest.len());
                let (name, value) = rest.split_at_checked(end)?;
                let (default, fixed) = (value.get(1..), value.starts_with('~'));
                let (name, required) = match name.strip_suffix('!') {
                    Some(name) => (name, true),
                    None => (name, false),
                };
                Self::Attribute(Attribute { namespace, name, required, default, fixed })
            }
            ("#", "") => Self::Text,
            ("*", "") => Self::Items,
            ("*", "|") => Self::Choices,
            ("?", _) => {
                let (choice, default) =
                    rest.split_once('=').map_or((rest, None), |(choice, value)| (choice, Some(value)));
                let choice = if choice.is_empty() { None } else { Some(choice.parse().ok()?) };
                Self::Left(choice, default)
            }
            _ => return None,
        })
    }

    /// A shape with this mark on it.
    #[must_use]
    pub fn on(self, target: Shape) -> Shape {
        Shape::Alias(Hold::new(Alias { name: Name::from(""), id: Name::from(self.to_string()), target }))
    }
}

impl Display for Mark<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attribute(attribute) => {
                f.write_str("@")?;
                f.write_str(&joined(attribute.namespace))?;
                f.write_str(attribute.name)?;
                if attribute.required {
                    f.write_str("!")?;
                }
                match attribute.default {
                    Some(value) => write!(f, "{}{value}", if attribute.fixed { "~" } else { "=" }),
                    None => Ok(()),
                }
            }
            Self::Element => Ok(()),
            Self::Text => f.write_str("#"),
            Self::Items => f.write_str("*"),
            Self::Choices => f.write_str("*|"),
            Self::Left(choice, default) => {
                f.write_str("?")?;
                if let Some(choice) = choice {
                    write!(f, "{choice}")?;
                }
                default.map_or(Ok(()), |value| write!(f, "={value}"))
            }
        }
    }
}

/// What a mark stands on; a shape without one is itself.
#[must_use]
pub fn unmarked(shape: &Shape) -> &Shape {
    match shape {
        Shape::Alias(alias) if alias.name.is_empty() && Mark::parse(&alias.id).is_some() => &alias.target,
        _ => shape,
    }
}

/// What ends a namespace that has a brace itself. No document of XML 1.0 has this character.
const END: char = '\u{1}';

/// The namespace, and what follows it.
fn split_namespace(text: &str) -> Option<(&str, &str)> {
    text.split_once(END).or_else(|| text.split_once('}'))
}

/// The namespace in braces; nothing for none.
fn joined(namespace: &str) -> String {
    match namespace {
        "" => String::new(),
        _ if namespace.contains('}') => format!("{{{namespace}{END}"),
        _ => format!("{{{namespace}}}"),
    }
}

/// The namespace that the mark of an element names, and the rest of the mark. None for marks that name none.
fn placed(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix('-')?;
    match rest.strip_prefix('{') {
        Some(rest) => split_namespace(rest),
        None => Some(("", rest)),
    }
}

/// The namespace of the element that a member of this shape is, where it is not its type's; empty where it is in none.
///
/// ```
/// use everywire_idl::wsdl::marks::{Mark, namespace, within};
/// use everywire_model::Shape;
/// let list = Mark::Items.on(Shape::sequence(Shape::I32));
/// assert_eq!(namespace(&list), None);
/// let list = within("", list);
/// assert_eq!((namespace(&list), Mark::of(&list)), (Some(""), Some(Mark::Items)));
/// ```
#[must_use]
pub fn namespace(shape: &Shape) -> Option<&str> {
    match shape {
        Shape::Alias(alias) if alias.name.is_empty() => placed(&alias.id).map(|(namespace, _)| namespace),
        _ => None,
    }
}

/// The shape of a member whose element is in this namespace, not in its type's. Attributes and texts are not elements.
#[must_use]
pub fn within(namespace: &str, shape: Shape) -> Shape {
    let mark = Mark::of(&shape);
    if matches!(mark, Some(Mark::Attribute(_) | Mark::Text)) {
        return shape;
    }
    let id = format!("-{}{}", joined(namespace), mark.map(|mark| mark.to_string()).unwrap_or_default());
    let target = unmarked(&shape).clone();
    Shape::Alias(Hold::new(Alias { name: Name::from(""), id: Name::from(id), target }))
}
