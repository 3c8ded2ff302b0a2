//! Memory of CrabTalk: entries as files, an index of its own, recall.
