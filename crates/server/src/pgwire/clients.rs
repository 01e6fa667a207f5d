//! What a server asks of its clients, what it knows of one before it says anything, and how often
//! somebody has guessed.

use meridian_pki::tls::Tls;
use meridian_sql::catalog::hba::Way;
use meridian_sql::env::Encryption;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// What a server asks of its clients.
#[derive(Clone, Default)]
pub struct Security {
    /// Offered to every client. `None`: requests for encryption are answered «no».
    pub tls: Option<Arc<Tls>>,
    pub mode: LoginMode,
}

impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Security({:?}, TLS: {})", self.mode, self.tls.is_some())
    }
}

/// Whether clients are asked who they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoginMode {
    /// Whoever names a role is it (`--insecure`).
    #[default]
    Trust,
    /// By the cluster's rules.
    Rules,
}

/// What is known of a client before it says anything.
#[derive(Clone, Debug)]
pub struct Client {
    /// For the log.
    pub peer: String,
    pub way: Way,
    /// What its connection is protected with; the role of its certificate.
    pub encryption: Option<Encryption>,
    /// What SCRAM binds to.
    pub end_point: Option<Vec<u8>>,
    /// Its user of the operating system, and the number.
    pub system_user: Option<(String, u32)>,
}

impl Client {
    /// A client by TCP.
    pub fn of(peer: &str, is_tls: bool) -> Client {
        let address = peer.parse::<SocketAddr>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |a| a.ip());
        let way = Way::Host { address, is_tls };
        Client { peer: peer.to_string(), way, encryption: None, end_point: None, system_user: None }
    }
    /// A client by a Unix socket.
    pub fn local(uid: u32) -> Client {
        let name = user_name(uid).unwrap_or_else(|| uid.to_string());
        let peer = format!("[local] uid {uid}");
        Client { peer, way: Way::Local, encryption: None, end_point: None, system_user: Some((name, uid)) }
    }
    /// The role of its certificate.
    pub fn certificate(&self) -> Option<&str> {
        self.encryption.as_ref()?.client.as_deref()
    }
    /// As PostgreSQL's messages tell it.
    pub fn described(&self, user: &str, database: &str) -> String {
        match &self.way {
            Way::Local => format!("host \"[local]\", user \"{user}\", database \"{database}\", no encryption"),
            Way::Host { address, is_tls } => {
                let encryption = if *is_tls { "SSL encryption" } else { "no encryption" };
                format!("host \"{address}\", user \"{user}\", database \"{database}\", {encryption}")
            }
        }
    }
}

/// The name of a user of the operating system.
fn user_name(uid: u32) -> Option<String> {
    let mut buffer = vec![0; 4_096];
    // SAFETY: an all-zero `passwd` is valid, as all of its fields are numbers and pointers.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are valid for the length of the call, and the buffer's length is its
    // own.
    let failed = unsafe { libc::getpwuid_r(uid, &mut entry, buffer.as_mut_ptr(), buffer.len(), &mut found) };
    if failed != 0 || found.is_null() {
        return None;
    }
    // SAFETY: the call has filled the entry in; its name lies in the buffer and ends with a zero.
    let name = unsafe { std::ffi::CStr::from_ptr(entry.pw_name) };
    Some(name.to_string_lossy().into_owned())
}

/// Failed guesses by address: the next answer takes longer.
#[derive(Default)]
pub struct Guesses(Mutex<BTreeMap<String, u32>>);

impl Guesses {
    const ADDRESSES_MAX: usize = 10_000;
    const FIRST: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_secs(3);

    fn key(client: &Client) -> String {
        match &client.way {
            Way::Local => String::new(),
            Way::Host { address, .. } => address.to_string(),
        }
    }
    /// One more; how long the answer waits.
    pub fn failed(&self, client: &Client) -> Duration {
        let mut guesses = self.0.lock();
        if guesses.len() >= Guesses::ADDRESSES_MAX {
            guesses.clear();
        }
        let count = guesses.entry(Guesses::key(client)).or_default();
        *count = count.saturating_add(1);
        (Guesses::FIRST * 2u32.saturating_pow((*count - 1).min(10))).min(Guesses::LONGEST)
    }
    pub fn succeeded(&self, client: &Client) {
        self.0.lock().remove(&Guesses::key(client));
    }
}

/// Whether a client is whoever runs the node, or may become it: no rule locks the operator out.
pub fn is_operator(client: &Client) -> bool {
    // SAFETY: the call has no arguments and cannot fail.
    let own = unsafe { libc::geteuid() };
    client.way == Way::Local && client.system_user.as_ref().is_some_and(|(_, uid)| *uid == own || *uid == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_take_longer_and_longer() {
        let guesses = Guesses::default();
        let (one, other) = (Client::of("10.0.0.1:5", true), Client::of("10.0.0.2:5", true));
        let waits: Vec<Duration> = (0..12).map(|_| guesses.failed(&one)).collect();
        assert!(waits.windows(2).all(|w| w[0] <= w[1]));
        assert_eq!((waits[0], waits[11]), (Guesses::FIRST, Guesses::LONGEST));
        assert_eq!(guesses.failed(&other), Guesses::FIRST);
        guesses.succeeded(&one);
        assert_eq!(guesses.failed(&one), Guesses::FIRST);
    }

    #[test]
    fn only_the_operator_is_it() {
        assert!(is_operator(&Client::local(0)));
        assert!(!is_operator(&Client::of("127.0.0.1:1", false)));
        assert_eq!(user_name(0).as_deref(), Some("root"));
    }
}
