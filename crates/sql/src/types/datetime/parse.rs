//! Dates and times from text, as forgiving as PostgreSQL (manual, appendix B): fields in nearly any
//! order, month names, zones, `BC`, `PM`, `today` and its friends.

use super::*;
use crate::types::context::{DateOrder, EvalContext};
use crate::types::zone::{self, abbreviation, parse_offset};

/// What a text was found to say.
#[derive(Default)]
struct Fields {
    date: Option<i32>,
    time: Option<i64>,
    /// `Ok` east offset in seconds or a named zone.
    zone: Option<Zone>,
    special: Option<Special>,
}

#[derive(Clone, Copy, PartialEq)]
enum Special {
    Infinity,
    MinusInfinity,
    Epoch,
    Now,
    /// Days from today.
    Day(i64),
}

enum Problem {
    Syntax,
    OutOfRange,
    /// The same, where another `DateStyle` might read it.
    Order,
    Zone(String),
}

fn raise(p: Problem, text: &str, type_name: &str) -> Error {
    match p {
        Problem::Syntax => Error::sql("22007", format!("invalid input syntax for type {type_name}: \"{text}\"")),
        Problem::OutOfRange => Error::sql("22008", format!("date/time field value out of range: \"{text}\"")),
        Problem::Order => Error::sql("22008", format!("date/time field value out of range: \"{text}\""))
            .hint("Perhaps you need a different \"datestyle\" setting."),
        Problem::Zone(name) => Error::sql("22023", format!("time zone \"{name}\" not recognized")),
    }
}

/// Reads a `date`.
pub fn date(text: &str, ctx: &EvalContext) -> Result<i32> {
    let f = fields(text, ctx.style.date_order).map_err(|p| raise(p, text, "date"))?;
    match f.special {
        Some(Special::Infinity) => return Ok(DATE_INFINITY),
        Some(Special::MinusInfinity) => return Ok(DATE_MINUS_INFINITY),
        Some(Special::Epoch) => return Ok(days_from_civil(1970, 1, 1)),
        Some(Special::Now) => return Ok(today(ctx)),
        Some(Special::Day(n)) => return Ok(today(ctx) + n as i32),
        None => {}
    }
    let day = f.date.ok_or_else(|| raise(Problem::Syntax, text, "date"))?;
    if is_date(i64::from(day)) { Ok(day) } else { Err(Error::sql("22008", format!("date out of range: \"{text}\""))) }
}

/// Reads a `time`.
pub fn time(text: &str, ctx: &EvalContext) -> Result<i64> {
    let f = fields(text, ctx.style.date_order).map_err(|p| raise(p, text, "time"))?;
    match (f.special, f.time) {
        (Some(Special::Now), _) => Ok(split(to_local(ctx.txn_time, &ctx.zone)).1),
        (None, Some(t)) => Ok(t),
        _ => Err(raise(Problem::Syntax, text, "time")),
    }
}

/// Reads a `timestamp`; a zone in the text is ignored.
pub fn timestamp(text: &str, ctx: &EvalContext) -> Result<i64> {
    let f = fields(text, ctx.style.date_order).map_err(|p| raise(p, text, "timestamp"))?;
    local_timestamp(&f, text, "timestamp", ctx)
}

/// Reads a `timestamptz`; without a zone in the text, in the session's.
pub fn timestamptz(text: &str, ctx: &EvalContext) -> Result<i64> {
    let name = "timestamp with time zone";
    let f = fields(text, ctx.style.date_order).map_err(|p| raise(p, text, name))?;
    match f.special {
        Some(Special::Now) => return Ok(ctx.txn_time),
        Some(Special::Epoch) => return timestamp_of(i64::from(days_from_civil(1970, 1, 1)), 0),
        _ => {}
    }
    let local = local_timestamp(&f, text, name, ctx)?;
    to_utc(local, f.zone.as_ref().unwrap_or(&ctx.zone))
        .map_err(|_| Error::sql("22008", format!("timestamp out of range: \"{text}\"")))
}

