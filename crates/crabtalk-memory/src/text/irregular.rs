//! Irregular forms, which a stemmer cannot reduce to their base.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Lines of a base and its irregular forms.
const FORMS: &str = include_str!("irregular.txt");

static MAP: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let lines = FORMS.lines().filter_map(|line| line.split_once(':'));
    lines
        .flat_map(|(base, forms)| forms.split_whitespace().map(move |form| (form, base)))
        .collect()
});

/// The base of an irregular form.
pub(super) fn base(word: &str) -> Option<&'static str> {
    MAP.get(word).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_one_map() {
        let forms = FORMS
            .lines()
            .filter_map(|l| l.split_once(':'))
            .map(|(_, f)| f);
        let all: Vec<&str> = forms.flat_map(str::split_whitespace).collect();
        assert_eq!(all.len(), MAP.len(), "a form stands twice");
        assert!(all.len() >= 250, "{}", all.len());
        let base_of_base = MAP.values().find(|base| MAP.contains_key(**base));
        assert_eq!(base_of_base, None, "a base is itself a form");
    }
}
