//! Properties of items (OPC DA 2.05a, 4.4.6; 3.0, 6.7.4): numbers 1 to 8 and 100 to 108, and those of the source.

use crate::Code;
use crate::data::{Data, VarType, Vqt};
use crate::item::{EngineeringUnits, Item};

/// A property that an item has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PropertyDescription {
    /// Its number.
    pub id: u32,
    /// What it is.
    pub description: String,
    /// Its type.
    pub data_type: VarType,
}

/// Numbers, texts and types of those that the standard names; an empty type is that of the item.
const STANDARD: &[(u32, &str, VarType)] = &[
    (1, "Item Canonical DataType", VarType::I2),
    (2, "Item Value", VarType::EMPTY),
    (3, "Item Quality", VarType::I2),
    (4, "Item Timestamp", VarType::DATE),
    (5, "Item Access Rights", VarType::I4),
    (6, "Server Scan Rate", VarType::R4),
    (7, "Item EU Type", VarType::I4),
    (8, "Item EUInfo", VarType::VARIANT),
    (100, "EU Units", VarType::BSTR),
    (101, "Item Description", VarType::BSTR),
    (102, "High EU", VarType::R8),
    (103, "Low EU", VarType::R8),
    (104, "High Instrument Range", VarType::R8),
    (105, "Low Instrument Range", VarType::R8),
    (106, "Contact Close Label", VarType::BSTR),
    (107, "Contact Open Label", VarType::BSTR),
    (108, "Item Timezone", VarType::I4),
];

/// The properties that an item has.
#[must_use]
pub fn available(item: &Item) -> Vec<PropertyDescription> {
    let nothing = Vqt::bad(crate::Quality::WAITING, crate::FileTime::default());
    let standard = STANDARD.iter().filter_map(|(id, text, data_type)| {
        let value = value(item, *id, &nothing).ok()?;
        let data_type = match *id {
            2 => item.canonical,
            8 => value.var_type(),
            _ => *data_type,
        };
        Some(PropertyDescription { id: *id, description: (*text).to_owned(), data_type })
    });
    let own = item.properties.iter().map(|property| PropertyDescription {
        id: property.id,
        description: property.description.clone(),
        data_type: property.value.var_type(),
    });
    standard.chain(own).collect()
}

/// What a property is called.
#[must_use]
pub fn description(item: &Item, id: u32) -> Option<&str> {
    let own = item.properties.iter().find(|property| property.id == id).map(|own| own.description.as_str());
    own.or_else(|| STANDARD.iter().find(|(known, ..)| *known == id).map(|(_, text, _)| *text))
}

/// Whether a property needs the item's value.
#[must_use]
pub fn is_of_value(id: u32) -> bool {
    (2..=4).contains(&id)
}

/// A property of an item whose value is `vqt`.
///
/// # Errors
/// [`Code::INVALID_PROPERTY`].
pub fn value(item: &Item, id: u32, vqt: &Vqt) -> Result<Data, Code> {
    if let Some(own) = item.properties.iter().find(|property| property.id == id) {
        return Ok(own.value.clone());
    }
    let text = |text: Option<&String>| text.map(|text| Data::from(text.as_str()));
    let found = match id {
        1 => Some(Data::I2(item.canonical.0.cast_signed())),
        2 => Some(vqt.data.clone()),
        3 => Some(Data::I2(vqt.quality.0.cast_signed())),
        4 => Some(Data::Date(vqt.time.date())),
        5 => Some(Data::I4(item.access.0.cast_signed())),
        6 => Some(Data::R4(item.scan_rate)),
        7 => Some(Data::I4(eu_type(item).into())),
        8 => (eu_type(item) != 0).then(|| eu_info(item)),
        100 => text(item.unit.as_ref()),
        101 => text(item.description.as_ref()),
        102 => range(item).map(|(_, high)| Data::R8(high)),
        103 => range(item).map(|(low, _)| Data::R8(low)),
        104 => item.instrument.map(|(_, high)| Data::R8(high)),
        105 => item.instrument.map(|(low, _)| Data::R8(low)),
        106 => text(item.labels.as_ref().map(|(closed, _)| closed)),
        107 => text(item.labels.as_ref().map(|(_, open)| open)),
        _ => None,
    };
    found.ok_or(Code::INVALID_PROPERTY)
}

/// The id of the item that has the same value as a property.
///
/// # Errors
/// [`Code::INVALID_PROPERTY`]: there is no such property. [`Code::FAIL`]: it is no item.
pub fn item_id(item: &Item, id: u32) -> Result<String, Code> {
    if let Some(own) = item.properties.iter().find(|property| property.id == id) {
        return own.item.clone().ok_or(Code::FAIL);
    }
    let nothing = Vqt::bad(crate::Quality::WAITING, crate::FileTime::default());
    value(item, id, &nothing)?;
    Err(Code::FAIL)
}

/// OPCEUTYPE.
#[must_use]
pub fn eu_type(item: &Item) -> u16 {
    match item.units {
        EngineeringUnits::None => 0,
        EngineeringUnits::Analog { .. } => 1,
        EngineeringUnits::Enumerated(_) => 2,
    }
}

/// What goes with the type: low and high, or the texts.
#[must_use]
pub fn eu_info(item: &Item) -> Data {
    match &item.units {
        EngineeringUnits::None => Data::Empty,
        EngineeringUnits::Analog { low, high } => {
            Data::array(VarType::R8, vec![Data::R8(*low), Data::R8(*high)])
        }
        EngineeringUnits::Enumerated(texts) => {
            Data::array(VarType::BSTR, texts.iter().map(|text| text.as_str().into()).collect())
        }
    }
}

fn range(item: &Item) -> Option<(f64, f64)> {
    match item.units {
        EngineeringUnits::Analog { low, high } => Some((low, high)),
        _ => None,
    }
}
