//! Component categories (comcat.idl): which classes a machine has, what they are good for, and how people call them. What COM keeps
//! in its registry, for whoever tells others of classes, such as a list of servers.
//!
//! A program fills it and asks it; nothing is read from a registry of the machine, and no servant of this
//! crate looks into it.

use crate::lock::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;
use uuid::Uuid;

/// What is known of a class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Class {
    /// How programs call it: `Vendor.Product.1`.
    pub prog_id: String,
    /// The same without a version: `Vendor.Product`; may be empty.
    pub version_independent: String,
    /// How people call it.
    pub title: String,
    /// The categories whose interfaces its objects have.
    pub implemented: Vec<Uuid>,
    /// The categories whose interfaces its objects need of who uses them.
    pub required: Vec<Uuid>,
}

/// Classes by their CLSIDs.
#[derive(Debug, Default)]
pub struct Categories {
    classes: Mutex<BTreeMap<Uuid, Class>>,
}

impl Categories {
    /// No classes yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a class, in place of what was known of it.
    pub fn register(&self, clsid: Uuid, class: Class) {
        lock(&self.classes).insert(clsid, class);
    }

    /// Forgets a class; whether it was known.
    pub fn unregister(&self, clsid: Uuid) -> bool {
        lock(&self.classes).remove(&clsid).is_some()
    }

    /// What is known of a class.
    pub fn class(&self, clsid: Uuid) -> Option<Class> {
        lock(&self.classes).get(&clsid).cloned()
    }

    /// The class that programs call so, with or without its version, in any case of letters. Of several versions it is the one that was
    /// named whole, else any.
    pub fn clsid_of(&self, prog_id: &str) -> Option<Uuid> {
        let classes = lock(&self.classes);
        let by = |name: fn(&Class) -> &str| {
            let same = |(_, class): &(&Uuid, &Class)| name(class).eq_ignore_ascii_case(prog_id);
            classes.iter().find(same).map(|(clsid, _)| *clsid)
        };
        let found = by(|class| &class.prog_id).or_else(|| by(|class| &class.version_independent));
        found.filter(|_| !prog_id.is_empty())
    }

    /// The classes that implement one of these categories and require none beside those (ICatInformation::EnumClassesOfCategories).
    /// `None` stands for a count of -1: it does not matter what they implement, or require.
    pub fn classes_of(&self, implemented: Option<&[Uuid]>, required: Option<&[Uuid]>) -> Vec<Uuid> {
        let fits = |class: &Class| {
            implemented.is_none_or(|wanted| wanted.iter().any(|catid| class.implemented.contains(catid)))
                && required.is_none_or(|given| class.required.iter().all(|catid| given.contains(catid)))
        };
        let classes = lock(&self.classes);
        classes.iter().filter(|(_, class)| fits(class)).map(|(clsid, _)| *clsid).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_found_by_category_and_by_name() {
        let [a, b, one, two] = [1, 2, 10, 20].map(Uuid::from_u128);
        let categories = Categories::new();
        let class = |prog_id: &str, implemented: &[Uuid], required: &[Uuid]| Class {
            prog_id: format!("{prog_id}.1"),
            version_independent: prog_id.to_owned(),
            title: prog_id.to_owned(),
            implemented: implemented.to_vec(),
            required: required.to_vec(),
        };
        categories.register(a, class("Plant.Server", &[one, two], &[]));
        categories.register(b, class("Other.Server", &[two], &[one]));
        assert_eq!(categories.classes_of(Some(&[one]), Some(&[])), [a]);
        assert_eq!(categories.classes_of(Some(&[one, two]), Some(&[])), [a]);
        assert_eq!(categories.classes_of(Some(&[two]), Some(&[one])), [a, b]);
        assert_eq!(categories.classes_of(Some(&[two]), None), [a, b]);
        assert_eq!(categories.classes_of(None, None), [a, b]);
        assert!(categories.classes_of(Some(&[]), None).is_empty());
        assert_eq!(categories.clsid_of("plant.server.1"), Some(a));
        assert_eq!(categories.clsid_of("Other.Server"), Some(b));
        assert_eq!((categories.clsid_of("Nobody"), categories.clsid_of("")), (None, None));
        assert_eq!(categories.class(b).unwrap().title, "Other.Server");
        assert!(categories.unregister(b) && !categories.unregister(b));
        assert_eq!(categories.classes_of(None, None), [a]);
    }
}
