//! The identity of a component.

/// Longest name; it is part of file names and labels.
const MAX_NAME_BYTES: usize = 64;

/// A component's identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    name: String,
    description: String,
}

/// An invalid name of a component.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a valid component name: use at most {MAX_NAME_BYTES} lowercase letters, digits \
     and dashes, beginning with a letter"
)]
pub struct InvalidName(pub String);

impl Component {
    /// Creates a component; the description is shown in lists.
    ///
    /// # Panics
    /// If the name is invalid; it is a constant of the program.
    #[must_use]
    pub fn new(name: &str, description: &str) -> Self {
        match Self::named(name, description) {
            Ok(component) => component,
            Err(invalid) => panic!("{invalid}"),
        }
    }

    /// [`Component::new`] for a name from outside the program.
    pub fn named(name: &str, description: &str) -> Result<Self, InvalidName> {
        let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
        let fine = name.len() <= MAX_NAME_BYTES
            && name.bytes().all(plain)
            && name.bytes().next().is_some_and(|c| c.is_ascii_lowercase());
        if !fine {
            return Err(InvalidName(name.to_owned()));
        }
        let description = description.chars().filter(|c| !c.is_control()).collect();
        Ok(Self {
            name: name.to_owned(),
            description,
        })
    }

    /// The name, such as `search`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The description in one line.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The name in the system's service manager, such as `ai.crabtalk.search`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("ai.crabtalk.{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_plain() {
        for name in ["search", "a", "web-fetch2"] {
            assert!(Component::named(name, "").is_ok(), "{name}");
        }
        let long = "a".repeat(MAX_NAME_BYTES + 1);
        for name in [
            "", "../x", "a b", "Search", "2a", "-a", "a/b", "a.b", "é", &long,
        ] {
            assert!(Component::named(name, "").is_err(), "{name}");
        }
    }

    #[test]
    fn the_label_follows_from_the_name() {
        let search = Component::new("search", "Finds\nthings");
        assert_eq!(search.label(), "ai.crabtalk.search");
        assert_eq!(search.description(), "Findsthings");
    }
}
