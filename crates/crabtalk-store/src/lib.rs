//! The JSONL conversation log of CrabTalk.
