//! Tests that span rooms: the architecture's arrows and real peers
