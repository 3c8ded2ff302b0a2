//! Splits a text into the frontmatter between `---` lines at its beginning, and the rest.

/// The result of searching a text for frontmatter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frontmatter<'a> {
    /// The text does not begin with a `---` line.
    Missing,
    /// The text has only one `---` line.
    Unended,
    /// The text has frontmatter.
    Found {
        /// The lines between the `---` lines.
        front: &'a str,
        /// The text after the second line.
        body: &'a str,
    },
}

impl<'a> Frontmatter<'a> {
    /// Finds the `---` lines, which may end with white space.
    pub fn of(text: &'a str) -> Self {
        let is_fence = |line: &str| line.trim_end() == "---";
        let mut lines = text.split_inclusive('\n');
        let Some(first) = lines.next().filter(|line| is_fence(line)) else {
            return Self::Missing;
        };
        let rest = &text[first.len()..];
        let mut at = 0;
        for line in lines {
            if is_fence(line) {
                let (front, body) = (&rest[..at], &rest[at + line.len()..]);
                return Self::Found { front, body };
            }
            at += line.len();
        }
        Self::Unended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frontmatter_ends_at_the_first_fence() {
        let found = |front, body| Frontmatter::Found { front, body };
        for (text, want) in [
            ("", Frontmatter::Missing),
            ("a: b\n---\n", Frontmatter::Missing),
            (" ---\na: b\n---\n", Frontmatter::Missing),
            ("----\n---\n", Frontmatter::Missing),
            ("---", Frontmatter::Unended),
            ("---\na: b\n ---\n", Frontmatter::Unended),
            ("---\n---", found("", "")),
            ("---\r\na: b\r\n--- \r\nc\n", found("a: b\r\n", "c\n")),
            ("---\na: b\n---\nc\n---\n", found("a: b\n", "c\n---\n")),
        ] {
            assert_eq!(Frontmatter::of(text), want, "{text:?}");
        }
    }
}
