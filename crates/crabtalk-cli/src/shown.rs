//! Images attached to messages.
//!
//! Invariants: the first bytes decide whether a file is an image; images that are too large are
//! refused before sending. The daemon checks again.

use crate::text::image_note;
use crabtalk_proto::Image;
use std::io::Read;
use std::path::Path;

/// Maximum size of an image, as in the daemon.
pub(crate) const MAX_IMAGE: u64 = 3840 * 1024;

/// Maximum number of images, as in the daemon.
const MAX_IMAGES: usize = 8;

/// Maximum total size, as in the daemon.
const MAX_IMAGES_BYTES: usize = 2 * MAX_IMAGE as usize;

/// First bytes of image formats.
const MAGIC: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
];

/// Attaches an image to those of a message; returns a note or an error.
pub(crate) fn attach(images: &mut Vec<Image>, path: &Path) -> Result<String, String> {
    if images.len() == MAX_IMAGES {
        return Err(format!("a message can have {MAX_IMAGES} images"));
    }
    let data = crabtalk_files::read(path, MAX_IMAGE)
        .map_err(|error| format!("{error}; the maximum is {} KB", MAX_IMAGE / 1024))?;
    let Some(media_type) = media_type(&data) else {
        return Err("not a PNG, JPEG, GIF or WebP image".to_owned());
    };
    let bytes: usize = images.iter().map(|image| image.data.len()).sum();
    if bytes + data.len() > MAX_IMAGES_BYTES {
        let most = MAX_IMAGES_BYTES / 1024;
        return Err(format!(
            "all images of a message together can have {most} KB"
        ));
    }
    let image = Image {
        media_type: media_type.to_owned(),
        data: data.into(),
    };
    let note = image_note(&image);
    images.push(image);
    Ok(note)
}

/// Whether a file is an image.
pub(crate) fn is_image(path: &Path) -> bool {
    let begin = || {
        let mut begin = Vec::new();
        let file = crabtalk_files::open(path).ok()?;
        file.take(16).read_to_end(&mut begin).ok()?;
        Some(begin)
    };
    begin().is_some_and(|begin| media_type(&begin).is_some())
}

/// The image type that begins with these bytes.
pub(crate) fn media_type(bytes: &[u8]) -> Option<&'static str> {
    let (magic, media_type) = MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic))?;
    // Other formats also begin with RIFF.
    let is_whole = *magic != b"RIFF" || bytes.get(8..12) == Some(b"WEBP");
    is_whole.then_some(media_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_recognised_by_first_bytes() {
        assert_eq!(media_type(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(media_type(b"RIFF....WEBPVP8 "), Some("image/webp"));
        assert_eq!(media_type(b"RIFF....WAVEfmt "), None);
        assert_eq!(media_type(b""), None);
    }

    #[test]
    fn too_large_and_too_many_images_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, size: usize| {
            let path = folder.path().join(name);
            let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
            bytes.resize(size, 0);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let mut images = Vec::new();
        let largest = MAX_IMAGE as usize;
        assert!(attach(&mut images, &file("a", largest + 1)).is_err());
        assert_eq!(
            attach(&mut images, &file("b", largest)).unwrap(),
            "[image/png, 3.9 MB]"
        );
        attach(&mut images, &file("c", largest)).unwrap();
        let why = attach(&mut images, &file("d", 9)).unwrap_err();
        assert!(why.contains("7680 KB"), "{why}");
        let mut images = Vec::new();
        for _ in 0..MAX_IMAGES {
            attach(&mut images, &file("e", 9)).unwrap();
        }
        let why = attach(&mut images, &file("e", 9)).unwrap_err();
        assert!(why.contains("8 images"), "{why}");
        let why = attach(&mut Vec::new(), Path::new("/dev/null")).unwrap_err();
        assert!(!why.is_empty());
    }
}
