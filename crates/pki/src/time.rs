//! Moments as certificates know them: whole seconds.

use rustls::pki_types::UnixTime;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The last second of the year 9999, after which certificates cannot name a moment (RFC 5280,
/// §4.1.2.5).
const LAST: u64 = 253_402_300_799;
const DAY_SECS: u64 = 86_400;

/// Seconds since 1970, without leap seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Moment(pub u64);

impl Moment {
    /// The second of a clock's microseconds (`Runtime::physical_micros`).
    pub fn from_micros(micros: u64) -> Moment {
        Moment(micros / 1_000_000)
    }
    /// Later; at most the end of the year 9999.
    pub fn plus(self, secs: u64) -> Moment {
        Moment(self.0.saturating_add(secs).min(LAST))
    }
    /// Earlier; at least 1970.
    pub fn minus(self, secs: u64) -> Moment {
        Moment(self.0.saturating_sub(secs))
    }
    /// Seconds from `earlier` to here; 0 if it is later.
    pub fn since(self, earlier: Moment) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
    pub(crate) fn unix(self) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(self.0))
    }
    /// A calendar's moment. `None` if there is none, or it is before 1970.
    pub(crate) fn civil(year: u64, month: u64, day: u64, hour: u64, minute: u64, second: u64) -> Option<Moment> {
        let is_valid = (1970..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=month_days(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        let days = || days_before(year) + (1..month).map(|m| month_days(year, m)).sum::<u64>() + day - 1;
        is_valid.then(|| Moment(days() * DAY_SECS + hour * 3_600 + minute * 60 + second))
    }
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn month_days(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970 to the beginning of a year.
fn days_before(year: u64) -> u64 {
    let leaps = |y: u64| y / 4 - y / 100 + y / 400;
    (year - 1970) * 365 + leaps(year - 1) - leaps(1969)
}

impl fmt::Display for Moment {
    /// As in ISO 8601: `2030-01-31T12:00:00Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.0.min(LAST);
        let (days, secs) = (at / DAY_SECS, at % DAY_SECS);
        // No year has more days than 366, so this is the right one or one before it.
        let mut year = 1970 + days / 366;
        while days_before(year + 1) <= days {
            year += 1;
        }
        let mut day = days - days_before(year);
        let mut month = 1;
        while day >= month_days(year, month) {
            day -= month_days(year, month);
            month += 1;
        }
        let (hour, minute, second) = (secs / 3_600, secs / 60 % 60, secs % 60);
        write!(f, "{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", day + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_shown_and_read() {
        assert_eq!(Moment(0).to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(Moment(951_782_400).to_string(), "2000-02-29T00:00:00Z");
        assert_eq!(Moment(LAST).to_string(), "9999-12-31T23:59:59Z");
        assert_eq!(Moment::civil(2000, 2, 29, 0, 0, 0), Some(Moment(951_782_400)));
        assert_eq!(Moment::civil(2100, 2, 29, 0, 0, 0), None);
        for at in (0..LAST).step_by(86_400 * 13 + 4_711) {
            let text = Moment(at).to_string();
            let part = |from: usize, to: usize| text[from..to].parse().expect("digits");
            let civil = Moment::civil(part(0, 4), part(5, 7), part(8, 10), part(11, 13), part(14, 16), part(17, 19));
            assert_eq!(civil, Some(Moment(at)));
        }
    }
}
