//! Host-based authentication: which clients log in how (PostgreSQL manual, 21.1 and 21.2).
//!
//! The rules are the cluster's, in the syntax of `pg_hba.conf` and `pg_ident.conf`. A text is read
//! as a whole before any of it counts. What cannot be done here is refused, and never ignored: a
//! rule that is skipped would let the next one decide.

use super::Catalog;
use meridian_base::{Error, Result};
use std::net::IpAddr;

/// The rules that hold where none were set: the local operator by the socket, others by password
/// over TLS.
pub const BUILT_IN: &str = "local all all peer\nhostssl all all all scram-sha-256\n";

/// How a client comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// By a Unix socket.
    Local,
    Host {
        address: IpAddr,
        is_tls: bool,
    },
}

/// How a client proves who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Not at all.
    Trust,
    Reject,
    Scram,
    /// By its certificate.
    Cert,
    /// By its user of the operating system.
    Peer,
}

impl Method {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Method::Trust => "trust",
            Method::Reject => "reject",
            Method::Scram => "scram-sha-256",
            Method::Cert => "cert",
            Method::Peer => "peer",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Local,
    Host,
    HostSsl,
    HostNoSsl,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its number in the text, from 1 on.
    pub line: usize,
    kind: Kind,
    databases: Vec<String>,
    users: Vec<String>,
    /// `None`: all.
    network: Option<(IpAddr, u8)>,
    pub method: Method,
    /// The user map; `None`: names have to be equal.
    pub map: Option<String>,
    /// A certificate is needed besides; `Some(true)`: of the role.
    pub client_cert: Option<bool>,
}

/// All rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(pub Vec<Rule>);

fn bad(line: usize, what: impl std::fmt::Display) -> Error {
    Error::sql("F0000", format!("line {line} of the rules of login: {what}"))
}

/// Stands for a comma within quotation marks, which separates no names.
const COMMA: char = '\u{1}';

/// The names of a field.
fn names(field: &str) -> Vec<String> {
    field.split(',').map(|name| name.replace(COMMA, ",")).collect()
}

/// The fields of a line; a quoted one is no keyword, and keeps its quotation mark in front.
fn fields(line: &str) -> Option<Vec<String>> {
    let (mut fields, mut field, mut has_field) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '#' => break,
            '"' => {
                has_field = true;
                field.push('"');
                loop {
                    match chars.next()? {
                        '"' => break,
                        ',' => field.push(COMMA),
                        c => field.push(c),
                    }
                }
            }
            c if c.is_whitespace() => {
                if has_field && !field.ends_with(',') {
                    fields.push(std::mem::take(&mut field));
                    has_field = false;
                }
            }
            c => {
                has_field = true;
                field.push(c);
            }
        }
    }
    if has_field {
        fields.push(field);
    }
    Some(fields)
}

impl Rules {
    /// Reads a text, or says what is wrong with it.
    pub fn parse(text: &str) -> Result<Rules> {
        let mut rules = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line_number = at + 1;
            let Some(fields) = fields(line) else { return Err(bad(line_number, "a quoted field does not end")) };
            if !fields.is_empty() {
                rules.push(rule(line_number, &fields)?);
            }
        }
        Ok(Rules(rules))
    }
    /// The first rule for a client.
    pub fn find(&self, catalog: &Catalog, way: &Way, database: &str, user: &str) -> Option<&Rule> {
        self.0.iter().find(|rule| rule.is_for(catalog, way, database, user))
    }
}

