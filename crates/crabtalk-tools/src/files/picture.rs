//! Recognises images by content, never by name.
//!
//! Invariant: a recognised image has a complete structure,
//! since a provider that finds a broken image refuses the conversation.

use crabtalk_domain::{Image, ImageType};

/// Longest side of a shown image in pixels: providers refuse the conversation for a longer
/// one.
pub(super) const MAX_SIDE: u32 = 8000;

/// Recognises an image by its bytes.
///
/// # Errors
/// The reason why it cannot be shown to a model, in words.
pub fn image(bytes: &[u8]) -> Result<Image, String> {
    let kind = sniff(&bytes[..bytes.len().min(SNIFFED)])
        .ok_or("it is not an image that models read: PNG, JPEG, GIF or WebP")?;
    let (width, height) =
        measure(kind, bytes).ok_or_else(|| format!("this {kind} is cut off or damaged"))?;
    if width.max(height) > MAX_SIDE {
        return Err(format!(
            "it has {width} x {height} pixels; {MAX_SIDE} a side can be shown"
        ));
    }
    Image::new(kind, bytes)
}

/// Bytes that distinguish an image from text.
const SNIFFED: usize = 8 << 10;

/// Detects the format by the first bytes.
pub(super) fn sniff(start: &[u8]) -> Option<ImageType> {
    // Text may begin like an image but has no NUL.
    if !start.contains(&0) {
        return None;
    }
    if start.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some(ImageType::Png)
    } else if start.starts_with(b"\xff\xd8\xff") {
        Some(ImageType::Jpeg)
    } else if start.starts_with(b"GIF87a") || start.starts_with(b"GIF89a") {
        Some(ImageType::Gif)
    } else if start.starts_with(b"RIFF") && start.get(8..12) == Some(b"WEBP") {
        Some(ImageType::Webp)
    } else {
        None
    }
}

/// Width and height in pixels; `None` for a truncated or invalid image.
pub(super) fn measure(kind: ImageType, bytes: &[u8]) -> Option<(u32, u32)> {
    let size = match kind {
        ImageType::Png => png(bytes),
        ImageType::Jpeg => jpeg(bytes),
        ImageType::Gif => gif(bytes),
        ImageType::Webp => webp(bytes),
    };
    size.filter(|(width, height)| *width > 0 && *height > 0)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

fn be16(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(|two| u16::from_be_bytes(two).into())
}

fn le16(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(|two| u16::from_le_bytes(two).into())
}

fn le24(bytes: &[u8], at: usize) -> Option<u32> {
    array::<3>(bytes, at).map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]))
}

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

/// A PNG is a sequence of chunks (length, name, data, checksum) from IHDR to IEND.
fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    if bytes.get(12..16)? != b"IHDR" {
        return None;
    }
    let mut at = 8;
    loop {
        let length = usize::try_from(be32(bytes, at)?).ok()?;
        let end = at.checked_add(length)?.checked_add(12)?;
        if end > bytes.len() {
            return None;
        }
        if bytes.get(at + 4..at + 8)? == b"IEND" {
            return Some((be32(bytes, 16)?, be32(bytes, 20)?));
        }
        at = end;
    }
}

/// A JPEG is a sequence of segments (marker, length, data) up to the frame header, with
/// an end-of-image marker later.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let [0xff, marker] = array(bytes, at)? else {
            return None;
        };
        match marker {
            // A fill byte.
            0xff => at += 1,
            // Markers without data.
            0x01 | 0xd0..=0xd7 => at += 2,
            // Tables share the range of frame markers.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                let rest = bytes.get(at..)?;
                let ends = rest.windows(2).rev().any(|two| two == b"\xff\xd9");
                let size = (be16(bytes, at + 7)?, be16(bytes, at + 5)?);
                return ends.then_some(size);
            }
            // The scan or the end without a frame header.
            0xd8..=0xda => return None,
            _ => at += 2 + usize::try_from(be16(bytes, at + 2)?).ok()?,
        }
    }
}

/// A GIF ends with a trailer; some writers add padding.
fn gif(bytes: &[u8]) -> Option<(u32, u32)> {
    let last = bytes.iter().rev().find(|byte| **byte != 0)?;
    (*last == b';').then_some((le16(bytes, 6)?, le16(bytes, 8)?))
}

/// A WebP is a RIFF container with its length; the first chunk names the
/// variant.
fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    let length = usize::try_from(le32(bytes, 4)?).ok()?;
    if length.checked_add(8)? > bytes.len() {
        return None;
    }
    match &array::<4>(bytes, 12)? {
        b"VP8 " if bytes.get(23..26)? == b"\x9d\x01\x2a" => {
            Some((le16(bytes, 26)? & 0x3fff, le16(bytes, 28)? & 0x3fff))
        }
        b"VP8L" if *bytes.get(20)? == 0x2f => {
            let bits = le32(bytes, 21)?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8X" => Some((le24(bytes, 24)? + 1, le24(bytes, 27)? + 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest images that common programs write.
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x02\0\0\0crc!\
        \0\0\0\x02IDATxxcrc!\0\0\0\0IEND\xaeB`\x82";
    const JPEG: &[u8] =
        b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xff\xdb\0\x04qq\
        \xff\xc2\0\x0b\x08\x01\xe0\x02\x80\x01\x01\x11\0\xff\xda\0\x02scan\xff\xd9";
    const GIF: &[u8] = b"GIF89a\x80\x02\xe0\x01\0\0\0,data\0;\0\0";
    const VP8: &[u8] = b"RIFF\x16\0\0\0WEBPVP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a\x80\x02\xe0\x01";
    const VP8L: &[u8] = b"RIFF\x11\0\0\0WEBPVP8L\x05\0\0\0\x2f\x7f\xc2\x77\0";
    const VP8X: &[u8] = b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0\x7f\x02\0\xdf\x01\0";

    const ALL: [(ImageType, &[u8]); 6] = [
        (ImageType::Png, PNG),
        (ImageType::Jpeg, JPEG),
        (ImageType::Gif, GIF),
        (ImageType::Webp, VP8),
        (ImageType::Webp, VP8L),
        (ImageType::Webp, VP8X),
    ];

    #[test]
    fn every_format_is_recognised_and_measured() {
        for (kind, bytes) in ALL {
            assert_eq!(sniff(bytes), Some(kind));
            assert_eq!(measure(kind, bytes), Some((640, 480)), "{kind}");
        }
    }

    #[test]
    fn what_is_cut_anywhere_is_no_image_and_nothing_panics() {
        for (kind, bytes) in ALL {
            let end = bytes
                .iter()
                .rposition(|byte| *byte != 0)
                .expect("not empty");
            for cut in 0..=end {
                assert_eq!(measure(kind, &bytes[..cut]), None, "{kind} at {cut}");
            }
            for other in ImageType::ALL {
                for at in 0..bytes.len() {
                    let mut broken = bytes.to_vec();
                    broken[at] ^= 0xff;
                    measure(other, &broken);
                }
            }
        }
        for text in ["GIF89a is a format", "", "RIFF1234WEBP", "\u{89}PNG"] {
            assert_eq!(sniff(text.as_bytes()), None);
        }
    }
}
