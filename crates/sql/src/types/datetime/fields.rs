//! Fields of dates and times: `extract`, `date_part`, `date_trunc`.

use super::*;
use crate::types::Interval;
use crate::types::numeric::Numeric;

/// What a field is taken from.
pub enum Source<'a> {
    Date(i32),
    Timestamp(i64),
    Timestamptz(i64, &'a Zone),
    Time(i64),
    Interval(Interval),
}

impl Source<'_> {
    fn type_name(&self) -> &'static str {
        match self {
            Source::Date(_) => "date",
            Source::Timestamp(_) => "timestamp without time zone",
            Source::Timestamptz(..) => "timestamp with time zone",
            Source::Time(_) => "time without time zone",
            Source::Interval(_) => "interval",
        }
    }
}

/// PostgreSQL's names of units, abbreviations included, to one name each.
pub fn canonical(unit: &str) -> Option<&'static str> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "microseconds" | "microsecond" | "us" | "usec" | "usecs" | "useconds" | "usecond" => "microseconds",
        "milliseconds" | "millisecond" | "ms" | "msec" | "msecs" | "mseconds" | "msecond" => "milliseconds",
        "second" | "seconds" | "s" | "sec" | "secs" => "second",
        "minute" | "minutes" | "m" | "min" | "mins" => "minute",
        "hour" | "hours" | "h" | "hr" | "hrs" => "hour",
        "day" | "days" | "d" => "day",
        "week" | "weeks" | "w" => "week",
        "month" | "months" | "mon" | "mons" => "month",
        "quarter" | "qtr" | "quarters" => "quarter",
        "year" | "years" | "y" | "yr" | "yrs" => "year",
        "decade" | "decades" | "dec" | "decs" => "decade",
        "century" | "centuries" | "c" | "cent" => "century",
        "millennium" | "millennia" | "mil" | "mils" => "millennium",
        "epoch" => "epoch",
        "dow" => "dow",
        "isodow" => "isodow",
        "doy" => "doy",
        "isoyear" => "isoyear",
        "julian" | "jd" | "j" => "julian",
        "timezone" => "timezone",
        "timezone_hour" | "timezone_h" => "timezone_hour",
        "timezone_minute" | "timezone_m" => "timezone_minute",
        _ => return None,
    })
}

fn scaled(mantissa: i64, scale: u16) -> Numeric {
    Numeric::Small { mantissa: i128::from(mantissa), scale }
}

/// ISO week and its year.
pub fn iso_week(days: i32) -> (i32, i32) {
    // The week belongs to the year of its Thursday. 2000-01-01 was a Saturday.
    let weekday = (days + 5).rem_euclid(7);
    let thursday = days - weekday + 3;
    let (year, _, _) = civil_from_days(thursday);
    ((thursday - days_from_civil(year, 1, 1)) / 7 + 1, year)
}
/// 0 for Sunday.
pub fn weekday(days: i32) -> i32 {
    (days + 6).rem_euclid(7)
}
/// 1 for the first of January.
pub fn day_of_year(days: i32) -> i32 {
    let (y, _, _) = civil_from_days(days);
    days - days_from_civil(y, 1, 1) + 1
}

/// A field; `None` for fields of infinities that have no value. 22023 for a name that is no unit,
/// 0A000 for a unit the source lacks.
pub fn extract(unit: &str, source: &Source<'_>) -> Result<Option<Numeric>> {
    let lower = unit.to_ascii_lowercase();
    let name = canonical(&lower)
        .ok_or_else(|| Error::sql("22023", format!("unit \"{lower}\" not recognized for type {}", source.type_name())))?;
    let missing = || Error::sql("0A000", format!("unit \"{lower}\" not supported for type {}", source.type_name()));
    match source {
        Source::Interval(i) => interval_field(name, i).ok_or_else(missing).map(Some),
        Source::Time(t) => time_field(name, *t).ok_or_else(missing).map(Some),
        Source::Date(d) => {
            if is_infinite_date(*d) {
                return infinite(name, *d > 0).ok_or_else(missing);
            }
            match name {
                "epoch" => Ok(Some(Numeric::from((i64::from(*d) + 10_957) * 86_400))),
                "julian" => Ok(Some(Numeric::from(i64::from(*d) + 2_451_545))),
                _ => date_field(name, *d).ok_or_else(missing).map(Some),
            }
        }
        Source::Timestamp(t) => timestamp_field(name, *t, *t, None).ok_or_else(missing),
        Source::Timestamptz(t, zone) => {
            let offset = zone.offset_at(t.div_euclid(SECOND));
            timestamp_field(name, to_local(*t, zone), *t, Some(offset)).ok_or_else(missing)
        }
    }
}

