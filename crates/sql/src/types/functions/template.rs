//! `to_char`, `to_date`, `to_timestamp`: templates (manual, 9.8), their common patterns.

use crate::types::Interval;
use crate::types::datetime::fields::{day_of_year, iso_week, weekday};
use crate::types::datetime::parse::month_number;
use crate::types::datetime::{self, DAY, HOUR, MINUTE, SECOND, civil_from_days, days_from_civil, days_in_month};
use crate::types::numeric::Numeric;
use crate::types::zone::{Zone, push_offset};
use meridian_base::{Error, Result};

const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Date patterns, longest first where one starts another; letters as they decide the case of words.
const PATTERNS: &[&str] = &[
    "Y,YYY", "YYYY", "YYY", "YY", "Y", "IYYY", "IYY", "IY", "IDDD", "ID", "IW", "I", "MONTH", "Month", "month", "MON", "Mon",
    "mon", "MM", "MI", "MS", "DAY", "Day", "day", "DY", "Dy", "dy", "DDD", "DD", "D", "HH24", "HH12", "HH", "SSSSS", "SSSS",
    "SS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "AM", "am", "PM", "pm", "A.M.", "a.m.", "P.M.", "p.m.", "AD", "ad",
    "BC", "bc", "A.D.", "B.C.", "WW", "W", "CC", "J", "Q", "RM", "rm", "TZH", "TZM", "TZ", "tz", "OF",
];

enum Piece<'a> {
    Pattern { name: &'static str, fill: bool, ordinal: Option<bool> },
    Literal(&'a str),
}

/// Cuts a template into patterns and literal text.
fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut out = Vec::new();
    let mut rest = template;
    let mut fill = true;
    while !rest.is_empty() {
        if let Some(r) = rest.strip_prefix("FM").or_else(|| rest.strip_prefix("fm")) {
            fill = false;
            rest = r;
            continue;
        }
        if let Some(r) = rest.strip_prefix("FX").or_else(|| rest.strip_prefix("TM")) {
            rest = r;
            continue;
        }
        if let Some(r) = rest.strip_prefix('"') {
            let end = r.find('"').unwrap_or(r.len());
            out.push(Piece::Literal(&r[..end]));
            rest = &r[(end + 1).min(r.len())..];
            continue;
        }
        // Names of months and days are told by their case; every other pattern reads in any case.
        let exact = PATTERNS.iter().filter(|p| rest.starts_with(**p)).max_by_key(|p| p.len());
        let loose =
            PATTERNS.iter().filter(|p| rest.get(..p.len()).is_some_and(|r| r.eq_ignore_ascii_case(p))).max_by_key(|p| p.len());
        let found = match (exact, loose) {
            (Some(e), Some(l)) if l.len() > e.len() => Some(l),
            (Some(e), _) => Some(e),
            (None, l) => l,
        };
        match found {
            Some(name) => {
                rest = &rest[name.len()..];
                let mut ordinal = None;
                for (suffix, upper) in [("TH", true), ("th", false)] {
                    if let Some(r) = rest.strip_prefix(suffix) {
                        ordinal = Some(upper);
                        rest = r;
                    }
                }
                out.push(Piece::Pattern { name, fill, ordinal });
                fill = true;
            }
            None => {
                let len = rest.chars().next().map_or(1, char::len_utf8);
                out.push(Piece::Literal(&rest[..len]));
                rest = &rest[len..];
            }
        }
    }
    out
}

fn ordinal_suffix(n: i64, upper: bool) -> &'static str {
    let (lower, capital) = match (n.abs() % 100, n.abs() % 10) {
        (11..=13, _) => ("th", "TH"),
        (_, 1) => ("st", "ST"),
        (_, 2) => ("nd", "ND"),
        (_, 3) => ("rd", "RD"),
        _ => ("th", "TH"),
    };
    if upper { capital } else { lower }
}

const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// What a pattern shows: a number with its width, or words with theirs.
enum Shown {
    Number(i64, usize),
    Text(String, usize),
}

struct Moment {
    days: i32,
    year: i32,
    month: u32,
    day: u32,
    micros: i64,
    zone: Option<(String, i32)>,
}

fn cased(word: &str, like: &str) -> String {
    let letters: Vec<char> = like.chars().filter(|c| c.is_alphabetic()).collect();
    match letters[..] {
        [a, b, ..] if a.is_uppercase() && b.is_uppercase() => word.to_uppercase(),
        [a, ..] if a.is_lowercase() => word.to_lowercase(),
        _ => word.to_string(),
    }
}

