//! Samples as a picture: memory above, descriptors below.

use anyhow::{Context, ensure};
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 150.0;
/// Around each of the two.
const MARGIN: f64 = 40.0;

/// Draws `seconds,rss_kib,descriptors,threads` lines under a heading.
pub(super) fn draw(csv: &str) -> anyhow::Result<String> {
    let mut samples: Vec<[f64; 3]> = Vec::new();
    for line in csv.lines().skip(1) {
        let mut fields = line.split(',').map(str::parse::<f64>);
        let mut field = || fields.next().context("a field is missing");
        samples.push([field()??, field()?? / 1024.0, field()??]);
    }
    ensure!(samples.len() > 1, "there is nothing to draw");
    let (width, height) = (WIDTH + 2.0 * MARGIN, 2.0 * (HEIGHT + 2.0 * MARGIN));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    let parts = [("memory, MiB", 1, "#b3541e"), ("descriptors", 2, "#2b6cb0")];
    for (place, (title, column, colour)) in parts.into_iter().enumerate() {
        let top = MARGIN + place as f64 * (HEIGHT + 2.0 * MARGIN);
        panel(&mut out, &samples, top, title, column, colour)?;
    }
    out.push_str("</svg>\n");
    Ok(out)
}

fn panel(
    out: &mut String,
    samples: &[[f64; 3]],
    top: f64,
    title: &str,
    column: usize,
    colour: &str,
) -> anyhow::Result<()> {
    let last = samples.last().map_or(1.0, |sample| sample[0]);
    let most = samples.iter().map(|s| s[column]).fold(1.0, f64::max);
    let bottom = top + HEIGHT;
    let right = MARGIN + WIDTH;
    let points: Vec<String> = samples
        .iter()
        .map(|sample| {
            let x = MARGIN + sample[0] / last * WIDTH;
            let y = bottom - sample[column] / most * HEIGHT;
            format!("{x:.1},{y:.1}")
        })
        .collect();
    writeln!(
        out,
        "<path d=\"M{MARGIN} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#888\"/>\n\
         <polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\"/>\n\
         <text x=\"{MARGIN}\" y=\"{}\">{title}, at most {most:.0}</text>\n\
         <text x=\"{right}\" y=\"{}\" text-anchor=\"end\">{:.1} minutes</text>",
        points.join(" "),
        top - 8.0,
        bottom + 16.0,
        last / 60.0,
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn samples_become_two_lines_within_the_picture() {
        let csv = "seconds,rss_kib,descriptors,threads\n0.0,1024,10,1\n60.0,2048,20,2\n";
        let svg = super::draw(csv).unwrap();
        assert!(svg.contains("40.0,115.0 760.0,40.0"), "{svg}");
        assert!(svg.contains("40.0,345.0 760.0,270.0"), "{svg}");
        assert!(svg.contains("memory, MiB, at most 2"), "{svg}");
        assert!(svg.contains("1.0 minutes"), "{svg}");
        assert!(super::draw("heading only\n").is_err());
    }
}
