//! What looks like a secret, and what is no text.

use wildmatch::WildMatch;

/// How much of a file is looked at to see whether it is text.
const LOOK_BYTES: usize = 8 * 1024;

/// Names of files that hold keys and passwords by habit. Names that begin with a dot
/// are left out anyway.
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

/// What a key begins with, wherever it stands.
const SECRET_MARKS: [&str; 2] = ["PRIVATE KEY-----", "PRIVATE KEY BLOCK-----"];

/// Which names are left out.
#[derive(Debug, Clone)]
pub(crate) struct Rules(Vec<WildMatch>);

impl Rules {
    /// What a person added, and what looks like a secret if that is left out.
    pub(crate) fn new(skip: &[String], secrets: bool) -> Self {
        let own = skip.iter().map(String::as_str);
        let known = SECRET_NAMES.iter().copied().filter(|_| !secrets);
        let patterns = own.chain(known).map(str::to_lowercase);
        Self(patterns.map(|pattern| WildMatch::new(&pattern)).collect())
    }

    /// Whether a file or folder of this name is left out.
    pub(crate) fn leave_out(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.0.iter().any(|pattern| pattern.matches(&name))
    }
}

/// Whether a text holds a key.
pub(crate) fn looks_secret(text: &str) -> bool {
    SECRET_MARKS.iter().any(|mark| text.contains(mark))
}

/// What a file says, if it is text.
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
    fn what_looks_like_a_secret_is_left_out_unless_wished() {
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
    fn text_is_told_from_what_is_none() {
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