fn show(name: &str, m: &Moment) -> Shown {
    use Shown::{Number, Text};
    let year = if m.year > 0 { m.year } else { 1 - m.year };
    let (week, iso_year) = iso_week(m.days);
    let hour = m.micros / HOUR;
    let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
    let fraction = m.micros % SECOND;
    let half = if hour % 24 < 12 { "AM" } else { "PM" };
    let dotted = if hour % 24 < 12 { "A.M." } else { "P.M." };
    let number = |n: i32, w: usize| Number(i64::from(n), w);
    match name {
        "Y,YYY" => Text(format!("{},{:03}", year / 1000, year % 1000), 0),
        "YYYY" => number(year, 4),
        "YYY" => number(year % 1000, 3),
        "YY" => number(year % 100, 2),
        "Y" => number(year % 10, 1),
        "IYYY" => number(iso_year, 4),
        "IYY" => number(iso_year % 1000, 3),
        "IY" => number(iso_year % 100, 2),
        "I" => number(iso_year % 10, 1),
        "IDDD" => number((week - 1) * 7 + if weekday(m.days) == 0 { 7 } else { weekday(m.days) }, 3),
        "ID" => number(if weekday(m.days) == 0 { 7 } else { weekday(m.days) }, 1),
        "IW" => number(week, 2),
        "MONTH" | "Month" | "month" => Text(cased(MONTHS[m.month as usize - 1], name), 9),
        "MON" | "Mon" | "mon" => Text(cased(&MONTHS[m.month as usize - 1][..3], name), 0),
        "MM" => number(m.month as i32, 2),
        "DAY" | "Day" | "day" => Text(cased(DAYS[weekday(m.days) as usize], name), 9),
        "DY" | "Dy" | "dy" => Text(cased(&DAYS[weekday(m.days) as usize][..3], name), 0),
        "DDD" => number(day_of_year(m.days), 3),
        "DD" => number(m.day as i32, 2),
        "D" => number(weekday(m.days) + 1, 1),
        "HH24" => Number(hour, 2),
        "HH12" | "HH" => Number(twelve, 2),
        "MI" => Number(m.micros / MINUTE % 60, 2),
        "SS" => Number(m.micros / SECOND % 60, 2),
        "SSSS" | "SSSSS" => Number(m.micros / SECOND, 1),
        "MS" | "FF3" => Number(fraction / 1_000, 3),
        "US" | "FF6" => Number(fraction, 6),
        "FF1" => Number(fraction / 100_000, 1),
        "FF2" => Number(fraction / 10_000, 2),
        "FF4" => Number(fraction / 100, 4),
        "FF5" => Number(fraction / 10, 5),
        "AM" | "PM" | "am" | "pm" => Text(cased(half, name), 0),
        "A.M." | "P.M." | "a.m." | "p.m." => Text(cased(dotted, &name.replace('.', "")), 0),
        "AD" | "BC" | "ad" | "bc" => Text(cased(if m.year > 0 { "AD" } else { "BC" }, name), 0),
        "A.D." | "B.C." => Text(if m.year > 0 { "A.D." } else { "B.C." }.to_string(), 0),
        "WW" => number((day_of_year(m.days) - 1) / 7 + 1, 2),
        "W" => number((m.day as i32 - 1) / 7 + 1, 1),
        "CC" => number((year + 99) / 100, 2),
        "J" => number(m.days + 2_451_545, 1),
        "Q" => number((m.month as i32 - 1) / 3 + 1, 1),
        "RM" => Text(ROMAN[m.month as usize - 1].to_string(), 4),
        "rm" => Text(ROMAN[m.month as usize - 1].to_lowercase(), 4),
        "TZ" | "tz" => Text(m.zone.as_ref().map_or(String::new(), |z| cased(&z.0, name)), 0),
        "TZH" => Text(
            m.zone.as_ref().map_or("+00".into(), |z| format!("{}{:02}", if z.1 < 0 { '-' } else { '+' }, z.1.abs() / 3600)),
            0,
        ),
        "TZM" => number(m.zone.as_ref().map_or(0, |z| z.1.abs() / 60 % 60), 2),
        _ => {
            let mut s = String::new();
            push_offset(&mut s, m.zone.as_ref().map_or(0, |z| z.1));
            Text(s, 0)
        }
    }
}

