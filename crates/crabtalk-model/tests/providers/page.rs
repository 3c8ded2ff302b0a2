//! The page that shows the table.

use crate::Cell;
use crate::dialect::Dialect;
use std::fmt::Write as _;
use std::path::Path;

type Row = (&'static str, &'static str, [Cell; Dialect::ALL.len()]);

/// Below the table.
const FOOT: &str = "
Whether a model accepts images comes from the configuration (`images = true`) or a list of
well-known models. Unknown models are assumed to accept images for `anthropic` and `google` only.
";

fn render(rows: &[Row]) -> String {
    let mut page = include_str!("page.md").to_owned();
    let mut open = "";
    for (group, name, cells) in rows {
        if open != *group {
            open = group;
            write!(page, "\n## {group}\n\n|").expect("a String takes it");
            let kinds = Dialect::ALL.map(|dialect| dialect.kind().as_str());
            writeln!(page, " | {} |", kinds.join(" | ")).expect("a String takes it");
            writeln!(page, "|---|{}", "---|".repeat(kinds.len())).expect("a String takes it");
        }
        let cells = cells.map(|cell| match cell {
            Cell::Holds => "yes",
            Cell::Absent(instead) => instead,
        });
        writeln!(page, "| {name} | {} |", cells.join(" | ")).expect("a String takes it");
    }
    page.push_str(FOOT);
    page
}

/// Compares the page on disk with the table, or writes it.
pub(crate) fn compare(rows: &[Row]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/providers.md");
    let page = render(rows);
    if std::env::var_os("CRABTALK_UPDATE").is_some() {
        return std::fs::write(&path, page).expect("the page can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    // A checkout may end lines differently.
    assert!(
        found.replace("\r\n", "\n") == page,
        "{} is stale; CRABTALK_UPDATE=1 rewrites it",
        path.display()
    );
}
