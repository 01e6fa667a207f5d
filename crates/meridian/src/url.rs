//! `meridian url`: where a client of a node on this machine connects, and as whom.

use clap::Args as ClapArgs;
use meridian_base::{Error, Result};
use meridian_server::{certs_dir, first_login, local_sql_addr_in, sql_addr_in};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(ClapArgs)]
pub struct Args {
    /// The node's data directory.
    #[arg(long, value_name = "DIR", default_value = "meridian-data")]
    data_dir: PathBuf,
    /// Where its certificates are: certs of the data directory, unless it was started with another
    /// directory.
    #[arg(long, value_name = "DIR")]
    certs_dir: Option<PathBuf>,
    /// The database.
    #[arg(long, default_value = "defaultdb")]
    database: String,
}

pub async fn run(args: Args) -> Result<ExitCode> {
    let certs = args.certs_dir.unwrap_or_else(|| certs_dir(&args.data_dir));
    say!("{}", url_with(&args.data_dir, &certs, &args.database)?);
    if certs.exists() && first_login::read(&args.data_dir)?.is_none() {
        eprintln!(
            "The password of root is in {} of the node that founded the cluster; this directory has none.",
            first_login::FILE
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// The URL of a node that has been started with a data directory.
pub fn url_of(data_dir: &Path, database: &str) -> Result<String> {
    url_with(data_dir, &certs_dir(data_dir), database)
}

fn url_with(data_dir: &Path, certs: &Path, database: &str) -> Result<String> {
    let Some(addr) = sql_addr_in(data_dir) else {
        return Err(Error::fatal(format!("no node has been started with the data directory {}", data_dir.display())));
    };
    let password = first_login::read(data_dir)?;
    let authorities = certs.join("ca.crt").canonicalize().ok();
    if password.is_some() && authorities.is_none() {
        // Only a secure cluster has passwords.
        let e = Error::fatal(format!("there is no ca.crt in {}", certs.display()));
        return Err(e.hint("Say with --certs-dir where the node's certificates are."));
    }
    Ok(url(&addr, database, password.as_deref(), authorities.as_deref()))
}

/// Where this program itself connects to the node of a data directory: by the node's socket, where
/// there is one, which asks for no password.
pub fn local_url(data_dir: &Path, database: &str) -> Result<String> {
    match local_sql_addr_in(data_dir) {
        Some(addr) => Ok(format!("postgresql://root@{}/{database}", escaped_addr(&addr))),
        None => url_of(data_dir, database),
    }
}

/// A directory and a port, as in the URLs of PostgreSQL's clients.
pub fn escaped_addr(addr: &str) -> String {
    addr.replace('/', "%2F")
}

/// A URL of an address, with a password and with the authorities to verify the node by, if there
/// are any.
pub fn url(addr: &str, database: &str, password: Option<&str>, authorities: Option<&Path>) -> String {
    let password = password.map_or(String::new(), |password| format!(":{}", escaped(password)));
    let verified = authorities.map_or("sslmode=disable".to_string(), |path| {
        format!("sslmode=verify-full&sslrootcert={}", escaped(&path.display().to_string()))
    });
    format!("postgresql://root{password}@{addr}/{database}?{verified}")
}

/// As part of a URL (RFC 3986, §2.1).
fn escaped(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    text.bytes().map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn what_has_a_meaning_in_a_url_is_escaped() {
        assert_eq!(escaped("/a b/ca.crt?x=1&é"), "/a%20b/ca.crt%3Fx%3D1%26%C3%A9");
    }
}
