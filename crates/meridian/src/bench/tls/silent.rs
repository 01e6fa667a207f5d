//! Logins while others have connected and say nothing.

use super::Bench;
use super::contender::Contender;
use crate::bench::child;
use meridian_base::{Error, Result};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

const LOGINS: usize = 40;
const LOGIN_LIMIT: Duration = Duration::from_secs(30);
/// How much longer a login may take.
const DELAY_MAX: Duration = Duration::from_millis(100);
/// All silent connections are open within this time.
const OPEN_LIMIT: Duration = Duration::from_secs(20);
const AGAIN_AFTER: Duration = Duration::from_millis(50);

pub async fn run(bench: &mut Bench<'_>, side: &Contender) -> Result<()> {
    let silent = bench.args.silent as usize;
    meridian_server::open_files::raise_limit();
    say!("\nsilent: logins by psql of {}, alone and beside {silent} connections that say nothing", side.described());
    let alone = logins(bench, side).await?;
    let (tell, mut are_in) = watch::channel(false);
    let others = tokio::spawn(keep_silent(side.address(), silent, tell));
    let all_in = matches!(tokio::time::timeout(OPEN_LIMIT, are_in.wait_for(|all| *all)).await, Ok(Ok(_)));
    if !all_in {
        others.abort();
        return Err(Error::fatal(format!("{silent} connections cannot be opened")).hint("See `ulimit -n`."));
    }
    let beside = logins(bench, side).await;
    others.abort();
    let beside = beside?;
    let millis = |times: &[Duration], at: usize| times[at].as_secs_f64() * 1e3;
    for (name, times) in [("alone", &alone), ("beside them", &beside)] {
        say!("{name}: median {:.1} ms, longest {:.1} ms", millis(times, LOGINS / 2), millis(times, LOGINS - 1));
    }
    let delay = beside[LOGINS / 2].saturating_sub(alone[LOGINS / 2]);
    let longest = beside[LOGINS - 1].saturating_sub(alone[LOGINS / 2]);
    let is_met = longest <= DELAY_MAX;
    bench.all_met &= is_met;
    say!(
        "  {}  a login is delayed by {:.1} ms (median), {:.1} ms (longest) (budget: ≤ {} ms)",
        if is_met { "met   " } else { "MISSED" },
        delay.as_secs_f64() * 1e3,
        longest.as_secs_f64() * 1e3,
        DELAY_MAX.as_millis()
    );
    Ok(())
}

/// How long logins take, one after the other; sorted.
async fn logins(bench: &Bench<'_>, side: &Contender) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..LOGINS {
        let began = Instant::now();
        let command = side.command(&bench.programs, "psql", &["-X", "-A", "-t", "-c", "SELECT 1"]);
        let said = child::run(command, bench.scratch.path(), LOGIN_LIMIT).await?;
        if said.trim() != "1" {
            return Err(Error::internal("psql printed something else").detail(said));
        }
        times.push(began.elapsed());
    }
    times.sort();
    Ok(times)
}

/// Keeps this many connections open, and says nothing on them. One that the server ends is opened
/// again. They are a client's, of a server in another process.
#[allow(clippy::disallowed_methods)]
async fn keep_silent(address: String, silent: usize, are_in: watch::Sender<bool>) {
    let mut open: Vec<TcpStream> = Vec::new();
    loop {
        open.retain(|stream| {
            let mut byte = [0];
            matches!(stream.try_read(&mut byte), Err(e) if e.kind() == std::io::ErrorKind::WouldBlock)
        });
        while open.len() < silent {
            match TcpStream::connect(&address).await {
                Ok(stream) => open.push(stream),
                Err(_) => break,
            }
        }
        if open.len() >= silent {
            are_in.send_replace(true);
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}
