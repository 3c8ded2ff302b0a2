//! Medians, spreads, and the table they go into.

/// The table's first lines.
pub(crate) const HEADING: &str =
    "| measure | target | median | 10 % – 90 % | samples | met |\n|---|---|---|---|---|---|";

/// Samples of one measure.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples(Vec<f64>);

impl FromIterator<f64> for Samples {
    fn from_iter<T: IntoIterator<Item = f64>>(samples: T) -> Self {
        let mut samples: Vec<f64> = samples.into_iter().collect();
        samples.sort_by(f64::total_cmp);
        Self(samples)
    }
}

impl Samples {
    fn at(&self, part: f64) -> f64 {
        if self.0.is_empty() {
            return f64::NAN;
        }
        let last = self.0.len() - 1;
        self.0[(last as f64 * part).round() as usize]
    }

    pub(crate) fn median(&self) -> f64 {
        self.at(0.5)
    }

    /// What four of five samples lie within.
    pub(crate) fn spread(&self) -> (f64, f64) {
        (self.at(0.1), self.at(0.9))
    }
}

/// A line of the table.
pub(crate) struct Row {
    what: String,
    unit: &'static str,
    /// At most, or at least where `more_is_better`.
    target: Option<f64>,
    more_is_better: bool,
    samples: Samples,
}

impl Row {
    /// A figure that may be as much as the target.
    pub(crate) fn at_most(
        what: impl Into<String>,
        unit: &'static str,
        target: f64,
        samples: impl IntoIterator<Item = f64>,
    ) -> Self {
        Self {
            what: what.into(),
            unit,
            target: Some(target),
            more_is_better: false,
            samples: samples.into_iter().collect(),
        }
    }

    /// A figure that has to reach the target.
    pub(crate) fn at_least(
        what: impl Into<String>,
        unit: &'static str,
        target: f64,
        samples: impl IntoIterator<Item = f64>,
    ) -> Self {
        Self {
            more_is_better: true,
            ..Self::at_most(what, unit, target, samples)
        }
    }

    /// A figure that stands beside others.
    pub(crate) fn beside(
        what: impl Into<String>,
        unit: &'static str,
        samples: impl IntoIterator<Item = f64>,
    ) -> Self {
        Self {
            target: None,
            ..Self::at_most(what, unit, 0.0, samples)
        }
    }

    /// As a line of Markdown.
    pub(crate) fn render(&self) -> String {
        let median = self.samples.median();
        let sign = if self.more_is_better { "≥" } else { "≤" };
        let (target, met) = match self.target {
            Some(target) => {
                let met = if self.more_is_better {
                    median >= target
                } else {
                    median <= target
                };
                let met = if met { "yes" } else { "**no**" };
                (format!("{sign} {}", figure(target, self.unit)), met)
            }
            None => (String::new(), ""),
        };
        let spread = if self.samples.0.len() > 1 {
            let (low, high) = self.samples.spread();
            format!("{} – {}", number(low), number(high))
        } else {
            String::new()
        };
        format!(
            "| {} | {target} | {} | {spread} | {} | {met} |",
            self.what,
            figure(median, self.unit),
            self.samples.0.len(),
        )
    }
}

fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

fn figure(value: f64, unit: &str) -> String {
    format!("{} {unit}", number(value)).trim_end().to_owned()
}
