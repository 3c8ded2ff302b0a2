//! `docs/guide/sandbox-table.md`, generated from the results of the attacks.

use crate::attacks::ATTACKS;
use std::fs;

pub(crate) fn page(table: &[(&str, Vec<bool>)]) -> String {
    let titles: Vec<&str> = table.iter().map(|(title, _)| *title).collect();
    let mut page = format!(
        "# Restrictions of the sandbox\n\n\
         Operations that [the sandbox](security.md#the-sandbox) blocks, by the features of the kernel. A test tries \
         each operation with a command in the sandbox and generates this page; **open** means that the operation \
         succeeds.\n\n\
         | operation | {} |\n|---|{}\n",
        titles.join(" | "),
        "---|".repeat(titles.len())
    );
    for (row, attack) in ATTACKS.iter().enumerate() {
        let cells: Vec<&str> = table
            .iter()
            .map(|(_, cells)| if cells[row] { "blocked" } else { "**open**" })
            .collect();
        page.push_str(&format!("| {} | {} |\n", attack.wall, cells.join(" | ")));
    }
    page.push_str(
        "\nLandlock 9 of later kernels also blocks Unix sockets of other processes inside opened folders.\n",
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
