//! Intervals: text, order and arithmetic.

use super::*;
use crate::types::Interval;
use crate::types::datetime::parse::fraction_micros;

fn syntax(text: &str) -> Error {
    Error::sql("22007", format!("invalid input syntax for type interval: \"{text}\""))
}
fn field_range(text: &str) -> Error {
    Error::sql("22015", format!("interval field value out of range: \"{text}\""))
}

/// Collects units; sums are wide so that overflow shows at the end only.
#[derive(Default)]
struct Sum {
    months: i128,
    days: i128,
    micros: i128,
}

#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Months(i64),
    Days(i64),
    Micros(i64),
}

fn unit(word: &str) -> Option<Unit> {
    Some(match word {
        "microsecond" | "microseconds" | "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecon" => Unit::Micros(1),
        "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" | "mseconds" | "msecond" | "millisecon" => Unit::Micros(1_000),
        "second" | "seconds" | "s" | "sec" | "secs" => Unit::Micros(SECOND),
        "minute" | "minutes" | "m" | "min" | "mins" => Unit::Micros(MINUTE),
        "hour" | "hours" | "h" | "hr" | "hrs" => Unit::Micros(HOUR),
        "day" | "days" | "d" => Unit::Days(1),
        "week" | "weeks" | "w" => Unit::Days(7),
        "month" | "months" | "mon" | "mons" => Unit::Months(1),
        "quarter" | "quarters" | "qtr" => Unit::Months(3),
        "year" | "years" | "y" | "yr" | "yrs" => Unit::Months(12),
        "decade" | "decades" | "decs" | "dec" => Unit::Months(120),
        "century" | "centuries" | "cent" | "c" => Unit::Months(1200),
        "millennium" | "millennia" | "mil" | "mils" => Unit::Months(12_000),
        _ => return None,
    })
}

impl Sum {
    /// Adds `whole + fraction` of a unit. Fractions of years go to months, of months to days, of
    /// weeks and days to time.
    fn add(&mut self, whole: i64, fraction: f64, unit: Unit) {
        match unit {
            Unit::Months(1) => {
                self.months += i128::from(whole);
                self.add_days(fraction * 30.0);
            }
            Unit::Months(n) => {
                self.months += i128::from(whole) * i128::from(n) + (fraction * n as f64).round_ties_even() as i128;
            }
            Unit::Days(n) => {
                self.days += i128::from(whole) * i128::from(n);
                self.add_days(fraction * n as f64);
            }
            Unit::Micros(n) => {
                self.micros += i128::from(whole) * i128::from(n) + (fraction * n as f64).round_ties_even() as i128;
            }
        }
    }
    fn add_days(&mut self, days: f64) {
        self.days += days.trunc() as i128;
        self.micros += ((days - days.trunc()) * DAY as f64).round_ties_even() as i128;
    }
    fn finish(self, negate: bool, text: &str) -> Result<Interval> {
        let sign = if negate { -1 } else { 1 };
        let whole = || -> Option<Interval> {
            Some(Interval {
                months: i32::try_from(self.months * sign).ok()?,
                days: i32::try_from(self.days * sign).ok()?,
                micros: i64::try_from(self.micros * sign).ok()?,
            })
        };
        whole().ok_or_else(|| field_range(text))
    }
}

/// `-12.5` to sign, whole and fraction (both carry the sign).
fn number(text: &str) -> Option<(i64, f64)> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let w: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let f: f64 = if fraction.is_empty() { 0.0 } else { format!("0.{fraction}").parse().ok()? };
    Some((sign * w, sign as f64 * f))
}

