//! The runtime on doubles, seen from outside.

mod asks;
mod compaction;
mod compactions;
mod context;
mod delegation;
mod durable;
mod ends;
mod expected;
mod faults;
mod guests;
mod hooks;
mod limits;
mod modes;
mod origins;
mod requests;
mod returns;
mod rig;
mod runs;
mod settled;
mod spending;
mod steers;
mod watch;
mod withdrawals;
