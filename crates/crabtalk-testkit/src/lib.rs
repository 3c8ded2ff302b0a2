//! Test doubles of CrabTalk, one per port.
