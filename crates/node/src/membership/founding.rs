//! How a process with an empty directory comes to an identity: it joins the cluster of the nodes it
//! was told of, or founds one with them.
//!
//! An empty directory is a new node, whatever was at its address before. So it draws a token and
//! makes it durable before it says anything; the catalog gives one identity to one token, and a
//! process that is started again in the middle asks with the same one.
//!
//! **Founding.** Processes that know each other by `--join` and have no identity must found one
//! cluster and not two, whatever order they start in, with lists that may differ, while messages
//! are lost and processes restart. The rules:
//!
//! * A process that finds a member at one of its addresses joins, and founds nothing.
//! * Of those who have no identity, the one that is the smallest of all it knows stands as a
//!   candidate, with a number of its own, and only while every process that it was told of answers.
//!   It founds when all of them have *pledged* themselves to this candidacy.
//! * A process that has pledged itself is no candidate and pledges itself to no other one, until
//!   the candidate says that this candidacy is over (it was given up, or its process was started
//!   again). A pledge is durable before it is given. A candidate pledges itself to no other one.
//! * A number is never used again, so a candidacy that is over stays so.
//!
//! Two candidates with a process in common, or of which one knows the other, cannot both have its
//! pledge; so clusters are founded twice only by processes that were never told of each other. A
//! candidate that is not given every pledge gives up and stands again a random time later.
//!
//! A process that was told of no other founds a cluster by itself, at once. A process that another
//! one takes for a member of a cluster ([`crate::transport::rpc::Claim`]) founds nothing: the
//! directory that was here before belonged to it.
//!
//! **An operator** can have a cluster founded although some do not answer (`meridian init`); all
//! that do answer must still pledge themselves.

use crate::local::small_file;
use crate::membership::identity::{self, Identity};
use crate::membership::pledges::{self, State};
use crate::membership::shared::Shared;
use crate::transport::rpc::{Claim, Place};
use crate::transport::wire::{Ask, Mustered, Newcomer, NodeRecord, Request, Response};
use meridian_base::{Error, ErrorKind, NodeId, Result};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

const FILE: &str = "joining";
/// A file that is longer is not ours.
const BYTES_MAX: u64 = 4096;

/// How long a process that has no identity waits for an answer of another one.
const ASK_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a member may take to register a new node: a failover of the catalog's primary, and
/// some.
pub(crate) const JOIN_CALL: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(200);
/// Candidates that were in each other's way stand again at different times within this.
const SPREAD_MILLIS: u64 = 300;
/// How long a process that founds a cluster by itself listens before: members of a cluster that
/// have lost it look for it meanwhile.
pub const FOUNDING_PAUSE: Duration = Duration::from_millis(1_200);
/// What a process waits for is said again after this.
const NOTICE_INTERVAL: Duration = Duration::from_secs(30);
/// A claim that is not made again for so long is not made any more: members ping twice a second.
pub(crate) const CLAIM_HOLDS: Duration = Duration::from_secs(10);

/// Where a node says why it has not come up yet: what clients are told.
pub(crate) type Hindrance = watch::Sender<Option<Error>>;

/// What clients are told while a node waits for others.
pub(crate) fn starting(waits: &str) -> Error {
    Error::sql("57P03", "the database system is starting up").detail(waits)
}