fn render(template: &str, m: &Moment) -> String {
    let mut out = String::new();
    for piece in pieces(template) {
        match piece {
            Piece::Literal(s) => out.push_str(s),
            Piece::Pattern { name, fill, ordinal } => match show(name, m) {
                Shown::Number(n, width) => {
                    if fill {
                        // A sign comes on top of the width.
                        let width = width + usize::from(n < 0);
                        out.push_str(&format!("{n:0width$}"));
                    } else {
                        out.push_str(&n.to_string());
                    }
                    if let Some(upper) = ordinal {
                        out.push_str(ordinal_suffix(n, upper));
                    }
                }
                Shown::Text(s, width) if fill => out.push_str(&format!("{s:<width$}")),
                Shown::Text(s, _) => out.push_str(&s),
            },
        }
    }
    out
}

/// `to_char` of a timestamp; with a zone, of the instant as it reads there. Infinities have no
/// parts, and an empty template shows none.
pub fn timestamp(t: i64, zone: Option<&Zone>, template: &str) -> Option<String> {
    if datetime::is_infinite(t) || template.is_empty() {
        return None;
    }
    let local = zone.map_or(t, |z| datetime::to_local(t, z));
    let (days, micros) = datetime::split(local);
    let (year, month, day) = civil_from_days(days);
    let seconds = t.div_euclid(SECOND);
    let zone = zone.map(|z| (z.abbreviation_at(seconds), z.offset_at(seconds)));
    Some(render(template, &Moment { days, year, month, day, micros, zone }))
}

/// `to_char` of an interval.
pub fn interval(i: &Interval, template: &str) -> String {
    let sign = if i.micros < 0 { -1 } else { 1 };
    let mut out = String::new();
    let micros = i.micros.abs();
    for piece in pieces(template) {
        let Piece::Pattern { name, fill, .. } = piece else {
            if let Piece::Literal(s) = piece {
                out.push_str(s);
            }
            continue;
        };
        let (n, width) = match name {
            "YYYY" => (i64::from(i.months / 12), 4),
            "YYY" => (i64::from(i.months / 12 % 1000), 3),
            "YY" => (i64::from(i.months / 12 % 100), 2),
            "Y" => (i64::from(i.months / 12 % 10), 1),
            "MM" => (i64::from(i.months % 12), 2),
            "DD" => (i64::from(i.days), 2),
            "DDD" => (i64::from(i.days), 3),
            "HH24" => (sign * (micros / HOUR), 2),
            "HH" | "HH12" => match sign * (micros / HOUR) {
                // Of a negative one the width alone is left.
                hour if hour % 12 == 0 => (12, if hour < 0 { 3 } else { 2 }),
                hour => (hour % 12, 2),
            },
            "MI" => (sign * (micros / MINUTE % 60), 2),
            "SS" => (sign * (micros / SECOND % 60), 2),
            "MS" => (sign * (micros % SECOND / 1000), 3),
            "US" => (sign * (micros % SECOND), 6),
            "SSSS" | "SSSSS" => (i.micros / SECOND, 1),
            _ => continue,
        };
        if fill {
            // A sign comes on top of the width, but not of all (formatting.c `DCH_to_char`).
            let is_wider = n < 0 && !matches!(name, "DD" | "DDD" | "MS" | "US");
            let width = width + usize::from(is_wider);
            out.push_str(&format!("{n:0width$}"));
        } else {
            out.push_str(&n.to_string());
        }
    }
    out
}

