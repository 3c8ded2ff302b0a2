//! How well recall ranks, in numbers (MEM-3).

pub(crate) mod measure;
mod ranking;
