//! Dates, times and intervals.
//!
//! The calendar is the proleptic Gregorian one. Dates count days and timestamps microseconds from
//! 2000-01-01, as in PostgreSQL's binary format; the extreme values are the infinities. A
//! `timestamptz` is an instant in UTC; only its text depends on a zone.

pub mod arithmetic;
pub mod fields;
pub mod interval;
pub mod parse;

use super::zone::{Zone, push_offset};
use meridian_base::{Error, Result};
use std::fmt::Write;

/// Microseconds in a second, minute, hour, day.
pub const SECOND: i64 = 1_000_000;
pub const MINUTE: i64 = 60 * SECOND;
pub const HOUR: i64 = 60 * MINUTE;
pub const DAY: i64 = 24 * HOUR;

/// `infinity` and `-infinity`.
pub const DATE_INFINITY: i32 = i32::MAX;
pub const DATE_MINUS_INFINITY: i32 = i32::MIN;
pub const TIMESTAMP_INFINITY: i64 = i64::MAX;
pub const TIMESTAMP_MINUS_INFINITY: i64 = i64::MIN;

/// 4714-11-24 BC: Julian day 0, the first day PostgreSQL knows.
pub const DATE_MIN: i32 = -2_451_545;
/// One past 5874897-12-31.
const DATE_END: i32 = 2_145_031_949;
pub const TIMESTAMP_MIN: i64 = -211_813_488_000_000_000;
/// One past 294276-12-31 23:59:59.999999.
pub const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;

/// Days since 2000-01-01 of a civil date; years count through 0 (1 BC).
pub fn days_from_civil(year: i32, month: u32, day: u32) -> i32 {
    // Years begin in March here, so that the leap day is a year's last.
    let y = i64::from(year) - i64::from(month <= 2);
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let shifted = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * shifted + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era - 730_425) as i32
}

/// The civil date of a day: the inverse of [`days_from_civil`].
pub fn civil_from_days(days: i32) -> (i32, u32, u32) {
    let z = i64::from(days) + 730_425;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * shifted + 2) / 5 + 1) as u32;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 } as u32;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year as i32, month, day)
}

/// How many days a month has.
pub fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Whether a count of days is a date PostgreSQL can hold (not an infinity).
pub fn is_date(days: i64) -> bool {
    (i64::from(DATE_MIN)..i64::from(DATE_END)).contains(&days)
}

/// 22008.
pub fn date_out_of_range() -> Error {
    Error::sql("22008", "date out of range")
}
/// 22008.
pub fn timestamp_out_of_range() -> Error {
    Error::sql("22008", "timestamp out of range")
}
/// 22008.
pub fn interval_out_of_range() -> Error {
    Error::sql("22008", "interval out of range")
}

/// Whether it is `infinity` or `-infinity`.
pub fn is_infinite(timestamp: i64) -> bool {
    timestamp == TIMESTAMP_INFINITY || timestamp == TIMESTAMP_MINUS_INFINITY
}
/// Whether a date is `infinity` or `-infinity`.
pub fn is_infinite_date(date: i32) -> bool {
    date == DATE_INFINITY || date == DATE_MINUS_INFINITY
}

/// The timestamp of a day and a time of day, checked.
pub fn timestamp_of(days: i64, micros: i64) -> Result<i64> {
    days.checked_mul(DAY)
        .and_then(|d| d.checked_add(micros))
        .filter(|t| (TIMESTAMP_MIN..TIMESTAMP_END).contains(t))
        .ok_or_else(timestamp_out_of_range)
}
/// Day and microseconds of the day.
pub fn split(timestamp: i64) -> (i32, i64) {
    (timestamp.div_euclid(DAY) as i32, timestamp.rem_euclid(DAY))
}

/// A local timestamp as an instant.
pub fn to_utc(local: i64, zone: &Zone) -> Result<i64> {
    if is_infinite(local) {
        return Ok(local);
    }
    let offset = zone.offset_of_local(local.div_euclid(SECOND));
    let utc = local - i64::from(offset) * SECOND;
    if (TIMESTAMP_MIN..TIMESTAMP_END).contains(&utc) { Ok(utc) } else { Err(timestamp_out_of_range()) }
}
/// An instant as a local timestamp.
pub fn to_local(utc: i64, zone: &Zone) -> i64 {
    if is_infinite(utc) { utc } else { utc.saturating_add(i64::from(zone.offset_at(utc.div_euclid(SECOND))) * SECOND) }
}

/// A date's timestamp at midnight.
pub fn date_to_timestamp(date: i32) -> Result<i64> {
    match date {
        DATE_INFINITY => Ok(TIMESTAMP_INFINITY),
        DATE_MINUS_INFINITY => Ok(TIMESTAMP_MINUS_INFINITY),
        d => timestamp_of(i64::from(d), 0).map_err(|_| Error::sql("22008", "date out of range for timestamp")),
    }
}
/// A timestamp's day.
pub fn timestamp_to_date(t: i64) -> i32 {
    match t {
        TIMESTAMP_INFINITY => DATE_INFINITY,
        TIMESTAMP_MINUS_INFINITY => DATE_MINUS_INFINITY,
        t => split(t).0,
    }
}

fn push_date_parts(out: &mut String, days: i32) -> bool {
    let (y, m, d) = civil_from_days(days);
    let shown = if y > 0 { y } else { 1 - y };
    let _ = write!(out, "{shown:04}-{m:02}-{d:02}");
    y <= 0
}

/// Appends `2024-02-29`.
pub fn write_date(out: &mut String, date: i32) {
    match date {
        DATE_INFINITY => out.push_str("infinity"),
        DATE_MINUS_INFINITY => out.push_str("-infinity"),
        d => {
            if push_date_parts(out, d) {
                out.push_str(" BC");
            }
        }
    }
}

/// Appends `13:45:00.5`: the fraction without trailing zeros.
pub fn write_time(out: &mut String, micros: i64) {
    let _ = write!(out, "{:02}:{:02}:{:02}", micros / HOUR, micros / MINUTE % 60, micros / SECOND % 60);
    push_fraction(out, micros % SECOND);
}

fn push_fraction(out: &mut String, micros: i64) {
    if micros != 0 {
        let digits = format!("{:06}", micros.unsigned_abs());
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
}

/// Appends a `timestamp`.
pub fn write_timestamp(out: &mut String, timestamp: i64) {
    write_with_offset(out, timestamp, None)
}

/// Appends a `timestamptz` as it reads in a zone.
pub fn write_timestamptz(out: &mut String, timestamp: i64, zone: &Zone) {
    if is_infinite(timestamp) {
        return write_timestamp(out, timestamp);
    }
    let offset = zone.offset_at(timestamp.div_euclid(SECOND));
    write_with_offset(out, timestamp.saturating_add(i64::from(offset) * SECOND), Some(offset))
}

fn write_with_offset(out: &mut String, timestamp: i64, offset: Option<i32>) {
    match timestamp {
        TIMESTAMP_INFINITY => return out.push_str("infinity"),
        TIMESTAMP_MINUS_INFINITY => return out.push_str("-infinity"),
        _ => {}
    }
    let (days, micros) = split(timestamp);
    let bc = push_date_parts(out, days);
    out.push(' ');
    write_time(out, micros);
    if let Some(offset) = offset {
        push_offset(out, offset);
    }
    if bc {
        out.push_str(" BC");
    }
}
