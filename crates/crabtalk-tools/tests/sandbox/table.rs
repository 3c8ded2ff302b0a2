//! `docs/guide/sandbox-table.md`, written from what came of the attacks.

use crate::attacks::ATTACKS;
use std::fs;

pub(crate) fn page(table: &[(&str, Vec<bool>)]) -> String {
    let titles: Vec<&str> = table.iter().map(|(title, _)| *title).collect();
    let mut page = format!(
        "# Walls of the sandbox\n\n\
         What [the sandbox](security.md#the-sandbox) holds, by what a kernel has. A test writes this page: it tries \
         each of these from inside, on every machine that it can play. *open* means that it got through.\n\n\
         | | {} |\n|---|{}\n",
        titles.join(" | "),
        "---|".repeat(titles.len())
    );
    for (row, attack) in ATTACKS.iter().enumerate() {
        let cells: Vec<&str> = table
            .iter()
            .map(|(_, cells)| if cells[row] { "holds" } else { "**open**" })
            .collect();
        page.push_str(&format!("| {} | {} |\n", attack.wall, cells.join(" | ")));
    }
    page.push_str(
        "\nLandlock 9 of later kernels also closes Unix sockets that other processes put into an opened folder.\n",
    );
    page
}

pub(crate) fn compare(page: &str) {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/guide/sandbox-table.md"
    );
    if std::env::var_os("CRABTALK_UPDATE_DOCS").is_some() {
        fs::write(path, page).unwrap();
    }
    let written = include_str!("../../../../docs/guide/sandbox-table.md");
    assert!(
        written == page || std::env::var_os("CRABTALK_UPDATE_DOCS").is_some(),
        "{written}\ndocs/guide/sandbox-table.md differs from the result; CRABTALK_UPDATE_DOCS=1 rewrites it:\n{page}"
    );
}
