//! Date and time: arithmetic, parts, zones, the clock.

use super::args::{Args, interval_text};
use super::registry::Registry;
use super::{Call, template};
use crate::types::context::EPOCH_2000_UNIX_MICROS;
use crate::types::datetime::arithmetic::{age, difference, timestamp_plus, timestamptz_plus};
use crate::types::datetime::fields::{Source, extract, truncate, truncate_in_zone, truncate_interval};
use crate::types::datetime::{self, DAY, HOUR, MINUTE, SECOND, days_from_civil, days_in_month};
use crate::types::numeric::division_by_zero;
use crate::types::zone::Zone;
use crate::types::{Datum, Interval, Type};
use meridian_base::{Error, Result};

fn date_plus_days(c: &Call<'_>, days: i32, n: i64) -> Result<Datum> {
    let _ = c;
    if datetime::is_infinite_date(days) {
        return Ok(Datum::Date(days));
    }
    let moved = i64::from(days) + n;
    if datetime::is_date(moved) { Ok(Datum::Date(moved as i32)) } else { Err(datetime::date_out_of_range()) }
}

/// The zone of `AT TIME ZONE interval`.
fn zone_of_interval(i: &Interval) -> Result<Zone> {
    if i.months != 0 || i.days != 0 {
        let message = format!("interval time zone \"{}\" must not include months or days", interval_text(i));
        return Err(Error::sql("22023", message));
    }
    Ok(Zone::fixed((i.micros / SECOND) as i32))
}

/// `a op interval` for every type that moves in time. `sign` is 1 or -1.
fn shift(c: &Call<'_>, value: &Datum, ty: &Type, by: &Interval, sign: i32) -> Result<Datum> {
    let by = if sign < 0 { by.checked_neg()? } else { *by };
    Ok(match (value, ty) {
        (Datum::Date(d), _) => Datum::Timestamp(timestamp_plus(datetime::date_to_timestamp(*d)?, &by)?),
        (Datum::Timestamp(t), Type::Timestamptz) => Datum::Timestamp(timestamptz_plus(*t, &by, &c.ctx.zone)?),
        (Datum::Timestamp(t), _) => Datum::Timestamp(timestamp_plus(*t, &by)?),
        (Datum::Time(t), _) => Datum::Time((i128::from(*t) + i128::from(by.micros)).rem_euclid(i128::from(DAY)) as i64),
        (v, _) => return Err(Error::internal(format!("{v:?} does not move in time"))),
    })
}

fn minus_infinite(a: i32, b: i32) -> Result<Datum> {
    if datetime::is_infinite_date(a) || datetime::is_infinite_date(b) {
        return Err(Error::sql("22008", "cannot subtract infinite dates"));
    }
    Ok(Datum::Int(i64::from(a) - i64::from(b)))
}

