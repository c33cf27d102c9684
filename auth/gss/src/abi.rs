//! What the library looks like to a linker: RFC 2744, and MIT's extensions of it (`gssapi_ext.h`).

use libloading::Library;
use std::ffi::{c_char, c_int, c_void};

/// A name, a credential or a context of the library's.
pub(crate) type Handle = *mut c_void;

/// `gss_buffer_desc`.
#[repr(C)]
pub(crate) struct Buffer {
    pub(crate) length: usize,
    pub(crate) value: *mut c_void,
}

impl Buffer {
    pub(crate) const EMPTY: Self = Self { length: 0, value: std::ptr::null_mut() };

    /// Octets that the library reads and does not change, although its type for them does not say so.
    pub(crate) fn reading(bytes: &[u8]) -> Self {
        Self { length: bytes.len(), value: bytes.as_ptr().cast_mut().cast() }
    }
}

/// `gss_OID_desc`: the contents of an object identifier's DER.
#[repr(C)]
pub(crate) struct Oid {
    length: u32,
    elements: *const c_void,
}

// SAFETY: what it points to is static and never changed.
unsafe impl Sync for Oid {}

impl Oid {
    const fn new(der: &'static [u8]) -> Self {
        Self { length: der.len() as u32, elements: der.as_ptr().cast() }
    }
}

/// The mechanism: Kerberos.
pub(crate) static KERBEROS: Oid = Oid::new(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02");
/// A name such as `user@REALM` or `host/there@REALM`.
pub(crate) static PRINCIPAL: Oid = Oid::new(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01");
/// A name such as `host@there`, whose realm the configuration tells.
pub(crate) static SERVICE: Oid = Oid::new(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04");
/// `GSS_C_INQ_SSPI_SESSION_KEY`.
pub(crate) static SESSION_KEY: Oid = Oid::new(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x05\x05");

/// `gss_OID_set_desc`.
#[repr(C)]
pub(crate) struct OidSet {
    count: usize,
    elements: *const Oid,
}

impl OidSet {
    pub(crate) fn kerberos() -> Self {
        Self { count: 1, elements: &raw const KERBEROS }
    }
}

/// `gss_buffer_set_desc`.
#[repr(C)]
pub(crate) struct BufferSet {
    pub(crate) count: usize,
    pub(crate) elements: *const Buffer,
}

/// `gss_key_value_element_desc`.
#[repr(C)]
pub(crate) struct KeyValue {
    pub(crate) key: *const c_char,
    pub(crate) value: *const c_char,
}

/// `gss_key_value_set_desc`.
#[repr(C)]
pub(crate) struct KeyValueSet {
    pub(crate) count: u32,
    pub(crate) elements: *const KeyValue,
}

/// `gss_iov_buffer_desc`.
#[repr(C)]
pub(crate) struct Iov {
    pub(crate) kind: u32,
    pub(crate) buffer: Buffer,
}

/// Kinds of pieces (`GSS_IOV_BUFFER_TYPE_*` of `gssapi_ext.h`).
pub(crate) const IOV_DATA: u32 = 1;
pub(crate) const IOV_HEADER: u32 = 2;
pub(crate) const IOV_STREAM: u32 = 10;
pub(crate) const IOV_SIGN_ONLY: u32 = 11;
pub(crate) const IOV_MIC: u32 = 12;

/// What a credential is for (`GSS_C_INITIATE`, `GSS_C_ACCEPT`).
pub(crate) const INITIATE: c_int = 1;
pub(crate) const ACCEPT: c_int = 2;

/// Declares the functions that are used, each without its first parameter, which is always where the mechanism's own status
/// is put, and without its result, which is always the status.
macro_rules! functions {
    ($($name:ident($($parameter:ty),* $(,)?);)*) => {
        /// The functions of the library that are used.
        pub(crate) struct Functions {
            $(pub(crate) $name: unsafe extern "C" fn(*mut u32, $($parameter),*) -> u32,)*
            /// Keeps the functions where they are.
            _library: Library,
        }

        impl Functions {
            /// Looks them up.
            ///
            /// # Safety
            ///
            /// The library has functions of these names only with these parameters.
            pub(crate) unsafe fn find(library: Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    // SAFETY: the caller vouches for the types.
                    $($name: *unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) }?,)*
                    _library: library,
                })
            }
        }
    };
}

functions! {
    gss_import_name(*const Buffer, *const Oid, *mut Handle);
    gss_display_name(Handle, *mut Buffer, *mut *const Oid);
    gss_release_name(*mut Handle);

    gss_acquire_cred_from(
        Handle, u32, *const OidSet, c_int, *const KeyValueSet, *mut Handle, *mut *const OidSet, *mut u32,
    );
    gss_acquire_cred_with_password(
        Handle, *const Buffer, u32, *const OidSet, c_int, *mut Handle, *mut *const OidSet, *mut u32,
    );
    gss_release_cred(*mut Handle);

    gss_init_sec_context(
        Handle, *mut Handle, Handle, *const Oid, u32, u32, *const c_void, *const Buffer, *mut *const Oid,
        *mut Buffer, *mut u32, *mut u32,
    );
    gss_accept_sec_context(
        *mut Handle, Handle, *const Buffer, *const c_void, *mut Handle, *mut *const Oid, *mut Buffer, *mut u32,
        *mut u32, *mut Handle,
    );
    gss_inquire_context(
        Handle, *mut Handle, *mut Handle, *mut u32, *mut *const Oid, *mut u32, *mut c_int, *mut c_int,
    );
    gss_inquire_sec_context_by_oid(Handle, *const Oid, *mut *mut BufferSet);
    gss_delete_sec_context(*mut Handle, *mut Buffer);

    gss_get_mic_iov_length(Handle, u32, *mut Iov, c_int);
    gss_get_mic_iov(Handle, u32, *mut Iov, c_int);
    gss_verify_mic_iov(Handle, *mut u32, *mut Iov, c_int);
    gss_wrap_iov_length(Handle, c_int, u32, *mut c_int, *mut Iov, c_int);
    gss_wrap_iov(Handle, c_int, u32, *mut c_int, *mut Iov, c_int);
    gss_unwrap_iov(Handle, *mut c_int, *mut u32, *mut Iov, c_int);

    gss_display_status(u32, c_int, *const Oid, *mut u32, *mut Buffer);
    gss_release_buffer(*mut Buffer);
    gss_release_buffer_set(*mut *mut BufferSet);
}
