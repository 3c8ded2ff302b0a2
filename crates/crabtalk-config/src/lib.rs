//! Typed configuration and agent files of CrabTalk, with spans.
