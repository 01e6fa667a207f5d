//! Settings: `SET`, `SHOW`, `RESET`, and what they mean (PostgreSQL manual, chapter 20).
//!
//! A setting has three values at a time: what it was when the transaction began, what the session
//! will have if the transaction commits, and what counts now (`SET LOCAL`). Ending a transaction
//! moves between them; see [`Settings::commit`].

use super::setting_defs::{DEFINITIONS, Definition, Kind, Unit};
use crate::catalog::system::Setting;
use crate::exec::MEMORY_BYTES_MAX;
use crate::types::zone::Zone;
use crate::types::{DateOrder, Style};
use meridian_base::{DescriptorId, Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A session's settings.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// When the transaction began.
    before: Arc<Values>,
    /// If the transaction commits.
    session: Arc<Values>,
    /// Now.
    current: Arc<Values>,
    /// What `RESET` goes back to.
    initial: Arc<Values>,
    /// Grows with every change, so that nobody compares values in vain.
    generation: u64,
}

/// A savepoint's copy.
#[derive(Clone, Debug)]
pub(crate) struct SavedSettings {
    session: Arc<Values>,
    current: Arc<Values>,
}

/// One set of values, with what the hot path needs already understood.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    /// By lower-case name; only what differs from the default.
    changed: BTreeMap<String, String>,
    pub acting: Acting,
    pub statement_timeout: Option<Duration>,
    pub lock_timeout: Option<Duration>,
    pub deadlock_timeout: Option<Duration>,
    pub idle_in_transaction_timeout: Option<Duration>,
    pub idle_session_timeout: Option<Duration>,
    pub default_read_only: bool,
    pub use_follower_reads: bool,
    pub enforce_home_region: bool,
    pub round_trips_max: Option<u32>,
    /// `temp_file_limit`, in bytes.
    pub temporary_bytes_max: Option<u64>,
    /// `work_mem`, in bytes.
    pub work_mem: usize,
    /// `locality_optimized_partitioned_index_scan`.
    pub is_near_first: bool,
    pub zone: Zone,
    pub style: Style,
    /// Folded; `$user` still in it.
    pub search_path: Arc<[String]>,
    /// The lowest severity the client wants, as a rank.
    pub notice_rank: u8,
}

