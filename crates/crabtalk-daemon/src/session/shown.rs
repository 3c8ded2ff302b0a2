//! Checks the images of a message.
//!
//! Invariant: an image is complete, has a known format by its content and is within the
//! limits of a message, since a provider refuses a conversation with a broken one.

use super::Session;
use crate::error::Error;
use crabtalk_domain::{Image as Shown, MAX_IMAGES, MAX_IMAGES_BYTES};
use crabtalk_proto::{Image, StreamMsg};

/// The images of a message.
pub(super) fn images(sent: Vec<Image>) -> Result<Vec<Shown>, Error> {
    let too_large = |message: String| Err(Error::TooLarge(message));
    if sent.len() > MAX_IMAGES {
        return too_large(format!(
            "the message has {} images; the limit is {MAX_IMAGES}",
            sent.len()
        ));
    }
    let bytes: usize = sent.iter().map(|image| image.data.len()).sum();
    if bytes > MAX_IMAGES_BYTES {
        return too_large(format!(
            "the images have {bytes} bytes together; the limit is {MAX_IMAGES_BYTES}"
        ));
    }
    let image = |(number, image): (usize, Image)| {
        crabtalk_tools::image(&image.data)
            .map_err(|why| Error::Invalid(format!("image {number}: {why}")))
    };
    (1..).zip(sent).map(image).collect()
}

impl Session {
    /// A notice for images to a model that does not accept any.
    pub(super) fn blindness(&self, message: &StreamMsg) -> Option<String> {
        if message.images.is_empty() {
            return None;
        }
        let key = self
            .key(
                &message.agent,
                message.sender.as_deref().unwrap_or_default(),
            )
            .ok()?;
        let guest = message.guest.as_deref().filter(|guest| !guest.is_empty());
        let catalog = self.node.runtime.catalog();
        let speaker = catalog.agent(guest.unwrap_or(key.agent.as_str())).ok()?;
        let asked = message.model.as_deref().filter(|model| !model.is_empty());
        let model = match asked.unwrap_or(speaker.model.as_str()) {
            "" => self.node.models.active(),
            model => model.to_owned(),
        };
        let models = self.node.models.list();
        let found = models.iter().find(|known| known.name == model)?;
        (!found.images)
            .then(|| format!("the model {model} takes no images: it gets a description instead"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(data: &[u8]) -> Image {
        Image {
            media_type: "image/png".into(),
            data: data.to_vec().into(),
        }
    }

    #[test]
    fn invalid_and_too_many_images_are_refused() {
        let words = images(vec![sent(b"words")]).unwrap_err();
        assert!(words.to_string().starts_with("image 1: "), "{words}");
        let torn = images(vec![sent(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR")]).unwrap_err();
        assert!(torn.to_string().contains("cut off or damaged"), "{torn}");
        let many = images(vec![sent(b"x"); MAX_IMAGES + 1]).unwrap_err();
        assert!(matches!(many, Error::TooLarge(_)), "{many}");
        let large = images(vec![sent(&vec![0; MAX_IMAGES_BYTES + 1])]).unwrap_err();
        assert!(matches!(large, Error::TooLarge(_)), "{large}");
    }
}
