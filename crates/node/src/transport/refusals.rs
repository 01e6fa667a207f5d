//! What the operator reads of those who are refused: a peer that is refused tries again and again,
//! and must neither fill the log nor hide another one.
//!
//! A host has one line in [`INTERVAL`], which says how many of its refusals had none before. Beyond
//! [`HOSTS_MAX`] hosts, the others share a line.

use super::strangers::host_of;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// A host has a line at most this often.
const INTERVAL: Duration = Duration::from_secs(10);
/// So many hosts have lines of their own at a time.
const HOSTS_MAX: usize = 100;
/// The others.
const OTHERS: &str = "";

/// Those whom a port has refused.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<HashMap<String, Refused>>);

#[derive(Debug)]
struct Refused {
    /// When it last had a line.
    said: Instant,
    /// How many refusals have had none since.
    unsaid: u64,
}

impl Refusals {
    /// Notes that a peer (`host:port`) was refused. `Some`: it is time for a line, and so many
    /// refusals had none before.
    pub fn note(&self, peer: &str) -> Option<u64> {
        let mut refused = self.0.lock();
        let now = Instant::now();
        let is_over = |r: &Refused| now.duration_since(r.said) >= INTERVAL;
        let mut host = host_of(peer);
        if !refused.contains_key(&host) && refused.len() >= HOSTS_MAX {
            refused.retain(|_, r| !is_over(r));
            if refused.len() >= HOSTS_MAX {
                host = OTHERS.to_string();
            }
        }
        match refused.get_mut(&host) {
            Some(r) if !is_over(r) => {
                r.unsaid += 1;
                None
            }
            Some(r) => {
                r.said = now;
                Some(std::mem::take(&mut r.unsaid))
            }
            None => {
                refused.insert(host, Refused { said: now, unsaid: 0 });
                Some(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_host_neither_fills_the_log_nor_hides_another() {
        let refusals = Refusals::default();
        let mut lines = 0;
        for port in 0..1_000 {
            lines += u64::from(refusals.note(&format!("10.0.0.1:{port}")).is_some());
        }
        assert_eq!(lines, 1);
        assert_eq!(refusals.note("10.0.0.2:1"), Some(0));
        tokio::time::advance(INTERVAL).await;
        assert_eq!(refusals.note("10.0.0.1:1"), Some(999));
        assert_eq!(refusals.note("10.0.0.1:2"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn many_hosts_share_a_line() {
        let refusals = Refusals::default();
        let lines = (0..10_000).filter(|host| refusals.note(&format!("h{host}:1")).is_some()).count();
        assert_eq!(lines, HOSTS_MAX + 1);
        assert!(refusals.0.lock().len() <= HOSTS_MAX + 1);
        tokio::time::advance(INTERVAL).await;
        assert_eq!(refusals.note("h20000:1"), Some(0));
        assert_eq!(refusals.0.lock().len(), 1);
    }
}
