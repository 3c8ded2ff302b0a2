//! Messages as JSON, derived by `build.rs` with the names of the schema.
//!
//! Every message except the envelopes is an object with all its fields. An unset field has its default,
//! or `null` if the schema says `optional`. Enums are lower-case names, bytes are base64.
//! An event of a run has its member's name as `type` next to the member's fields; an event of the daemon
//! has its kind as `type`. Readers accept missing fields and ignore unknown ones.

use crate::StreamEvent;
use crate::stream_event::Event;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The JSON of an enum: the name of a value, or the number of an unknown one.
macro_rules! enum_names {
    ($module:ident $($number:literal $name:literal)*) => {
        pub(crate) mod $module {
            const NAMES: &[(i32, &str)] = &[$(($number, $name)),*];

            pub(crate) fn serialize<S: serde::Serializer>(value: &i32, out: S) -> Result<S::Ok, S::Error> {
                match NAMES.iter().find(|(number, _)| number == value) {
                    Some((_, name)) => out.serialize_str(name),
                    None => out.collect_str(value),
                }
            }

            pub(crate) fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
                super::read_name(NAMES, from)
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/names.rs"));

fn read_name<'de, D: Deserializer<'de>>(names: &[(i32, &str)], from: D) -> Result<i32, D::Error> {
    let text = String::deserialize(from)?;
    let number = names.iter().find(|(_, name)| *name == text);
    let number = number.map(|(number, _)| *number).or(text.parse().ok());
    number.ok_or_else(|| {
        let names: Vec<_> = names.iter().map(|(_, name)| *name).collect();
        serde::de::Error::custom(format_args!(
            "expected one of {}, found {text:?}",
            names.join(", ")
        ))
    })
}

pub(crate) mod base64 {
    use ::base64::Engine as _;
    use ::base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        bytes: &bytes::Bytes,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        out.serialize_str(&STANDARD.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<bytes::Bytes, D::Error> {
        let bytes = STANDARD.decode(String::deserialize(from)?);
        bytes.map(Into::into).map_err(serde::de::Error::custom)
    }
}

impl Serialize for StreamEvent {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Flat<'a> {
            #[serde(flatten)]
            event: &'a Option<Event>,
            seq: u64,
        }
        let Self { event, seq } = self;
        Flat { event, seq: *seq }.serialize(out)
    }
}

impl<'de> Deserialize<'de> for StreamEvent {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Flat {
            #[serde(flatten)]
            event: Option<Event>,
            #[serde(default)]
            seq: u64,
        }
        let Flat { event, seq } = Flat::deserialize(from)?;
        Ok(Self { event, seq })
    }
}

#[cfg(test)]
mod tests;
