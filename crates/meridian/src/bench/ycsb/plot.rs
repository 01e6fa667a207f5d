//! Latencies as cumulative distributions, a line for each side, over a logarithmic axis: CSV and
//! SVG.

use meridian_workload::histogram::Histogram;
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
const MARGIN: f64 = 60.0;
const COLORS: [&str; 8] = ["#0b6e99", "#c0392b", "#7d8c2f", "#6b4c9a", "#d98e04", "#2c7a5b", "#8e5572", "#444444"];
/// From 0.1 ms to 10 s.
const DECADES: std::ops::RangeInclusive<i32> = -1..=4;

/// What is drawn as one line.
pub struct Line {
    pub name: String,
    pub latency: Histogram,
}

/// Percent of operations, closer to each other in the tail.
fn steps() -> impl Iterator<Item = f64> {
    (1..50).map(|n| f64::from(n) * 2.0).chain([99.0, 99.5, 99.9, 100.0])
}

/// The points of all lines: name, percent, microseconds.
pub fn csv(lines: &[Line]) -> String {
    let mut out = String::from("line,percent,micros\n");
    for line in lines.iter().filter(|l| l.latency.count() > 0) {
        for percent in steps() {
            let micros = line.latency.quantile(percent / 100.0).unwrap_or_default().as_micros();
            let _ = writeln!(out, "{},{percent},{micros}", line.name);
        }
    }
    out
}

/// The same as a picture.
pub fn svg(title: &str, lines: &[Line]) -> String {
    let (first, last) = (f64::from(*DECADES.start()), f64::from(*DECADES.end()));
    let x = |millis: f64| {
        let decade = millis.max(1e-9).log10().clamp(first, last);
        MARGIN + (decade - first) / (last - first) * (WIDTH - 2.0 * MARGIN)
    };
    let y = |percent: f64| HEIGHT - MARGIN - percent / 100.0 * (HEIGHT - 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{}\" y=\"24\" text-anchor=\"middle\" font-size=\"15\">{title}</text>\n\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">latency, ms</text>\n",
        WIDTH / 2.0,
        WIDTH / 2.0,
        HEIGHT - 18.0
    );
    for decade in DECADES {
        let millis = 10f64.powi(decade);
        let at = x(millis);
        let _ = writeln!(out, "<path d=\"M{at:.1} {MARGIN}V{:.1}\" stroke=\"#ddd\"/>", HEIGHT - MARGIN);
        let _ = writeln!(out, "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{millis}</text>", HEIGHT - MARGIN + 18.0);
    }
    for percent in [0.0, 25.0, 50.0, 75.0, 100.0] {
        let at = y(percent);
        let _ = writeln!(out, "<path d=\"M{MARGIN} {at:.1}H{:.1}\" stroke=\"#ddd\"/>", WIDTH - MARGIN);
        let _ = writeln!(out, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{percent} %</text>", MARGIN - 6.0, at + 4.0);
    }
    for (at, line) in lines.iter().filter(|l| l.latency.count() > 0).enumerate() {
        let color = COLORS[at % COLORS.len()];
        let point = |percent: f64| {
            let millis = line.latency.quantile(percent / 100.0).unwrap_or_default().as_secs_f64() * 1e3;
            format!("{:.1},{:.1}", x(millis), y(percent))
        };
        let path: Vec<String> = steps().map(point).collect();
        let _ = writeln!(out, "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>", path.join(" "));
        let _ =
            writeln!(out, "<text x=\"{}\" y=\"{}\" fill=\"{color}\">{}</text>", MARGIN + 8.0, 48.0 + 16.0 * at as f64, line.name);
    }
    out + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn lines_begin_on_the_left_and_end_on_top() {
        let line = |name: &str, millis: &[u64]| {
            let mut latency = Histogram::new();
            millis.iter().for_each(|m| latency.record(Duration::from_millis(*m)));
            Line { name: name.into(), latency }
        };
        let lines = [line("a", &[1, 1, 100]), line("none", &[])];
        let svg = svg("t", &lines);
        assert_eq!(svg.matches("<polyline").count(), 1);
        // 1 ms is one decade of five from the left, 100 ms three.
        assert!(svg.contains("points=\"180.") && svg.contains(" 420.0,60.0\""), "{svg}");
        let csv = csv(&lines);
        assert!(csv.contains("a,50,1") && csv.contains("a,100,100000\n") && !csv.contains("none"), "{csv}");
    }
}
