//! Excludes files that look like secrets, and binary files.

use wildmatch::WildMatch;

/// Bytes of a file that are searched for NUL.
const LOOK_BYTES: usize = 8 * 1024;

/// Common names of files with keys and passwords. Names with a leading dot are always
/// excluded.
const SECRET_NAMES: &[&str] = &[
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.p8",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.kdb",
    "*.gpg",
    "*.pgp",
    "*.asc",
    "*.age",
    "*.ovpn",
    "*.ppk",
    "*.env",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "credentials",
    "credentials.*",
    "secret",
    "secrets",
    "secret.*",
    "secrets.*",
    "password.*",
    "passwords.*",
    "*_history",
    "*.tfstate",
    "*.tfvars",
];

/// Text at the beginning of a private key.
const SECRET_MARKS: [&str; 2] = ["PRIVATE KEY-----", "PRIVATE KEY BLOCK-----"];

/// Patterns of excluded names.
#[derive(Debug, Clone)]
pub(crate) struct Rules(Vec<WildMatch>);

impl Rules {
    /// Excludes the names in `skip` and, unless `secrets` is set, names of secrets.
    pub(crate) fn new(skip: &[String], secrets: bool) -> Self {
        let own = skip.iter().map(String::as_str);
        let known = SECRET_NAMES.iter().copied().filter(|_| !secrets);
        let patterns = own.chain(known).map(str::to_lowercase);
        Self(patterns.map(|pattern| WildMatch::new(&pattern)).collect())
    }

    /// Whether a file or folder of this name is excluded.
    pub(crate) fn leave_out(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.0.iter().any(|pattern| pattern.matches(&name))
    }
}

/// Whether a text contains a private key.
pub(crate) fn looks_secret(text: &str) -> bool {
    SECRET_MARKS.iter().any(|mark| text.contains(mark))
}

/// Decodes a file, if it is text.
pub(crate) fn text(bytes: Vec<u8>) -> Option<String> {
    let wide = |from: fn([u8; 2]) -> u16| {
        let units = bytes[2..].as_chunks().0.iter().map(|pair| from(*pair));
        let shown = |c: Result<char, _>| c.unwrap_or(char::REPLACEMENT_CHARACTER);
        char::decode_utf16(units).map(shown).collect()
    };
    match &bytes[..] {
        [0xff, 0xfe, ..] => return Some(wide(u16::from_le_bytes)),
        [0xfe, 0xff, ..] => return Some(wide(u16::from_be_bytes)),
        _ => {}
    }
    if bytes[..bytes.len().min(LOOK_BYTES)].contains(&0) {
        return None;
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => String::from_utf8_lossy(e.as_bytes()).into_owned(),
    };
    Some(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_excluded_by_default() {
        let rules = Rules::new(&["draft-*".to_owned()], false);
        for (name, out) in [
            ("server.PEM", true),
            ("id_ed25519", true),
            ("id_rsa.pub", true),
            ("credentials.json", true),
            ("Draft-1.md", true),
            ("notes.md", false),
            ("keyboard.md", false),
            ("secretary.txt", false),
        ] {
            assert_eq!(rules.leave_out(name), out, "{name}");
        }
        assert!(!Rules::new(&[], true).leave_out("server.pem"));
        let key = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
        for before in [0, LOOK_BYTES - 10, 10 * LOOK_BYTES] {
            assert!(looks_secret(&format!("{}\n{key}", "x".repeat(before))));
        }
        assert!(!looks_secret("the PRIVATE KEY is elsewhere"));
    }

    #[test]
    fn binary_files_are_not_text() {
        for (bytes, want) in [
            (&b"caf\xc3\xa9"[..], Some("café")),
            (b"\xef\xbb\xbfx", Some("x")),
            (b"\xff\xfeh\0i\0", Some("hi")),
            (b"\xfe\xff\0h\0i", Some("hi")),
            (b"caf\xe9", Some("caf\u{fffd}")),
            (b"\x7fELF\0\0", None),
            (b"", Some("")),
        ] {
            assert_eq!(text(bytes.to_vec()).as_deref(), want, "{bytes:?}");
        }
    }
}