/// Reads an interval: PostgreSQL's, SQL's and ISO 8601's notations.
pub fn parse(text: &str) -> Result<Interval> {
    let trimmed = text.trim();
    if trimmed.starts_with(['P', 'p']) || trimmed.starts_with("-P") {
        return iso(trimmed, text);
    }
    let lower = trimmed.to_ascii_lowercase();
    let tokens = tokens(&lower).ok_or_else(|| syntax(text))?;
    let mut sum = Sum::default();
    let (mut ago, mut any, mut i) = (false, false, 0);
    while i < tokens.len() {
        let t = tokens[i];
        let next = tokens.get(i + 1).copied();
        if t == "@" && i == 0 {
            i += 1;
            continue;
        }
        if t == "ago" && i + 1 == tokens.len() && any {
            ago = true;
            i += 1;
            continue;
        }
        any = true;
        if t.contains(':') {
            sum.micros += i128::from(time(t).ok_or_else(|| syntax(text))?);
        } else if let Some((years, months)) = year_month(t) {
            sum.months += i128::from(years * 12 + months);
        } else {
            let (whole, fraction) = match number(t) {
                Some(n) => n,
                None if t.bytes().filter(|b| b.is_ascii_digit()).count() > 18 => return Err(field_range(text)),
                None => return Err(syntax(text)),
            };
            match next {
                Some(word) if word.starts_with(|c: char| c.is_ascii_alphabetic()) && word != "ago" => {
                    sum.add(whole, fraction, unit(word).ok_or_else(|| syntax(text))?);
                    i += 1;
                }
                // `1 2:03:04`: a number before a time counts days; one at the end, seconds.
                Some(time) if time.contains(':') => sum.add(whole, fraction, Unit::Days(1)),
                None | Some("ago") => sum.add(whole, fraction, Unit::Micros(SECOND)),
                Some(_) if i > 0 && year_month(tokens[i - 1]).is_some() => sum.add(whole, fraction, Unit::Days(1)),
                Some(_) => return Err(syntax(text)),
            }
        }
        i += 1;
    }
    if !any {
        return Err(syntax(text));
    }
    sum.finish(ago, text)
}

/// Splits at spaces and between digits and letters.
fn tokens(s: &str) -> Option<Vec<&str>> {
    let mut out = Vec::new();
    let mut rest = s;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        let Some(first) = rest.chars().next() else { return Some(out) };
        let is_word = first.is_ascii_alphabetic();
        if !is_word && !first.is_ascii_digit() && !"+-.@".contains(first) {
            return None;
        }
        let end = match first {
            '@' => 1,
            _ => {
                let keep = |(i, c): (usize, char)| {
                    if is_word {
                        c.is_ascii_alphabetic()
                    } else {
                        c.is_ascii_digit() || c == '.' || c == ':' || (c == '-' || (c == '+' && i == 0))
                    }
                };
                rest.char_indices().find(|(i, c)| !keep((*i, *c))).map_or(rest.len(), |(i, _)| i)
            }
        };
        if end == 0 {
            return None;
        }
        let (token, r) = rest.split_at(end);
        out.push(token);
        rest = r;
    }
}

/// `-1:02:03.5`; `1:02` is hours and minutes.
fn time(t: &str) -> Option<i64> {
    let (sign, body) = match t.as_bytes().first()? {
        b'-' => (-1, &t[1..]),
        b'+' => (1, &t[1..]),
        _ => (1, t),
    };
    let parts: Vec<&str> = body.split(':').collect();
    let whole =
        |s: &str| -> Option<i64> { if s.is_empty() || !s.bytes().all(|b| b.is_ascii_digit()) { None } else { s.parse().ok() } };
    let (h, m, s) = match parts[..] {
        [m, s] if s.contains('.') => ("0", m, s),
        [h, m] => (h, m, "0"),
        [h, m, s] => (h, m, s),
        _ => return None,
    };
    let (s, fraction) = s.split_once('.').unwrap_or((s, ""));
    let (h, m, s) = (whole(h)?, whole(m)?, whole(s)?);
    if m > 59 || s > 60 {
        return None;
    }
    let micros = h.checked_mul(HOUR)?.checked_add(m * MINUTE + s * SECOND + fraction_micros(fraction)?)?;
    Some(sign * micros)
}

