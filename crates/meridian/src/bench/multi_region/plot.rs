//! Throughput over the share of transactions that touch several regions, a line per side, as SVG.

use super::report::{Compared, sum};
use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const MARGIN: f64 = 60.0;
const COLORS: [&str; 4] = ["#0b6e99", "#c0392b", "#7d8c2f", "#6b4c9a"];
const LINES: u32 = 5;

/// One plot of cells that differ in their shares.
pub(super) fn throughput(title: &str, all: &[Compared]) -> String {
    let lines: Vec<(&str, Vec<(f64, f64)>)> = match all.first() {
        None => Vec::new(),
        Some(first) => (0..first.sides.len())
            .map(|at| {
                let points = all.iter().map(|c| (f64::from(c.cell.share), sum(&c.sides[at].1).throughput())).collect();
                (first.sides[at].0.name, points)
            })
            .collect(),
    };
    chart(title, "share of transactions over several regions, %", "transactions per second", &lines)
}

fn chart(title: &str, x_name: &str, y_name: &str, lines: &[(&str, Vec<(f64, f64)>)]) -> String {
    let most = |of: fn(&(f64, f64)) -> f64| lines.iter().flat_map(|(_, points)| points).map(of).fold(1e-9, f64::max);
    let (x_max, y_max) = (most(|p| p.0).max(1.0), most(|p| p.1) * 1.05);
    let x = |value: f64| MARGIN + value / x_max * (WIDTH - 2.0 * MARGIN);
    let y = |value: f64| HEIGHT - MARGIN - value / y_max * (HEIGHT - 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{}\" y=\"24\" text-anchor=\"middle\" font-size=\"15\">{title}</text>\n\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{x_name}</text>\n\
         <text x=\"16\" y=\"{}\" text-anchor=\"middle\" transform=\"rotate(-90 16 {})\">{y_name}</text>\n",
        WIDTH / 2.0,
        WIDTH / 2.0,
        HEIGHT - 18.0,
        HEIGHT / 2.0,
        HEIGHT / 2.0
    );
    for step in 0..=LINES {
        let value = y_max * f64::from(step) / f64::from(LINES);
        let at = y(value);
        let _ = writeln!(out, "<path d=\"M{MARGIN} {at:.1}H{:.1}\" stroke=\"#ddd\"/>", WIDTH - MARGIN);
        let _ = writeln!(out, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value:.0}</text>", MARGIN - 6.0, at + 4.0);
    }
    for (share, _) in lines.first().map(|(_, points)| points.as_slice()).unwrap_or_default() {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{share}</text>",
            x(*share),
            HEIGHT - MARGIN + 18.0
        );
    }
    for (at, (name, points)) in lines.iter().enumerate() {
        let color = COLORS[at % COLORS.len()];
        let path: Vec<String> = points.iter().map(|(a, b)| format!("{:.1},{:.1}", x(*a), y(*b))).collect();
        let _ = writeln!(out, "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>", path.join(" "));
        for point in points {
            let _ = writeln!(out, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{color}\"/>", x(point.0), y(point.1));
        }
        let line = 48.0 + 16.0 * at as f64;
        let _ = writeln!(out, "<text x=\"{}\" y=\"{line}\" text-anchor=\"end\" fill=\"{color}\">{name}</text>", WIDTH - MARGIN);
    }
    out + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_on_the_paper() {
        let svg = chart("t", "x", "y", &[("a", vec![(0.0, 10.0), (50.0, 2.0)]), ("b", vec![(0.0, 0.0), (50.0, 1.0)])]);
        assert_eq!(svg.matches("<circle").count(), 4);
        assert!(svg.contains("points=\"60.0,73.3 580.0,286.7\""), "{svg}");
        assert!(svg.contains("points=\"60.0,340.0 580.0,313.3\""), "{svg}");
    }
}