/// What a text says under a template: a local timestamp, and an offset if it has one.
pub fn parse_timestamp(text: &str, template: &str) -> Result<(i64, Option<i32>)> {
    let mut p = Reading { rest: text, text };
    let (mut year, mut month, mut day, mut hour, mut micros) = (None, None, None, 0i64, 0i64);
    let (mut twelve, mut pm, mut bc, mut offset, mut of_year) = (false, None, false, None, None);
    for piece in pieces(template) {
        let (name, fill) = match piece {
            Piece::Literal(s) => {
                p.skip_literal(s);
                continue;
            }
            Piece::Pattern { name, fill, .. } => (name, fill),
        };
        match name {
            "YYYY" | "IYYY" => set(&mut year, p.number(if fill { 4 } else { 9 }, name)?, name)?,
            "Y,YYY" => {
                let thousands = p.number(6, name)?;
                p.skip_literal(",");
                set(&mut year, thousands * 1000 + p.number(3, name)?, name)?;
            }
            "YYY" => set(&mut year, p.number(3, name)? + 2000, name)?,
            "YY" | "IY" => {
                let y = p.number(2, name)?;
                set(&mut year, if y < 70 { y + 2000 } else { y + 1900 }, name)?;
            }
            "Y" => set(&mut year, p.number(1, name)? + 2020, name)?,
            "MM" => set(&mut month, p.number(2, name)?, name)?,
            "MONTH" | "Month" | "month" | "MON" | "Mon" | "mon" => set(&mut month, p.month(name.len() > 3, name)?, name)?,
            "DD" => set(&mut day, p.number(2, name)?, name)?,
            "DDD" => set(&mut of_year, p.number(3, name)?, name)?,
            "DAY" | "Day" | "day" | "DY" | "Dy" | "dy" => p.skip_word(),
            "HH24" => hour = p.number(2, name)?,
            "HH12" | "HH" => {
                hour = p.number(2, name)?;
                twelve = true;
            }
            "MI" => micros += p.number(2, name)? * MINUTE,
            "SS" => micros += p.number(2, name)? * SECOND,
            "MS" | "FF3" => micros += p.fraction(3, name)?,
            "US" | "FF6" => micros += p.fraction(6, name)?,
            "SSSS" | "SSSSS" => micros += p.number(5, name)? * SECOND,
            "AM" | "PM" | "am" | "pm" | "A.M." | "P.M." | "a.m." | "p.m." => pm = Some(p.half_day(name)?),
            "BC" | "AD" | "bc" | "ad" => bc = p.era(),
            "TZH" => {
                let negative = p.rest.starts_with('-');
                p.rest = p.rest.trim_start_matches(['-', '+']);
                let h = p.number(2, name)? as i32;
                offset = Some(if negative { -h * 3600 } else { h * 3600 });
            }
            "TZM" => {
                let m = p.number(2, name)? as i32 * 60;
                offset = offset.map(|o| if o < 0 { o - m } else { o + m });
            }
            _ => return Err(Error::unsupported(format!("formatting field \"{name}\" is only supported in to_char"))),
        }
    }
    if twelve || pm.is_some() {
        if !(1..=12).contains(&hour) {
            return Err(Error::sql("22007", format!("hour \"{hour}\" is invalid for the 12-hour clock"))
                .hint("Use the 24-hour clock, or give an hour between 1 and 12."));
        }
        hour = hour % 12 + if pm == Some(true) { 12 } else { 0 };
    }
    let mut y = year.unwrap_or(if bc { 1 } else { 0 }) as i32;
    if bc {
        y = 1 - y;
    }
    let out = || Error::sql("22008", format!("date/time field value out of range: \"{text}\""));
    if let Some(n) = of_year
        && (month.unwrap_or(1) <= 1 || day.unwrap_or(1) <= 1)
    {
        if year.is_none() && !bc {
            return Err(Error::sql("22007", "cannot calculate day of year without year information"));
        }
        let date = civil_from_days(days_from_civil(y, 1, 1) + n as i32 - 1);
        // What the text says of the month or of the day stays.
        month = month.filter(|m| *m > 1).or(Some(i64::from(date.1)));
        day = day.filter(|d| *d > 1).or(Some(i64::from(date.2)));
        if n < 1 || date.0 != y {
            return Err(out());
        }
    }
    let (month, day) = (month.unwrap_or(1), day.unwrap_or(1));
    if !(1..=12).contains(&month) || day < 1 || day > i64::from(days_in_month(y, month as u32)) || hour > 24 || micros >= DAY {
        return Err(out());
    }
    let days = i64::from(days_from_civil(y, month as u32, day as u32));
    Ok((datetime::timestamp_of(days, hour * HOUR + micros)?, offset))
}

/// A field may be given twice, with one value.
fn set(field: &mut Option<i64>, value: i64, name: &str) -> Result<()> {
    if field.is_some_and(|before| before != value) {
        return Err(Error::sql("22007", format!("conflicting values for \"{name}\" field in formatting string"))
            .detail("This value contradicts a previous setting for the same field type."));
    }
    *field = Some(value);
    Ok(())
}

struct Reading<'a> {
    rest: &'a str,
    text: &'a str,
}

