//! A buffer for several writers.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// A buffer for several writers; clones share the contents.
#[derive(Debug, Clone, Default)]
pub struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    /// The text written so far. Panics if it is not UTF-8.
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("not poisoned").clone()).expect("text")
    }

    /// The text written since the last call. Panics if it is not UTF-8.
    pub fn take(&self) -> String {
        let bytes = std::mem::take(&mut *self.0.lock().expect("not poisoned"));
        String::from_utf8(bytes).expect("text")
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("not poisoned").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