fn today(ctx: &EvalContext) -> i32 {
    split(to_local(ctx.txn_time, &ctx.zone)).0
}

fn local_timestamp(f: &Fields, text: &str, type_name: &str, ctx: &EvalContext) -> Result<i64> {
    let days = match f.special {
        Some(Special::Infinity) => return Ok(TIMESTAMP_INFINITY),
        Some(Special::MinusInfinity) => return Ok(TIMESTAMP_MINUS_INFINITY),
        Some(Special::Epoch) => i64::from(days_from_civil(1970, 1, 1)),
        Some(Special::Now) => return Ok(to_local(ctx.txn_time, &ctx.zone)),
        Some(Special::Day(n)) => i64::from(today(ctx)) + n,
        None => i64::from(f.date.ok_or_else(|| raise(Problem::Syntax, text, type_name))?),
    };
    timestamp_of(days, f.time.unwrap_or(0)).map_err(|_| Error::sql("22008", format!("timestamp out of range: \"{text}\"")))
}

/// The month of a name or its three-letter form.
pub fn month_number(word: &str) -> Option<u32> {
    const NAMES: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let w = word.to_ascii_lowercase();
    if w == "sept" {
        return Some(9);
    }
    NAMES.iter().position(|n| *n == w || (w.len() == 3 && n.starts_with(&w))).map(|i| i as u32 + 1)
}

fn is_weekday(w: &str) -> bool {
    const NAMES: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
    w.len() >= 3 && NAMES.iter().any(|n| n.starts_with(w)) || w == "thurs"
}

/// Numbers and words of a date that stand apart: `Jan 2 2003`.
#[derive(Default)]
struct Loose {
    month: Option<u32>,
    numbers: Vec<String>,
    bc: bool,
    pm: Option<bool>,
}

fn fields(text: &str, order: DateOrder) -> Result<Fields, Problem> {
    if !text.is_ascii() {
        return Err(Problem::Syntax);
    }
    let mut f = Fields::default();
    let mut loose = Loose::default();
    let mut parts: Option<Vec<String>> = None;
    let mut rest = text;
    let mut count = 0;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        let Some(first) = rest.bytes().next() else { break };
        count += 1;
        if count > 25 {
            return Err(Problem::Syntax);
        }
        match first {
            b'0'..=b'9' => rest = number_field(rest, &mut f, &mut loose, &mut parts)?,
            b'+' | b'-' => rest = signed_field(rest, &mut f)?,
            b if b.is_ascii_alphabetic() => rest = word_field(rest, &mut f, &mut loose)?,
            _ => return Err(Problem::Syntax),
        }
    }
    if let Some(parts) = parts {
        if f.date.is_some() || loose.month.is_some() || !loose.numbers.is_empty() {
            return Err(Problem::Syntax);
        }
        f.date = Some(date_of_parts(&parts, order, loose.bc)?);
    } else if loose.month.is_some() || !loose.numbers.is_empty() {
        if f.date.is_some() {
            return Err(Problem::Syntax);
        }
        f.date = Some(date_of_loose(&loose)?);
    } else if loose.bc {
        return Err(Problem::Syntax);
    }
    if let Some(pm) = loose.pm {
        let t = f.time.ok_or(Problem::Syntax)?;
        let hour = t / HOUR;
        if !(1..=12).contains(&hour) {
            return Err(Problem::OutOfRange);
        }
        f.time = Some(t % HOUR + (hour % 12 + if pm { 12 } else { 0 }) * HOUR);
    }
    if count == 0 || f.special.is_some() && f.date.is_some() {
        return Err(Problem::Syntax);
    }
    Ok(f)
}

fn split_while(s: &str, keep: impl Fn(u8) -> bool) -> (&str, &str) {
    let end = s.bytes().position(|b| !keep(b)).unwrap_or(s.len());
    s.split_at(end)
}

