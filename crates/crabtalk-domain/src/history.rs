//! A conversation's working history.

use crate::Message;
use crate::image_budget::{self, ImageBudget};
use std::ops::Deref;
use std::sync::Arc;

/// Messages in order. Cloning is cheap; appending copies the list only while a request
/// shares it. If there are too many images, the oldest are replaced by notes; the log
/// still has them.
#[derive(Debug, Clone, Default)]
pub struct History {
    messages: Arc<Vec<Arc<Message>>>,
    tokens: u64,
    shown: ImageBudget,
}

impl History {
    /// Appends a message.
    pub fn push(&mut self, message: Arc<Message>) {
        self.tokens += message.estimated_tokens();
        let leaving = self.shown.take(self.messages.len(), &message);
        Arc::make_mut(&mut self.messages).push(message);
        if !leaving.is_empty() {
            self.take_images(&leaving);
        }
    }

    /// Replaces the images of these messages by notes.
    fn take_images(&mut self, of: &[usize]) {
        let messages = Arc::make_mut(&mut self.messages);
        for at in of {
            let message = &mut messages[*at];
            self.tokens -= message.estimated_tokens();
            *message = Arc::new(message.with_notes(|image| Some(image_budget::note(image))));
            self.tokens += message.estimated_tokens();
        }
    }

    /// Estimated tokens of all messages.
    pub fn estimated_tokens(&self) -> u64 {
        self.tokens
    }
}

impl Deref for History {
    type Target = [Arc<Message>];

    fn deref(&self) -> &Self::Target {
        &self.messages
    }
}

impl From<Vec<Arc<Message>>> for History {
    fn from(messages: Vec<Arc<Message>>) -> Self {
        let mut history = Self {
            messages: Arc::new(Vec::with_capacity(messages.len())),
            ..Self::default()
        };
        history.extend(messages);
        history
    }
}

impl FromIterator<Arc<Message>> for History {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(messages: I) -> Self {
        Self::from(messages.into_iter().collect::<Vec<_>>())
    }
}

impl Extend<Arc<Message>> for History {
    fn extend<I: IntoIterator<Item = Arc<Message>>>(&mut self, messages: I) {
        messages.into_iter().for_each(|message| self.push(message));
    }
}

impl<'a> IntoIterator for &'a History {
    type Item = &'a Arc<Message>;
    type IntoIter = std::slice::Iter<'a, Arc<Message>>;

    fn into_iter(self) -> Self::IntoIter {
        self.messages.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_keep_their_messages() {
        let mut history = History::from(vec![Arc::new(Message::user("one"))]);
        let before = history.clone();
        history.push(Arc::new(Message::user("twelve more")));
        assert_eq!((before.len(), history.len()), (1, 2));
        assert_eq!(before.estimated_tokens(), 1);
        assert_eq!(history.estimated_tokens(), 1 + 3);
    }
}
