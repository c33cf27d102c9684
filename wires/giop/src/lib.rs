//! The CORBA wire: GIOP over byte streams, CDR values, IOR and corbaloc references