fn number_field<'a>(s: &'a str, f: &mut Fields, loose: &mut Loose, parts: &mut Option<Vec<String>>) -> Result<&'a str, Problem> {
    let (digits, after) = split_while(s, |b| b.is_ascii_digit());
    match after.bytes().next() {
        Some(b':') => {
            let (time, rest) = split_while(s, |b| b.is_ascii_digit() || b == b':' || b == b'.');
            if f.time.is_some() {
                return Err(Problem::Syntax);
            }
            f.time = Some(time_of(time)?);
            Ok(rest)
        }
        Some(delimiter @ (b'-' | b'/' | b'.')) if after.len() > 1 && !(delimiter == b'.' && f.date_known(loose, parts)) => {
            let (second, rest) = split_while(&after[1..], |b| b.is_ascii_alphanumeric());
            // `2020-01-02T…`: the time stands behind the third part, never behind the second.
            if second.is_empty() || parts.is_some() {
                return Err(Problem::Syntax);
            }
            let mut list = vec![digits.to_string(), second.to_string()];
            let mut rest = rest;
            if rest.as_bytes().first() == Some(&delimiter) {
                let (third, r) = split_while(&rest[1..], |b| b.is_ascii_digit());
                if third.is_empty() {
                    return Err(Problem::Syntax);
                }
                list.push(third.to_string());
                rest = r;
            }
            *parts = Some(list);
            Ok(rest)
        }
        _ => {
            if let Some(rest) = compact_field(digits, after, f, loose, parts)? {
                return Ok(rest);
            }
            loose.numbers.push(digits.to_string());
            Ok(after)
        }
    }
}

impl Fields {
    fn date_known(&self, loose: &Loose, parts: &Option<Vec<String>>) -> bool {
        self.date.is_some() || parts.is_some() || loose.month.is_some()
    }
}

/// `20200102`, and `030405[.678]` behind a date.
fn compact_field<'a>(
    digits: &str,
    after: &'a str,
    f: &mut Fields,
    loose: &Loose,
    parts: &Option<Vec<String>>,
) -> Result<Option<&'a str>, Problem> {
    let two = |i: usize| digits[i..i + 2].parse::<u32>().unwrap_or(0);
    if f.date_known(loose, parts) && f.time.is_none() && loose.month.is_none() && (digits.len() == 6 || digits.len() == 4) {
        let (fraction, rest) = match after.strip_prefix('.') {
            Some(r) => split_while(r, |b| b.is_ascii_digit()),
            None => ("", after),
        };
        let seconds = if digits.len() == 6 { two(4) } else { 0 };
        f.time = Some(time_of(&format!("{}:{}:{seconds:02}.{fraction}", &digits[..2], &digits[2..4]))?);
        return Ok(Some(rest));
    }
    if f.date_known(loose, parts) || !loose.numbers.is_empty() || !matches!(digits.len(), 6 | 8) {
        return Ok(None);
    }
    let n = digits.len();
    let year: i32 = digits[..n - 4].parse().map_err(|_| Problem::Syntax)?;
    let year = if n == 6 { two_digit_year(year) } else { year };
    f.date = Some(checked_date(year, two(n - 4), two(n - 2))?);
    Ok(Some(after))
}

fn signed_field<'a>(s: &'a str, f: &mut Fields) -> Result<&'a str, Problem> {
    let (offset, rest) = split_while(&s[1..], |b| b.is_ascii_digit() || b == b':');
    if offset.is_empty() {
        let (word, rest) = split_while(&s[1..], |b| b.is_ascii_alphabetic());
        if s.starts_with('-') && word.eq_ignore_ascii_case("infinity") {
            return set_special(f, Special::MinusInfinity).map(|()| rest);
        }
        if s.starts_with('+') && word.eq_ignore_ascii_case("infinity") {
            return set_special(f, Special::Infinity).map(|()| rest);
        }
        return Err(Problem::Syntax);
    }
    let text = &s[..1 + offset.len()];
    let seconds = parse_offset(text).ok_or(Problem::OutOfRange)?;
    if f.zone.is_some() && f.zone.as_ref().is_none_or(|z| z.offset_at(0) != 0) {
        return Err(Problem::Syntax);
    }
    f.zone = Some(Zone::fixed(seconds));
    Ok(rest)
}