fn arithmetic(r: &mut Registry) {
    r.operator("+", "date, int4 -> date", |c, a| date_plus_days(c, a.date(0)?, a.int(1)?));
    r.operator("+", "int4, date -> date", |c, a| date_plus_days(c, a.date(1)?, a.int(0)?));
    r.operator("-", "date, int4 -> date", |c, a| date_plus_days(c, a.date(0)?, -a.int(1)?));
    r.operator("-", "date, date -> int4", |_, a| minus_infinite(a.date(0)?, a.date(1)?));
    for (t, result) in [("date", "timestamp"), ("timestamp", "timestamp"), ("timestamptz", "timestamptz"), ("time", "time")] {
        r.operator("+", &format!("{t}, interval -> {result}"), |c, a| shift(c, &a[0], &c.args[0], a.interval(1)?, 1))
            .stable_if(t == "timestamptz");
        r.operator("+", &format!("interval, {t} -> {result}"), |c, a| shift(c, &a[1], &c.args[1], a.interval(0)?, 1))
            .stable_if(t == "timestamptz");
        r.operator("-", &format!("{t}, interval -> {result}"), |c, a| shift(c, &a[0], &c.args[0], a.interval(1)?, -1))
            .stable_if(t == "timestamptz");
    }
    for (x, y) in [("date", "time"), ("time", "date")] {
        r.operator("+", &format!("{x}, {y} -> timestamp"), |_, a| {
            let (d, t) = match (&a[0], &a[1]) {
                (Datum::Date(d), Datum::Time(t)) | (Datum::Time(t), Datum::Date(d)) => (*d, *t),
                _ => return Err(Error::internal("a date and a time")),
            };
            let start = datetime::date_to_timestamp(d)?;
            Ok(Datum::Timestamp(if datetime::is_infinite(start) { start } else { start + t }))
        });
    }
    r.operator("-", "time, time -> interval", |_, a| {
        Ok(Datum::Interval(Interval { months: 0, days: 0, micros: a.time(0)? - a.time(1)? }))
    });
    for t in ["timestamp", "timestamptz"] {
        r.operator("-", &format!("{t}, {t} -> interval"), |_, a| {
            Ok(Datum::Interval(difference(a.timestamp(0)?, a.timestamp(1)?)?))
        });
    }
    r.operator("+", "interval, interval -> interval", |_, a| Ok(Datum::Interval(a.interval(0)?.checked_add(a.interval(1)?)?)));
    r.operator("-", "interval, interval -> interval", |_, a| Ok(Datum::Interval(a.interval(0)?.checked_sub(a.interval(1)?)?)));
    r.operator("-", "interval -> interval", |_, a| Ok(Datum::Interval(a.interval(0)?.checked_neg()?)));
    r.operator("*", "interval, float8 -> interval", |_, a| Ok(Datum::Interval(a.interval(0)?.times(a.float(1)?)?)));
    r.operator("*", "float8, interval -> interval", |_, a| Ok(Datum::Interval(a.interval(1)?.times(a.float(0)?)?)));
    r.operator("/", "interval, float8 -> interval", |_, a| {
        if a.float(1)? == 0.0 {
            return Err(division_by_zero());
        }
        Ok(Datum::Interval(a.interval(0)?.divided_by(a.float(1)?)?))
    });
    r.scalar("justify_hours", "interval -> interval", |_, a| Ok(Datum::Interval(a.interval(0)?.justify_hours()?)));
    r.scalar("justify_days", "interval -> interval", |_, a| Ok(Datum::Interval(a.interval(0)?.justify_days()?)));
    r.scalar("justify_interval", "interval -> interval", |_, a| Ok(Datum::Interval(a.interval(0)?.justify_interval()?)));
    r.scalar("age", "timestamp, timestamp -> interval", |_, a| Ok(Datum::Interval(age(a.timestamp(0)?, a.timestamp(1)?)?)));
    r.scalar("age", "timestamptz, timestamptz -> interval", |c, a| {
        let local = |i: usize| -> Result<i64> { Ok(datetime::to_local(a.timestamp(i)?, &c.ctx.zone)) };
        Ok(Datum::Interval(age(local(0)?, local(1)?)?))
    })
    .stable();
    for t in ["timestamp", "timestamptz"] {
        r.scalar("age", &format!("{t} -> interval"), |c, a| {
            let (now, _) = datetime::split(datetime::to_local(c.ctx.txn_time, &c.ctx.zone));
            let then = a.timestamp(0)?;
            let then = if c.args[0] == Type::Timestamptz { datetime::to_local(then, &c.ctx.zone) } else { then };
            Ok(Datum::Interval(age(datetime::date_to_timestamp(now)?, then)?))
        })
        .stable();
    }
}

fn part(c: &Call<'_>, a: &[Datum]) -> Result<Option<crate::types::numeric::Numeric>> {
    let source = match (&a[1], &c.args[1]) {
        (Datum::Date(d), _) => Source::Date(*d),
        (Datum::Timestamp(t), Type::Timestamptz) => Source::Timestamptz(*t, &c.ctx.zone),
        (Datum::Timestamp(t), _) => Source::Timestamp(*t),
        (Datum::Time(t), _) => Source::Time(*t),
        _ => Source::Interval(*a.interval(1)?),
    };
    extract(a.text(0)?, &source)
}

