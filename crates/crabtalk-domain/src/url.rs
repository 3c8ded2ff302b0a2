//! Masks secrets in addresses that people see.

/// Replaces a secret in shown text.
pub const MASK: &str = "***";

/// Length from which letters and digits in a row count as a key; names of models and
/// deployments have separators.
const KEY_RUN: usize = 20;

/// Masks user, password and key-like parts of an address. Other text is unchanged.
pub fn masked_url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let mut shown = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{MASK}@{host}"),
        None => format!("{scheme}://{authority}"),
    };
    let mut is_secret = false;
    for part in rest.split_inclusive(['/', '?', '&', '=', '#']) {
        let word = part.trim_end_matches(['/', '?', '&', '=', '#']);
        let is_written = !word.is_empty() && !word.contains("${");
        let masked = is_written && (is_secret || looks_like_key(word));
        shown.push_str(if masked { MASK } else { word });
        shown.push_str(&part[word.len()..]);
        is_secret = part.ends_with('=') && names_secret(word);
    }
    shown
}

/// Whether a parameter of this name holds a secret.
fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["key", "token", "secret", "sig", "pass", "auth", "code"]
        .iter()
        .any(|part| name.contains(part))
}

fn looks_like_key(word: &str) -> bool {
    let is_long = word.split(|c: char| !c.is_ascii_alphanumeric()).any(|run| {
        let has = |is: fn(&u8) -> bool| run.bytes().any(|b| is(&b));
        run.len() >= KEY_RUN && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
    });
    is_long || word.starts_with("sk-") || is_uuid(word)
}

fn is_uuid(word: &str) -> bool {
    let lengths = word.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && word.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_addresses_are_masked() {
        for (url, want) in [
            ("https://me:pw@host/a@b", "https://***@host/a@b"),
            ("http://host/a@b", "http://host/a@b"),
            (
                "https://host/v1?key=hush&x=1",
                "https://host/v1?key=***&x=1",
            ),
            (
                "https://host/k/0123456789abcdef0123/v1",
                "https://host/k/***/v1",
            ),
            ("https://host/sk-abc/v1/", "https://host/***/v1/"),
            (
                "https://host/6d9f2b8e-0c1a-4f5b-9a77-1f2e3d4c5b6a",
                "https://host/***",
            ),
            (
                "https://host/openai/deployments/gpt-4o-mini-2024-07-18/v1",
                "https://host/openai/deployments/gpt-4o-mini-2024-07-18/v1",
            ),
            (
                "https://host/${KEY}/v1?token=${T}",
                "https://host/${KEY}/v1?token=${T}",
            ),
            ("--key=0123456789abcdef0123", "--key=0123456789abcdef0123"),
        ] {
            assert_eq!(masked_url(url), want);
        }
    }
}
