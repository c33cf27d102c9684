//! Finding the library.

use crate::abi::{Buffer, BufferSet, Functions};
use crate::status::{Error, Reason};
use libloading::Library;
use std::ffi::OsStr;
use std::sync::OnceLock;

/// The library's name, as the system's loader looks for it.
pub const LIBRARY: &str = "libgssapi_krb5.so.2";

/// Whether the library is here.
///
/// # Errors
///
/// [`Reason::NoLibrary`]: what the loader says.
pub fn available() -> Result<(), Error> {
    functions().map(|_| ())
}

/// The library's functions; it is loaded once, and stays.
pub(crate) fn functions() -> Result<&'static Functions, Error> {
    static LOADED: OnceLock<Result<Functions, Error>> = OnceLock::new();
    LOADED.get_or_init(|| load(LIBRARY)).as_ref().map_err(Clone::clone)
}

fn load(name: impl AsRef<OsStr>) -> Result<Functions, Error> {
    // Such a program has a C library of its own, and a loaded one would bring another beside it.
    if cfg!(target_feature = "crt-static") {
        let why = "this program is linked statically and loads no library; one that cargo or the Debian package installs does";
        return Err(Error::new(Reason::NoLibrary, why));
    }
    let missing = |error: libloading::Error| Error::new(Reason::NoLibrary, error.to_string());
    // SAFETY: what the library does when it is loaded is to set up its locks.
    let library = unsafe { Library::new(name.as_ref()) }.map_err(missing)?;
    // SAFETY: a library of this name and number has these functions as its header declares them.
    unsafe { Functions::find(library) }.map_err(missing)
}

/// Octets that the library allocated.
pub(crate) struct LibraryBuffer {
    functions: &'static Functions,
    pub(crate) buffer: Buffer,
}

impl LibraryBuffer {
    pub(crate) fn new(functions: &'static Functions) -> Self {
        Self { functions, buffer: Buffer::EMPTY }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the library filled it, or it is still empty.
        unsafe { bytes(&self.buffer) }
    }
}

impl Drop for LibraryBuffer {
    fn drop(&mut self) {
        // SAFETY: it came from the library, or is empty; it is not used afterwards. There is nobody to tell of a failure.
        unsafe { (self.functions.gss_release_buffer)(&mut 0, &raw mut self.buffer) };
    }
}

/// Several of them.
pub(crate) struct OwnedSet {
    functions: &'static Functions,
    pub(crate) set: *mut BufferSet,
}

impl OwnedSet {
    pub(crate) fn new(functions: &'static Functions) -> Self {
        Self { functions, set: std::ptr::null_mut() }
    }

    pub(crate) fn first(&self) -> Option<&[u8]> {
        // SAFETY: the library filled it, or it is still null.
        let set = unsafe { self.set.as_ref() }.filter(|set| set.count > 0)?;
        // SAFETY: it has at least one element, which the library filled.
        Some(unsafe { bytes(&*set.elements) })
    }
}

impl Drop for OwnedSet {
    fn drop(&mut self) {
        // SAFETY: as for one.
        unsafe { (self.functions.gss_release_buffer_set)(&mut 0, &raw mut self.set) };
    }
}

/// # Safety
///
/// The buffer is empty, or the library filled it and it was not released.
unsafe fn bytes(buffer: &Buffer) -> &[u8] {
    if buffer.length == 0 || buffer.value.is_null() {
        return &[];
    }
    // SAFETY: the caller vouches for it.
    unsafe { std::slice::from_raw_parts(buffer.value.cast(), buffer.length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_here_is_told() {
        let error = load("libno-such-kerberos.so.2").err().expect("there is none");
        assert_eq!(error.reason(), Reason::NoLibrary);
        assert!(error.to_string().contains("libno-such-kerberos"), "{error}");
        // A library without the functions.
        let error = load("libc.so.6").err().expect("it is another");
        assert!(error.to_string().contains("gss_"), "{error}");
    }
}