impl Values {
    fn new(changed: BTreeMap<String, String>, acting: Acting) -> Values {
        let mut values = Values {
            changed,
            acting,
            statement_timeout: None,
            lock_timeout: None,
            deadlock_timeout: None,
            idle_in_transaction_timeout: None,
            idle_session_timeout: None,
            default_read_only: false,
            use_follower_reads: false,
            enforce_home_region: false,
            round_trips_max: None,
            temporary_bytes_max: None,
            work_mem: MEMORY_BYTES_MAX,
            is_near_first: true,
            zone: Zone::utc(),
            style: Style::default(),
            search_path: Arc::from([]),
            notice_rank: 0,
        };
        values.understand();
        values
    }
    /// Computes the typed fields from the texts. The texts were validated when they were set.
    fn understand(&mut self) {
        let millis = |v: &Values, name: &str| match v.get(name).map(|t| parse_integer(&t, Some(Unit::Millis))) {
            Some(Some(ms)) if ms > 0 => Some(Duration::from_millis(ms as u64)),
            _ => None,
        };
        self.statement_timeout = millis(self, "statement_timeout");
        self.lock_timeout = millis(self, "lock_timeout");
        self.deadlock_timeout = millis(self, "deadlock_timeout");
        self.idle_in_transaction_timeout = millis(self, "idle_in_transaction_session_timeout");
        self.idle_session_timeout = millis(self, "idle_session_timeout");
        self.default_read_only = self.get("default_transaction_read_only").as_deref() == Some("on");
        self.use_follower_reads = self.get("default_transaction_use_follower_reads").as_deref() == Some("on");
        self.enforce_home_region = self.get("enforce_home_region").as_deref() == Some("on");
        self.is_near_first = self.get("locality_optimized_partitioned_index_scan").as_deref() == Some("on");
        let limit = self.get("temp_file_limit").and_then(|t| parse_integer(&t, Some(Unit::KiloBytes)));
        self.temporary_bytes_max = limit.and_then(|kilobytes| u64::try_from(kilobytes).ok()).map(|kilobytes| kilobytes << 10);
        let work_mem = self.get("work_mem").and_then(|t| parse_integer(&t, Some(Unit::KiloBytes)));
        let work_mem = work_mem.and_then(|kilobytes| usize::try_from(kilobytes).ok());
        self.work_mem = work_mem.map_or(MEMORY_BYTES_MAX, |kilobytes| kilobytes << 10);
        self.round_trips_max = self.get("max_cross_region_round_trips").and_then(|t| t.parse().ok());
        self.zone = self.get("timezone").and_then(|t| Zone::parse(&t).ok()).unwrap_or_else(Zone::utc);
        self.style.extra_float_digits = self.get("extra_float_digits").and_then(|t| t.parse().ok()).unwrap_or(1);
        self.style.bytea_escape = self.get("bytea_output").as_deref() == Some("escape");
        self.style.date_order = match self.get("datestyle").as_deref() {
            Some(s) if s.ends_with("DMY") => DateOrder::Dmy,
            Some(s) if s.ends_with("YMD") => DateOrder::Ymd,
            _ => DateOrder::Mdy,
        };
        self.search_path = parse_list(&self.get("search_path").unwrap_or_default()).unwrap_or_default().into();
        self.notice_rank = severity_rank(self.get("client_min_messages").as_deref().unwrap_or("notice"));
    }
    /// The value as `SHOW` prints it.
    fn get(&self, name: &str) -> Option<String> {
        if let Some(value) = self.changed.get(name) {
            return Some(value.clone());
        }
        definition(name).map(|d| d.default.to_string())
    }
}

/// Orders severities for `client_min_messages`.
pub(crate) fn severity_rank(severity: &str) -> u8 {
    match severity {
        s if s.eq_ignore_ascii_case("log") => 6,
        s if s.eq_ignore_ascii_case("notice") => 7,
        s if s.eq_ignore_ascii_case("warning") => 8,
        s if s.eq_ignore_ascii_case("error") => 9,
        // INFO is always sent.
        s if s.eq_ignore_ascii_case("info") => 10,
        _ => 1,
    }
}

/// A setting by its name in lower case.
pub(super) fn definition(lower: &str) -> Option<&'static Definition> {
    DEFINITIONS.binary_search_by(|d| d.key().cmp(lower)).ok().map(|i| &DEFINITIONS[i])
}

fn unrecognized(name: &str) -> Error {
    Error::sql("42704", format!("unrecognized configuration parameter \"{name}\""))
}

fn invalid(definition: &Definition, value: &str) -> Error {
    Error::sql("22023", format!("invalid value for parameter \"{}\": \"{value}\"", definition.name))
}

