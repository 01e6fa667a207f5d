//! Time zones: named ones from the zone database, and fixed offsets.

use jiff::tz::TimeZone;
use meridian_base::{Error, Result};

/// A time zone. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Zone {
    name: std::sync::Arc<str>,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Seconds east of UTC.
    Fixed(i32),
    Named(TimeZone),
}

/// Seconds between 1970-01-01 and 2000-01-01.
const EPOCH_2000: i64 = 946_684_800;
/// What the zone database covers, in seconds since 1970; instants outside borrow the offset of its
/// edge.
const JIFF_MIN: i64 = -377_705_023_201;
const JIFF_MAX: i64 = 253_402_207_200;

/// The calendar, weekdays included, repeats after 400 years.
const CYCLE: i64 = 146_097 * 86_400;

/// Seconds since 1970 that the zone database can judge: the far future as its last 400 years, the
/// far past as its start.
fn within_jiff(utc_seconds: i64) -> i64 {
    let unix = utc_seconds.saturating_add(EPOCH_2000);
    let unix = if unix > JIFF_MAX { JIFF_MAX - CYCLE + (unix - JIFF_MAX) % CYCLE } else { unix };
    unix.max(JIFF_MIN)
}

impl Zone {
    /// UTC.
    pub fn utc() -> Zone {
        Zone { name: "UTC".into(), kind: Kind::Fixed(0) }
    }
    /// A fixed offset, in seconds east of UTC.
    pub fn fixed(seconds_east: i32) -> Zone {
        // PostgreSQL shows such zones in POSIX notation, whose sign is the other way round.
        let mut name = String::from("<");
        push_offset(&mut name, seconds_east);
        name.push('>');
        push_offset(&mut name, -seconds_east);
        Zone { name: name.into(), kind: Kind::Fixed(seconds_east) }
    }
    /// The zone of `SET timezone`: as [`Zone::named`], and plain numbers are hours east.
    pub fn parse(text: &str) -> Result<Zone> {
        match text.trim().parse::<f64>() {
            Ok(hours) if hours.abs() <= 167.0 => Ok(Zone::fixed((hours * 3600.0) as i32)),
            _ => Zone::named(text),
        }
    }
    /// A zone as it stands behind a time: hours east with a sign, else as [`Zone::named`].
    pub fn of_literal(text: &str) -> Result<Zone> {
        match parse_offset(text.trim()) {
            Some(east) => Ok(Zone::fixed(east)),
            None => Zone::named(text),
        }
    }
    /// A zone by name (`Europe/Berlin`), abbreviation (`EST`), or POSIX offset (`UTC+3`, `+03`:
    /// west is positive).
    pub fn named(text: &str) -> Result<Zone> {
        let bad = || Error::sql("22023", format!("time zone \"{text}\" not recognized"));
        let t = text.trim();
        if t.eq_ignore_ascii_case("utc")
            || t.eq_ignore_ascii_case("gmt")
            || t.eq_ignore_ascii_case("zulu")
            || t.eq_ignore_ascii_case("z")
        {
            return Ok(Zone {
                name: if t.eq_ignore_ascii_case("gmt") { "GMT".into() } else { "UTC".into() },
                kind: Kind::Fixed(0),
            });
        }
        if let Some(seconds) = abbreviation(t) {
            return Ok(Zone { name: t.to_ascii_uppercase().into(), kind: Kind::Fixed(seconds) });
        }
        if let Some(west) = posix_offset(t) {
            return Ok(Zone { name: t.into(), kind: Kind::Fixed(-west) });
        }
        if t.is_empty() || !t.bytes().all(|b| b.is_ascii_alphanumeric() || b"_/+-".contains(&b)) {
            return Err(bad());
        }
        let zone = TimeZone::get(t).map_err(|_| bad())?;
        let name = zone.iana_name().unwrap_or(t).into();
        Ok(Zone { name, kind: Kind::Named(zone) })
    }
    /// As `SHOW timezone` prints it.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Seconds east of UTC at an instant, given in seconds since 2000-01-01 UTC.
    pub fn offset_at(&self, utc_seconds: i64) -> i32 {
        match &self.kind {
            Kind::Fixed(s) => *s,
            Kind::Named(tz) => {
                let unix = within_jiff(utc_seconds);
                match jiff::Timestamp::from_second(unix) {
                    Ok(t) => tz.to_offset(t).seconds(),
                    Err(_) => 0,
                }
            }
        }
    }
    /// Seconds east of UTC for a local time, in seconds since 2000-01-01 00:00 local. In a gap the
    /// offset before it holds, in an overlap the one after it, as in PostgreSQL
    /// (`DetermineTimeZoneOffset`).
    pub fn offset_of_local(&self, local_seconds: i64) -> i32 {
        let Kind::Named(_) = &self.kind else { return self.offset_at(0) };
        // Offsets a day before and after bracket any transition near the local time.
        let before = self.offset_at(local_seconds - 86_400);
        let after = self.offset_at(local_seconds + 86_400);
        if before == after {
            // Usually no transition near; two transitions within two days cancel and are checked
            // like one.
            let here = self.offset_at(local_seconds - i64::from(before));
            return here;
        }
        let is_before = self.offset_at(local_seconds - i64::from(before)) == before;
        let is_after = self.offset_at(local_seconds - i64::from(after)) == after;
        match (is_before, is_after) {
            (_, true) => after,
            _ => before,
        }
    }
    /// The abbreviation in force at an instant (`CET`), in seconds since 2000-01-01 UTC.
    pub fn abbreviation_at(&self, utc_seconds: i64) -> String {
        match &self.kind {
            Kind::Fixed(0) => self.name.to_string(),
            Kind::Fixed(s) => {
                let mut out = String::new();
                push_offset(&mut out, *s);
                out
            }
            Kind::Named(tz) => {
                let unix = within_jiff(utc_seconds);
                match jiff::Timestamp::from_second(unix) {
                    Ok(t) => tz.to_offset_info(t).abbreviation().to_string(),
                    Err(_) => String::new(),
                }
            }
        }
    }
}