/// SQL's `years-months`.
fn year_month(t: &str) -> Option<(i64, i64)> {
    let (sign, body) = match t.as_bytes().first()? {
        b'-' => (-1, &t[1..]),
        b'+' => (1, &t[1..]),
        _ => (1, t),
    };
    let (y, m) = body.split_once('-')?;
    if y.is_empty() || m.is_empty() || !y.bytes().chain(m.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (y, m): (i64, i64) = (y.parse().ok()?, m.parse().ok()?);
    if m > 11 || y > i64::from(i32::MAX) { None } else { Some((sign * y, sign * m)) }
}

/// `P1Y2M3DT4H5M6.7S`, `P1W`.
fn iso(s: &str, text: &str) -> Result<Interval> {
    let (negate, body) = match s.strip_prefix('-') {
        Some(b) => (true, b),
        None => (false, s),
    };
    let mut rest = &body[1..];
    let mut sum = Sum::default();
    let (mut in_time, mut any) = (false, false);
    while !rest.is_empty() {
        if let Some(r) = rest.strip_prefix(['T', 't']) {
            in_time = true;
            rest = r;
            continue;
        }
        let end = rest.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(|| syntax(text))?;
        let (whole, fraction) = number(&rest[..end]).ok_or_else(|| syntax(text))?;
        let letter = rest.as_bytes()[end].to_ascii_uppercase();
        let u = match (letter, in_time) {
            (b'Y', false) => Unit::Months(12),
            (b'M', false) => Unit::Months(1),
            (b'W', false) => Unit::Days(7),
            (b'D', false) => Unit::Days(1),
            (b'H', true) => Unit::Micros(HOUR),
            (b'M', true) => Unit::Micros(MINUTE),
            (b'S', true) => Unit::Micros(SECOND),
            _ => return Err(syntax(text)),
        };
        sum.add(whole, fraction, u);
        any = true;
        rest = &rest[end + 1..];
    }
    if any { sum.finish(negate, text) } else { Err(syntax(text)) }
}

/// Appends PostgreSQL's own notation: `1 year 2 mons -3 days +04:05:06.7`.
pub fn write(out: &mut String, v: &Interval) {
    let start = out.len();
    let mut was_negative = false;
    for (n, name) in [(v.months / 12, "year"), (v.months % 12, "mon"), (v.days, "day")] {
        if n == 0 {
            continue;
        }
        if out.len() > start {
            out.push(' ');
        }
        let plus = if was_negative && n > 0 { "+" } else { "" };
        let _ = std::fmt::Write::write_fmt(out, format_args!("{plus}{n} {name}{}", if n == 1 { "" } else { "s" }));
        was_negative = n < 0;
    }
    if v.micros == 0 && out.len() > start {
        return;
    }
    if out.len() > start {
        out.push(' ');
    }
    if v.micros < 0 {
        out.push('-');
    } else if was_negative {
        out.push('+');
    }
    let a = v.micros.unsigned_abs();
    let (hour, minute, second) = (HOUR as u64, MINUTE as u64, SECOND as u64);
    let _ = std::fmt::Write::write_fmt(out, format_args!("{:02}:{:02}:{:02}", a / hour, a / minute % 60, a / second % 60));
    push_fraction(out, (a % second) as i64);
}

impl Interval {
    /// Without what is smaller than a field (`INTERVAL '…' DAY TO HOUR`, PostgreSQL manual, 8.5.4);
    /// seconds to so many places.
    pub fn cut_below(self, field: &str, places: Option<u64>) -> Interval {
        let to = |unit: i64| Interval { micros: self.micros / unit * unit, ..self };
        match field {
            "year" => Interval { months: self.months / 12 * 12, days: 0, micros: 0 },
            "month" => Interval { days: 0, micros: 0, ..self },
            "day" => Interval { micros: 0, ..self },
            "hour" => to(HOUR),
            "minute" => to(MINUTE),
            _ => match places {
                Some(places @ 0..6) => {
                    let unit = 10i64.pow(6 - places as u32);
                    let half = if self.micros < 0 { -unit / 2 } else { unit / 2 };
                    Interval { micros: self.micros.saturating_add(half) / unit * unit, ..self }
                }
                _ => self,
            },
        }
    }
    /// What order and equality look at: a month counts 30 days, a day 24 hours.
    pub fn order(&self) -> i128 {
        (i128::from(self.months) * 30 + i128::from(self.days)) * i128::from(DAY) + i128::from(self.micros)
    }
    pub fn checked_add(&self, o: &Interval) -> Result<Interval> {
        let sum = || {
            Some(Interval {
                months: self.months.checked_add(o.months)?,
                days: self.days.checked_add(o.days)?,
                micros: self.micros.checked_add(o.micros)?,
            })
        };
        sum().ok_or_else(interval_out_of_range)
    }
    pub fn checked_sub(&self, o: &Interval) -> Result<Interval> {
        let difference = || {
            Some(Interval {
                months: self.months.checked_sub(o.months)?,
                days: self.days.checked_sub(o.days)?,
                micros: self.micros.checked_sub(o.micros)?,
            })
        };
        difference().ok_or_else(interval_out_of_range)
    }
    pub fn checked_neg(&self) -> Result<Interval> {
        let neg = || {
            Some(Interval {
                months: self.months.checked_neg()?,
                days: self.days.checked_neg()?,
                micros: self.micros.checked_neg()?,
            })
        };
        neg().ok_or_else(interval_out_of_range)
    }
    /// Times a factor; fractions of months go to days, of days to time (`interval_mul`).
    pub fn times(&self, factor: f64) -> Result<Interval> {
        self.scaled(|v| v * factor)
    }
    /// Divided; the caller has refused 0.
    pub fn divided_by(&self, divisor: f64) -> Result<Interval> {
        self.scaled(|v| v / divisor)
    }
    fn scaled(&self, scale: impl Fn(f64) -> f64) -> Result<Interval> {
        let in_i32 = |v: f64| match v >= f64::from(i32::MIN) && v <= f64::from(i32::MAX) {
            true => Ok(v),
            false => Err(interval_out_of_range()),
        };
        let months = in_i32(scale(f64::from(self.months)))?;
        let days = in_i32(scale(f64::from(self.days)))?;
        let round_micro = |v: f64| (v * 1e6).round_ties_even() / 1e6;
        let month_days = round_micro((months - months.trunc()) * 30.0);
        let mut seconds = round_micro((days - days.trunc() + month_days - month_days.trunc()) * 86_400.0);
        let mut whole_days = days.trunc() + month_days.trunc();
        if seconds.abs() >= 86_400.0 {
            whole_days += (seconds / 86_400.0).trunc();
            seconds -= (seconds / 86_400.0).trunc() * 86_400.0;
        }
        let micros = (scale(self.micros as f64) + seconds * 1e6).round_ties_even();
        // The largest i64 is no f64; the next one, 2^63, is one too much.
        const BOUND: f64 = 9_223_372_036_854_775_808.0;
        if !(-BOUND..BOUND).contains(&micros) {
            return Err(interval_out_of_range());
        }
        Ok(Interval { months: months.trunc() as i32, days: in_i32(whole_days)? as i32, micros: micros as i64 })
    }
    /// Full days out of the time part.
    pub fn justify_hours(&self) -> Result<Interval> {
        let (mut days, mut micros) = (i64::from(self.days) + self.micros / DAY, self.micros % DAY);
        if days > 0 && micros < 0 {
            (days, micros) = (days - 1, micros + DAY);
        } else if days < 0 && micros > 0 {
            (days, micros) = (days + 1, micros - DAY);
        }
        Ok(Interval { months: self.months, days: i32::try_from(days).map_err(|_| interval_out_of_range())?, micros })
    }
    /// Full months, of 30 days, out of the days.
    pub fn justify_days(&self) -> Result<Interval> {
        let (mut months, mut days) = (i64::from(self.months) + i64::from(self.days / 30), self.days % 30);
        if months > 0 && days < 0 {
            (months, days) = (months - 1, days + 30);
        } else if months < 0 && days > 0 {
            (months, days) = (months + 1, days - 30);
        }
        Ok(Interval { months: i32::try_from(months).map_err(|_| interval_out_of_range())?, days, micros: self.micros })
    }
    /// Both, with one sign throughout.
    pub fn justify_interval(&self) -> Result<Interval> {
        let total_days = i128::from(self.days) + i128::from(self.micros / DAY);
        let mut micros = self.micros % DAY;
        let mut months = i128::from(self.months) + total_days / 30;
        let mut days = total_days % 30;
        if months > 0 && (days < 0 || (days == 0 && micros < 0)) {
            (months, days) = (months - 1, days + 30);
        } else if months < 0 && (days > 0 || (days == 0 && micros > 0)) {
            (months, days) = (months + 1, days - 30);
        }
        if days > 0 && micros < 0 {
            (days, micros) = (days - 1, micros + DAY);
        } else if days < 0 && micros > 0 {
            (days, micros) = (days + 1, micros - DAY);
        }
        Ok(Interval { months: i32::try_from(months).map_err(|_| interval_out_of_range())?, days: days as i32, micros })
    }
}
