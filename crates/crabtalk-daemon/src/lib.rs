//! The composition root of the CrabTalk daemon.
