//! Parses fields that other programs write in other formats.

use crabtalk_domain::{Image, Thinking};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use std::fmt;
use std::sync::Arc;

/// A string, or what other programs write instead: null, or text parts.
#[derive(Default)]
pub(super) struct Text(pub(super) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

#[derive(Deserialize)]
struct TextPart {
    #[serde(default)]
    text: String,
}

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, null or a list of text parts")
    }

    fn visit_str<E>(self, text: &str) -> Result<Text, E> {
        Ok(Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Text, E> {
        Ok(Text(text))
    }

    fn visit_unit<E>(self) -> Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Text, A::Error> {
        let mut text = String::new();
        while let Some(part) = parts.next_element::<TextPart>()? {
            text.push_str(&part.text);
        }
        Ok(Text(text))
    }
}

/// Blocks of reasoning; other programs write one string.
#[derive(Default)]
pub(super) struct Blocks(pub(super) Vec<Thinking>);

#[derive(Deserialize)]
#[serde(untagged)]
enum RawBlocks {
    Blocks(Vec<RawThinking>),
    Text(String),
    Other(IgnoredAny),
}

#[derive(Deserialize)]
struct RawThinking {
    #[serde(default)]
    text: String,
    #[serde(default)]
    signature: String,
}

impl<'de> Deserialize<'de> for Blocks {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Ok(Self(match RawBlocks::deserialize(input)? {
            RawBlocks::Blocks(blocks) => blocks
                .into_iter()
                .map(|b| Thinking {
                    text: b.text,
                    signature: b.signature,
                })
                .collect(),
            RawBlocks::Text(text) => vec![Thinking {
                text,
                signature: String::new(),
            }],
            RawBlocks::Other(_) => Vec::new(),
        }))
    }
}

/// Images, or notes in place of invalid ones.
#[derive(Default)]
pub(super) struct Pictures(pub(super) Vec<Result<Image, String>>);

#[derive(Deserialize)]
#[serde(untagged)]
enum RawPictures {
    Images(Vec<RawPicture>),
    Other(IgnoredAny),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawPicture {
    Image(RawImage),
    Other(IgnoredAny),
}

#[derive(Deserialize)]
struct RawImage {
    media_type: String,
    data: Arc<str>,
}

impl<'de> Deserialize<'de> for Pictures {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Ok(Self(match RawPictures::deserialize(input)? {
            RawPictures::Images(images) => images
                .into_iter()
                .map(|raw| match raw {
                    RawPicture::Image(raw) => Image::from_base64(&raw.media_type, raw.data),
                    RawPicture::Other(_) => Err("[an image, left out: its data is damaged]".into()),
                })
                .collect(),
            RawPictures::Other(_) => Vec::new(),
        }))
    }
}
