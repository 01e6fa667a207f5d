//! `postgresql://user@host:port/database`: where a client connects.

use super::secure::{Password, Secured, Tls};
use meridian_base::{Error, Result};
use std::fmt;
use std::path::{Path, PathBuf};

/// What `meridian sql` connects to when it is told nothing.
pub const URL_DEFAULT: &str = "postgresql://root@127.0.0.1:26257/defaultdb";

/// Where and as whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub user: String,
    pub host: String,
    pub port: u16,
    pub database: String,
    pub secured: Secured,
}

impl Target {
    /// Reads a URL. Missing parts are those of [`URL_DEFAULT`]; a host and port alone are
    /// understood too.
    pub fn parse(url: &str) -> Result<Target> {
        // It may have a password.
        let shown = url.rsplit_once('@').map_or(url, |(_, place)| place);
        let bad = |why: &str| Error::sql("08001", format!("{shown} is not a URL of a database: {why}")).hint(URL_DEFAULT);
        let rest = match url.split_once("://") {
            Some(("postgresql" | "postgres", rest)) => rest,
            Some(_) => return Err(bad("it does not begin with postgresql://")),
            None => url,
        };
        let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let mut secured = Secured::default();
        for parameter in parameters.split('&').filter(|p| !p.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = decoded(value);
            match name {
                "application_name" => {}
                "sslmode" => secured.tls = Tls::parse(&value).ok_or_else(|| bad(&format!("there is no sslmode {value}")))?,
                "sslrootcert" => secured.authorities = Some(value.into()),
                "sslcert" => secured.certificate = Some(value.into()),
                "sslkey" => secured.key = Some(value.into()),
                name => return Err(bad(&format!("the parameter {name} is not known"))),
            }
        }
        if secured.certificate.is_some() != secured.key.is_some() {
            return Err(bad("sslcert and sslkey belong together"));
        }
        let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (who, place) = place.rsplit_once('@').unwrap_or(("", place));
        let (user, password) = who.split_once(':').unwrap_or((who, ""));
        secured.password = Some(decoded(password)).filter(|text| !text.is_empty()).map(Password);
        // An IPv6 address is in brackets because of its colons.
        let (host, port) = match place.rfind(':').filter(|colon| !place[*colon..].contains(']')) {
            Some(colon) => (&place[..colon], &place[colon + 1..]),
            None => (place, ""),
        };
        let or = |text: &str, default: &str| if text.is_empty() { default.to_string() } else { decoded(text) };
        Ok(Target {
            user: or(user, "root"),
            host: or(host.trim_matches(['[', ']']), "127.0.0.1"),
            port: or(port, "26257").parse().map_err(|_| bad("the port is not a number"))?,
            database: or(database, "defaultdb"),
            secured,
        })
    }

    /// The file of a server's Unix socket, if the host is a directory.
    pub fn socket(&self) -> Option<PathBuf> {
        self.host.starts_with('/').then(|| Path::new(&self.host).join(format!(".s.PGSQL.{}", self.port)))
    }

    /// `host:port`.
    pub fn addr(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "postgresql://{}@{}/{}", self.user, self.addr().replace('/', "%2F"), self.database)
    }
}

/// Replaces `%41` by `A`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let code = more.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        Target::parse(url).map_or_else(|e| e.to_string(), |t| t.to_string())
    }

    #[test]
    fn missing_parts_are_the_defaults() {
        for url in
            [URL_DEFAULT, "postgresql://", "postgres://127.0.0.1", "root@127.0.0.1:26257", "127.0.0.1:26257/", "/defaultdb"]
        {
            assert_eq!(shown(url), URL_DEFAULT, "{url}");
        }
    }

    #[test]
    fn every_part_is_read() {
        assert_eq!(shown("postgresql://ann:secret@db.test:5/mo%76r?sslmode=disable"), "postgresql://ann@db.test:5/movr");
        assert_eq!(shown("postgresql://[::1]:5/x"), "postgresql://root@[::1]:5/x");
        assert_eq!(shown("postgresql://[::1]/x"), "postgresql://root@[::1]:26257/x");
        let local = "postgresql://root@%2Fa%2Fb:5/x";
        assert_eq!(shown(local), local);
        let socket = Target::parse(local).expect("a URL").socket();
        assert_eq!(socket.as_deref(), Some(Path::new("/a/b/.s.PGSQL.5")));
    }

    #[test]
    fn what_is_about_security_is_read_and_not_shown() {
        let url = "postgresql://ann:s%20ecret@db.test:5/x?sslmode=verify-full&sslrootcert=/a%20b/ca.crt&sslcert=c&sslkey=k";
        let target = Target::parse(url).expect("a URL");
        let expected = Secured {
            tls: Tls::Yes(meridian_pki::tls::SslMode::VerifyFull),
            authorities: Some("/a b/ca.crt".into()),
            certificate: Some("c".into()),
            key: Some("k".into()),
            password: Some(Password("s ecret".into())),
        };
        assert_eq!(target.secured, expected);
        assert!(!format!("{target} {target:?}").contains("ecret"));
        let e = Target::parse("postgresql://ann:secret@h:port/x").expect_err("no port");
        assert!(!e.to_string().contains("secret"), "{e}");
    }

    #[test]
    fn what_would_be_ignored_is_refused() {
        for url in
            ["mysql://h", "postgresql://h:port", "postgresql://h?sslmode=perhaps", "postgresql://h?cake=1", "h?sslcert=only"]
        {
            assert!(Target::parse(url).is_err(), "{url}");
        }
    }
}