fn rule(line: usize, fields: &[String]) -> Result<Rule> {
    let mut fields = fields.iter();
    let mut next = |what: &str| fields.next().ok_or_else(|| bad(line, format!("there is no {what}")));
    let kind = match next("connection type")?.as_str() {
        "local" => Kind::Local,
        "host" | "hostnogssenc" => Kind::Host,
        "hostssl" => Kind::HostSsl,
        "hostnossl" => Kind::HostNoSsl,
        other => return Err(bad(line, format!("connection type \"{other}\" is not supported"))),
    };
    let databases = names(next("database")?);
    let users = names(next("user")?);
    if let Some(name) = databases.iter().chain(&users).find(|n| n.starts_with(['@', '/'])) {
        return Err(bad(line, format!("\"{name}\" is not supported: files and regular expressions are not read")));
    }
    let mut network = None;
    if kind != Kind::Local {
        let address = next("address")?;
        if address != "all" {
            network = Some(network_of(line, address, || next("mask"))?);
        }
    }
    let method = match next("method")?.as_str() {
        "trust" => Method::Trust,
        "reject" => Method::Reject,
        "scram-sha-256" => Method::Scram,
        "cert" if kind == Kind::HostSsl => Method::Cert,
        "cert" => return Err(bad(line, "method \"cert\" needs the connection type hostssl")),
        "peer" if kind == Kind::Local => Method::Peer,
        "peer" => return Err(bad(line, "method \"peer\" needs the connection type local")),
        other => return Err(bad(line, format!("authentication method \"{other}\" is not supported"))),
    };
    let (mut map, mut client_cert) = (None, None);
    for option in fields {
        match option.split_once('=') {
            Some(("map", name)) if matches!(method, Method::Cert | Method::Peer) => map = Some(name.replace(COMMA, ",")),
            Some(("clientcert", "verify-ca")) if kind == Kind::HostSsl => client_cert = Some(false),
            Some(("clientcert", "verify-full")) if kind == Kind::HostSsl => client_cert = Some(true),
            _ => return Err(bad(line, format!("option \"{option}\" is not supported here"))),
        }
    }
    Ok(Rule { line, kind, databases, users, network, method, map, client_cert })
}

/// `address/bits`, or an address that a mask follows.
fn network_of<'f>(line: usize, text: &str, mask: impl FnOnce() -> Result<&'f String>) -> Result<(IpAddr, u8)> {
    if let Some((address, bits)) = text.split_once('/') {
        let Ok(ip) = address.parse::<IpAddr>() else {
            return Err(bad(line, format!("specifying both host name and CIDR mask is invalid: \"{text}\"")));
        };
        let bits = bits.parse::<u8>().ok().filter(|bits| *bits <= width(ip));
        return bits.map(|bits| (ip, bits)).ok_or_else(|| bad(line, format!("invalid CIDR mask in address \"{text}\"")));
    }
    let Ok(ip) = text.parse::<IpAddr>() else {
        return Err(bad(line, format!("\"{text}\" is no network: names of hosts are not supported")));
    };
    let mask = mask()?;
    match mask.parse::<IpAddr>() {
        Err(_) => Err(bad(line, format!("invalid IP mask \"{mask}\""))),
        Ok(parsed) if parsed.is_ipv4() != ip.is_ipv4() => Err(bad(line, "IP address and mask do not match")),
        Ok(parsed) => match mask_bits(parsed) {
            Some(bits) => Ok((ip, bits)),
            None => Err(bad(line, format!("invalid IP mask \"{mask}\": its bits are not the first ones"))),
        },
    }
}

/// How many bits an address has.
fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// How many bits of a mask are set, if they are its first ones.
fn mask_bits(mask: IpAddr) -> Option<u8> {
    let bits = match mask {
        IpAddr::V4(mask) => u128::from(u32::from(mask)) << 96,
        IpAddr::V6(mask) => u128::from(mask),
    };
    let ones = bits.leading_ones();
    (bits.checked_shl(ones).unwrap_or(0) == 0).then_some(ones as u8)
}

fn is_within(address: IpAddr, (network, bits): (IpAddr, u8)) -> bool {
    let address = match address {
        IpAddr::V6(v6) if network.is_ipv4() => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        other => other,
    };
    let prefix = |ip: u128, width: u32| if bits == 0 { 0 } else { ip >> (width - u32::from(bits)) };
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(n)) => prefix(u32::from(a).into(), 32) == prefix(u32::from(n).into(), 32),
        (IpAddr::V6(a), IpAddr::V6(n)) => prefix(a.into(), 128) == prefix(n.into(), 128),
        _ => false,
    }
}