impl Settings {
    /// A new session's: `fixed` are the values of read-only settings, `startup` come from the
    /// client and may be refused.
    pub fn new(login: DescriptorId, fixed: &[(&str, String)], startup: &[(String, String)]) -> Result<Settings> {
        let changed = fixed.iter().map(|(n, v)| (n.to_ascii_lowercase(), v.clone())).collect();
        let values = Arc::new(Values::new(changed, Acting { session: login, role: None }));
        let mut settings =
            Settings { before: values.clone(), session: values.clone(), current: values.clone(), initial: values, generation: 0 };
        for (name, value) in startup {
            settings.set(name, Some(value), false)?;
        }
        settings.commit();
        settings.initial = settings.session.clone();
        Ok(settings)
    }
    /// What counts now.
    pub fn now(&self) -> &Arc<Values> {
        &self.current
    }
    /// See the field.
    pub fn generation(&self) -> u64 {
        self.generation
    }
    /// The value as `SHOW` prints it, or 42704.
    pub fn show(&self, name: &str) -> Result<String> {
        self.current.get(&name.to_ascii_lowercase()).ok_or_else(|| unrecognized(name))
    }
    /// The name as it is documented (`TimeZone`), for the column of `SHOW`.
    pub fn display_name(&self, name: &str) -> String {
        let lower = name.to_ascii_lowercase();
        definition(&lower).map_or(lower, |d| d.name.to_string())
    }
    /// Every setting, for `SHOW ALL` and `pg_settings`.
    pub fn all(&self) -> Vec<Setting> {
        let known = DEFINITIONS.iter().map(|d| Setting {
            name: d.name.to_string(),
            value: self.current.get(d.key()).unwrap_or_default(),
            description: d.description.to_string(),
        });
        let custom = (self.current.changed.iter()).filter(|(name, _)| definition(name).is_none()).map(|(name, value)| Setting {
            name: name.clone(),
            value: value.clone(),
            description: String::new(),
        });
        known.chain(custom).collect()
    }
    /// `SET [LOCAL] name = value`; `None` is `DEFAULT`. Returns the value as it is shown.
    pub fn set(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<String> {
        let lower = name.to_ascii_lowercase();
        let value = match definition(&lower) {
            Some(d) if matches!(d.kind, Kind::ReadOnly | Kind::Acting) => {
                return Err(Error::sql("55P02", format!("parameter \"{}\" cannot be changed", d.name)));
            }
            Some(d) => value.map(|v| validate(d, v)).transpose()?,
            // PostgreSQL keeps any setting whose name has a dot for the application (manual 20.16).
            None if is_custom_name(&lower) => value.map(str::to_string),
            None => return Err(unrecognized(name)),
        };
        Ok(self.set_validated(&lower, value, local))
    }
    /// The same with a value that the caller answers for.
    pub fn set_validated(&mut self, lower: &str, value: Option<String>, local: bool) -> String {
        let value = value.or_else(|| self.initial.changed.get(lower).cloned());
        let shared = Arc::ptr_eq(&self.session, &self.current);
        self.current = with(&self.current, lower, value.clone());
        if !local {
            self.session = if shared { self.current.clone() } else { with(&self.session, lower, value) };
        }
        self.generation += 1;
        self.current.get(lower).unwrap_or_default()
    }
    /// `SET ROLE` and `SET SESSION AUTHORIZATION`: who acts, and the names that `SHOW` gives.
    pub fn set_acting(&mut self, acting: Acting, session: &str, role: &str, local: bool) {
        self.set_validated("session_authorization", Some(session.to_string()), local);
        self.set_validated("role", Some(role.to_string()), local);
        let shared = Arc::ptr_eq(&self.session, &self.current);
        Arc::make_mut(&mut self.current).acting = acting;
        if shared {
            self.session = self.current.clone();
        } else if !local {
            Arc::make_mut(&mut self.session).acting = acting;
        }
    }
    /// A value that follows from something else, and belongs to no transaction.
    pub fn set_fixed(&mut self, lower: &str, value: &str) {
        if self.current.get(lower).as_deref() == Some(value) {
            return;
        }
        for values in [&mut self.before, &mut self.session, &mut self.current, &mut self.initial] {
            *values = with(values, lower, Some(value.to_string()));
        }
        self.generation += 1;
    }
    /// `RESET ALL`: who acts stays.
    pub fn reset_all(&mut self) {
        let mut initial = self.initial.clone();
        for lower in ["role", "session_authorization"] {
            initial = with(&initial, lower, self.current.changed.get(lower).cloned());
        }
        Arc::make_mut(&mut initial).acting = self.current.acting;
        self.session = initial.clone();
        self.current = initial;
        self.generation += 1;
    }
    /// The transaction committed: local values end.
    pub fn commit(&mut self) {
        if !Arc::ptr_eq(&self.current, &self.session) {
            self.current = self.session.clone();
            self.generation += 1;
        }
        self.before = self.session.clone();
    }
    /// The transaction rolled back: everything it set ends.
    pub fn rollback(&mut self) {
        if !Arc::ptr_eq(&self.current, &self.before) {
            self.current = self.before.clone();
            self.generation += 1;
        }
        self.session = self.before.clone();
    }
    pub fn save(&self) -> SavedSettings {
        SavedSettings { session: self.session.clone(), current: self.current.clone() }
    }
    /// `ROLLBACK TO`.
    pub fn restore(&mut self, saved: &SavedSettings) {
        self.session = saved.session.clone();
        self.current = saved.current.clone();
        self.generation += 1;
    }
}

/// A copy with one value changed; `None` goes back to the default.
fn with(values: &Arc<Values>, lower: &str, value: Option<String>) -> Arc<Values> {
    let mut changed = values.changed.clone();
    match value {
        Some(value) => changed.insert(lower.to_string(), value),
        None => changed.remove(lower),
    };
    Arc::new(Values::new(changed, values.acting))
}

/// `prefix.name`, both identifiers.
fn is_custom_name(lower: &str) -> bool {
    let is_identifier = |s: &str| {
        s.starts_with(|c: char| c.is_alphabetic() || c == '_') && s.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$')
    };
    let mut parts = lower.split('.');
    let count = parts.clone().count();
    count >= 2 && parts.all(is_identifier)
}

/// Checks a value and brings it into the form that `SHOW` prints.
fn validate(d: &Definition, value: &str) -> Result<String> {
    let value = value.trim();
    match d.kind {
        Kind::Bool => match parse_bool(value) {
            Some(b) => Ok(if b { "on" } else { "off" }.to_string()),
            None => Err(Error::sql("22023", format!("parameter \"{}\" requires a Boolean value", d.name))),
        },
        Kind::Integer { min, max, unit } => {
            let n = parse_integer(value, unit).ok_or_else(|| invalid(d, value))?;
            if n < min || n > max {
                let range = format!("{n} is outside the valid range for parameter \"{}\" ({min} .. {max})", d.name);
                return Err(Error::sql("22023", range));
            }
            Ok(show_integer(n, unit))
        }
        Kind::Float { min, max } => match value.parse::<f64>() {
            Ok(x) if x >= min && x <= max => Ok(value.to_string()),
            Ok(_) => Err(Error::sql(
                "22023",
                format!("{value} is outside the valid range for parameter \"{}\" ({min} .. {max})", d.name),
            )),
            Err(_) => Err(invalid(d, value)),
        },
        Kind::Enum(choices) => match choices.iter().find(|c| c.eq_ignore_ascii_case(value)) {
            Some(choice) => Ok(choice.to_string()),
            None => Err(invalid(d, value).hint(format!("Available values: {}.", choices.join(", ")))),
        },
        Kind::Only { accepted, shown } => match accepted.iter().any(|a| a.eq_ignore_ascii_case(value)) {
            true => Ok(shown.to_string()),
            false => Err(Error::unsupported(format!("\"{value}\" is not supported for parameter \"{}\"", d.name))
                .hint(format!("The only value supported is {shown}."))),
        },
        Kind::Encoding => {
            let name: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
            match ["utf8", "unicode"].iter().any(|a| a.eq_ignore_ascii_case(&name)) {
                true => Ok("UTF8".to_string()),
                false => Err(Error::unsupported(format!("\"{value}\" is not supported for parameter \"{}\"", d.name))
                    .hint("The only value supported is UTF8.")),
            }
        }
        Kind::Text => Ok(value.to_string()),
        Kind::ApplicationName => Ok(value.chars().map(|c| if (' '..='~').contains(&c) { c } else { '?' }).take(63).collect()),
        Kind::TimeZone => {
            let zone = Zone::parse(value).map_err(|_| invalid(d, value))?;
            Ok(zone.name().to_string())
        }
        Kind::DateStyle => date_style(value).ok_or_else(|| invalid(d, value)),
        Kind::List => match parse_list(value) {
            Some(_) => Ok(value.to_string()),
            None => Err(invalid(d, value).detail("List syntax is invalid.")),
        },
        Kind::ReadOnly | Kind::Acting => Err(Error::sql("55P02", format!("parameter \"{}\" cannot be changed", d.name))),
    }
}

/// PostgreSQL's booleans: `on`, `off`, `true`, `false`, `yes`, `no`, `1`, `0`, and unique prefixes.
pub(crate) fn parse_bool(value: &str) -> Option<bool> {
    let v = value.to_ascii_lowercase();
    let is = |word: &str, least: usize| v.len() >= least && word.starts_with(&v);
    if is("true", 1) || is("yes", 1) || v == "on" || v == "1" {
        Some(true)
    } else if is("false", 1) || is("no", 1) || is("off", 2) || v == "0" {
        Some(false)
    } else {
        None
    }
}

fn parse_integer(value: &str, unit: Option<Unit>) -> Option<i64> {
    let value = value.trim();
    let end = value.find(|c: char| !(c.is_ascii_digit() || matches!(c, '-' | '+' | '.'))).unwrap_or(value.len());
    let (number, suffix) = (value[..end].trim(), value[end..].trim());
    let factor = match (suffix, unit) {
        ("", _) => 1,
        (_, None) => return None,
        ("us", Some(Unit::Millis)) => return Some((number.parse::<f64>().ok()? / 1000.0).round() as i64),
        (_, Some(unit)) => unit.names().iter().find(|(name, _)| *name == suffix)?.1,
    };
    match number.parse::<i64>() {
        Ok(n) => n.checked_mul(factor),
        Err(_) => {
            let n = number.parse::<f64>().ok()? * factor as f64;
            (n.abs() < 9e15).then(|| n.round() as i64)
        }
    }
}

/// The number with the largest unit that divides it.
fn show_integer(n: i64, unit: Option<Unit>) -> String {
    match unit {
        Some(unit) if n > 0 => {
            let (name, factor) = unit.names().iter().find(|(_, f)| n % f == 0).copied().unwrap_or(("", 1));
            format!("{}{name}", n / factor)
        }
        _ => n.to_string(),
    }
}

/// `DateStyle`: only ISO output; the order of fields in input may be chosen.
fn date_style(value: &str) -> Option<String> {
    let mut order = "MDY";
    for word in value.split(',') {
        match word.trim().to_ascii_lowercase().as_str() {
            "iso" | "default" => {}
            "mdy" | "us" | "noneuro" | "noneuropean" => order = "MDY",
            "dmy" | "euro" | "european" => order = "DMY",
            "ymd" => order = "YMD",
            _ => return None,
        }
    }
    Some(format!("ISO, {order}"))
}

/// A list of identifiers: `"$user", public`. Unquoted ones are folded.
pub(crate) fn parse_list(value: &str) -> Option<Vec<String>> {
    let mut items = Vec::new();
    let mut rest = value.trim();
    while !rest.is_empty() {
        let (item, after) = if let Some(quoted) = rest.strip_prefix('"') {
            let mut item = String::new();
            let mut chars = quoted.char_indices();
            let end = loop {
                match chars.next()? {
                    (i, '"') if quoted[i + 1..].starts_with('"') => {
                        item.push('"');
                        chars.next();
                    }
                    (i, '"') => break i + 1,
                    (_, c) => item.push(c),
                }
            };
            (item, quoted[end..].trim_start())
        } else {
            let end = rest.find([',', '"']).unwrap_or(rest.len());
            let word = rest[..end].trim();
            if word.is_empty() || word.contains(char::is_whitespace) {
                return None;
            }
            (word.to_lowercase(), &rest[end..])
        };
        items.push(item);
        rest = match after.strip_prefix(',') {
            Some(after) if !after.trim().is_empty() => after.trim_start(),
            None if after.is_empty() => "",
            _ => return None,
        };
    }
    Some(items)
}

/// Who acts, by the ids of roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acting {
    /// `session_authorization`.
    pub session: DescriptorId,
    /// `role`; `None`: `none`.
    pub role: Option<DescriptorId>,
}