impl Reading<'_> {
    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }
    /// A separator in the template matches any separator, or none.
    fn skip_literal(&mut self, s: &str) {
        for c in s.chars() {
            if c.is_alphanumeric() {
                let mut chars = self.rest.chars();
                chars.next();
                self.rest = chars.as_str();
            } else if let Some(next) = self.rest.chars().next()
                && !next.is_alphanumeric()
                && !(c == ' ' && matches!(next, '+' | '-'))
            {
                self.rest = &self.rest[next.len_utf8()..];
            }
        }
    }
    fn bad(&self, name: &str) -> Error {
        Error::sql(
            "22007",
            format!("invalid value \"{}\" for \"{name}\"", self.rest.chars().take(name.len().max(2)).collect::<String>()),
        )
        .detail("Value must be an integer.")
    }
    fn digits(&mut self, max: usize, name: &str) -> Result<&str> {
        self.blanks();
        let n = self.rest.bytes().take(max).take_while(u8::is_ascii_digit).count();
        if n == 0 {
            if self.rest.is_empty() {
                return Err(Error::sql("22007", format!("source string too short for \"{name}\" formatting field"))
                    .detail(format!("The text was \"{}\".", self.text)));
            }
            return Err(self.bad(name));
        }
        let (d, rest) = self.rest.split_at(n);
        self.rest = rest;
        Ok(d)
    }
    fn number(&mut self, max: usize, name: &str) -> Result<i64> {
        let d = self.digits(max, name)?.to_string();
        d.parse().map_err(|_| self.bad(name))
    }
    fn fraction(&mut self, width: usize, name: &str) -> Result<i64> {
        let d = self.digits(width, name)?.to_string();
        format!("{d:0<6}").parse().map_err(|_| self.bad(name))
    }
    fn skip_word(&mut self) {
        self.blanks();
        self.rest = self.rest.trim_start_matches(|c: char| c.is_alphabetic());
    }
    fn month(&mut self, _long: bool, name: &str) -> Result<i64> {
        self.blanks();
        let n = self.rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        for len in (3..=n).rev() {
            if let Some(m) = month_number(&self.rest[..len]) {
                self.rest = &self.rest[len..];
                return Ok(i64::from(m));
            }
        }
        Err(Error::sql("22007", format!("invalid value \"{}\" for \"{name}\"", &self.rest[..n]))
            .detail("The given value did not match any of the allowed values for this field."))
    }
    fn half_day(&mut self, name: &str) -> Result<bool> {
        self.blanks();
        for (word, pm) in [("a.m.", false), ("p.m.", true), ("am", false), ("pm", true)] {
            if self.rest.get(..word.len()).is_some_and(|r| r.eq_ignore_ascii_case(word)) {
                self.rest = &self.rest[word.len()..];
                return Ok(pm);
            }
        }
        Err(Error::sql("22007", format!("invalid value \"{}\" for \"{name}\"", self.rest.chars().take(2).collect::<String>())))
    }
    fn era(&mut self) -> bool {
        self.blanks();
        let bc = self.rest.get(..2).is_some_and(|r| r.eq_ignore_ascii_case("bc"));
        self.skip_word();
        bc
    }
}

