//! Formats of values that several keys share.

use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use std::fmt;

/// Reads an integer within `MIN..=MAX`.
pub(crate) fn within<'de, const MIN: u64, const MAX: u64, T, D>(reader: D) -> Result<T, D::Error>
where
    T: TryFrom<u64>,
    D: Deserializer<'de>,
{
    let value = u64::deserialize(reader)?;
    let found = (MIN..=MAX).contains(&value).then(|| T::try_from(value));
    if let Some(Ok(found)) = found {
        return Ok(found);
    }
    let range = match MAX {
        u64::MAX => format!("of at least {MIN}"),
        max => format!("from {MIN} to {max}"),
    };
    Err(de::Error::custom(format_args!(
        "expected a whole number {range}, found {value}"
    )))
}

/// Reads an optional integer of at least 1.
pub(crate) fn positive<'de, T, D>(reader: D) -> Result<Option<T>, D::Error>
where
    T: TryFrom<u64>,
    D: Deserializer<'de>,
{
    within::<1, { u64::MAX }, T, D>(reader).map(Some)
}

/// Reads a list of strings, or a string with commas as a list.
pub(crate) fn list<'de, D: Deserializer<'de>>(reader: D) -> Result<Vec<String>, D::Error> {
    struct List;

    impl<'de> Visitor<'de> for List {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of strings")
        }

        fn visit_str<E>(self, text: &str) -> Result<Vec<String>, E> {
            let parts = text.split(',').map(str::trim);
            Ok(parts
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Vec<String>, A::Error> {
            Vec::deserialize(de::value::SeqAccessDeserializer::new(items))
        }
    }

    reader.deserialize_any(List)
}

/// Reads a string; an empty one means that the key is absent.
pub(crate) fn nonempty<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(reader)?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}
