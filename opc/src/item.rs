//! Items: what is known of them beside their values.

use crate::data::{Data, VarType};

/// What may be done with an item (OPC_READABLE, OPC_WRITEABLE).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Access(pub u32);

impl Access {
    /// It can be read.
    pub const READ: Self = Self(1);
    /// It can be written.
    pub const WRITE: Self = Self(2);
    /// Both.
    pub const BOTH: Self = Self(3);

    /// Whether all that another one allows is allowed.
    #[must_use]
    pub fn allows(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What the numbers of an item mean (OPCEUTYPE).
#[derive(Debug, Clone, PartialEq, Default)]
pub enum EngineeringUnits {
    /// Nothing is said.
    #[default]
    None,
    /// A range: deadbands are percentages of it.
    Analog {
        /// Its lower end.
        low: f64,
        /// Its upper end.
        high: f64,
    },
    /// A text for each of the values 0, 1, 2, ...
    Enumerated(Vec<String>),
}

/// A property that the standard does not fix for all items: of the recommended ones, or the vendor's own (numbers from 5000).
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    /// Its number.
    pub id: u32,
    /// What it is, for people.
    pub description: String,
    /// Its value.
    pub value: Data,
    /// The item that has the same value, if there is one.
    pub item: Option<String>,
}

/// An item, as its source describes it. A source that describes it anew has a new one ([`crate::Source::current`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Its name in full, unique in the server.
    pub id: String,
    /// The type in which the source has it.
    pub canonical: VarType,
    /// What may be done with it.
    pub access: Access,
    /// How often the source looks at it, in milliseconds.
    pub scan_rate: f32,
    /// What its numbers mean.
    pub units: EngineeringUnits,
    /// Property 100: the unit's name, such as `°C`.
    pub unit: Option<String>,
    /// Property 101.
    pub description: Option<String>,
    /// Properties 104 and 105: high and low of what the instrument can measure, in the order low, high.
    pub instrument: Option<(f64, f64)>,
    /// Properties 106 and 107: what a contact is called when it is closed (true), and open (false).
    pub labels: Option<(String, String)>,
    /// More properties.
    pub properties: Vec<Property>,
    /// The source's own number for it: for sources that do not look for names at each read.
    pub tag: u64,
}

impl Item {
    /// An item that can be read.
    #[must_use]
    pub fn new(id: impl Into<String>, canonical: VarType) -> Self {
        Self {
            id: id.into(),
            canonical,
            access: Access::READ,
            scan_rate: 0.0,
            units: EngineeringUnits::None,
            unit: None,
            description: None,
            instrument: None,
            labels: None,
            properties: Vec::new(),
            tag: 0,
        }
    }

    /// The same item, which can be written, too.
    #[must_use]
    pub fn writable(mut self) -> Self {
        self.access = Access::BOTH;
        self
    }

    /// The same item with a range and its unit.
    #[must_use]
    pub fn analog(mut self, low: f64, high: f64, unit: impl Into<String>) -> Self {
        self.units = EngineeringUnits::Analog { low, high };
        self.unit = Some(unit.into());
        self
    }

    /// The same item with texts for its values.
    #[must_use]
    pub fn enumerated<T: Into<String>>(mut self, texts: impl IntoIterator<Item = T>) -> Self {
        self.units = EngineeringUnits::Enumerated(texts.into_iter().map(Into::into).collect());
        self
    }

    /// The same item with a description.
    #[must_use]
    pub fn described(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// The width of its range, if it has one that deadbands can be percentages of.
    #[must_use]
    pub fn span(&self) -> Option<f64> {
        match self.units {
            EngineeringUnits::Analog { low, high } if high > low => Some(high - low),
            _ => None,
        }
    }
}