fn infinite(name: &str, positive: bool) -> Option<Option<Numeric>> {
    Some(match name {
        "year" | "decade" | "century" | "millennium" | "epoch" | "isoyear" | "julian" => {
            Some(if positive { Numeric::PosInfinity } else { Numeric::NegInfinity })
        }
        "timezone" | "timezone_hour" | "timezone_minute" => return None,
        _ => None,
    })
}

fn timestamp_field(name: &str, local: i64, utc: i64, offset: Option<i32>) -> Option<Option<Numeric>> {
    if is_infinite(utc) {
        return infinite(name, utc > 0);
    }
    let (days, micros) = split(local);
    Some(Some(match (name, offset) {
        ("epoch", _) => {
            let mantissa = i128::from(utc) + i128::from(crate::types::context::EPOCH_2000_UNIX_MICROS);
            Numeric::Small { mantissa, scale: 6 }
        }
        ("julian", _) => {
            let day = Numeric::from(i64::from(days) + 2_451_545);
            let part = Numeric::from(micros).div(&Numeric::from(DAY)).ok()?;
            day.add(&part).ok()?
        }
        ("timezone", Some(o)) => Numeric::from(i64::from(o)),
        ("timezone_hour", Some(o)) => Numeric::from(i64::from(o / 3600)),
        ("timezone_minute", Some(o)) => Numeric::from(i64::from(o / 60 % 60)),
        _ => match date_field(name, days) {
            Some(n) => n,
            None => clock_field(name, micros)?,
        },
    }))
}

fn date_field(name: &str, days: i32) -> Option<Numeric> {
    let (y, m, d) = civil_from_days(days);
    // Year 0 is 1 BC and shown as -1.
    let shown = |y: i32| if y > 0 { y } else { y - 1 };
    let n = match name {
        "day" => d as i32,
        "month" => m as i32,
        "quarter" => (m as i32 - 1) / 3 + 1,
        "year" => shown(y),
        "week" => iso_week(days).0,
        "isoyear" => shown(iso_week(days).1),
        "decade" => y.div_euclid(10),
        "century" => {
            if y > 0 {
                (y + 99) / 100
            } else {
                -((99 - (y - 1)) / 100)
            }
        }
        "millennium" => {
            if y > 0 {
                (y + 999) / 1000
            } else {
                -((999 - (y - 1)) / 1000)
            }
        }
        "dow" => weekday(days),
        "isodow" => match weekday(days) {
            0 => 7,
            d => d,
        },
        "doy" => day_of_year(days),
        _ => return None,
    };
    Some(Numeric::from(i64::from(n)))
}

fn clock_field(name: &str, micros: i64) -> Option<Numeric> {
    Some(match name {
        "microseconds" => Numeric::from(micros % MINUTE),
        "milliseconds" => scaled(micros % MINUTE, 3),
        "second" => scaled(micros % MINUTE, 6),
        "minute" => Numeric::from(micros / MINUTE % 60),
        "hour" => Numeric::from(micros / HOUR),
        _ => return None,
    })
}

fn time_field(name: &str, micros: i64) -> Option<Numeric> {
    if name == "epoch" { Some(scaled(micros, 6)) } else { clock_field(name, micros) }
}

