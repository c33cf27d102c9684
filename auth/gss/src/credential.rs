//! What one proves who one is with.

use crate::abi::{ACCEPT, Buffer, Functions, Handle, INITIATE, KeyValue, KeyValueSet, OidSet};
use crate::library::functions;
use crate::name::Name;
use crate::status::{Error, Reason, Status};
use std::ffi::{CString, c_int};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};

/// Tickets or keys.
pub struct Credential {
    pub(crate) functions: &'static Functions,
    pub(crate) handle: Handle,
}

// SAFETY: as for a name.
unsafe impl Send for Credential {}

impl Credential {
    /// The tickets that the user already has, in the usual cache (`$KRB5CCNAME`).
    ///
    /// # Errors
    ///
    /// There are none, they are too old, or they are another user's.
    pub fn tickets(user: Option<&Name>) -> Result<Self, Error> {
        Self::acquire(user, INITIATE, None)
    }

    /// A ticket for this password; it is kept in memory, and its key distribution centre is asked and waited for now.
    ///
    /// # Errors
    ///
    /// The centre cannot be reached, or does not believe it.
    pub fn password(user: &Name, password: &str) -> Result<Self, Error> {
        let functions = functions()?;
        let mut made = Self { functions, handle: null_mut() };
        let (mut minor, word) = (0, Buffer::reading(password.as_bytes()));
        let mechanisms = OidSet::kerberos();
        // SAFETY: all that is pointed to lives until it returns; what is not wanted may be null.
        let major = unsafe {
            (functions.gss_acquire_cred_with_password)(
                &raw mut minor,
                user.handle,
                &raw const word,
                0,
                &raw const mechanisms,
                INITIATE,
                &raw mut made.handle,
                null_mut(),
                null_mut(),
            )
        };
        Status { major, minor }.check(functions)?;
        Ok(made)
    }

    /// The keys of services in a file.
    ///
    /// # Errors
    ///
    /// It is not there, cannot be read, or has no keys.
    pub fn keys(file: &Path) -> Result<Self, Error> {
        Self::acquire(None, ACCEPT, Some(file))
    }

    /// Tickets (`INITIATE`) or keys (`ACCEPT`), of the usual place or of a file of keys.
    fn acquire(name: Option<&Name>, usage: c_int, keytab: Option<&Path>) -> Result<Self, Error> {
        let functions = functions()?;
        let mut made = Self { functions, handle: null_mut() };
        let mechanisms = OidSet::kerberos();
        let place = keytab.map(|file| CString::new([b"FILE:", file.as_os_str().as_bytes()].concat()));
        let place = place
            .transpose()
            .map_err(|_| Error::new(Reason::Other, "the name of the file has a zero in it"))?;
        let element = place.as_ref().map(|place| KeyValue { key: c"keytab".as_ptr(), value: place.as_ptr() });
        let store =
            element.as_ref().map(|element| KeyValueSet { count: 1, elements: std::ptr::from_ref(element) });
        let mut minor = 0;
        // SAFETY: all that is pointed to lives until it returns; what is not wanted may be null.
        let major = unsafe {
            (functions.gss_acquire_cred_from)(
                &raw mut minor,
                name.map_or(null_mut(), |name| name.handle),
                0,
                &raw const mechanisms,
                usage,
                store.as_ref().map_or(null(), std::ptr::from_ref),
                &raw mut made.handle,
                null_mut(),
                null_mut(),
            )
        };
        Status { major, minor }.check(functions)?;
        Ok(made)
    }
}

impl Drop for Credential {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: it came from the library, and is not used afterwards.
            unsafe { (self.functions.gss_release_cred)(&mut 0, &raw mut self.handle) };
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(..)")
    }
}
