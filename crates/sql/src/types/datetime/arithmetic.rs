//! Moving timestamps by intervals, and intervals between timestamps.

use super::*;
use crate::types::Interval;

/// Adds months to a date; a day that the new month lacks becomes its last.
fn add_months(days: i32, months: i32) -> Result<i32> {
    let (y, m, d) = civil_from_days(days);
    let total = i64::from(y) * 12 + i64::from(m) - 1 + i64::from(months);
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) as u32 + 1);
    if !(-5000..=5_900_000).contains(&year) {
        return Err(timestamp_out_of_range());
    }
    let year = year as i32;
    Ok(days_from_civil(year, month, d.min(days_in_month(year, month))))
}

/// `timestamp + interval`.
pub fn timestamp_plus(t: i64, i: &Interval) -> Result<i64> {
    if is_infinite(t) {
        return Ok(t);
    }
    let (mut days, micros) = split(t);
    if i.months != 0 {
        days = add_months(days, i.months)?;
    }
    let moved = timestamp_of(i64::from(days) + i64::from(i.days), micros)?;
    moved.checked_add(i.micros).filter(|t| (TIMESTAMP_MIN..TIMESTAMP_END).contains(t)).ok_or_else(timestamp_out_of_range)
}

/// `timestamptz + interval`: months and days move the local time, the rest the instant.
pub fn timestamptz_plus(t: i64, i: &Interval, zone: &Zone) -> Result<i64> {
    if is_infinite(t) {
        return Ok(t);
    }
    let mut at = t;
    if i.months != 0 || i.days != 0 {
        let local = timestamp_plus(to_local(t, zone), &Interval { micros: 0, ..*i })?;
        at = to_utc(local, zone)?;
    }
    at.checked_add(i.micros).filter(|t| (TIMESTAMP_MIN..TIMESTAMP_END).contains(t)).ok_or_else(timestamp_out_of_range)
}

/// `timestamp - timestamp`: days and time.
pub fn difference(a: i64, b: i64) -> Result<Interval> {
    if is_infinite(a) || is_infinite(b) {
        return Err(Error::sql("22008", "cannot subtract infinite timestamps"));
    }
    let micros = a.checked_sub(b).ok_or_else(interval_out_of_range)?;
    Interval { months: 0, days: 0, micros }.justify_hours()
}

/// `age(a, b)`: years, months, days and time, as one counts birthdays.
pub fn age(a: i64, b: i64) -> Result<Interval> {
    if is_infinite(a) || is_infinite(b) {
        return Err(timestamp_out_of_range());
    }
    let (later, earlier, sign) = if a >= b { (a, b, 1) } else { (b, a, -1) };
    let ((day1, time1), (day2, time2)) = (split(later), split(earlier));
    let ((y1, m1, d1), (y2, m2, d2)) = (civil_from_days(day1), civil_from_days(day2));
    let (mut months, mut days) = ((y1 - y2) * 12 + m1 as i32 - m2 as i32, d1 as i32 - d2 as i32);
    let mut micros = time1 - time2;
    if micros < 0 {
        micros += DAY;
        days -= 1;
    }
    if days < 0 {
        // Borrowed from the earlier date's month.
        days += days_in_month(y2, m2) as i32;
        months -= 1;
    }
    Ok(Interval { months: months * sign, days: days * sign, micros: micros * i64::from(sign) })
}
