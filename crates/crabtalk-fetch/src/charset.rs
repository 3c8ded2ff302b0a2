//! Decodes text.
//!
//! The encoding is that of a byte order mark, else of the content type, else of the page's
//! own declaration, else UTF-8 if the bytes are valid, else Windows-1252.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Bytes of a page that are searched for its declaration, as in browsers.
const LOOK_BYTES: usize = 1024;

/// Decodes text whose last character may be cut off.
pub(crate) fn decode(bytes: &[u8], content_type: &str, cut: bool) -> String {
    if let Some((encoding, length)) = Encoding::for_bom(bytes) {
        let (text, _) = encoding.decode_without_bom_handling(&bytes[length..]);
        return text.into_owned();
    }
    let said = label(content_type.as_bytes()).or_else(|| {
        // An ASCII declaration of UTF-16 is wrong.
        let own = label(&bytes[..bytes.len().min(LOOK_BYTES)])?;
        Some(own.output_encoding())
    });
    let encoding = said.unwrap_or_else(|| match valid(bytes, cut) {
        true => UTF_8,
        false => WINDOWS_1252,
    });
    encoding.decode_without_bom_handling(bytes).0.into_owned()
}

/// Whether the bytes are UTF-8, except for a character cut off at the end.
fn valid(bytes: &[u8], cut: bool) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(e) => cut && e.error_len().is_none(),
    }
}

/// The encoding named after `charset=` (or XML's `encoding=`), if it is known.
fn label(bytes: &[u8]) -> Option<&'static Encoding> {
    let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
    ["charset", "encoding"].iter().find_map(|word| {
        text.match_indices(word).find_map(|(at, _)| {
            let rest = text[at + word.len()..].trim_start().strip_prefix('=')?;
            let rest = rest.trim_start().trim_start_matches(['"', '\'']);
            let end = rest
                .find(|c: char| c.is_whitespace() || "\"';/>".contains(c))
                .unwrap_or(rest.len());
            Encoding::for_label(&rest.as_bytes()[..end])
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_have_precedence() {
        for (bytes, content_type, text) in [
            (&b"caf\xc3\xa9"[..], "text/plain", "café"),
            (b"caf\xe9", "text/plain", "café"),
            (b"caf\xe9", "text/plain; charset=ISO-8859-1", "café"),
            (
                b"\xef\xbb\xbfcaf\xc3\xa9",
                "text/plain; charset=latin1",
                "café",
            ),
            (b"\xff\xfeh\0i\0", "text/plain", "hi"),
            (b"\x93\xfa\x96{", "text/html; charset=\"Shift_JIS\"", "日本"),
            (
                b"<meta charset='euc-kr'>\xb0\xa1",
                "text/html",
                "<meta charset='euc-kr'>가",
            ),
            (
                b"<?xml version=\"1.0\" encoding=\"koi8-r\"?>\xd2",
                "application/xml",
                "<?xml version=\"1.0\" encoding=\"koi8-r\"?>р",
            ),
            (
                b"<meta charset=utf-16>\xc3\xa9",
                "text/html",
                "<meta charset=utf-16>é",
            ),
            (b"\xc3\xa9", "text/html; charset=nonsense", "é"),
        ] {
            assert_eq!(decode(bytes, content_type, false), text, "{content_type}");
        }
    }

    #[test]
    fn a_character_cut_at_the_end_does_not_change_the_rest() {
        assert_eq!(
            decode(b"caf\xc3\xa9 \xe6\x97", "text/plain", true),
            "café \u{fffd}"
        );
    }
}
