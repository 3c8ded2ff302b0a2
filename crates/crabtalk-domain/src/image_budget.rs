//! Selects the images of a history that requests contain.
//!
//! Invariants: the selection depends on the messages only, so that a history that is
//! read again contains the same images; above the limits the older half is dropped at
//! once, so that provider caches change rarely.

use crate::{Image, Message};
use std::collections::VecDeque;

/// Maximum number of images in a history; some providers refuse more.
const MAX_IMAGES: usize = 20;

/// Maximum base64 bytes of these images: the strictest provider accepts requests of
/// 20 MB.
const MAX_TEXT: usize = 15 << 20;

/// The reason in the note of an old image.
const TOO_OLD: &str = "newer images replaced it; get it again if you need it";

/// The note that replaces a dropped image.
pub(crate) fn note(image: &Image) -> String {
    image.note_why(TOO_OLD)
}

/// A message with images and their size.
#[derive(Debug, Clone, Copy)]
struct ImageMessage {
    at: usize,
    images: usize,
    text: usize,
}

/// The messages whose images remain, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct ImageBudget {
    places: VecDeque<ImageMessage>,
    images: usize,
    text: usize,
    /// Index of the message that began the current step.
    step: usize,
}

impl ImageBudget {
    /// Adds message number `at`; returns the messages whose images are dropped.
    pub(crate) fn take(&mut self, at: usize, message: &Message) -> Vec<usize> {
        if !message.tool_calls.is_empty() {
            self.step = at;
        }
        let mut leaving = Vec::new();
        if message.images.is_empty() {
            return leaving;
        }
        let place = ImageMessage {
            at,
            images: message.images.len(),
            text: message.images.iter().map(|i| i.base64().len()).sum(),
        };
        self.places.push_back(place);
        self.images += place.images;
        self.text += place.text;
        if !self.is_above(1) {
            return leaving;
        }
        while let Some(oldest) = self.places.front().copied() {
            // The model has not seen the images of the current step yet: keep them if
            // possible.
            if !(self.is_above(1) || self.is_above(2) && oldest.at < self.step) {
                break;
            }
            self.places.pop_front();
            self.images -= oldest.images;
            self.text -= oldest.text;
            leaving.push(oldest.at);
        }
        leaving
    }

    /// Whether the images exceed the limits divided by `part`.
    fn is_above(&self, part: usize) -> bool {
        self.images > MAX_IMAGES / part || self.text > MAX_TEXT / part
    }
}

#[cfg(test)]
mod tests {
    use crate::tool::ToolOutput;
    use crate::{History, Image, ImageType, Message, ToolCall};
    use std::sync::Arc;

    /// Messages of steps, each result with one image of the given size.
    fn steps(steps: &[&[usize]]) -> Vec<Arc<Message>> {
        let mut messages = Vec::new();
        for results in steps {
            let mut call = Message::assistant("");
            call.tool_calls = vec![ToolCall::default(); results.len()];
            messages.push(Arc::new(call));
            for bytes in *results {
                let image = Image::new(ImageType::Png, &vec![0; *bytes]).expect("small enough");
                let output = ToolOutput::ok("seen").with_images(vec![image]);
                messages.push(Arc::new(Message::result("", output)));
            }
        }
        messages
    }

    /// Indexes of the messages with images; checks the notes of the others.
    fn shown(history: &History) -> Vec<usize> {
        let results = history.iter().enumerate();
        let results = results.filter(|(_, m)| m.tool_calls.is_empty());
        results
            .filter(|(_, message)| {
                let is_told = message.content.contains("newer images replaced it");
                assert_ne!(is_told, !message.images.is_empty());
                !is_told
            })
            .map(|(at, _)| at)
            .collect()
    }

    fn check(script: &[&[usize]], want: &[usize]) {
        let messages = steps(script);
        let whole = History::from(messages.clone());
        let mut grown = History::default();
        grown.extend(messages);
        assert_eq!(shown(&whole), want);
        assert_eq!(shown(&grown), want, "however it came to be");
        let tokens: u64 = whole.iter().map(|m| m.estimated_tokens()).sum();
        assert_eq!(
            (whole.estimated_tokens(), grown.estimated_tokens()),
            (tokens, tokens)
        );
    }

    #[test]
    fn older_half_of_images_is_dropped_at_once() {
        let results = |from: usize, upto: usize| -> Vec<usize> {
            (from..upto).map(|step| 2 * step + 1).collect()
        };
        check(&[&[9][..]; 20], &results(0, 20));
        check(&[&[9][..]; 21], &results(11, 21));
        check(&[&[9][..]; 31], &results(11, 31));
        check(&[&[9][..]; 32], &results(22, 32));
        check(&[&[3 << 20][..]; 3], &results(0, 3));
        check(&[&[3 << 20][..]; 4], &results(3, 4));
    }

    #[test]
    fn images_of_the_current_step_stay() {
        let large = 3 << 20;
        check(&[&[large], &[large, large, 9]], &[1, 3, 4, 5]);
        check(&[&[large], &[large, large, large]], &[3, 4, 5]);
        check(&[&[large, large, large, large]], &[2, 3, 4]);
    }

    #[test]
    fn copies_keep_their_images() {
        let mut history = History::from(steps(&[&[9][..]; 20]));
        let before = history.clone();
        history.extend(steps(&[&[9][..]]));
        assert_eq!(shown(&before).len(), 20);
        assert_eq!(shown(&history).len(), 10);
    }
}
