//! The mean absolute error of each kind of forecaster, one epoch ahead, on the last fifth of a
//! series.
//!
//! ```text
//! cargo run --release -p meridian-forecast --features lstm --example mae -- demand.csv [column]
//! ```
//!
//! The file has a header; `column` is `creations` unless another one is given. Each row is an epoch
//! of five minutes.

use meridian_forecast::{Guarded, HISTORY_MAX, Kind, PATIENCE, Season};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const SEASON: usize = 288;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(path) = args.next() else {
        eprintln!("usage: mae FILE.csv [COLUMN]");
        return ExitCode::FAILURE;
    };
    let column = args.next().unwrap_or_else(|| "creations".to_string());
    match std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}")).and_then(|text| series(&text, &column)) {
        Ok(series) if series.len() > 10 => {
            report(&series);
            ExitCode::SUCCESS
        }
        Ok(series) => {
            eprintln!("{} epochs are too few", series.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn series(text: &str, column: &str) -> Result<Vec<f64>, String> {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    let at = header.split(',').position(|name| name == column).ok_or_else(|| format!("no column {column} in: {header}"))?;
    let value = |line: &str| {
        let field = line.split(',').nth(at).unwrap_or_default();
        field.parse().map_err(|_| format!("not a number: {field:?} in: {line}"))
    };
    lines.map(value).collect()
}

fn report(series: &[f64]) {
    let begin = series.len() * 4 / 5;
    println!("{} epochs, the last {} of them forecast", series.len(), series.len() - begin);
    println!("{:<12} {:>8} {:>12} {:>10} {:>14} {:>14}", "kind", "MAE", "of walk's", "guarded", "training, ms", "forecast, µs");
    let walk = bare(Kind::RandomWalk, series, begin).map_or(0.0, |b| b.error);
    for kind in Kind::ALL {
        let Some(bare) = bare(kind, series, begin) else { continue };
        let (ratio, guarded) = (bare.error / walk, guarded(kind, series, begin));
        let (millis, micros) = (bare.training.as_secs_f64() * 1e3, bare.forecast.as_secs_f64() * 1e6);
        println!("{:<12} {:>8.2} {ratio:>12.3} {guarded:>10.2} {millis:>14.1} {micros:>14.1}", kind.name(), bare.error);
    }
}

struct Bare {
    error: f64,
    /// The slowest training.
    training: Duration,
    /// The mean forecast.
    forecast: Duration,
}

/// A forecaster by itself, trained as often as it wants to be.
fn bare(kind: Kind, series: &[f64], begin: usize) -> Option<Bare> {
    let mut forecaster = kind.forecaster(Season::of(SEASON))?;
    let (mut error, mut training, mut forecast) = (0.0, Duration::ZERO, Duration::ZERO);
    for at in begin..series.len() {
        let past = &series[at.saturating_sub(HISTORY_MAX)..at];
        if ((at - begin) as u64).is_multiple_of(forecaster.training_interval()) {
            training = training.max(timed(|| forecaster.train(past)).1);
        }
        let (said, took) = timed(|| forecaster.forecast(past));
        error += (said.unwrap_or(series[at - 1]) - series[at]).abs();
        forecast += took;
    }
    let epochs = (series.len() - begin) as f64;
    Some(Bare { error: error / epochs, training, forecast: forecast.div_f64(epochs) })
}

/// The error of what a user gets: a row that begins with the series and falls back.
fn guarded(kind: Kind, series: &[f64], begin: usize) -> f64 {
    let mut guarded = Guarded::new(kind, Season::of(SEASON), PATIENCE);
    let mut error = 0.0;
    for (at, demand) in series.iter().enumerate() {
        if at >= begin {
            let said = guarded.forecast(&|| Duration::ZERO).demand.unwrap_or(0.0);
            error += (said - demand).abs();
        } else if at + SEASON >= begin {
            guarded.forecast(&|| Duration::ZERO);
        }
        guarded.observe(*demand);
    }
    error / (series.len() - begin) as f64
}

#[allow(clippy::disallowed_methods)] // A measurement of this machine; nothing is simulated.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let began = Instant::now();
    let result = work();
    (result, began.elapsed())
}
