//! A conversation's working history.

use crate::Message;
use crate::shown::{self, Shown};
use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

/// Messages in order. Cheap to hand to a request: whoever appends copies the
/// list only while somebody else still holds it. Of many images the older ones
/// leave, with notes in their place; logs keep them.
#[derive(Debug, Clone, Default)]
pub struct History {
    messages: Arc<Vec<Arc<Message>>>,
    tokens: u64,
    shown: Shown,
    derived: Derived,
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

    /// Puts notes in place of the images of these messages.
    fn take_images(&mut self, of: &[usize]) {
        let messages = Arc::make_mut(&mut self.messages);
        for at in of {
            let message = &mut messages[*at];
            self.tokens -= message.estimated_tokens();
            *message = Arc::new(message.with_notes(|image| Some(shown::note(image))));
            self.tokens += message.estimated_tokens();
        }
        self.derived = Derived::default();
    }

    /// What all messages are in tokens, roughly.
    pub fn estimated_tokens(&self) -> u64 {
        self.tokens
    }

    /// Where a model keeps what it made of these messages.
    pub fn derived(&self) -> &Derived {
        &self.derived
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

/// One value that lives as long as a history, shared by its copies. It stays
/// when messages are appended, to each copy its own: whoever keeps something
/// here checks which messages it was made of.
#[derive(Clone, Default)]
pub struct Derived(Arc<Mutex<Option<Box<dyn Any + Send>>>>);

impl Derived {
    /// Works with the value; one of another type makes way for a new one.
    pub fn with<T: Default + Send + 'static, R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        // What it holds can be derived again, so a panic elsewhere spoils
        // nothing.
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slot
            .as_mut()
            .and_then(|any| any.downcast_mut::<T>())
            .is_none()
        {
            *slot = Some(Box::new(T::default()));
        }
        let value = slot.as_mut().and_then(|any| any.downcast_mut::<T>());
        work(value.expect("it was just put there"))
    }
}

impl fmt::Debug for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Derived")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_keeps_its_messages() {
        let mut history = History::from(vec![Arc::new(Message::user("one"))]);
        let before = history.clone();
        history.push(Arc::new(Message::user("twelve more")));
        assert_eq!((before.len(), history.len()), (1, 2));
        assert_eq!(before.estimated_tokens(), 1);
        assert_eq!(history.estimated_tokens(), 1 + 3);
    }

    #[test]
    fn what_is_derived_goes_with_all_copies() {
        let history = History::default();
        let copy = history.clone();
        history.derived().with(|kept: &mut Vec<u8>| kept.push(1));
        copy.derived()
            .with(|kept: &mut Vec<u8>| assert_eq!(*kept, [1]));
        copy.derived().with(|other: &mut u32| assert_eq!(*other, 0));
        history
            .derived()
            .with(|kept: &mut Vec<u8>| assert!(kept.is_empty()));
    }
}
