//! The store as its users meet it, over a real folder and a failing disk.

mod contract;
mod conversations;
mod faults;
mod formats;
mod lists;
mod loading;
mod markers;
mod pages;
mod removal;
mod returns;
mod roundtrip;
mod search;
mod support;
mod syncs;
mod torn;
