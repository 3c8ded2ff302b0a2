//! The wire protocol of CrabTalk: messages, codec, limits, Client and Server.
