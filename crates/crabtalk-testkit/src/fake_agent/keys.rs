//! Parses terminal input into keys.

/// A key or a paste.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    Enter,
    Escape,
    /// Clears the draft.
    Clear,
    Interrupt,
    Text(String),
    Paste(String),
}

const BEGIN: &[u8] = b"\x1b[200~";
const END: &[u8] = b"\x1b[201~";

/// Combines bytes to keys.
#[derive(Debug, Default)]
pub(super) struct Keys {
    bytes: Vec<u8>,
    /// Length of the part already searched for the end of a paste, so that a long paste is searched once.
    searched: usize,
}

impl Keys {
    /// Returns the keys that these bytes complete.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.bytes.extend_from_slice(bytes);
        let mut found = Vec::new();
        while let Some(key) = self.next() {
            found.push(key);
        }
        found
    }

    fn next(&mut self) -> Option<Key> {
        let first = *self.bytes.first()?;
        if self.bytes.starts_with(BEGIN) {
            let from = self.searched.max(BEGIN.len());
            let end = self.bytes[from..].windows(END.len()).position(|w| w == END);
            let Some(end) = end.map(|end| end + from) else {
                self.searched = self.bytes.len().saturating_sub(END.len());
                return None;
            };
            let text = String::from_utf8_lossy(&self.bytes[BEGIN.len()..end]).into_owned();
            self.bytes.drain(..end + END.len());
            self.searched = 0;
            return Some(Key::Paste(text));
        }
        if first == 0x1b && self.bytes.len() > 1 && BEGIN.starts_with(&self.bytes) {
            return None;
        }
        let key = match first {
            0x1b => Key::Escape,
            b'\r' => Key::Enter,
            0x15 => Key::Clear,
            0x03 => Key::Interrupt,
            _ => return self.text(),
        };
        self.bytes.drain(..1);
        Some(key)
    }

    fn text(&mut self) -> Option<Key> {
        let is_key = |byte: &u8| matches!(byte, 0x1b | b'\r' | 0x15 | 0x03);
        let end = self
            .bytes
            .iter()
            .position(is_key)
            .unwrap_or(self.bytes.len());
        let text: Vec<u8> = self.bytes.drain(..end).collect();
        Some(Key::Text(String::from_utf8_lossy(&text).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pastes_come_whole_however_they_are_cut() {
        let bytes = b"a\x1b[200~b\nc;\x1b[201~\r\x15\x1b";
        for cut in 0..bytes.len() {
            let mut keys = Keys::default();
            let mut all = keys.take(&bytes[..cut]);
            all.extend(keys.take(&bytes[cut..]));
            // A single ESC is the Esc key.
            if bytes.get(cut.wrapping_sub(1)) == Some(&0x1b) && cut < bytes.len() {
                continue;
            }
            assert!(all.contains(&Key::Paste("b\nc;".into())), "{cut}: {all:?}");
            assert_eq!(all[all.len() - 3..], [Key::Enter, Key::Clear, Key::Escape]);
        }
    }
}