fn parts(r: &mut Registry) {
    for t in ["timestamp", "timestamptz", "date", "time", "interval"] {
        r.scalar("extract", &format!("text, {t} -> numeric"), |c, a| Ok(part(c, a)?.map_or(Datum::Null, Datum::Numeric)))
            .stable_if(t == "timestamptz");
        r.scalar("date_part", &format!("text, {t} -> float8"), |c, a| {
            Ok(part(c, a)?.map_or(Datum::Null, |n| Datum::Float(n.to_f64())))
        })
        .stable_if(t == "timestamptz");
    }
    r.scalar("date_trunc", "text, timestamp -> timestamp", |_, a| Ok(Datum::Timestamp(truncate(a.text(0)?, a.timestamp(1)?)?)));
    r.scalar("date_trunc", "text, timestamptz -> timestamptz", |c, a| {
        Ok(Datum::Timestamp(truncate_in_zone(a.text(0)?, a.timestamp(1)?, &c.ctx.zone)?))
    })
    .stable();
    r.scalar("date_trunc", "text, timestamptz, text -> timestamptz", |_, a| {
        Ok(Datum::Timestamp(truncate_in_zone(a.text(0)?, a.timestamp(1)?, &Zone::named(a.text(2)?)?)?))
    })
    .stable();
    r.scalar("date_trunc", "text, interval -> interval", |_, a| {
        Ok(Datum::Interval(truncate_interval(a.text(0)?, a.interval(1)?)?))
    });
    r.scalar("date_bin", "interval, timestamp, timestamp -> timestamp", date_bin);
    r.scalar("date_bin", "interval, timestamptz, timestamptz -> timestamptz", date_bin);
    for t in ["date", "timestamp", "timestamptz"] {
        r.scalar("isfinite", &format!("{t} -> bool"), |_, a| {
            Ok(Datum::Bool(match a[0] {
                Datum::Date(d) => !datetime::is_infinite_date(d),
                _ => !datetime::is_infinite(a.timestamp(0)?),
            }))
        });
    }
    r.scalar("isfinite", "interval -> bool", |_, _| Ok(Datum::Bool(true)));
}

fn date_bin(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (stride, t, origin) = (a.interval(0)?, a.timestamp(1)?, a.timestamp(2)?);
    if datetime::is_infinite(t) {
        return Ok(Datum::Timestamp(t));
    }
    if datetime::is_infinite(origin) {
        return Err(Error::sql("22008", "origin out of range"));
    }
    if stride.months != 0 {
        return Err(Error::unsupported("timestamps cannot be binned into intervals containing months or years"));
    }
    let step = i64::from(stride.days)
        .checked_mul(DAY)
        .and_then(|d| d.checked_add(stride.micros))
        .ok_or_else(datetime::interval_out_of_range)?;
    if step <= 0 {
        return Err(Error::sql("22008", "stride must be greater than zero"));
    }
    let since = t.checked_sub(origin).ok_or_else(datetime::interval_out_of_range)?;
    Ok(Datum::Timestamp(t - since.rem_euclid(step)))
}

fn zones(r: &mut Registry) {
    // `x AT TIME ZONE z` is timezone(z, x).
    r.scalar("timezone", "text, timestamptz -> timestamp", |_, a| {
        Ok(Datum::Timestamp(datetime::to_local(a.timestamp(1)?, &Zone::named(a.text(0)?)?)))
    });
    r.scalar("timezone", "text, timestamp -> timestamptz", |_, a| {
        Ok(Datum::Timestamp(datetime::to_utc(a.timestamp(1)?, &Zone::named(a.text(0)?)?)?))
    });
    r.scalar("timezone", "interval, timestamptz -> timestamp", |_, a| {
        Ok(Datum::Timestamp(datetime::to_local(a.timestamp(1)?, &zone_of_interval(a.interval(0)?)?)))
    });
    r.scalar("timezone", "interval, timestamp -> timestamptz", |_, a| {
        Ok(Datum::Timestamp(datetime::to_utc(a.timestamp(1)?, &zone_of_interval(a.interval(0)?)?)?))
    });
}

