//! Medians, spreads, and the table they go into.

/// What differs by less is noise of a machine that is shared.
const WORSE: f64 = 1.1;

/// The table's first lines, with or without an earlier build.
pub(crate) fn heading(before: bool) -> &'static str {
    if before {
        "| measure | bound | before | 10 % – 90 % | after | 10 % – 90 % | samples | met |\n\
         |---|---|---|---|---|---|---|---|"
    } else {
        "| measure | bound | median | 10 % – 90 % | samples | met |\n|---|---|---|---|---|---|"
    }
}

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

    /// What four of five samples lie within; nothing of a single one.
    fn spread(&self) -> String {
        match self.0.len() {
            0 | 1 => String::new(),
            _ => format!("{} – {}", number(self.at(0.1)), number(self.at(0.9))),
        }
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

    /// A figure without a bound.
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

    /// As a line of Markdown, with what an earlier build measured if there is one.
    pub(crate) fn render(&self, earlier: Option<&[Self]>) -> String {
        let median = self.samples.median();
        let sign = if self.more_is_better { "≥" } else { "≤" };
        let bound = self.target.map_or(String::new(), |target| {
            format!("{sign} {}", figure(target, self.unit))
        });
        let mut met = Vec::new();
        met.extend(
            self.target
                .map(|target| match self.is_worse(median, target) {
                    true => "**no**",
                    false => "yes",
                }),
        );
        let mut columns = String::new();
        if let Some(earlier) = earlier {
            let same = earlier.iter().find(|row| row.what == self.what);
            columns = same.map_or("| — | ".to_owned(), |row| {
                let before = row.samples.median();
                let (slack, worse) = match self.more_is_better {
                    true => (before / WORSE, "**less than before**"),
                    false => (before * WORSE, "**more than before**"),
                };
                met.extend(self.is_worse(median, slack).then_some(worse));
                format!(
                    "| {} | {} ",
                    figure(before, self.unit),
                    row.samples.spread()
                )
            });
        }
        format!(
            "| {} | {bound} {columns}| {} | {} | {} | {} |",
            self.what,
            figure(median, self.unit),
            self.samples.spread(),
            self.samples.0.len(),
            met.join(", "),
        )
    }

    fn is_worse(&self, median: f64, than: f64) -> bool {
        match self.more_is_better {
            true => median < than,
            false => median > than,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_compares_with_bound_and_earlier_build() {
        let row = |samples: [f64; 3]| Row::at_most("start", "ms", 6.0, samples);
        let alone = row([5.0, 4.0, 7.0]).render(None);
        assert_eq!(
            alone,
            "| start | ≤ 6.00 ms | 5.00 ms | 4.00 – 7.00 | 3 | yes |"
        );
        for (before, now, met) in [
            ([5.0; 3], [5.4; 3], "yes"),
            ([4.0; 3], [5.0; 3], "yes, **more than before**"),
            ([9.0; 3], [7.0; 3], "**no**"),
        ] {
            let line = row(now).render(Some(&[row(before)]));
            assert!(line.ends_with(&format!("| 3 | {met} |")), "{line}");
            assert_eq!(line.matches('|').count(), 9, "{line}");
        }
        let part = |sample: f64| Row::at_least("share", "", 0.9, [sample]);
        let line = part(1.0).render(Some(&[part(2.0)]));
        assert!(line.ends_with("| yes, **less than before** |"), "{line}");
        let unknown = part(1.0).render(Some(&[]));
        assert!(unknown.contains("| — |"), "{unknown}");
        assert_eq!(unknown.matches('|').count(), 9, "{unknown}");
    }
}