impl Acting {
    /// Whose privileges count.
    pub fn current(self) -> DescriptorId {
        self.role.unwrap_or(self.session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings::new(crate::catalog::ids::ROOT_ID, &[("server_version", "15.0".to_string())], &[]).unwrap()
    }

    #[test]
    fn definitions_are_sorted_and_their_defaults_valid() {
        for pair in DEFINITIONS.windows(2) {
            assert!(pair[0].key() < pair[1].key(), "{} before {}", pair[0].name, pair[1].name);
        }
        // Who acts is changed by statements of its own.
        for d in DEFINITIONS.iter().filter(|d| !matches!(d.kind, Kind::ReadOnly | Kind::Acting)) {
            assert_eq!(validate(d, d.default).unwrap(), d.default, "{}", d.name);
        }
    }

    #[test]
    fn values_are_shown_as_postgresql_shows_them() {
        let mut s = settings();
        for (name, value, shown) in [
            ("statement_timeout", "90000", "90s"),
            ("statement_timeout", "1500", "1500ms"),
            ("statement_timeout", "2min", "2min"),
            ("statement_timeout", "0", "0"),
            ("work_mem", "65536", "64MB"),
            ("DateStyle", "iso, dmy", "ISO, DMY"),
            ("standard_conforming_strings", "true", "on"),
            ("client_encoding", "unicode", "UTF8"),
            // As asyncpg says it.
            ("client_encoding", "'utf-8'", "UTF8"),
            ("my.setting", "x", "x"),
        ] {
            assert_eq!(s.set(name, Some(value), false).unwrap(), shown, "{name} = {value}");
        }
    }

    #[test]
    fn wrong_values_and_names_are_refused() {
        let mut s = settings();
        for (name, value, code) in [
            ("statement_timeout", "soon", "22023"),
            ("statement_timeout", "-1", "22023"),
            ("row_security", "maybe", "22023"),
            ("client_encoding", "LATIN1", "0A000"),
            ("server_version", "16", "55P02"),
            ("no_such_setting", "1", "42704"),
            ("TimeZone", "Mars/Olympus", "22023"),
            ("search_path", "a,,b", "22023"),
        ] {
            assert_eq!(s.set(name, Some(value), false).unwrap_err().sqlstate(), code, "{name} = {value}");
        }
    }

    #[test]
    fn local_values_end_with_the_transaction_and_others_with_its_rollback() {
        let mut s = settings();
        s.set("lock_timeout", Some("1s"), true).unwrap();
        s.set("work_mem", Some("1MB"), false).unwrap();
        assert_eq!((s.show("lock_timeout").unwrap(), s.show("work_mem").unwrap()), ("1s".into(), "1MB".into()));
        s.commit();
        assert_eq!((s.show("lock_timeout").unwrap(), s.show("work_mem").unwrap()), ("0".into(), "1MB".into()));
        s.set("work_mem", Some("2MB"), false).unwrap();
        s.rollback();
        assert_eq!(s.show("work_mem").unwrap(), "1MB");
        s.set("work_mem", None, false).unwrap();
        assert_eq!(s.show("work_mem").unwrap(), "256MB");
    }

    #[test]
    fn lists_of_identifiers() {
        assert_eq!(parse_list("\"$user\", Public").unwrap(), ["$user", "public"]);
        assert_eq!(parse_list("\"A\"\"b\"").unwrap(), ["A\"b"]);
        assert_eq!(parse_list("").unwrap(), [""; 0]);
        assert!(parse_list("a b").is_none() && parse_list("\"a").is_none() && parse_list("a,").is_none());
    }
}
