//! A screen of a terminal as SVG.

use std::fmt::Write as _;

/// Width and height of a character.
const CELL: (f64, f64) = (8.4, 18.0);

/// Around the text.
const MARGIN: f64 = 14.0;

const GROUND: &str = "#15191f";
const INK: &str = "#d5dae1";

/// The sixteen colours, as many terminals have them on a dark ground.
const COLORS: [&str; 16] = [
    "#15191f", "#f07178", "#a5d26a", "#e6c07b", "#6cb2f0", "#c792ea", "#5fc9c9", "#d5dae1",
    "#7a8391", "#f07178", "#a5d26a", "#e6c07b", "#6cb2f0", "#c792ea", "#5fc9c9", "#ffffff",
];

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Style {
    color: Option<usize>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    inverse: bool,
}

/// The picture of what `capture-pane -e` printed.
pub(super) fn picture(screen: &str, columns: usize) -> String {
    let rows: Vec<&str> = screen.trim_end().lines().collect();
    let width = columns as f64 * CELL.0 + 2.0 * MARGIN;
    let height = rows.len() as f64 * CELL.1 + 2.0 * MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{GROUND}\"/>\n"
    );
    let mut style = Style::default();
    for (index, row) in rows.iter().enumerate() {
        line(&mut out, row, index, &mut style);
    }
    out + "</svg>\n"
}

fn line(out: &mut String, row: &str, index: usize, style: &mut Style) {
    let mut column = 0;
    for (place, part) in row.split("\x1b[").enumerate() {
        let text = match (place, part.split_once('m')) {
            (0, _) | (_, None) => part,
            (_, Some((codes, text))) => {
                codes.split(';').for_each(|code| apply(style, code));
                text
            }
        };
        let count = text.chars().count();
        if !text.trim().is_empty() || style.inverse && count > 0 {
            run(out, text, (column, index), *style);
        }
        column += count;
    }
}

fn apply(style: &mut Style, code: &str) {
    match code.parse().unwrap_or(0) {
        1 => style.bold = true,
        2 => style.dim = true,
        3 => style.italic = true,
        4 => style.underline = true,
        7 => style.inverse = true,
        22 => (style.bold, style.dim) = (false, false),
        23 => style.italic = false,
        24 => style.underline = false,
        27 => style.inverse = false,
        code @ 30..=37 => style.color = Some(code - 30),
        39 => style.color = None,
        code @ 90..=97 => style.color = Some(code - 82),
        0 => *style = Style::default(),
        _ => {}
    }
}

fn run(out: &mut String, text: &str, (column, row): (usize, usize), style: Style) {
    let x = MARGIN + column as f64 * CELL.0;
    let top = MARGIN + row as f64 * CELL.1;
    let length = text.chars().count() as f64 * CELL.0;
    let mut color = style.color.map_or(INK, |color| COLORS[color]);
    // Writing to a string does not fail.
    if style.inverse {
        let height = CELL.1;
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{height}\" fill=\"{color}\"/>"
        );
        color = GROUND;
    }
    let mut attributes = String::new();
    for (is, attribute) in [
        (style.bold, " font-weight=\"bold\""),
        (style.dim, " opacity=\"0.6\""),
        (style.italic, " font-style=\"italic\""),
        (style.underline, " text-decoration=\"underline\""),
    ] {
        if is {
            attributes.push_str(attribute);
        }
    }
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let y = top + CELL.1 * 0.76;
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\" \
         xml:space=\"preserve\" fill=\"{color}\"{attributes}>{text}</text>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_become_attributes_and_text_stays_text() {
        let picture = picture("plain \x1b[1m\x1b[36m<bold>\x1b[0m end", 20);
        assert!(
            picture.contains("font-weight=\"bold\">&lt;bold&gt;</text>"),
            "{picture}"
        );
        assert!(picture.contains("fill=\"#5fc9c9\""), "{picture}");
        assert!(picture.contains("> end</text>"), "{picture}");
    }
}
