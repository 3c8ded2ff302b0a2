//! Names in one piece of memory: thousands of small ones that live as long as
//! the daemon would each keep a page alive that a crowd has left.

use std::time::SystemTime;

#[derive(Default)]
pub(super) struct NameList {
    text: String,
    /// Bytes of it that belong to no name any more.
    dead: usize,
    known: Vec<Known>,
}

struct Known {
    from: usize,
    upto: usize,
    pair: u64,
    changed: Option<SystemTime>,
}

impl NameList {
    /// The names in this order; what line 1 of each says is not known.
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut list = Self::default();
        for name in names {
            list.insert(list.known.len(), name, 0);
        }
        list.text.shrink_to_fit();
        list.known.shrink_to_fit();
        list
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn name(&self, at: usize) -> &str {
        let known = &self.known[at];
        &self.text[known.from..known.upto]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.known.len()).map(|at| self.name(at))
    }

    /// Whether line 1 was read.
    pub(super) fn is_read(&self, at: usize) -> bool {
        self.known[at].pair != 0
    }

    /// Hash of the pair in line 1; 0 before it was read.
    pub(super) fn pair(&mut self, at: usize) -> &mut u64 {
        &mut self.known[at].pair
    }

    /// When the log last changed; `None` before it was looked at.
    pub(super) fn changed(&mut self, at: usize) -> &mut Option<SystemTime> {
        &mut self.known[at].changed
    }

    /// Has every log looked at again.
    pub(super) fn forget_times(&mut self) {
        for known in &mut self.known {
            known.changed = None;
        }
    }

    /// Index of the first name that is not before what is looked for.
    pub(super) fn partition_point(&self, is_before: impl Fn(&str) -> bool) -> usize {
        self.known
            .partition_point(|known| is_before(&self.text[known.from..known.upto]))
    }

    pub(super) fn insert(&mut self, at: usize, name: &str, pair: u64) {
        let from = self.text.len();
        self.text.push_str(name);
        let upto = self.text.len();
        let known = Known {
            from,
            upto,
            pair,
            changed: None,
        };
        self.known.insert(at, known);
    }

    pub(super) fn remove(&mut self, name: &str) {
        let (text, dead) = (&self.text, &mut self.dead);
        self.known.retain(|known| {
            let keep = &text[known.from..known.upto] != name;
            *dead += if keep { 0 } else { name.len() };
            keep
        });
        if self.dead > self.text.len() / 2 {
            let mut text = String::with_capacity(self.text.len() - self.dead);
            for known in &mut self.known {
                let from = text.len();
                text.push_str(&self.text[known.from..known.upto]);
                (known.from, known.upto) = (from, text.len());
            }
            (self.text, self.dead) = (text, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_and_go() {
        let mut list = NameList::new(["a", "ccc", "e"].into_iter());
        list.insert(1, "b", 7);
        assert_eq!(list.iter().collect::<Vec<_>>(), ["a", "b", "ccc", "e"]);
        assert_eq!((*list.pair(1), *list.pair(2)), (7, 0));
        assert_eq!(list.partition_point(|name| name < "c"), 2);
        list.remove("ccc");
        list.remove("a");
        list.remove("never there");
        assert_eq!(list.iter().collect::<Vec<_>>(), ["b", "e"]);
        assert_eq!((list.text.as_str(), list.dead, list.len()), ("be", 0, 2));
    }
}