fn set_special(f: &mut Fields, s: Special) -> Result<(), Problem> {
    if f.special.replace(s).is_some() { Err(Problem::Syntax) } else { Ok(()) }
}

fn word_field<'a>(s: &'a str, f: &mut Fields, loose: &mut Loose) -> Result<&'a str, Problem> {
    let (word, rest) = split_while(s, |b| b.is_ascii_alphabetic());
    let lower = word.to_ascii_lowercase();
    match lower.as_str() {
        "t" if rest.starts_with(|c: char| c.is_ascii_digit()) => return Ok(rest),
        "infinity" => return set_special(f, Special::Infinity).map(|()| rest),
        "epoch" => return set_special(f, Special::Epoch).map(|()| rest),
        "now" => return set_special(f, Special::Now).map(|()| rest),
        "today" => return set_special(f, Special::Day(0)).map(|()| rest),
        "tomorrow" => return set_special(f, Special::Day(1)).map(|()| rest),
        "yesterday" => return set_special(f, Special::Day(-1)).map(|()| rest),
        "allballs" => {
            f.time = Some(0);
            f.zone = Some(Zone::utc());
            return Ok(rest);
        }
        "ad" => return Ok(rest),
        "bc" => {
            loose.bc = true;
            return Ok(rest);
        }
        "am" | "pm" => {
            loose.pm = Some(lower == "pm");
            return Ok(rest);
        }
        "at" | "on" => return Ok(rest),
        _ => {}
    }
    if let Some(m) = month_number(&lower) {
        if loose.month.replace(m).is_some() {
            return Err(Problem::Syntax);
        }
        return Ok(rest.strip_prefix(['-', '.', '/']).unwrap_or(rest));
    }
    if is_weekday(&lower) {
        return Ok(rest.strip_prefix('.').unwrap_or(rest));
    }
    zone_field(s, word, rest, f)
}

fn zone_field<'a>(s: &'a str, word: &str, rest: &'a str, f: &mut Fields) -> Result<&'a str, Problem> {
    if f.zone.is_some() {
        return Err(Problem::Syntax);
    }
    let plain = !rest.starts_with(['/', '_']) && !rest.starts_with(|c: char| c.is_ascii_digit());
    if plain && let Some(seconds) = abbreviation(word) {
        // `UTC+3` is POSIX notation: west of UTC.
        if rest.starts_with(['+', '-']) {
            let (offset, r) = split_while(&rest[1..], |b| b.is_ascii_digit() || b == b':');
            let offset = parse_offset(&format!("{}{offset}", &rest[..1])).ok_or(Problem::Syntax)?;
            f.zone = Some(Zone::fixed(-offset));
            return Ok(r);
        }
        f.zone = Some(Zone::fixed(seconds));
        return Ok(rest);
    }
    let (name, rest) = split_while(s, |b| b.is_ascii_alphanumeric() || b"/_+-".contains(&b));
    match zone::Zone::parse(name) {
        Ok(z) => f.zone = Some(z),
        Err(_) if name.contains('/') => return Err(Problem::Zone(name.to_ascii_lowercase())),
        Err(_) => return Err(Problem::Syntax),
    }
    Ok(rest)
}

fn two_digit_year(y: i32) -> i32 {
    if y < 70 { y + 2000 } else { y + 1900 }
}

fn checked_date(year: i32, month: u32, day: u32) -> Result<i32, Problem> {
    if !(1..=12).contains(&month) || day == 0 || day > days_in_month(year, month) {
        return Err(Problem::OutOfRange);
    }
    if !(-4800..=5_900_000).contains(&year) {
        return Err(Problem::OutOfRange);
    }
    Ok(days_from_civil(year, month, day))
}

