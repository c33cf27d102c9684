//! Contract languages in, one interface model out, and back
