//! Names of users and services.

use crate::abi::{Buffer, Functions, Handle, Oid, PRINCIPAL, SERVICE};
use crate::library::{LibraryBuffer, functions};
use crate::status::{Error, Status};
use std::fmt;

/// A user or a service.
pub struct Name {
    functions: &'static Functions,
    pub(crate) handle: Handle,
}

// SAFETY: the library keeps no reference to the thread that made it, and only its owner uses it.
unsafe impl Send for Name {}

impl Name {
    /// A name in full, `user@REALM` or `service/host@REALM`; without a realm it is of the default one.
    ///
    /// # Errors
    ///
    /// It is malformed, or the configuration cannot be read.
    pub fn principal(text: &str) -> Result<Self, Error> {
        Self::import(text, &PRINCIPAL)
    }

    /// A service on a host; the configuration tells its realm, and whether DNS has a better name for the host.
    ///
    /// # Errors
    ///
    /// As [`principal`](Self::principal).
    pub fn service(service: &str, host: &str) -> Result<Self, Error> {
        Self::import(&format!("{service}@{host}"), &SERVICE)
    }

    fn import(text: &str, kind: &'static Oid) -> Result<Self, Error> {
        let functions = functions()?;
        let mut name = Self { functions, handle: std::ptr::null_mut() };
        let (mut minor, buffer) = (0, Buffer::reading(text.as_bytes()));
        // SAFETY: all that is pointed to lives until it returns, and the library copies the text.
        let major = unsafe {
            (functions.gss_import_name)(&raw mut minor, &raw const buffer, kind, &raw mut name.handle)
        };
        Status { major, minor }.check(functions)?;
        Ok(name)
    }

    /// A name that the library made; it may be null.
    pub(crate) fn empty(functions: &'static Functions) -> Self {
        Self { functions, handle: std::ptr::null_mut() }
    }

    /// The name as text, with its realm if it has one.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn text(&self) -> Result<String, Error> {
        let mut text = LibraryBuffer::new(self.functions);
        let (mut minor, place) = (0, &raw mut text.buffer);
        // SAFETY: the handle is the library's; the text is released by its owner. The type of the name is not asked for.
        let major = unsafe {
            (self.functions.gss_display_name)(&raw mut minor, self.handle, place, std::ptr::null_mut())
        };
        Status { major, minor }.check(self.functions)?;
        Ok(String::from_utf8_lossy(text.bytes()).into_owned())
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: it came from the library, and is not used afterwards.
            unsafe { (self.functions.gss_release_name)(&mut 0, &raw mut self.handle) };
        }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({})", self.text().unwrap_or_default())
    }
}
