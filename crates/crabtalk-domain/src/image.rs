//! Images of messages and tool results.
//!
//! Invariant: an [`Image`] has at most [`MAX_IMAGE_BYTES`] and valid base64, so
//! that it goes into logs and requests unchanged.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use std::fmt;
use std::sync::Arc;

/// Maximum bytes of an image: 5 MiB as base64, the limit of the strictest provider.
pub const MAX_IMAGE_BYTES: usize = 3840 * 1024;

/// Maximum number of images in one message or result.
pub const MAX_IMAGES: usize = 8;

/// Maximum bytes of a message's images together: two of the largest fit into one
/// frame of the protocol beside the text.
pub const MAX_IMAGES_BYTES: usize = 2 * MAX_IMAGE_BYTES;

/// Estimated tokens of an image: about what providers charge for the size to which
/// they scale it down.
pub(crate) const IMAGE_TOKENS: u64 = 1600;

/// Accepts nonzero trailing bits, which some encoders leave.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// The image formats that models accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImageType {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// GIF.
    Gif,
    /// WebP.
    Webp,
}

impl ImageType {
    /// Every format.
    pub const ALL: [Self; 4] = [Self::Png, Self::Jpeg, Self::Gif, Self::Webp];

    /// The media type of the format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }

    /// The format of a media type.
    pub fn parse(media_type: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|known| known.as_str().eq_ignore_ascii_case(media_type))
    }
}

impl fmt::Display for ImageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An image. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Image {
    media_type: ImageType,
    /// The content as base64, the encoding of logs and providers.
    data: Arc<str>,
}

impl Image {
    /// Encodes an image; an image that is too large returns a note as the error.
    pub fn new(media_type: ImageType, bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > MAX_IMAGE_BYTES {
            return Err(too_large(media_type, bytes.len()));
        }
        Ok(Self {
            media_type,
            data: BASE64.encode(bytes).into(),
        })
    }

    /// Checks an encoded image; if it is too large, not base64 or of an unsupported
    /// format, the error is a note.
    pub fn from_base64(media_type: &str, data: Arc<str>) -> Result<Self, String> {
        let Some(known) = ImageType::parse(media_type) else {
            let shown: String = media_type.chars().take(40).collect();
            return Err(format!(
                "[an image of the unknown type {shown:?}, left out]"
            ));
        };
        if !is_base64(data.as_bytes()) {
            return Err(format!("[{known}, left out: its data is damaged]"));
        }
        let image = Self {
            media_type: known,
            data,
        };
        if image.size() > MAX_IMAGE_BYTES {
            return Err(too_large(known, image.size()));
        }
        Ok(image)
    }

    /// Its format.
    pub fn media_type(&self) -> ImageType {
        self.media_type
    }

    /// The content as base64, which needs no escapes in JSON.
    pub fn base64(&self) -> &str {
        &self.data
    }

    /// Size of the decoded content in bytes.
    pub fn size(&self) -> usize {
        let padding = self.data.bytes().rev().take_while(|b| *b == b'=').count();
        self.data.len() / 4 * 3 - padding
    }

    /// The decoded content.
    pub fn to_bytes(&self) -> Vec<u8> {
        BASE64
            .decode(&*self.data)
            .expect("checked when it was taken")
    }

    /// Its format and size, for people.
    pub fn summary(&self) -> String {
        format!("{}, {}", self.media_type, size_text(self.size()))
    }

    /// The note that replaces the image.
    pub fn note(&self) -> String {
        format!("[{}]", self.summary())
    }

    /// The note that replaces the image, with the reason.
    pub fn note_why(&self, why: &str) -> String {
        format!("[{}, not shown: {why}]", self.summary())
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.note())
    }
}