impl Rule {
    /// Whom it lets in without any proof, if that is anybody beyond this machine.
    pub fn trusted_strangers(&self) -> Option<String> {
        if self.kind == Kind::Local || self.method != Method::Trust || self.client_cert.is_some() {
            return None;
        }
        match self.network {
            None => Some("everywhere".to_string()),
            Some((IpAddr::V4(ip), bits)) if ip.is_loopback() && bits >= 8 => None,
            Some((IpAddr::V6(ip), 128)) if ip.is_loopback() => None,
            Some((address, bits)) => Some(format!("{address}/{bits}")),
        }
    }
    /// The connection type, as it is written.
    pub fn kind(&self) -> &'static str {
        match self.kind {
            Kind::Local => "local",
            Kind::Host => "host",
            Kind::HostSsl => "hostssl",
            Kind::HostNoSsl => "hostnossl",
        }
    }
    pub fn databases(&self) -> impl Iterator<Item = &str> {
        self.databases.iter().map(|name| name.trim_start_matches('"'))
    }
    pub fn users(&self) -> impl Iterator<Item = &str> {
        self.users.iter().map(|name| name.trim_start_matches('"'))
    }
    /// The address and the mask; `all` has no mask.
    pub fn address(&self) -> Option<(String, Option<String>)> {
        let mask = |address: IpAddr, bits: u8| match address {
            IpAddr::V4(_) => IpAddr::V4(u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0).into()),
            IpAddr::V6(_) => IpAddr::V6(u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0).into()),
        };
        match (self.kind, self.network) {
            (Kind::Local, _) => None,
            (_, None) => Some(("all".to_string(), None)),
            (_, Some((address, bits))) => Some((address.to_string(), Some(mask(address, bits).to_string()))),
        }
    }
    /// What stands behind the method.
    pub fn options(&self) -> Vec<String> {
        let map = self.map.as_ref().map(|map| format!("map={map}"));
        let certificate = self.client_cert.map(|of_role| match of_role {
            true => "clientcert=verify-full".to_string(),
            false => "clientcert=verify-ca".to_string(),
        });
        map.into_iter().chain(certificate).collect()
    }
    fn is_for(&self, catalog: &Catalog, way: &Way, database: &str, user: &str) -> bool {
        let comes = match (self.kind, way) {
            (Kind::Local, Way::Local) => true,
            (Kind::Local, _) | (_, Way::Local) => false,
            (Kind::Host, _) => true,
            (Kind::HostSsl, Way::Host { is_tls, .. }) => *is_tls,
            (Kind::HostNoSsl, Way::Host { is_tls, .. }) => !is_tls,
        };
        let address = match (way, self.network) {
            (Way::Host { address, .. }, Some(network)) => is_within(*address, network),
            _ => true,
        };
        let is_member = |group: &str| match (catalog.find_role(user), catalog.find_role(group)) {
            (Some(user), Some(group)) => catalog.memberships(user.id, database, false).contains(&group.id),
            _ => false,
        };
        let is_database = |name: &String| match name.as_str() {
            "all" => true,
            "sameuser" => database == user,
            "samerole" | "samegroup" => is_member(database),
            "replication" => false,
            name => name.trim_start_matches('"') == database,
        };
        let is_user = |name: &String| match name.strip_prefix('+') {
            Some(group) => is_member(group.trim_start_matches('"')),
            None => name == "all" || name.trim_start_matches('"') == user,
        };
        comes && address && self.databases.iter().any(is_database) && self.users.iter().any(is_user)
    }
}

/// User maps: whom the system's users and certificates may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maps(Vec<Map>);

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// Its number in the text, from 1 on.
    pub line: usize,
    pub name: String,
    /// The user of the system, or of the certificate.
    pub system: String,
    pub role: String,
}

