//! Divides a text file into what stands between `---` lines on top, and the rest.

/// How a text begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frontmatter<'a> {
    /// Not with a `---` line: all of it is text.
    Missing,
    /// With one `---` line and no second one.
    Unended,
    /// With a frontmatter.
    Found {
        /// The lines between the two.
        front: &'a str,
        /// What follows the second one.
        body: &'a str,
    },
}

impl<'a> Frontmatter<'a> {
    /// Looks for `---` lines, which may end with white space.
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