impl Shared {
    /// Reads what this process knew before it was started again, or begins with a new token;
    /// durable when this returns. With `alone` it is a candidate from the first moment on.
    pub(crate) async fn begin_founding(&self, addr: &str, alone: bool) -> Result<()> {
        let disk = self.runtime.disk();
        let place = disk.describe(FILE);
        let mut state = match small_file::read(&self.runtime, FILE, BYTES_MAX) {
            Ok(text) => State::parse(&text, addr).ok_or_else(|| {
                let lost = "Nothing was stored yet: start with an empty data directory.";
                small_file::unreadable(&place, &text, pledges::HEADER, lost)
            })?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let token = u128::from(self.runtime.random()) << 64 | u128::from(self.runtime.random()) | 1;
                let state = State::new(Newcomer { addr: addr.to_string(), token });
                self.save_founding(&state).await?;
                state
            }
            Err(e) => return Err(Error::fatal(format!("cannot read {place}: {e}"))),
        };
        if alone {
            state.stand(self.runtime.random());
        }
        *self.directory.founding.state.lock().await = Some(state);
        Ok(())
    }

    async fn save_founding(&self, state: &State) -> Result<()> {
        let failed = |e: io::Error| Error::fatal(format!("cannot write {}: {e}", self.runtime.disk().describe(FILE)));
        small_file::write(&self.runtime, FILE, state.text()).await.map_err(failed)
    }

    /// Answers a process that has no identity.
    pub(crate) async fn mustered(&self, from: &Newcomer, ask: Ask) -> Result<Mustered> {
        let mut state = self.directory.founding.state.lock().await;
        // After the lock: whoever was founding has an identity by then.
        if self.me() != NodeId(0) {
            return Ok(Mustered::Member { cluster: self.rpc.cluster(), node: self.me() });
        }
        let Some(known) = &mut *state else { return Err(Error::unavailable("this process has just started")) };
        let before = known.clone();
        let answer = known.answer(from, ask);
        if *known != before
            && let Err(e) = self.save_founding(known).await
        {
            *known = before;
            return Err(e);
        }
        Ok(answer)
    }

    /// An operator wants a cluster to be founded here. 55000 if there is one.
    pub(crate) async fn init(&self) -> Result<()> {
        let refused = |why: &str| Error::sql("55000", why.to_string());
        if self.me() != NodeId(0) {
            let cluster = self.rpc.cluster();
            return Err(refused(&format!("this node is {} of cluster {cluster:032x} already", self.me())));
        }
        let operator = self.directory.founding.operator.lock().clone();
        let Some(operator) = operator else { return Err(Error::unavailable("this process has just started")) };
        let (reply, answer) = oneshot::channel();
        let busy = || Error::unavailable("this process is busy joining or founding a cluster");
        operator.send(reply).await.map_err(|_| busy())?;
        answer.await.map_err(|_| busy())?
    }
}

/// What an address had to say.
struct Heard {
    addr: String,
    answer: Result<Mustered>,
}

/// How a process without an identity gets one.
pub(crate) struct Newcoming<'a> {
    pub shared: &'a Arc<Shared>,
    /// Addresses of others, as the operator gave them.
    pub others: Vec<String>,
    pub record: &'a NodeRecord,
    pub hindrance: &'a Hindrance,
    /// It listens this long whether another node takes it for a member, before it founds anything.
    pub pause: Duration,
}

