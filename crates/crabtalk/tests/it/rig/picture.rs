//! Pictures of a terminal for the documents, as SVG.
//!
//! `CRABTALK_UPDATE=1` writes them; otherwise the tests only show the screens.

use std::fmt::Write;
use std::path::Path;

/// The size of a cell and the space around the cells, in pixels.
const CELL: (f32, f32) = (8.4, 18.0);
const SPACE: f32 = 14.0;

const TEXT: &str = "#d5dae1";
const GROUND: &str = "#15191f";

/// The colours from black to white of a dark terminal.
const COLOURS: [&str; 8] = [
    "#3b4252", "#e06c75", "#a5d26a", "#e5c07b", "#61afef", "#c792ea", "#5fc9c9", TEXT,
];

#[derive(Default, Clone, Copy, PartialEq)]
struct Style {
    bold: bool,
    dim: bool,
    italic: bool,
    underlined: bool,
    reversed: bool,
    colour: Option<&'static str>,
}

impl Style {
    /// Applies the parameters of an SGR sequence.
    fn apply(&mut self, parameters: &str) {
        for parameter in parameters.split(';') {
            match parameter.parse().unwrap_or(0) {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                3 => self.italic = true,
                4 => self.underlined = true,
                7 => self.reversed = true,
                22 => (self.bold, self.dim) = (false, false),
                23 => self.italic = false,
                24 => self.underlined = false,
                27 => self.reversed = false,
                number @ (30..=37 | 90..=97) => self.colour = Some(COLOURS[number % 10]),
                39 => self.colour = None,
                _ => {}
            }
        }
    }

    fn attributes(self) -> String {
        let colour = self.colour.unwrap_or(TEXT);
        let mut said = format!("fill=\"{}\"", if self.reversed { GROUND } else { colour });
        for (is, attribute) in [
            (self.bold, " font-weight=\"bold\""),
            (self.dim, " opacity=\"0.6\""),
            (self.italic, " font-style=\"italic\""),
            (self.underlined, " text-decoration=\"underline\""),
        ] {
            said.push_str(if is { attribute } else { "" });
        }
        said
    }
}

/// Writes a picture of a screen in the format of `tmux capture-pane -e`.
pub(super) fn write(file: &Path, title: &str, columns: usize, screen: &str) {
    let rows: Vec<&str> = screen.trim_end().lines().collect();
    let width = (columns as f32).mul_add(CELL.0, 2.0 * SPACE);
    let height = (rows.len() as f32).mul_add(CELL.1, 2.0 * SPACE);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\">\n\
         <title>{title}</title>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{GROUND}\"/>\n"
    );
    let mut style = Style::default();
    for (row, line) in rows.iter().enumerate() {
        let mut column = 0;
        let mut pieces = line.split("\x1b[");
        draw(
            &mut svg,
            row,
            &mut column,
            pieces.next().unwrap_or(""),
            style,
        );
        for piece in pieces {
            let (parameters, text) = piece.split_once('m').unwrap_or(("", piece));
            style.apply(parameters);
            draw(&mut svg, row, &mut column, text, style);
        }
    }
    svg.push_str("</svg>\n");
    std::fs::write(file, svg).unwrap();
}

fn draw(svg: &mut String, row: usize, column: &mut usize, text: &str, style: Style) {
    let (x, count) = (SPACE + *column as f32 * CELL.0, text.chars().count());
    *column += count;
    let y = SPACE + row as f32 * CELL.1;
    let width = count as f32 * CELL.0;
    if style.reversed {
        let colour = style.colour.unwrap_or(TEXT);
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{}\" fill=\"{colour}\"/>",
            CELL.1
        );
    }
    if text.trim().is_empty() {
        return;
    }
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\" \
         xml:space=\"preserve\" {}>{text}</text>",
        y + 13.7,
        style.attributes()
    );
}