impl Maps {
    /// Reads a text, or says what is wrong with it.
    pub fn parse(text: &str) -> Result<Maps> {
        let mut maps = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let Some(fields) = fields(line) else { return Err(bad(at + 1, "a quoted field does not end")) };
            let unquoted = |f: &String| f.trim_start_matches('"').replace(COMMA, ",");
            match &fields[..] {
                [] => {}
                [_, system, _] if system.starts_with('/') => {
                    return Err(bad(at + 1, "regular expressions in user maps are not supported"));
                }
                [name, system, role] => {
                    maps.push(Map { line: at + 1, name: unquoted(name), system: unquoted(system), role: unquoted(role) })
                }
                _ => return Err(bad(at + 1, "a user map has three fields")),
            }
        }
        Ok(Maps(maps))
    }
    pub fn each(&self) -> impl Iterator<Item = &Map> {
        self.0.iter()
    }
    /// Whether there is a map of a name.
    pub fn has(&self, map: &str) -> bool {
        self.0.iter().any(|m| m.name == map)
    }
    /// Whether somebody may be a role. Without a map: under the same name.
    pub fn allow(&self, map: Option<&str>, system: &str, role: &str) -> bool {
        match map {
            None => system == role,
            Some(map) => self.0.iter().any(|m| m.name == map && m.system == system && m.role == role),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(address: &str, is_tls: bool) -> Way {
        Way::Host { address: address.parse().unwrap(), is_tls }
    }
    fn method(text: &str, way: &Way, database: &str, user: &str) -> Option<Method> {
        Rules::parse(text).unwrap().find(&Catalog::default(), way, database, user).map(|r| r.method)
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let text = "# comment\nhostssl all root 10.0.0.0/8 cert map=m\nhost db all 10.1.0.0 255.255.0.0 scram-sha-256\n\
                    host all all all reject\nlocal all all peer\n";
        assert_eq!(method(text, &host("10.9.9.9", true), "x", "root"), Some(Method::Cert));
        assert_eq!(method(text, &host("10.9.9.9", false), "x", "root"), Some(Method::Reject));
        assert_eq!(method(text, &host("10.1.9.9", false), "db", "a"), Some(Method::Scram));
        assert_eq!(method(text, &host("10.2.9.9", false), "db", "a"), Some(Method::Reject));
        assert_eq!(method(text, &Way::Local, "db", "a"), Some(Method::Peer));
        assert_eq!(method(BUILT_IN, &host("10.1.9.9", false), "db", "a"), None);
        assert_eq!(method("host all all ::ffff:0:0/96 trust", &host("::1", false), "db", "a"), None);
    }

    #[test]
    fn a_comma_within_quotation_marks_is_part_of_the_name() {
        let text = "hostssl all \"x,y\",z all reject\nhostssl all all all scram-sha-256\n";
        for (user, expected) in [("x,y", Method::Reject), ("z", Method::Reject), ("x", Method::Scram), ("y", Method::Scram)] {
            assert_eq!(method(text, &host("10.1.9.9", true), "db", user), Some(expected), "{user}");
        }
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for text in [
            "host all all all md5",
            "host all all all password",
            "host all all all ldap",
            "host all all example.org trust",
            "host all all samenet trust",
            "hostgssenc all all all trust",
            "host all all all cert",
            "host all all all peer",
            "host all @file all trust",
            "host all all 10.0.0.0/33 trust",
            "host all all 10.0.0.0 255.0.255.0 trust",
            "host all all all trust radius=1",
            "host all all",
            "host \"all",
        ] {
            assert_eq!(Rules::parse(text).unwrap_err().sqlstate(), "F0000", "{text}");
        }
        assert!(Rules::parse(BUILT_IN).is_ok());
    }

    #[test]
    fn what_is_wrong_with_a_network_is_said() {
        for (network, what) in [
            ("10.0.0.0/99", "invalid CIDR mask in address \"10.0.0.0/99\""),
            ("10.0.0.0/", "invalid CIDR mask in address \"10.0.0.0/\""),
            ("::1/129", "invalid CIDR mask in address \"::1/129\""),
            ("example.org/8", "specifying both host name and CIDR mask is invalid: \"example.org/8\""),
            ("10.0.0.0 255.0.0", "invalid IP mask \"255.0.0\""),
            ("10.0.0.0 ffff::", "IP address and mask do not match"),
            ("10.0.0.0 255.0.255.0", "invalid IP mask \"255.0.255.0\": its bits are not the first ones"),
            ("example.org", "\"example.org\" is no network: names of hosts are not supported"),
        ] {
            let e = Rules::parse(&format!("host all all {network} trust")).unwrap_err();
            assert_eq!(e.message(), format!("line 1 of the rules of login: {what}"));
        }
    }

    #[test]
    fn rules_that_ask_strangers_nothing_are_told_apart() {
        for (text, trusted) in [
            ("host all all all trust", Some("everywhere")),
            ("hostssl all all 0.0.0.0/0 trust", Some("0.0.0.0/0")),
            ("hostnossl all all ::1/64 trust", Some("::1/64")),
            ("hostssl all all all trust clientcert=verify-ca", None),
            ("host all all 127.0.0.1/32 trust", None),
            ("host all all ::1/128 trust", None),
            ("host all all all scram-sha-256", None),
            ("local all all trust", None),
        ] {
            assert_eq!(Rules::parse(text).unwrap().0[0].trusted_strangers().as_deref(), trusted, "{text}");
        }
    }

    #[test]
    fn maps_say_whom_a_certificate_may_be() {
        let maps = Maps::parse("m alice app\nm alice \"other one\"\n").unwrap();
        assert!(maps.allow(Some("m"), "alice", "app") && maps.allow(Some("m"), "alice", "other one"));
        assert!(!maps.allow(Some("m"), "alice", "alice") && !maps.allow(Some("n"), "alice", "app"));
        assert!(maps.allow(None, "alice", "alice") && !maps.allow(None, "alice", "app"));
        assert!(Maps::parse("m /x app").is_err() && Maps::parse("m x").is_err());
    }
}
