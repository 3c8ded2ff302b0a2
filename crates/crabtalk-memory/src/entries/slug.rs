//! Makes readable file names for entries, distinct even for equal slugs.

/// Longest slug, so that the name with its suffix fits every file system.
const MAX_SLUG_BYTES: usize = 60;

/// Makes the slug of a name: its words in lower case, joined by hyphens.
pub(super) fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars().flat_map(char::to_lowercase) {
        if slug.len() + c.len_utf8() > MAX_SLUG_BYTES {
            break;
        }
        if c.is_alphanumeric() {
            slug.push(c);
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "entry" } else { slug }.into()
}

/// An endless sequence of file names to try for an entry, best first.
pub(super) fn file_names(name: &str, sender: &str) -> impl Iterator<Item = String> + use<> {
    let slug = slug(name);
    let hash = fnv(&[name.as_bytes(), &[0], sender.as_bytes()]) as u32;
    let first = std::iter::once(format!("{slug}.md"));
    let second = std::iter::once(format!("{slug}-{hash:08x}.md"));
    first
        .chain(second)
        .chain((2u32..).map(move |n| format!("{slug}-{hash:08x}-{n}.md")))
}

/// FNV-1a, which is equal on every machine and in every version.
pub(super) fn fnv(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_safe_file_names() {
        for (name, want) in [
            ("Entry Name", "entry-name"),
            ("../../etc/passwd", "etc-passwd"),
            ("  C++ / Rust! ", "c-rust"),
            ("日本語 メモ", "日本語-メモ"),
            ("🦀🦀", "entry"),
            ("", "entry"),
        ] {
            assert_eq!(slug(name), want, "{name}");
        }
        assert!(slug(&"é".repeat(500)).len() <= MAX_SLUG_BYTES);
    }

    #[test]
    fn the_second_choice_depends_on_name_and_sender() {
        let second = |name, sender| file_names(name, sender).nth(1).unwrap();
        assert_ne!(second("a b", ""), second("a-b", ""));
        assert_ne!(second("a b", "tg:1"), second("a b", "tg:2"));
        assert_eq!(second("a b", ""), "a-b-aaf92016.md");
    }
}
