//! Every provider through the same cases, and the page that shows them.
//!
//! Each cell of `docs/providers.md` is run here against a server that speaks
//! the provider's format and checks every request. A page that says something
//! else fails; `CRABTALK_UPDATE=1` rewrites it.

mod answers;
mod dialect;
mod failures;
mod images;
mod page;
mod requests;
#[path = "../support/mod.rs"]
mod support;

use dialect::Dialect;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;

type Run = fn(Dialect) -> Pin<Box<dyn Future<Output = Cell>>>;

/// The outcome of a case.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cell {
    /// It holds.
    Holds,
    /// The provider's format has no such thing, and this is how it is.
    Absent(&'static str),
}

/// A row of the table.
pub(crate) struct Case {
    name: &'static str,
    run: Run,
    /// Whether time moves only while everybody waits.
    paused: bool,
}

impl Case {
    pub(crate) const fn new(name: &'static str, run: Run) -> Self {
        Self {
            name,
            run,
            paused: false,
        }
    }

    pub(crate) const fn timed(name: &'static str, run: Run) -> Self {
        Self {
            paused: true,
            ..Self::new(name, run)
        }
    }
}

/// A part of the table.
pub(crate) struct Group {
    title: &'static str,
    cases: &'static [Case],
}

const GROUPS: [Group; 4] = [
    Group {
        title: "Answers",
        cases: &answers::CASES,
    },
    Group {
        title: "Requests",
        cases: &requests::CASES,
    },
    Group {
        title: "Images",
        cases: &images::CASES,
    },
    Group {
        title: "Failures",
        cases: &failures::CASES,
    },
];

/// Runs one cell; `None` when it does not hold.
fn run(case: &Case, dialect: Dialect) -> Option<Cell> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(case.paused)
        .build()
        .expect("a runtime");
    catch_unwind(AssertUnwindSafe(|| runtime.block_on((case.run)(dialect)))).ok()
}

#[test]
fn every_case_holds_and_the_page_is_current() {
    let mut broken = Vec::new();
    let mut rows = Vec::new();
    for group in &GROUPS {
        for case in group.cases {
            let cells = Dialect::ALL.map(|dialect| {
                let cell = run(case, dialect);
                if cell.is_none() {
                    broken.push(format!("{} / {}", case.name, dialect.kind()));
                }
                cell.unwrap_or(Cell::Absent("broken"))
            });
            rows.push((group.title, case.name, cells));
        }
    }
    assert!(broken.is_empty(), "these do not hold: {broken:#?}");
    page::compare(&rows);
}
