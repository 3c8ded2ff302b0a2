//! Styles from the terminal's 16 colours, with fixed replacements where those are weak
//! on a known background.

use anstyle::{Ansi256Color, AnsiColor, Color, Effects, Style};

/// Background of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ground {
    /// The background is unknown.
    #[default]
    Unknown,
    /// Light text on a dark background.
    Dark,
    /// Dark text on a light background.
    Light,
}

/// The style for a background.
pub fn on(style: Style, ground: Ground) -> Style {
    let color = style.get_fg_color();
    match (ground, color) {
        (Ground::Light, Some(Color::Ansi(ansi))) => match on_light(ansi) {
            Some(index) => style.fg_color(Some(Ansi256Color(index).into())),
            None => style,
        },
        // Dimmed text on white is too light.
        (Ground::Light, None) if style.get_effects().contains(Effects::DIMMED) => style
            .effects(style.get_effects().remove(Effects::DIMMED))
            .fg_color(Some(Ansi256Color(DIM_ON_LIGHT).into())),
        (Ground::Dark, Some(Color::Ansi(AnsiColor::Blue))) => {
            style.fg_color(Some(Ansi256Color(BLUE_ON_DARK).into()))
        }
        _ => style,
    }
}

const DIM_ON_LIGHT: u8 = 242;
const BLUE_ON_DARK: u8 = 75;

/// A darker replacement from the 256 colours, with a contrast of at least 4.5 with white.
fn on_light(color: AnsiColor) -> Option<u8> {
    Some(match color {
        AnsiColor::Red | AnsiColor::BrightRed => 124,
        AnsiColor::Green | AnsiColor::BrightGreen => 28,
        AnsiColor::Yellow | AnsiColor::BrightYellow => 94,
        AnsiColor::Blue | AnsiColor::BrightBlue => 25,
        AnsiColor::Magenta | AnsiColor::BrightMagenta => 127,
        AnsiColor::Cyan | AnsiColor::BrightCyan => 23,
        AnsiColor::Black | AnsiColor::BrightBlack | AnsiColor::White | AnsiColor::BrightWhite => {
            return None;
        }
    })
}

/// No style.
pub const PLAIN: Style = Style::new();
/// Secondary text.
pub const DIM: Style = Style::new().dimmed();
/// Emphasis.
pub const BOLD: Style = Style::new().bold();
/// Headings.
pub const HEADING: Style = AnsiColor::Cyan.on_default().bold();
/// Code within a line.
pub const CODE: Style = AnsiColor::Cyan.on_default();
/// The text of a link.
pub const LINK: Style = Style::new().underline();
/// Successes.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Failures.
pub const BAD: Style = AnsiColor::Red.on_default();
/// A reference that cannot be resolved.
pub const UNKNOWN: Style = BAD.underline();
/// Pending questions.
pub const ASKS: Style = AnsiColor::Magenta.on_default();
/// An added line.
pub const ADDED: Style = AnsiColor::Green.on_default();
/// A removed line.
pub const REMOVED: Style = AnsiColor::Red.on_default();

/// Comments in code.
pub(crate) const COMMENT: Style = Style::new().dimmed().italic();
/// Strings in code.
pub(crate) const STRING: Style = AnsiColor::Green.on_default();
/// Keywords in code.
pub(crate) const KEYWORD: Style = AnsiColor::Magenta.on_default();
/// Numbers and other constants in code.
pub(crate) const CONSTANT: Style = AnsiColor::Cyan.on_default();
/// Defined names.
pub(crate) const NAME: Style = Style::new().bold();

#[cfg(test)]
mod tests {
    use super::*;

    /// Red, green and blue of one of the 256 colours.
    fn rgb(index: u8) -> [f64; 3] {
        if index >= 232 {
            return [f64::from(index - 232) * 10.0 + 8.0; 3];
        }
        let at = |part: u8| [0.0, 95.0, 135.0, 175.0, 215.0, 255.0][usize::from(part)];
        let cube = index - 16;
        [at(cube / 36), at(cube / 6 % 6), at(cube % 6)]
    }

    /// Relative luminance as in WCAG.
    fn light(color: [f64; 3]) -> f64 {
        let linear = |part: f64| match part / 255.0 {
            part if part <= 0.04045 => part / 12.92,
            part => ((part + 0.055) / 1.055).powf(2.4),
        };
        let [red, green, blue] = color.map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    #[test]
    fn styles_have_readable_contrast() {
        let white = light([255.0; 3]);
        for style in [
            DIM,
            HEADING,
            CODE,
            GOOD,
            BAD,
            ASKS,
            ADDED,
            REMOVED,
            COMMENT,
            STRING,
            KEYWORD,
            CONSTANT,
            AnsiColor::Blue.on_default(),
        ] {
            let shown = on(style, Ground::Light);
            let Some(Color::Ansi256(color)) = shown.get_fg_color() else {
                panic!("{style:?} keeps a colour that may be too light: {shown:?}")
            };
            let contrast = (white + 0.05) / (light(rgb(color.0)) + 0.05);
            assert!(contrast >= 4.5, "{style:?}: {contrast}");
            assert!(!shown.get_effects().contains(Effects::DIMMED), "{style:?}");
            assert_eq!(on(style, Ground::Unknown), style);
        }
        let Some(Color::Ansi256(blue)) =
            on(AnsiColor::Blue.on_default().bold(), Ground::Dark).get_fg_color()
        else {
            panic!("blue stays too dark")
        };
        assert!((light(rgb(blue.0)) + 0.05) / 0.05 >= 4.5);
        assert_eq!(
            on(BOLD, Ground::Light),
            BOLD,
            "the person's own colour stays"
        );
    }
}
