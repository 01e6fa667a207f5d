//! Processes of a bench: bounded in time, and ended whatever happens.

use meridian_base::{Error, Result};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tokio::time::Instant;

const POLL: Duration = Duration::from_millis(20);
/// A server that was asked to end has this long before it is killed.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// A server. Ends when dropped.
pub struct Server {
    name: &'static str,
    child: Child,
}

impl Server {
    /// Starts one whose output goes to `log`.
    pub fn start(name: &'static str, mut command: Command, log: &Path) -> Result<Server> {
        let failed = |e: std::io::Error| Error::fatal(format!("cannot start {name}: {e}"));
        let out = std::fs::File::create(log).map_err(failed)?;
        let err = out.try_clone().map_err(failed)?;
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn().map_err(failed)?;
        Ok(Server { name, child })
    }
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
    /// Ends it as a crash would.
    pub fn kill(mut self) -> Result<()> {
        let failed = |e: std::io::Error| Error::fatal(format!("cannot kill {}: {e}", self.name));
        self.child.kill().map_err(failed)?;
        self.child.wait().map_err(failed).map(drop)
    }
    /// An error if it has ended by itself.
    pub fn check(&mut self, log: &Path) -> Result<()> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(Error::fatal(format!("{} has ended", self.name)).detail(tail(log))),
        }
    }
}

impl Drop for Server {
    // A guard cannot await.
    #[allow(clippy::disallowed_methods)]
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // SAFETY: signals a process that this one started and has not waited for yet. SIGINT is
        // PostgreSQL's fast shutdown, and a node's graceful one.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGINT) };
        let deadline = Instant::now() + END_PATIENCE;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(POLL);
        }
        // It may have ended in between.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A child that is killed unless it was waited for.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command to its end and returns what it printed. Its output goes through files, so that it
/// never waits for a reader.
pub async fn run(mut command: Command, scratch: &Path, limit: Duration) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |e: std::io::Error| Error::fatal(format!("cannot run {name}: {e}"));
    let (out, err) = (scratch.join("stdout"), scratch.join("stderr"));
    let to = |path: &Path| std::fs::File::create(path).map_err(failed);
    let mut child = Killed(command.stdin(Stdio::null()).stdout(to(&out)?).stderr(to(&err)?).spawn().map_err(failed)?);
    let status = wait(&mut child.0, limit).await.map_err(failed)?;
    match status {
        Some(status) if status.success() => std::fs::read_to_string(&out).map_err(failed),
        Some(status) => Err(Error::fatal(format!("{name} failed: {status}")).detail(tail(&err))),
        None => Err(Error::fatal(format!("{name} did not end within {} s", limit.as_secs())).detail(tail(&err))),
    }
}

async fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() > deadline {
            return Ok(None);
        }
        tokio::time::sleep(POLL).await;
    }
}

/// The last lines of a log.
pub fn tail(log: &Path) -> String {
    const LINES: usize = 10;
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// CPU time in user and kernel mode that a process, its children that have ended, and those that
/// live have used.
pub fn cpu_time(pid: u32) -> Duration {
    // SAFETY: asks for a constant of the system.
    let ticks_per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as f64;
    let mut ticks = 0;
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(stat) = std::fs::read_to_string(entry.path().join("stat")).ok().as_deref().and_then(stat_of) else { continue };
        if stat.pid == pid {
            ticks += stat.own + stat.ended_children;
        } else if stat.parent == pid {
            ticks += stat.own;
        }
    }
    Duration::from_secs_f64(ticks as f64 / ticks_per_second)
}

#[derive(Debug, PartialEq, Eq)]
struct Stat {
    pid: u32,
    parent: u32,
    /// Ticks of its own.
    own: u64,
    ended_children: u64,
}

/// Reads `/proc/PID/stat` (proc(5)); the name in parentheses may hold anything.
fn stat_of(text: &str) -> Option<Stat> {
    let pid = text.split(' ').next()?.parse().ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Stat { pid, parent: number(1)? as u32, own: number(11)? + number(12)?, ended_children: number(13)? + number(14)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_behind_any_name() {
        let text = "42 (a (b) c) S 7 42 42 0 -1 4194304 127 0 0 0 11 22 33 44 20 0 1 0 582582";
        assert_eq!(stat_of(text), Some(Stat { pid: 42, parent: 7, own: 33, ended_children: 77 }));
        assert_eq!(stat_of("42 (x"), None);
        assert_eq!(stat_of(""), None);
    }

    #[test]
    fn this_process_has_used_some_time() {
        let mut n = 0u64;
        let start = Instant::now();
        // The kernel counts in hundredths of a second, and a busy machine gives few of them.
        while cpu_time(std::process::id()) == Duration::ZERO && start.elapsed() < Duration::from_secs(20) {
            n = n.wrapping_add(1);
        }
        assert!(cpu_time(std::process::id()) > Duration::ZERO, "after {n} rounds");
    }

    #[tokio::test]
    async fn a_command_that_does_not_end_is_killed() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut sleep = Command::new("sleep");
        sleep.arg("60");
        let started = Instant::now();
        let error = run(sleep, dir.path(), Duration::from_millis(100)).await.expect_err("too long");
        assert!(error.message().contains("did not end"), "{error}");
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}
