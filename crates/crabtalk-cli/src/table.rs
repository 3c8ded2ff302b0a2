//! Text tables.

use crate::text::summary;
use comfy_table::{ContentArrangement, Table, presets};

/// Formats rows under a header, without columns that are empty in all rows; widths follow the
/// terminal.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>, width: Option<u16>) -> String {
    let is_used = |column: &usize| rows.iter().any(|row| !row[*column].is_empty());
    let used: Vec<usize> = (0..header.len()).filter(is_used).collect();
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(used.iter().map(|column| header[*column].to_uppercase()));
    if let Some(width) = width {
        table.set_width(width);
    }
    for row in &rows {
        table.add_row(used.iter().map(|column| summary(&row[*column])));
    }
    trimmed(&table)
}

/// Formats names and values, one pair per line, without empty values.
pub(crate) fn pairs(rows: &[(&str, String)]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        table.add_row([name.to_string(), summary(value)]);
    }
    trimmed(&table)
}

/// Formats a table without padding at line ends.
fn trimmed(table: &Table) -> String {
    let lines = table.lines().map(|line| {
        let line = line.strip_prefix(' ').unwrap_or(&line);
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_cells_are_clean() {
        let rows = vec![
            vec!["crab".into(), "a\x1b[1mb\nc".into()],
            vec!["reviewer".into(), "x".into()],
        ];
        assert_eq!(
            table(&["agent", "title"], rows, Some(80)),
            "AGENT     TITLE\ncrab      a<U+001B>[1mb c\nreviewer  x"
        );
        assert_eq!(
            pairs(&[("pid", "1".into()), ("uptime", "2 s".into())]),
            "pid     1\nuptime  2 s"
        );
    }

    #[test]
    fn a_table_is_no_wider_than_the_terminal() {
        let title = "a title of many words that no narrow terminal holds in one line";
        let rows = vec![vec!["crab".into(), "user/house".into(), title.into()]];
        for width in [40, 80] {
            let shown = table(&["agent", "sender", "title"], rows.clone(), Some(width));
            let widest = shown.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(usize::from(width)), "{shown}");
            let words = shown.split_whitespace().collect::<Vec<_>>();
            assert!(
                title.split(' ').all(|word| words.contains(&word)),
                "{shown}"
            );
        }
    }
}