fn clock(r: &mut Registry) {
    for name in ["now", "transaction_timestamp", "current_timestamp"] {
        r.scalar(name, "-> timestamptz", |c, _| Ok(Datum::Timestamp(c.ctx.txn_time))).stable();
    }
    r.scalar("statement_timestamp", "-> timestamptz", |c, _| Ok(Datum::Timestamp(c.ctx.statement_time))).stable();
    r.scalar("clock_timestamp", "-> timestamptz", |c, _| {
        Ok(Datum::Timestamp(c.ctx.system.now_micros() as i64 - EPOCH_2000_UNIX_MICROS))
    })
    .volatile();
    r.scalar("timeofday", "-> text", |c, _| {
        let now = Datum::Timestamp(c.ctx.system.now_micros() as i64 - EPOCH_2000_UNIX_MICROS);
        Ok(Datum::text(now.to_text(&Type::Timestamptz, c.ctx)))
    })
    .volatile();
    r.scalar("current_date", "-> date", |c, _| {
        Ok(Datum::Date(datetime::split(datetime::to_local(c.ctx.txn_time, &c.ctx.zone)).0))
    })
    .stable();
    r.scalar("localtimestamp", "-> timestamp", |c, _| Ok(Datum::Timestamp(datetime::to_local(c.ctx.txn_time, &c.ctx.zone))))
        .stable();
    for name in ["localtime", "current_time"] {
        r.scalar(name, "-> time", |c, _| Ok(Datum::Time(datetime::split(datetime::to_local(c.ctx.txn_time, &c.ctx.zone)).1)))
            .stable();
    }
    // So many digits of the seconds.
    r.scalar("current_timestamp", "int4 -> timestamptz", |c, a| Ok(Datum::Timestamp(to_digits(c.ctx.txn_time, a.int(0)?))))
        .stable();
    r.scalar("localtimestamp", "int4 -> timestamp", |c, a| {
        Ok(Datum::Timestamp(to_digits(datetime::to_local(c.ctx.txn_time, &c.ctx.zone), a.int(0)?)))
    })
    .stable();
    for name in ["localtime", "current_time"] {
        r.scalar(name, "int4 -> time", |c, a| {
            let now = datetime::split(datetime::to_local(c.ctx.txn_time, &c.ctx.zone)).1;
            Ok(Datum::Time(to_digits(now, a.int(0)?)))
        })
        .stable();
    }
}

/// Microseconds rounded to so many digits of the seconds.
fn to_digits(micros: i64, digits: i64) -> i64 {
    let unit = 10i64.pow(6 - digits.clamp(0, 6) as u32);
    (micros + unit / 2).div_euclid(unit) * unit
}

/// Seconds with their fraction, for `make_time` and its family.
fn clock_micros(h: i64, m: i64, s: f64) -> Result<i64> {
    let micros = (s * 1e6).round_ties_even();
    if !(0..=24).contains(&h)
        || !(0..60).contains(&m)
        || !(0.0..=60e6).contains(&micros)
        || h * HOUR + m * MINUTE + micros as i64 > DAY
    {
        return Err(Error::sql("22008", format!("time field value out of range: {h}:{m:02}:{s:02}")));
    }
    Ok(h * HOUR + m * MINUTE + micros as i64)
}

fn make_day(y: i64, m: i64, d: i64) -> Result<i32> {
    let bad = || Error::sql("22008", format!("date field value out of range: {y}-{m:02}-{d:02}"));
    // Negative years are BC; there is no year 0.
    let year = if y < 0 { y + 1 } else { y } as i32;
    if y == 0
        || !(1..=12).contains(&m)
        || d < 1
        || d > i64::from(days_in_month(year, m as u32))
        || !(-4714..=5_874_897).contains(&y)
    {
        return Err(bad());
    }
    Ok(days_from_civil(year, m as u32, d as u32))
}

