//! Commands, chat and rendering of CrabTalk: a protocol client.