/// Splits images into those within the limits and notes for the rest. `what` names
/// the message or result.
pub(crate) fn within_limits(
    images: Vec<Image>,
    what: &str,
    is_error: bool,
) -> (Vec<Image>, Vec<String>) {
    let (mut kept, mut notes) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    for image in images {
        let size = image.size();
        if is_error {
            // Some providers reject images in failed results.
            notes.push(image.note_why("the call failed"));
        } else if kept.len() == MAX_IMAGES {
            notes.push(image.note_why(&format!("{what} has more than {MAX_IMAGES} images")));
        } else if bytes + size > MAX_IMAGES_BYTES {
            let most = size_text(MAX_IMAGES_BYTES);
            notes.push(image.note_why(&format!("{what} has more than {most} of images")));
        } else {
            bytes += size;
            kept.push(image);
        }
    }
    (kept, notes)
}

/// Appends a note on a separate line.
pub(crate) fn push_note(text: &mut String, note: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(note);
}

fn too_large(media_type: ImageType, size: usize) -> String {
    format!(
        "[{media_type}, {}, left out: an image may have {} at most]",
        size_text(size),
        size_text(MAX_IMAGE_BYTES)
    )
}

/// A size for people, such as `2.0 MB`.
fn size_text(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} KB", bytes / 1_000),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

fn is_base64(text: &[u8]) -> bool {
    let padding = text.iter().rev().take_while(|b| **b == b'=').count();
    let body = &text[..text.len() - padding];
    let allowed = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    !body.is_empty() && text.len().is_multiple_of(4) && padding <= 2 && body.iter().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(bytes: usize) -> Image {
        Image::new(ImageType::Png, &vec![7; bytes]).expect("small enough")
    }

    #[test]
    fn images_keep_and_count_their_bytes() {
        for size in [1, 2, 3, 4, 999, 34_567] {
            let image = image(size);
            assert_eq!((image.size(), image.to_bytes()), (size, vec![7; size]));
        }
        assert_eq!(image(999).note(), "[image/png, 999 bytes]");
        assert_eq!(image(34_567).note(), "[image/png, 34 KB]");
        assert_eq!(
            image(2_450_000).note_why("x"),
            "[image/png, 2.5 MB, not shown: x]"
        );
    }

    #[test]
    fn invalid_images_become_notes() {
        for (media_type, data, want) in [
            ("image/png", "AAAA", "ok"),
            ("IMAGE/JPEG", "AAA=", "ok"),
            // Nonzero trailing bits are accepted.
            ("image/gif", "AB==", "ok"),
            ("image/png", "", "damaged"),
            ("image/png", "AAA", "damaged"),
            ("image/png", "A===", "damaged"),
            ("image/png", "AA\"}", "damaged"),
            ("image/png", "AA=A", "damaged"),
            ("image/tiff", "AAAA", "unknown type \"image/tiff\""),
        ] {
            let got = match Image::from_base64(media_type, data.into()) {
                Ok(image) => {
                    image.to_bytes();
                    "ok".into()
                }
                Err(note) => note,
            };
            assert!(got.contains(want), "{media_type} {data}: {got}");
        }
    }

    #[test]
    fn limits_are_exact() {
        let bytes = vec![0; MAX_IMAGE_BYTES + 1];
        let largest = Image::new(ImageType::Png, &bytes[1..]).expect("just small enough");
        assert_eq!(largest.base64().len(), 5 * 1024 * 1024);
        let note = Image::new(ImageType::Png, &bytes).expect_err("one too many");
        assert_eq!(
            note,
            "[image/png, 3.9 MB, left out: an image may have 3.9 MB at most]"
        );
        let text = BASE64.encode(&bytes);
        Image::from_base64("image/png", text.into()).expect_err("one too many");

        let (kept, notes) = within_limits(vec![largest.clone(), largest, image(1)], "it", false);
        assert_eq!((kept.len(), notes.len()), (2, 1));
        let (kept, notes) = within_limits(vec![image(1); MAX_IMAGES + 2], "it", false);
        assert_eq!((kept.len(), notes.len()), (MAX_IMAGES, 2));
        let (kept, notes) = within_limits(vec![image(1)], "it", true);
        assert_eq!(kept, []);
        assert_eq!(notes, ["[image/png, 1 bytes, not shown: the call failed]"]);
    }
}