impl Newcoming<'_> {
    /// Takes as long as it takes; an error says that waiting is of no use.
    pub async fn identity(&self) -> Result<Identity> {
        self.shared.rpc.identify(0, NodeId(0), Place::default(), "");
        let (operator, mut wishes) = mpsc::channel(1);
        *self.shared.directory.founding.operator.lock() = Some(operator);
        let begun = Instant::now();
        let mut notice = Notice::default();
        loop {
            let heard = self.ask_everybody().await;
            let members = heard.iter().filter(|h| matches!(h.answer, Ok(Mustered::Member { .. })));
            let members: Vec<&str> = members.map(|h| h.addr.as_str()).collect();
            let waits = match members.is_empty() {
                false => match self.join(&members).await {
                    Ok(identity) => return Ok(identity),
                    Err(e) if is_final(&e) => return Err(e),
                    Err(e) => format!("waiting to join the cluster: {}{}", e.message(), details(&e)),
                },
                true => match self.try_to_found(&heard, begun).await? {
                    Ok(identity) => return Ok(identity),
                    Err(waits) => waits,
                },
            };
            self.hindrance.send_replace(Some(starting(&waits)));
            notice.say(waits);
            let pause = PAUSE + Duration::from_millis(self.shared.runtime.random() % SPREAD_MILLIS);
            tokio::select! {
                biased;
                wish = wishes.recv() => if let Some(reply) = wish {
                    let founded = self.found_for_operator().await;
                    let told = founded.as_ref().map(|_| ()).map_err(Clone::clone);
                    let _ = reply.send(told);
                    if let Ok(identity) = founded {
                        return Ok(identity);
                    }
                },
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn ask(&self, addr: &str, ask: Ask) -> Result<Mustered> {
        let from = self.me().await?;
        match self.shared.rpc.call_addr(addr, Request::Muster { from, ask }, ASK_TIMEOUT).await? {
            Response::Mustered(answer) => Ok(answer),
            _ => Err(Error::internal("a node gave an answer of another kind")),
        }
    }

    /// Asks everybody that this process was told of, and the candidate that it is pledged to.
    async fn ask_everybody(&self) -> Vec<Heard> {
        let mut addrs = self.others.clone();
        let state = self.shared.directory.founding.state.lock().await.clone();
        addrs.extend(state.and_then(|s| s.pledge).map(|p| p.to.addr).filter(|addr| !self.others.contains(addr)));
        let asked = addrs.into_iter().map(|addr| async move {
            let answer = self.ask(&addr, Ask::Who).await;
            Heard { addr, answer }
        });
        futures::future::join_all(asked).await
    }

    async fn me(&self) -> Result<Newcomer> {
        let state = self.shared.directory.founding.state.lock().await;
        state.as_ref().map(|s| s.me.clone()).ok_or_else(|| Error::internal("this process has an identity"))
    }

    /// Asks members for an identity.
    async fn join(&self, members: &[&str]) -> Result<Identity> {
        let token = self.me().await?.token;
        let mut last = Error::unavailable("nobody answers");
        for addr in members {
            let ask = Request::Join {
                node: NodeId(0),
                token,
                addr: self.record.addr.clone(),
                sql_addr: self.record.sql_addr.clone(),
                region: self.record.region.clone(),
                zone: self.record.zone.clone(),
                is_passed_on: false,
                versions: self.shared.rpc.versions(),
            };
            match self.shared.rpc.call_addr(addr, ask, JOIN_CALL).await {
                Ok(Response::Joined(joined)) if joined.cluster == 0 => {
                    last = Error::unavailable(format!("the node at {addr} is a member of no cluster"));
                }
                Ok(Response::Joined(joined)) => {
                    let identity = Identity { cluster: joined.cluster, node: joined.node, is_founding: false };
                    self.become_member(identity).await?;
                    joined.nodes.iter().for_each(|n| self.shared.rpc.learn(n));
                    crate::membership::address_book::save(&self.shared.runtime, &joined.nodes).await;
                    return Ok(identity);
                }
                Ok(_) => last = Error::unavailable(format!("the node at {addr} cannot take this one in yet")),
                Err(e) if is_final(&e) => return Err(refused(addr, &e)),
                Err(e) => {
                    last = Error::unavailable(format!("the node at {addr} cannot take this one in yet")).detail(e.to_string())
                }
            }
        }
        Err(last)
    }

    async fn become_member(&self, identity: Identity) -> Result<()> {
        let mut state = self.shared.directory.founding.state.lock().await;
        identity::save(&self.shared.runtime, identity).await?;
        self.shared.set_identity(identity);
        *state = None;
        // A directory that says whose it is needs no token. One that stays is not looked at any
        // more.
        let runtime = self.shared.runtime.clone();
        let _ = self.shared.runtime.run_io("joined", move || runtime.disk().remove(FILE)).await;
        Ok(())
    }

    /// Founds a cluster, if it is this process's to do; or what it waits for.
    async fn try_to_found(&self, heard: &[Heard], begun: Instant) -> Result<std::result::Result<Identity, String>> {
        if let Some(Err(e)) = heard.iter().map(|h| &h.answer).find(|a| matches!(a, Err(e) if e.kind() == ErrorKind::Fatal)) {
            return Err(e.clone());
        }
        self.settle_pledge().await?;
        if begun.elapsed() < self.pause {
            tokio::time::sleep_until(begun + self.pause).await;
        }
        if let Some(claim) = self.shared.rpc.claimed(CLAIM_HOLDS) {
            return match self.others.is_empty() {
                true => Err(claimed_alone(&claim)),
                false => Ok(Err(claimed(&claim))),
            };
        }
        let silent: Vec<&str> = heard.iter().filter(|h| h.answer.is_err()).map(|h| h.addr.as_str()).collect();
        if !silent.is_empty() {
            return Ok(Err(format!(
                "no cluster was found at --join; waiting for {} (one is founded when all of them are up; \
                 `meridian init --node {}` founds one without them)",
                silent.join(", "),
                self.record.addr
            )));
        }
        let me = self.me().await?;
        if let Some(first) = newcomers(heard).min().filter(|first| **first < me) {
            return Ok(Err(format!("waiting for {} to found the cluster", first.addr)));
        }
        self.stand(&self.others).await
    }

    /// Whether the candidate that this process is pledged to still stands.
    async fn settle_pledge(&self) -> Result<()> {
        let pledge = self.shared.directory.founding.state.lock().await.as_ref().and_then(|s| s.pledge.clone());
        let Some(pledge) = pledge else { return Ok(()) };
        let answer = self.ask(&pledge.to.addr, Ask::IsOver { candidacy: pledge.candidacy }).await;
        if let Ok(Mustered::Over(true)) = answer
            && let Some(state) = &mut *self.shared.directory.founding.state.lock().await
        {
            state.release(&pledge);
            self.shared.save_founding(state).await?;
        }
        Ok(())
    }

    /// Stands as a candidate, and founds a cluster if everybody at these addresses pledges itself;
    /// otherwise why it did not.
    async fn stand(&self, others: &[String]) -> Result<std::result::Result<Identity, String>> {
        let candidacy = self.shared.runtime.random();
        {
            let mut state = self.shared.directory.founding.state.lock().await;
            let Some(state) = &mut *state else { return Err(Error::internal("this process has an identity")) };
            if !state.stand(candidacy) {
                let to = state.pledge.as_ref().map(|p| p.to.addr.clone()).unwrap_or_default();
                return Ok(Err(format!("waiting for {to} to found the cluster")));
            }
        }
        let asked = others.iter().map(|addr| async move { (addr, self.ask(addr, Ask::Pledge { candidacy }).await) });
        let mut refusal = None;
        for (addr, answer) in futures::future::join_all(asked).await {
            match answer {
                // The other one is this process itself, by another name.
                Ok(Mustered::Pledged | Mustered::Newcomer(_)) => {}
                Ok(Mustered::Refused { why }) => refusal = Some(format!("no cluster is founded yet: {why}")),
                Ok(_) => refusal = Some(format!("the node at {addr} is a member of a cluster")),
                Err(e) => refusal = Some(format!("no cluster is founded yet: {e}")),
            }
        }
        if refusal.is_none() {
            refusal = self.shared.rpc.claimed(CLAIM_HOLDS).map(|claim| claimed(&claim));
        }
        if let Some(why) = refusal {
            if let Some(state) = &mut *self.shared.directory.founding.state.lock().await {
                state.give_up();
            }
            return Ok(Err(why));
        }
        let cluster = u128::from(self.shared.runtime.random()) << 64 | u128::from(self.shared.runtime.random()) | 1;
        let identity = Identity { cluster, node: NodeId(1), is_founding: true };
        self.become_member(identity).await?;
        tracing::info!("founded cluster {:032x}", identity.cluster);
        Ok(Ok(identity))
    }

    /// Founds a cluster with those who answer. It is for the operator to judge those who do not.
    async fn found_for_operator(&self) -> Result<Identity> {
        let refused = |why: String| Error::sql("55000", why);
        let heard = self.ask_everybody().await;
        if let Some(member) = heard.iter().find(|h| matches!(h.answer, Ok(Mustered::Member { .. }))) {
            return Err(refused(format!("there is a cluster already: the node at {} is a member of it", member.addr)));
        }
        if let Some(claim) = self.shared.rpc.claimed(CLAIM_HOLDS) {
            return Err(refused(format!("there is a cluster already: {}", claimed(&claim))));
        }
        self.settle_pledge().await?;
        let answering: Vec<String> = heard.into_iter().filter(|h| h.answer.is_ok()).map(|h| h.addr).collect();
        self.stand(&answering).await?.map_err(|why| {
            refused(why).hint("Try again. A process that is to forget what it promised is started with an empty data directory.")
        })
    }
}

fn newcomers(heard: &[Heard]) -> impl Iterator<Item = &Newcomer> {
    heard.iter().filter_map(|h| match &h.answer {
        Ok(Mustered::Newcomer(newcomer)) => Some(newcomer),
        _ => None,
    })
}

/// Whether asking again would get the same answer for ever.
fn is_final(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Fatal | ErrorKind::Statement)
}

fn refused(addr: &str, e: &Error) -> Error {
    let refusal = Error::fatal(format!("the node at {addr} refuses this one")).detail(e.message());
    match e.get_hint() {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    }
}

fn details(e: &Error) -> String {
    e.get_detail().map_or(String::new(), |detail| format!(" ({detail})"))
}

fn claimed(claim: &Claim) -> String {
    let whom = if claim.as_node == NodeId(0) { "a node of its cluster".to_string() } else { format!("node {}", claim.as_node) };
    format!(
        "node {} at {}, of cluster {:032x}, looks for {whom} here; \
         with {} in --join this process becomes a new node of that cluster",
        claim.by, claim.addr, claim.cluster, claim.addr
    )
}

pub(crate) fn claimed_alone(claim: &Claim) -> Error {
    Error::fatal("the data directory is empty, and a cluster counts on this address")
        .detail(claimed(claim))
        .hint(format!("Start with --join {}, or listen somewhere else to found a cluster of its own.", claim.addr))
}

/// Says what is waited for when it changes, and now and then.
#[derive(Default)]
pub(crate) struct Notice {
    said: Option<(String, Instant)>,
}

impl Notice {
    pub(crate) fn say(&mut self, text: String) {
        self.say_of(text.clone(), text);
    }
    /// A text that also changes while what it is about stays.
    pub(crate) fn say_of(&mut self, what: String, text: String) {
        if self.said.as_ref().is_some_and(|(said, at)| *said == what && at.elapsed() < NOTICE_INTERVAL) {
            return;
        }
        tracing::info!("{text}");
        self.said = Some((what, Instant::now()));
    }
}