fn year_of(text: &str, bc: bool) -> Result<i32, Problem> {
    let y: i32 = text.parse().map_err(|_| Problem::OutOfRange)?;
    if bc {
        return if y == 0 { Err(Problem::OutOfRange) } else { Ok(1 - y) };
    }
    if text.len() <= 2 {
        return Ok(two_digit_year(y));
    }
    if y == 0 { Err(Problem::OutOfRange) } else { Ok(y) }
}

/// `2020-01-02`, `1/2/2020`, `2-Jan-2020`, `2020.123` is not one of them.
fn date_of_parts(parts: &[String], order: DateOrder, bc: bool) -> Result<i32, Problem> {
    let number = |s: &str| s.parse::<u32>().map_err(|_| Problem::Syntax);
    let [a, b, c] = parts else {
        // Year and day of the year: `2020.123`, `2020-123`.
        let [year, day] = parts else { return Err(Problem::Syntax) };
        if year.len() < 3 || day.len() != 3 {
            return Err(Problem::Syntax);
        }
        return Ok(days_from_civil(year_of(year, bc)?, 1, 1) + number(day)? as i32 - 1);
    };
    if let Some(m) = month_number(b) {
        return if a.len() > 2 {
            checked_date(year_of(a, bc)?, m, number(c)?)
        } else {
            checked_date(year_of(c, bc)?, m, number(a)?)
        };
    }
    if !b.bytes().all(|x| x.is_ascii_digit()) {
        return Err(Problem::Syntax);
    }
    if a.len() > 2 {
        return checked_date(year_of(a, bc)?, number(b)?, number(c)?);
    }
    let (year, month, day) = match order {
        DateOrder::Mdy => (c, a, b),
        DateOrder::Dmy => (c, b, a),
        DateOrder::Ymd => (a, b, c),
    };
    checked_date(year_of(year, bc)?, number(month)?, number(day)?).map_err(|p| match p {
        Problem::OutOfRange => Problem::Order,
        p => p,
    })
}

/// A month name and two numbers.
fn date_of_loose(loose: &Loose) -> Result<i32, Problem> {
    let month = loose.month.ok_or(Problem::Syntax)?;
    let [a, b] = &loose.numbers[..] else { return Err(Problem::Syntax) };
    let (day, year) = if a.len() > 2 { (b, a) } else { (a, b) };
    checked_date(year_of(year, loose.bc)?, month, day.parse().map_err(|_| Problem::Syntax)?)
}

/// `3:04`, `03:04:05.678`.
fn time_of(text: &str) -> Result<i64, Problem> {
    let mut parts = text.split(':');
    let number = |s: Option<&str>| -> Result<i64, Problem> {
        let s = s.ok_or(Problem::Syntax)?;
        if s.is_empty() || s.len() > 9 { Err(Problem::Syntax) } else { s.parse().map_err(|_| Problem::Syntax) }
    };
    let hours = number(parts.next())?;
    let minutes_text = parts.next().ok_or(Problem::Syntax)?;
    let third = parts.next();
    if parts.next().is_some() {
        return Err(Problem::Syntax);
    }
    // `mm:ss.fff` has no hours.
    let (hours, minutes, seconds) = match (third, minutes_text.contains('.')) {
        (None, true) => (0, hours, minutes_text),
        (third, false) => (hours, number(Some(minutes_text))?, third.unwrap_or("0")),
        _ => return Err(Problem::Syntax),
    };
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let whole = number(Some(whole))?;
    let micros = fraction_micros(fraction).ok_or(Problem::Syntax)?;
    let total = hours * HOUR + minutes * MINUTE + whole * SECOND + micros;
    if hours > 24 || minutes > 59 || whole > 60 || total > DAY {
        return Err(Problem::OutOfRange);
    }
    Ok(total)
}

/// The digits behind a point as microseconds, rounded.
pub fn fraction_micros(digits: &str) -> Option<i64> {
    if digits.is_empty() {
        return Some(0);
    }
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let fraction: f64 = format!("0.{digits}").parse().ok()?;
    Some((fraction * 1e6).round_ties_even() as i64)
}
