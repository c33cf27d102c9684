//! Transports, links, dispatch, the object directory and quotas: the only sockets, clocks and threads
