//! Component categories, for clients that ask COM's own manager of categories for OPC servers and not OpcEnum: ICatInformation (comcat.idl).
//!
//! Its class is the one that every Windows has. Of the machine's classes it knows those of the list of servers; what these are good for are the versions
//! of Data Access.

use super::enumerators::{EnumeratorState, lend};
use super::list::{CATEGORIES, ListObject};
use super::wire::guid_of;
use crate::Code;
use crate::contract::{CATEGORYINFO, GUID, ICatInformation, IEnumCATEGORYINFO, IEnumGUID};
use crate::wire::text_of;
use everywire::{Failure, Initiator, Kind, Ref, Success};
use std::sync::Arc;

/// The class of the manager of categories (StdComponentCategoriesMgr).
pub const CATEGORY_MANAGER: &str = "0002e005-0000-0000-c000-000000000046";

/// A count that means: it does not matter (comcat.idl, EnumClassesOfCategories).
const ANY: u32 = u32::MAX;
/// The language of the descriptions.
const ENGLISH: u32 = 0x409;

/// The categories of a request; nothing where it does not matter which.
fn asked(count: u32, categories: &Option<Vec<GUID>>) -> Result<Option<&[GUID]>, Failure> {
    match (count, categories) {
        (ANY, _) => Ok(None),
        (0, None) => Ok(Some(&[])),
        (count, Some(categories)) if categories.len() == count as usize => Ok(Some(categories)),
        _ => Err(Code::INVALID_ARGUMENT.into()),
    }
}

/// Whether our servers are in it.
pub(super) fn is_ours(category: &GUID) -> bool {
    let category = text_of(category);
    CATEGORIES.iter().any(|(ours, _)| *ours == category)
}

impl ListObject {
    fn enumerated(&self, ids: Vec<GUID>) -> Result<Option<Ref<dyn IEnumGUID>>, Failure> {
        let tape: Arc<dyn IEnumGUID> =
            Arc::new(EnumeratorState::<GUID>::of(self.node.clone(), self.seat()?, ids)?);
        lend(&self.node, tape).map(Some)
    }

    /// Whether our servers are among those that are asked for: all of them are in the same categories, and need none of their clients.
    fn fits(
        count: u32,
        implemented: &Option<Vec<GUID>>,
        required: (u32, &Option<Vec<GUID>>),
    ) -> Result<bool, Failure> {
        asked(required.0, required.1)?;
        // There must be some, unless it does not matter which.
        if count == 0 {
            return Err(Code::INVALID_ARGUMENT.into());
        }
        Ok(asked(count, implemented)?.is_none_or(|wanted| wanted.iter().any(is_ours)))
    }
}

impl ICatInformation for ListObject {
    fn enum_categories(&self, _locale: u32) -> Result<Option<Ref<dyn IEnumCATEGORYINFO>>, Failure> {
        let info = |(category, name): &(&str, &str)| {
            let mut description = [[0_u16; 32]; 4];
            // The last unit stays 0: it ends the text.
            let units = description.as_flattened_mut().iter_mut().take(127);
            units.zip(name.encode_utf16()).for_each(|(place, unit)| *place = unit);
            CATEGORYINFO { catid: guid_of(category), lcid: ENGLISH, sz_description: description }
        };
        let all: Vec<CATEGORYINFO> = CATEGORIES.iter().map(info).collect();
        let tape: Arc<dyn IEnumCATEGORYINFO> =
            Arc::new(EnumeratorState::<CATEGORYINFO>::of(self.node.clone(), self.seat()?, all)?);
        lend(&self.node, tape).map(Some)
    }

    fn get_category_desc(&self, category: &GUID, _locale: u32) -> Result<Option<String>, Failure> {
        let category = text_of(category);
        let found = CATEGORIES.iter().find(|(ours, _)| *ours == category);
        found.map(|(_, name)| Some((*name).to_owned())).ok_or_else(|| {
            let message = format!("no category {category} is known");
            // CAT_E_CATIDNOEXIST.
            Failure::new(Kind::NoObject, Initiator::User, message).with_code("0x80040160")
        })
    }

    fn remote_enum_classes_of_categories(
        &self,
        implemented_count: u32,
        implemented: &Option<Vec<GUID>>,
        required_count: u32,
        required: &Option<Vec<GUID>>,
    ) -> Result<Option<Ref<dyn IEnumGUID>>, Failure> {
        let fits = Self::fits(implemented_count, implemented, (required_count, required))?;
        let servers = self.list.servers();
        let classes = servers.iter().filter(|_| fits).map(|server| guid_of(&server.class)).collect();
        self.enumerated(classes)
    }

    fn remote_is_class_of_categories(
        &self,
        class_id: &GUID,
        implemented_count: u32,
        implemented: &Option<Vec<GUID>>,
        required_count: u32,
        required: &Option<Vec<GUID>>,
    ) -> Result<Success<()>, Failure> {
        let fits = Self::fits(implemented_count, implemented, (required_count, required))?;
        let is_there = self.server(class_id).is_ok();
        Ok(Success::with(if fits && is_there { Success::PLAIN } else { Success::LESS }, ()))
    }

    fn enum_impl_categories_of_class(&self, class_id: &GUID) -> Result<Option<Ref<dyn IEnumGUID>>, Failure> {
        self.server(class_id)?;
        self.enumerated(CATEGORIES.iter().map(|(category, _)| guid_of(category)).collect())
    }

    fn enum_req_categories_of_class(&self, class_id: &GUID) -> Result<Option<Ref<dyn IEnumGUID>>, Failure> {
        self.server(class_id)?;
        self.enumerated(Vec::new())
    }
}
