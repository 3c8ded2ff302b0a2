//! How many values a JSON text has, told before it is read.
//!
//! Invariant: what is refused here costs the memory of its text alone. An empty object
//! takes some hundred times the memory of its two brackets, so that a bound in bytes
//! bounds little.

/// Values of one message: ten times those of the longest list of tools, and more than a
/// model can be told. They take some hundred MiB where each is as small as can be.
const MAX_VALUES: usize = 1 << 19;

/// Values of a text that comes in pieces.
#[derive(Default)]
pub(crate) struct Values {
    in_string: bool,
    is_escaped: bool,
    count: usize,
}

impl Values {
    /// Counts what separates values, strings left out.
    pub(crate) fn add(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => self.in_string = true,
            b',' | b':' | b'[' | b'{' => self.count += 1,
            _ => {}
        }
    }

    /// No string goes on behind the end of a line.
    pub(crate) fn end_line(&mut self) {
        (self.in_string, self.is_escaped) = (false, false);
    }

    pub(crate) fn are_too_many(&self) -> bool {
        self.count > MAX_VALUES
    }
}

/// Why a text is not read.
pub(crate) fn too_many() -> String {
    format!("its answer has more than {MAX_VALUES} values")
}

/// Whether a whole text has more than are read.
pub(crate) fn has_too_many(text: &[u8]) -> bool {
    let mut values = Values::default();
    for byte in text {
        values.add(*byte);
    }
    values.are_too_many()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_and_what_strings_have_is_not() {
        let commas = "a,b:[{".repeat(MAX_VALUES);
        for fine in [
            format!(r#"{{"text": "{commas}"}}"#),
            format!(r#"{{"text": "\"\\\"{commas}"}}"#),
            format!("[{}1]", "1,".repeat(MAX_VALUES - 1)),
        ] {
            assert!(!has_too_many(fine.as_bytes()), "{fine:.40}");
        }
        for many in [
            format!("[{}1]", "1,".repeat(MAX_VALUES)),
            "[".repeat(MAX_VALUES + 1),
            "{},".repeat(MAX_VALUES),
            format!(r#"{{"a": "\\"{}}}"#, ",\"a\":1".repeat(MAX_VALUES / 2)),
        ] {
            assert!(has_too_many(many.as_bytes()), "{many:.40}");
        }
    }

    #[test]
    fn a_quote_before_the_end_of_a_line_hides_nothing() {
        let mut values = Values::default();
        for byte in *b"id: \"" {
            values.add(byte);
        }
        values.end_line();
        for byte in "[".repeat(MAX_VALUES + 1).bytes() {
            values.add(byte);
        }
        assert!(values.are_too_many());
    }
}