fn interval_field(name: &str, i: &Interval) -> Option<Numeric> {
    let n = match name {
        "epoch" => {
            // A year counts 365.25 days here, so this is in quarters of a day.
            let quarter_days = i64::from(i.months / 12) * 1461 + i64::from(i.months % 12) * 120 + i64::from(i.days) * 4;
            let micros = i128::from(quarter_days) * i128::from(DAY / 4) + i128::from(i.micros);
            return Some(Numeric::Small { mantissa: micros, scale: 6 });
        }
        "day" => i64::from(i.days),
        "month" => i64::from(i.months % 12),
        "quarter" => i64::from(i.months % 12 / 3 + 1),
        "year" => i64::from(i.months / 12),
        "decade" => i64::from(i.months / 120),
        "century" => i64::from(i.months / 1200),
        "millennium" => i64::from(i.months / 12_000),
        _ => return clock_field(name, i.micros),
    };
    Some(Numeric::from(n))
}

fn truncate_civil(name: &str, days: i32) -> Option<i32> {
    let (y, m, _) = civil_from_days(days);
    Some(match name {
        "day" => days,
        "week" => days - (days + 5).rem_euclid(7),
        "month" => days_from_civil(y, m, 1),
        "quarter" => days_from_civil(y, (m - 1) / 3 * 3 + 1, 1),
        "year" => days_from_civil(y, 1, 1),
        "decade" => days_from_civil(y.div_euclid(10) * 10, 1, 1),
        "century" => days_from_civil((y - 1).div_euclid(100) * 100 + 1, 1, 1),
        "millennium" => days_from_civil((y - 1).div_euclid(1000) * 1000 + 1, 1, 1),
        _ => return None,
    })
}

fn clock_unit(name: &str) -> Option<i64> {
    Some(match name {
        "microseconds" => 1,
        "milliseconds" => 1_000,
        "second" => SECOND,
        "minute" => MINUTE,
        "hour" => HOUR,
        _ => return None,
    })
}

fn unit_error(unit: &str, type_name: &str) -> Error {
    let lower = unit.to_ascii_lowercase();
    match canonical(unit) {
        Some(_) => Error::sql("0A000", format!("unit \"{lower}\" not supported for type {type_name}")),
        None => Error::sql("22023", format!("unit \"{lower}\" not recognized for type {type_name}")),
    }
}

/// `date_trunc` on a `timestamp`.
pub fn truncate(unit: &str, t: i64) -> Result<i64> {
    let bad = || unit_error(unit, "timestamp without time zone");
    let name = canonical(unit).ok_or_else(bad)?;
    if is_infinite(t) {
        return Ok(t);
    }
    if let Some(step) = clock_unit(name) {
        return Ok(t - t.rem_euclid(step));
    }
    let days = truncate_civil(name, split(t).0).ok_or_else(bad)?;
    timestamp_of(i64::from(days), 0)
}

/// `date_trunc` on a `timestamptz`, in a zone.
pub fn truncate_in_zone(unit: &str, t: i64, zone: &Zone) -> Result<i64> {
    let name = canonical(unit).ok_or_else(|| unit_error(unit, "timestamp with time zone"))?;
    if is_infinite(t) {
        return Ok(t);
    }
    let local = to_local(t, zone);
    if let Some(step) = clock_unit(name) {
        // Keeps the offset in force, so an hour repeated in autumn stays the hour it was.
        return Ok(t - local.rem_euclid(step));
    }
    let days = truncate_civil(name, split(local).0).ok_or_else(|| unit_error(unit, "timestamp with time zone"))?;
    to_utc(timestamp_of(i64::from(days), 0)?, zone)
}

/// `date_trunc` on an `interval`.
pub fn truncate_interval(unit: &str, i: &Interval) -> Result<Interval> {
    let name = canonical(unit).ok_or_else(|| unit_error(unit, "interval"))?;
    let months = |n: i32| Interval { months: i.months / n * n, days: 0, micros: 0 };
    Ok(match name {
        "millennium" => months(12_000),
        "century" => months(1200),
        "decade" => months(120),
        "year" => months(12),
        "quarter" => months(3),
        "month" => months(1),
        "day" => Interval { micros: 0, ..*i },
        _ => match clock_unit(name) {
            Some(step) => Interval { micros: i.micros / step * step, ..*i },
            None => {
                let e = unit_error(unit, "interval");
                return Err(if name == "week" { e.detail("Months usually have fractional weeks.") } else { e });
            }
        },
    })
}
