//! Unix socket transport of CrabTalk: listen, accept, connect.