/// `to_char` of a number: `9 0 . , D G FM S MI PL SG PR L $ TH`.
pub fn number(value: &Numeric, template: &str) -> Result<String> {
    if template.is_empty() {
        return Ok(String::new());
    }
    let written = template.replace("FM", "").replace("fm", "");
    let fill = written.len() == template.len();
    let (t, signs) = Signs::of(written.to_ascii_uppercase());
    let decimals = t.find(['.', 'D']).map_or(0, |at| t[at..].chars().filter(|c| matches!(c, '9' | '0')).count());
    let whole_places = t.split(['.', 'D']).next().unwrap_or("").chars().filter(|c| matches!(c, '9' | '0')).count();
    let rounded = value.round(decimals as i32);
    let negative = rounded.signum() < 0 && !rounded.is_zero();
    let plain = rounded.abs().to_string();
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let whole = if whole == "0" { "" } else { whole };
    let overflow = whole.len() > whole_places;
    // The words for infinities and NaN stand where digits would, and have no fraction.
    let is_word = !value.is_finite() && !overflow;
    let first_zero =
        t.chars().filter(|c| matches!(c, '9' | '0' | '.' | 'D')).take_while(|c| !matches!(c, '.' | 'D')).position(|c| c == '0');
    let mut body = String::new();
    let (mut place, mut in_fraction, mut started) = (0, false, false);
    let blank = if fill { " " } else { "" };
    let mut at = 0;
    while let Some(c) = t[at..].chars().next() {
        let rest = &t[at..];
        let marks = [("MI", "-", blank), ("SG", "-", "+"), ("PL", blank, "+")];
        if let Some((mark, below, other)) = marks.into_iter().find(|(mark, _, _)| rest.starts_with(mark)) {
            body.push_str(if negative { below } else { other });
            at += mark.len();
            continue;
        }
        if rest.starts_with("TH") {
            if !negative && decimals == 0 {
                body.push_str(ordinal_suffix(rounded.to_i64().unwrap_or(0), written[at..].starts_with("TH")));
            }
            at += 2;
            continue;
        }
        at += c.len_utf8();
        match c {
            '9' | '0' if !in_fraction => {
                let from_right = whole_places - place;
                let digit = whole.len().checked_sub(from_right).and_then(|i| whole.as_bytes().get(i)).map(|b| char::from(*b));
                let forced = first_zero.is_some_and(|z| place >= z);
                place += 1;
                match digit {
                    _ if overflow => body.push('#'),
                    Some(d) => {
                        started = true;
                        body.push(d);
                    }
                    None if forced => {
                        started = true;
                        body.push('0');
                    }
                    // The last place of a number without whole digits and without a fraction shows
                    // its 0.
                    None if place == whole_places && decimals == 0 => {
                        started = true;
                        body.push('0');
                    }
                    None if fill => body.push(' '),
                    None => {}
                }
            }
            '9' | '0' if is_word => {}
            '9' | '0' => {
                let i = body.rsplit('.').next().map_or(0, str::len);
                body.push(if overflow { '#' } else { fraction.as_bytes().get(i).map_or('0', |b| char::from(*b)) });
            }
            '.' | 'D' => {
                in_fraction = true;
                if !is_word {
                    body.push('.');
                }
            }
            ',' | 'G' if started || overflow => body.push(','),
            ',' | 'G' if fill => body.push(' '),
            ',' | 'G' => {}
            // The currency sign of the locale C.
            'L' => body.push(' '),
            '"' => {}
            'V' | 'E' | 'R' => return Err(Error::unsupported(format!("to_char template \"{template}\" is not supported"))),
            other => body.push(other),
        }
    }
    if !fill && body.contains('.') {
        // Without filling, optional zeros at the end vanish; `0` places stay.
        let keep = t.split(['.', 'D']).nth(1).map_or(0, |f| f.rfind('0').map_or(0, |i| i + 1));
        while body.ends_with('0') && body.rsplit('.').next().map_or(0, str::len) > keep {
            body.pop();
        }
    }
    if signs.is_placed {
        return Ok(body);
    }
    Ok(signs.put(body, negative, fill))
}

/// Where a template wants the sign.
#[derive(Default)]
struct Signs {
    /// It has a place of its own, and stands nowhere else.
    is_placed: bool,
    leading_s: bool,
    trailing_s: bool,
    brackets: bool,
}

impl Signs {
    /// Takes them from a template in upper case; what is left means the same at the same places.
    fn of(mut t: String) -> (String, Signs) {
        let mut signs = Signs::default();
        if let Some(r) = t.strip_suffix("PR") {
            signs.brackets = true;
            t = r.to_string();
        }
        signs.is_placed = t.contains("MI") || t.contains("SG");
        if signs.is_placed {
            return (t, signs);
        }
        if let Some(r) = t.strip_suffix('S') {
            signs.trailing_s = true;
            t = r.to_string();
        }
        if let Some(r) = t.strip_prefix('S') {
            signs.leading_s = true;
            // What is as long, and means nothing.
            t = format!("\"{r}");
        }
        (t, signs)
    }

    /// Puts the sign where the template wants it: in front of the first digit by default.
    fn put(&self, body: String, negative: bool, fill: bool) -> String {
        let blanks = body.len() - body.trim_start_matches(' ').len();
        let (spaces, digits) = body.split_at(blanks);
        let gap = if fill { " " } else { "" };
        if self.brackets {
            return if negative { format!("{spaces}<{digits}>") } else { format!("{gap}{body}{gap}") };
        }
        if self.trailing_s {
            return format!("{body}{}", if negative { '-' } else { '+' });
        }
        if let (false, false, Some(rest)) = (negative, self.leading_s, body.strip_prefix('+')) {
            // A plus sign that has a place of its own comes before the blank of the missing minus
            // sign.
            return format!("+{gap}{rest}");
        }
        let mark = match (negative, self.leading_s) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => gap,
        };
        if negative || self.leading_s { format!("{spaces}{mark}{digits}") } else { format!("{mark}{body}") }
    }
}