/// Appends `+02`, `-03:30`, `+05:53:28`.
pub fn push_offset(out: &mut String, seconds_east: i32) {
    use std::fmt::Write;
    let a = seconds_east.unsigned_abs();
    let (h, m, s) = (a / 3600, a / 60 % 60, a % 60);
    let _ = write!(out, "{}{h:02}", if seconds_east < 0 { '-' } else { '+' });
    if m != 0 || s != 0 {
        let _ = write!(out, ":{m:02}");
    }
    if s != 0 {
        let _ = write!(out, ":{s:02}");
    }
}

/// `+2`, `-03:30`, `+0530`, `+05:53:28` to seconds; the sign as written.
pub fn parse_offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    if rest.is_empty() || !rest.bytes().all(|b| b.is_ascii_digit() || b == b':') {
        return None;
    }
    let parts: Vec<&str> = rest.split(':').collect();
    let number = |s: &str| if s.is_empty() || s.len() > 2 { None } else { s.parse::<i32>().ok() };
    let (h, m, s) = match parts[..] {
        [one] if one.len() <= 2 => (number(one)?, 0, 0),
        [one] if one.len() <= 4 => (one[..one.len() - 2].parse().ok()?, one[one.len() - 2..].parse().ok()?, 0),
        [one] if one.len() <= 6 => {
            let n = one.len();
            (one[..n - 4].parse().ok()?, one[n - 4..n - 2].parse().ok()?, one[n - 2..].parse().ok()?)
        }
        [h, m] => (number(h)?, number(m)?, 0),
        [h, m, s] => (number(h)?, number(m)?, number(s)?),
        _ => return None,
    };
    // PostgreSQL's MAX_TZDISP_HOUR.
    if h > 15 || m > 59 || s > 59 {
        return None;
    }
    Some(sign * (h * 3600 + m * 60 + s))
}

/// `UTC+3`, `<+02>-02`: seconds west of UTC.
fn posix_offset(text: &str) -> Option<i32> {
    // Hours and minutes without a sign are west too.
    if text.contains(':') && text.starts_with(|c: char| c.is_ascii_digit()) {
        return parse_offset(&format!("+{text}"));
    }
    let rest = match text.strip_prefix('<') {
        Some(r) => &r[r.find('>')? + 1..],
        None => text.trim_start_matches(|c: char| c.is_ascii_alphabetic()),
    };
    if rest.len() == text.len() && !text.starts_with('<') && !text.starts_with(['+', '-']) {
        return None;
    }
    if rest.starts_with(|c: char| c.is_ascii_digit()) { parse_offset(&format!("+{rest}")) } else { parse_offset(rest) }
}

/// The abbreviations of PostgreSQL's default set that are in wide use, as seconds east of UTC.
pub fn abbreviation(text: &str) -> Option<i32> {
    let hours_x4 = match text.to_ascii_lowercase().as_str() {
        "utc" | "gmt" | "z" | "zulu" | "wet" | "ut" | "uct" => 0,
        "cet" | "bst" | "met" | "mez" | "west" => 4,
        "cest" | "eet" | "mest" | "mesz" | "sast" => 8,
        "eest" | "msk" => 12,
        "msd" => 16,
        "pkt" => 20,
        "ist" => 8,
        "jst" | "kst" => 36,
        "aest" => 40,
        "aedt" => 44,
        "acst" => 38,
        "awst" => 32,
        "hkt" | "sgt" => 32,
        "nzst" => 48,
        "nzdt" => 52,
        "ast" => -16,
        "adt" => -12,
        "est" => -20,
        "edt" => -16,
        "cst" => -24,
        "cdt" => -20,
        "mst" => -28,
        "mdt" => -24,
        "pst" => -32,
        "pdt" => -28,
        "akst" => -36,
        "akdt" => -32,
        "hst" => -40,
        "nst" => -14,
        "ndt" => -10,
        _ => return None,
    };
    Some(hours_x4 * 900)
}
