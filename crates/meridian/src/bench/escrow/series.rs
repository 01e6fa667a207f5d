//! How many tokens are acquired and released in five minutes each: from a file, or made up.

use meridian_base::{Error, Result};
use std::path::Path;

/// Bins of an hour.
pub(super) const HOUR: usize = 12;
const DAY: usize = 24 * HOUR;
/// How long a bin of a series lasts.
const BIN_SECONDS: u64 = 300;
/// Of the series that is made up.
const DAYS: usize = 30;

/// What happened in one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bin {
    pub creations: u32,
    pub deletions: u32,
    /// At its end.
    pub in_use: u32,
}

impl Bin {
    /// By how much more is in use at its end than at its start.
    pub fn net(self) -> i64 {
        i64::from(self.creations) - i64::from(self.deletions)
    }
}

/// A random sequence that is the same for a seed, in every version of this program (SplitMix64;
/// Steele et al., 2014).
pub(super) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    /// From 0 to below 1.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
    /// From 0 to below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        ((self.share() * end as f64) as usize).min(end.saturating_sub(1))
    }
}

/// Reads a file of the columns `t_seconds`, `creations`, `deletions` and `in_use`; others are left
/// alone.
pub(super) fn load(path: &Path) -> Result<Vec<Bin>> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::fatal(format!("cannot read {}: {e}", path.display())))?;
    parse(&text).map_err(|why| Error::sql("22023", format!("{} is no series: {why}", path.display())))
}

fn parse(text: &str) -> std::result::Result<Vec<Bin>, String> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split(',').map(str::trim).collect();
    let column = |name: &str| head.iter().position(|h| *h == name).ok_or_else(|| format!("it has no column {name}"));
    let columns = [column("t_seconds")?, column("creations")?, column("deletions")?, column("in_use")?];
    let mut bins: Vec<Bin> = Vec::new();
    let mut last_end = None;
    for (line, text) in (2..).zip(lines) {
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let field = |at: usize| fields.get(columns[at]).and_then(|f| f.parse::<u32>().ok());
        let (Some(end), Some(creations), Some(deletions), Some(in_use)) = (field(0), field(1), field(2), field(3)) else {
            return Err(format!("line {line} has not four numbers"));
        };
        let (end, bin) = (u64::from(end), Bin { creations, deletions, in_use });
        if last_end.is_some_and(|last| last + BIN_SECONDS != end) {
            return Err(format!("line {line} is not {BIN_SECONDS} s after the one before"));
        }
        if bins.last().is_some_and(|before| i64::from(before.in_use) + bin.net() != i64::from(in_use)) {
            return Err(format!("line {line}: what is in use is not the running sum"));
        }
        last_end = Some(end);
        bins.push(bin);
    }
    if bins.len() < HOUR {
        return Err("it is shorter than an hour".to_string());
    }
    Ok(bins)
}

/// A series with the days and weeks, the level and the lifetimes of a large region: about 220
/// creations in a bin, twice as many at noon as at midnight, fewer at weekends, with noise, and a
/// burst every two days on average. A fortieth of what is in use ends in each bin.
pub(super) fn synthetic() -> Vec<Bin> {
    let mut random = Random::new(1);
    let mut in_use = 0.0f64;
    let mut bins: Vec<Bin> = Vec::new();
    for at in 0..DAYS * DAY {
        let hour = (at % DAY) as f64 / HOUR as f64;
        let day = 1.0 + 0.35 * ((hour - 6.0) / 24.0 * std::f64::consts::TAU).sin();
        let week = if (at / DAY) % 7 < 5 { 1.0 } else { 0.8 };
        let burst = if random.below(2 * DAY) == 0 { 3.0 } else { 1.0 };
        let creations = (220.0 * day * week * burst * (0.7 + 0.6 * random.share())).round();
        let deletions = (in_use / 40.0 * (0.8 + 0.4 * random.share())).round();
        in_use += creations - deletions;
        bins.push(Bin { creations: creations as u32, deletions: deletions as u32, in_use: in_use as u32 });
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bins: &[Bin], step: u64) -> String {
        let head = "t_seconds,split,creations,deletions,in_use\n".to_string();
        let line = |(at, b): (u64, &Bin)| format!("{},train,{},{},{}\n", (at + 1) * step, b.creations, b.deletions, b.in_use);
        head + &(0..).zip(bins).map(line).collect::<String>()
    }

    #[test]
    fn a_file_is_read_back() {
        let bins = synthetic();
        assert_eq!(parse(&file(&bins, BIN_SECONDS)), Ok(bins));
    }

    #[test]
    fn what_is_no_series_is_refused() {
        let bins = &synthetic()[..20];
        let why = |text: &str| parse(text).expect_err("refused");
        assert!(why("t_seconds,creations,deletions\n").contains("in_use"));
        assert!(why(&file(&bins[..3], BIN_SECONDS)).contains("an hour"));
        assert!(why(&file(bins, 60)).contains("line 3 is not 300 s"));
        let mut wrong = bins.to_vec();
        wrong[4].creations += 1;
        assert!(why(&file(&wrong, BIN_SECONDS)).contains("line 6: what is in use"));
        assert!(why(&file(bins, BIN_SECONDS).replacen("train,", "", 1)).contains("line 2 has not"));
    }

    #[test]
    fn the_series_made_up_has_days_and_is_always_the_same() {
        let bins = synthetic();
        assert_eq!((bins.len(), bins[0], bins.last().copied()), (DAYS * DAY, bins[0], synthetic().last().copied()));
        let noon = |day: usize| bins[day * DAY + 11 * HOUR..][..2 * HOUR].iter().map(|b| b.creations).sum::<u32>();
        let midnight = |day: usize| bins[day * DAY..][..2 * HOUR].iter().map(|b| b.creations).sum::<u32>();
        assert!((0..DAYS).all(|day| noon(day) > midnight(day)), "more at noon than at midnight, every day");
        assert!(bins[DAY..].iter().all(|b| (2_000..20_000).contains(&b.in_use)));
    }
}