fn makers(r: &mut Registry) {
    r.scalar("make_date", "int4, int4, int4 -> date", |_, a| Ok(Datum::Date(make_day(a.int(0)?, a.int(1)?, a.int(2)?)?)));
    r.scalar("make_time", "int4, int4, float8 -> time", |_, a| Ok(Datum::Time(clock_micros(a.int(0)?, a.int(1)?, a.float(2)?)?)));
    fn local(a: &[Datum]) -> Result<i64> {
        let day = make_day(a.int(0)?, a.int(1)?, a.int(2)?)?;
        datetime::timestamp_of(i64::from(day), clock_micros(a.int(3)?, a.int(4)?, a.float(5)?)?)
    }
    r.scalar("make_timestamp", "int4, int4, int4, int4, int4, float8 -> timestamp", |_, a| Ok(Datum::Timestamp(local(a)?)));
    r.scalar("make_timestamptz", "int4, int4, int4, int4, int4, float8 -> timestamptz", |c, a| {
        Ok(Datum::Timestamp(datetime::to_utc(local(a)?, &c.ctx.zone)?))
    })
    .stable();
    r.scalar("make_timestamptz", "int4, int4, int4, int4, int4, float8, text -> timestamptz", |_, a| {
        let zone = a.text(6)?;
        if zone.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(Error::sql("22023", format!("invalid input syntax for type numeric time zone: \"{zone}\""))
                .hint("Numeric time zones must have \"-\" or \"+\" as first character."));
        }
        Ok(Datum::Timestamp(datetime::to_utc(local(a)?, &Zone::of_literal(zone)?)?))
    });
    const FIELDS: [&str; 7] = ["int4", "int4", "int4", "int4", "int4", "int4", "float8"];
    for n in 0..=7 {
        // years, months, weeks, days, hours, mins, secs; what is left out is 0.
        r.scalar("make_interval", &format!("{} -> interval", FIELDS[..n].join(", ")), |_, a| {
            let int = |i: usize| if i < a.len() { a.int(i) } else { Ok(0) };
            let seconds = if a.len() > 6 { a.float(6)? } else { 0.0 };
            let months = int(0)?.checked_mul(12).and_then(|m| m.checked_add(int(1).ok()?)).and_then(|m| i32::try_from(m).ok());
            let days = i32::try_from(int(2)? * 7 + int(3)?).ok();
            let (Some(months), Some(days)) = (months, days) else { return Err(datetime::interval_out_of_range()) };
            let micros = int(4)? * HOUR + int(5)? * MINUTE + (seconds * 1e6).round_ties_even() as i64;
            Ok(Datum::Interval(Interval { months, days, micros }))
        });
    }
    r.scalar("to_timestamp", "float8 -> timestamptz", |_, a| {
        let s = a.float(0)?;
        if s.is_nan() {
            return Err(Error::sql("22008", "timestamp cannot be NaN"));
        }
        if s.is_infinite() {
            return Ok(Datum::Timestamp(if s > 0.0 { datetime::TIMESTAMP_INFINITY } else { datetime::TIMESTAMP_MINUS_INFINITY }));
        }
        let micros = ((s - EPOCH_2000_UNIX_MICROS as f64 / 1e6) * 1e6).round_ties_even();
        if micros < datetime::TIMESTAMP_MIN as f64 || micros >= datetime::TIMESTAMP_END as f64 {
            return Err(Error::sql("22008", format!("timestamp out of range: \"{s}\"")));
        }
        Ok(Datum::Timestamp(micros as i64))
    });
    r.scalar("to_char", "timestamp, text -> text", |_, a| {
        Ok(template::timestamp(a.timestamp(0)?, None, a.text(1)?).map_or(Datum::Null, Datum::text))
    })
    .stable();
    r.scalar("to_char", "timestamptz, text -> text", |c, a| {
        Ok(template::timestamp(a.timestamp(0)?, Some(&c.ctx.zone), a.text(1)?).map_or(Datum::Null, Datum::text))
    })
    .stable();
    r.scalar("to_char", "interval, text -> text", |_, a| Ok(Datum::text(template::interval(a.interval(0)?, a.text(1)?))))
        .stable();
    r.scalar("to_date", "text, text -> date", |_, a| {
        Ok(Datum::Date(datetime::timestamp_to_date(template::parse_timestamp(a.text(0)?, a.text(1)?)?.0)))
    })
    .stable();
    r.scalar("to_timestamp", "text, text -> timestamptz", |c, a| {
        let (local, offset) = template::parse_timestamp(a.text(0)?, a.text(1)?)?;
        let zone = offset.map(Zone::fixed);
        Ok(Datum::Timestamp(datetime::to_utc(local, zone.as_ref().unwrap_or(&c.ctx.zone))?))
    })
    .stable();
}

fn overlaps(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let order = |x: &Datum, y: &Datum| if x <= y { (x.clone(), y.clone()) } else { (y.clone(), x.clone()) };
    let ((s1, e1), (s2, e2)) = (order(&a[0], &a[1]), order(&a[2], &a[3]));
    Ok(Datum::Bool(if s1 == s2 {
        true
    } else if s1 > s2 {
        s1 < e2
    } else {
        s2 < e1
    }))
}

pub fn register(r: &mut Registry) {
    arithmetic(r);
    parts(r);
    zones(r);
    clock(r);
    makers(r);
    for t in ["time", "timestamp", "timestamptz"] {
        r.scalar("overlaps", &format!("{t}, {t}, {t}, {t} -> bool"), overlaps);
    }
}
