//! What a leader's lease rests on: who votes for whom and when, and which answers count.

use super::*;
use crate::consensus::message::{self, Call, Request, Response};
use crate::consensus::network::{Network, Peer};
use crate::consensus::{Types, Vote, lease::Lease, to_log_id};
use crate::group::TERM_AHEAD_MAX;
use futures::StreamExt;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, StreamAppendError, VoteRequest};
use std::collections::VecDeque;
use std::sync::OnceLock;

/// How a voter answers a candidate of the term after `term` whose log is longer than any.
#[derive(Debug, PartialEq)]
enum Answer {
    Granted,
    Denied,
    /// It does not vote yet.
    Silent,
}
use Answer::*;

struct Candidate {
    is_preliminary: bool,
    /// The leader has asked it to take over.
    is_sent_by_leader: bool,
}

async fn ask(group: &Group, term: u64, candidate: &Candidate) -> Answer {
    let last = to_log_id(LogPosition { index: 1_000, term });
    let vote = VoteRequest::<Types> {
        leadership_transfer: candidate.is_sent_by_leader,
        ..VoteRequest::new(Vote::new(term + 1, 7), last)
    };
    let request = if candidate.is_preliminary { Request::PreVote(vote) } else { Request::Vote(vote) };
    match group.handle(message::encode_request(&request)).await {
        Err(e) => {
            assert_eq!(e.message(), "this replica has just restarted and does not vote yet");
            Silent
        }
        Ok(answer) => match message::decode_response(answer).unwrap() {
            Response::Vote(answer) if answer.vote_granted => Granted,
            Response::Vote(_) => Denied,
            _ => panic!("not an answer to a candidate"),
        },
    }
}

/// The last of all terms would never be left again.
#[tokio::test(start_paused = true)]
async fn a_term_that_no_election_can_have_led_to_is_not_taken() {
    let cluster = Cluster::new(3, 41).await;
    let leader = cluster.leader().await;
    let term = cluster.propose(leader, "before").await.unwrap().term;
    for node in 1..=3 {
        for absurd in [u64::MAX, term + TERM_AHEAD_MAX + 1] {
            let vote = VoteRequest::<Types> { leadership_transfer: true, ..VoteRequest::new(Vote::new(absurd, 7), None) };
            let append = AppendEntriesRequest::<Types> {
                vote: Vote::new_committed(absurd, 7),
                prev_log_id: None,
                entries: Vec::new(),
                leader_commit: None,
            };
            for message in [message::encode_request(&Request::Vote(vote)), message::encode_append(&append)] {
                let refused = cluster.group(node).handle(message).await.unwrap_err();
                assert!(refused.message().starts_with("there can be no term"), "{refused}");
            }
        }
    }
    assert_eq!(cluster.propose(leader, "after").await.unwrap().term, term, "the leader leads as before");
}

#[test]
fn candidates_and_leaders_are_known_from_their_calls() {
    let vote = || VoteRequest::<Types>::new(Vote::new(3, 7), None);
    let append = AppendEntriesRequest::<Types> {
        vote: Vote::new_committed(3, 7),
        prev_log_id: None,
        entries: vec![],
        leader_commit: None,
    };
    for (call, claim) in [
        (message::encode_request(&Request::Vote(vote())), Some(Claim::Stands(NodeId(7)))),
        (message::encode_request(&Request::PreVote(vote())), Some(Claim::Stands(NodeId(7)))),
        (message::encode_request(&Request::Campaign { node: 7 }), None),
        (message::encode_request(&Request::SnapshotEnd { id: 0, chunks: 0 }), None),
        (message::encode_append(&append), Some(Claim::Leads(NodeId(7)))),
    ] {
        assert_eq!(Group::claim(&call).unwrap(), claim, "{call:?}");
    }
}

/// `promise` is 500 ms. A voter that runs has the library's lease, of 900 ms; one that was
/// restarted has forgotten it.
#[tokio::test(start_paused = true)]
async fn a_voter_keeps_its_promise_through_a_restart() {
    let usual = |is_preliminary| Candidate { is_preliminary, is_sent_by_leader: false };
    let sent = |is_preliminary| Candidate { is_preliminary, is_sent_by_leader: true };
    #[rustfmt::skip]
    let script = [
        // restarted, milliseconds since it heard the leader, or since the restart; the candidate;
        // the answer
        (false, 10,    usual(false), Denied),
        (false, 10,    usual(true),  Denied),
        (false, 10,    sent(false),  Granted),
        (false, 2_000, usual(false), Granted),
        (false, 2_000, usual(true),  Granted),
        (true,  0,     usual(false), Silent),
        (true,  0,     usual(true),  Silent),
        (true,  0,     sent(false),  Granted),
        (true,  450,   usual(false), Silent),
        (true,  450,   usual(true),  Silent),
        (true,  500,   usual(false), Granted),
        (true,  500,   usual(true),  Granted),
    ];
    for (at, (is_restarted, millis, candidate, expected)) in script.into_iter().enumerate() {
        let mut cluster = Cluster::new(3, 40).await;
        let leader = cluster.leader().await;
        let voter = if leader == 1 { 2 } else { 1 };
        let term = cluster.propose(leader, "heard").await.unwrap().term;
        sleep(Duration::from_millis(300)).await;
        // Nobody else is heard from here on.
        for id in 1..=3 {
            cluster.net.cut(id);
        }
        if is_restarted {
            let (disk, recorder) = cluster.kill(voter).await;
            cluster.start(voter, disk, recorder).await;
        }
        sleep(Duration::from_millis(millis)).await;
        assert_eq!(ask(cluster.group(voter), term, &candidate).await, expected, "line {at}");
    }
}

/// A voter that never heard of anybody has promised nothing.
#[tokio::test(start_paused = true)]
async fn a_new_voter_votes_at_once() {
    let mut cluster = Cluster { net: Arc::default(), nodes: BTreeMap::new(), seed: 41 };
    cluster.start(2, MemoryDisk::default(), Arc::default()).await;
    let candidate = Candidate { is_preliminary: false, is_sent_by_leader: false };
    assert_eq!(ask(cluster.group(2), 1, &candidate).await, Granted);
}

/// The leader votes for another one, as it does when it was told of a transfer: from that moment on
/// it has no lease.
#[tokio::test(start_paused = true)]
async fn a_leader_that_votes_for_another_one_has_no_lease_any_more() {
    let cluster = Cluster::new(3, 42).await;
    let leader = cluster.leader().await;
    let term = cluster.propose(leader, "a").await.unwrap().term;
    assert!(cluster.group(leader).lease_valid());
    let candidate = Candidate { is_preliminary: false, is_sent_by_leader: true };
    assert_eq!(ask(cluster.group(leader), term, &candidate).await, Granted);
    // At once: no task of the replica has run since.
    assert!(!cluster.group(leader).lease_valid());
    // The lease itself has ended, whatever is known of who leads.
    cluster.group(leader).lease().set_leader(true);
    assert_eq!(cluster.group(leader).lease_until(), None);
}

/// Proposals under way are answered at once when the replica stops leading.
#[tokio::test(start_paused = true)]
async fn a_leader_that_votes_for_another_one_has_lost_its_proposals() {
    let cluster = Cluster::new(3, 44).await;
    let leader = cluster.leader().await;
    let term = cluster.propose(leader, "a").await.unwrap().term;
    for id in 1..=3 {
        cluster.net.cut(id);
    }
    let stuck = cluster.group(leader).propose(Bytes::from("stuck")).unwrap();
    let candidate = Candidate { is_preliminary: false, is_sent_by_leader: true };
    assert_eq!(ask(cluster.group(leader), term, &candidate).await, Granted);
    let outcome = timeout(Duration::from_millis(50), stuck).await.expect("it is told");
    assert_eq!(outcome, Err(ProposeError::Dropped));
}

/// Somebody whose vote is only asked about says nothing about the lease.
#[tokio::test(start_paused = true)]
async fn a_preliminary_vote_takes_no_lease_away() {
    let cluster = Cluster::new(3, 43).await;
    let leader = cluster.leader().await;
    let term = cluster.propose(leader, "a").await.unwrap().term;
    let candidate = Candidate { is_preliminary: true, is_sent_by_leader: false };
    assert_eq!(ask(cluster.group(leader), term, &candidate).await, Denied);
    assert!(cluster.group(leader).lease_valid());
}

/// What node 1 shares between its connections, over a network that answers as the test wishes.
fn network(transport: Arc<dyn Transport>, lease: Duration) -> Network {
    Network {
        group: G,
        transport,
        timeout: Duration::from_secs(1),
        runtime: Arc::new(TestRuntime::new(MemoryDisk::default(), 1)),
        heartbeat: Duration::from_secs(1),
        lease: Lease::new(1, lease),
        accepted: Mutex::default(),
        configs: OnceLock::new(),
        snapshots: AtomicU64::new(0),
    }
}

/// A peer that gives every message the same answer.
struct Answers(AppendEntriesResponse<Types>);

impl Transport for Answers {
    fn call(&self, _to: NodeId, _group: GroupId, message: Message) -> BoxFuture<'static, Result<Bytes>> {
        assert!(matches!(message::decode_call(message.bytes), Ok(Call::Append(_))));
        let answer = message::encode_response(&Response::Append(self.0.clone()));
        async move {
            sleep(Duration::from_millis(100)).await;
            Ok(answer)
        }
        .boxed()
    }
}

/// Any answer but a higher vote renews the lease, from when the message was *sent*.
#[tokio::test(start_paused = true)]
async fn a_peer_that_follows_another_leader_lengthens_no_lease() {
    let term = 3;
    let script = [
        (AppendEntriesResponse::Success, true),
        (AppendEntriesResponse::PartialSuccess(to_log_id(LogPosition { index: 4, term })), true),
        (AppendEntriesResponse::Conflict, true),
        (AppendEntriesResponse::HigherVote(Vote::new(term + 1, 2)), false),
    ];
    for (answer, counts) in script {
        let duration = Duration::from_millis(450);
        let network = network(Arc::new(Answers(answer.clone())), duration);
        network.lease.set_leader(true);
        let _ = network.configs.set(Box::new(|| vec![BTreeSet::from([1, 2, 3])]));
        let network = Arc::new(network);
        let request = AppendEntriesRequest {
            vote: Vote::new_committed(term, 1),
            prev_log_id: None,
            entries: Vec::new(),
            leader_commit: None,
        };
        let sent = Instant::now();
        Peer::new(network.clone(), 2).append(request).await.unwrap();
        assert!(sent.elapsed() >= Duration::from_millis(100));
        assert_eq!(network.lease.until(), counts.then_some(sent + duration), "{answer:?}");
    }
}

/// The library drops a heartbeat that takes longer than one heartbeat. It is told that the peer is
/// there only by an answer of this term to something that was heard after this heartbeat was sent;
/// else by the heartbeat's own answer, whenever it comes.
#[tokio::test(start_paused = true)]
async fn a_late_heartbeat_is_answered_by_what_the_peer_accepted_since() {
    let (term, millis) = (3, Duration::from_millis);
    let script = [
        // When the peer accepted a message, of which term, and whether that answers a heartbeat
        // sent at 100.
        (None, false),
        (Some((99, term)), false),
        (Some((100, term)), true),
        (Some((150, term)), true),
        (Some((150, term - 1)), false),
    ];
    for (accepted, counts) in script {
        let start = Instant::now();
        let network =
            Network { heartbeat: millis(80), ..network(Arc::new(Answers(AppendEntriesResponse::Conflict)), millis(450)) };
        let network = Arc::new(network);
        let request = AppendEntriesRequest {
            vote: Vote::new_committed(term, 1),
            prev_log_id: None,
            entries: Vec::new(),
            leader_commit: None,
        };
        sleep(millis(100)).await;
        if let Some((at, term)) = accepted {
            network.accepted.lock().insert(2, (term, start + millis(at)));
        }
        let answer = Peer::new(network.clone(), 2).append(request).await.unwrap();
        let (taken, is_success) = (start.elapsed(), matches!(answer, Response::Append(AppendEntriesResponse::Success)));
        assert_eq!((taken, is_success), if counts { (millis(160), true) } else { (millis(200), false) }, "{accepted:?}");
    }
    // An answer that comes after all counts for the next one.
    let network = Network { heartbeat: millis(80), ..network(Arc::new(Answers(AppendEntriesResponse::Success)), millis(450)) };
    let _ = network.configs.set(Box::new(|| vec![BTreeSet::from([1, 2, 3])]));
    let network = Arc::new(network);
    let request = || AppendEntriesRequest {
        vote: Vote::new_committed(term, 1),
        prev_log_id: None,
        entries: Vec::new(),
        leader_commit: None,
    };
    let first = Instant::now();
    let peer = Peer::new(network, 2);
    let (slow, next) = (peer.append(request()), async {
        sleep(millis(50)).await;
        peer.append(request()).await.map(|_| first.elapsed())
    });
    let (_, next) = futures::join!(slow, next);
    assert_eq!(next.unwrap(), millis(110), "as soon as its own patience ends");
}

/// A peer whose answers are given one after the other.
struct Script(Mutex<VecDeque<Result<AppendEntriesResponse<Types>>>>);

impl Transport for Script {
    fn call(&self, _to: NodeId, _group: GroupId, _message: Message) -> BoxFuture<'static, Result<Bytes>> {
        let answer = self.0.lock().pop_front().expect("no more messages than answers");
        async move {
            sleep(Duration::from_millis(20)).await;
            Ok(message::encode_response(&Response::Append(answer?)))
        }
        .boxed()
    }
}

/// Five messages of one entry each are on their way to a peer at the same time. What the library
/// hears, until the stream ends: «4» is a match up to entry 4, «conflict» and «higher vote» are the
/// peer's words, «again» lets it try again.
#[tokio::test(start_paused = true)]
async fn nothing_follows_an_answer_that_is_not_a_full_success() {
    use AppendEntriesResponse::{Conflict, HigherVote, PartialSuccess, Success};
    let id = |index| to_log_id(LogPosition { index, term: 3 });
    let lost = || Err(Error::unavailable("lost"));
    let script = [
        (vec![Ok(Success), Ok(Success), Ok(Success), Ok(Success), Ok(Success)], "2 3 4 5 6"),
        (vec![Ok(Conflict), Ok(Success), Ok(Success), Ok(Success), Ok(Success)], "conflict"),
        // The peer did not get the second message yet, or never: that says nothing about its log.
        (vec![Ok(Success), Ok(Conflict), Ok(Success), Ok(Success), Ok(Success)], "2 again"),
        (vec![Ok(Success), lost(), Ok(Success), Ok(Success), Ok(Success)], "2 again"),
        (vec![Ok(Success), Ok(PartialSuccess(id(2))), Ok(Success), Ok(Success), Ok(Success)], "2 2"),
        (vec![Ok(Success), Ok(HigherVote(Vote::new(9, 2))), Ok(Success), Ok(Success), Ok(Success)], "2 higher vote"),
    ];
    for (answers, expected) in script {
        let network = Arc::new(network(Arc::new(Script(Mutex::new(answers.into()))), Duration::from_millis(450)));
        let requests = (2..=6).map(move |index| AppendEntriesRequest::<Types> {
            vote: Vote::new_committed(3, 1),
            prev_log_id: to_log_id(LogPosition { index: index - 1, term: 3 }),
            entries: vec![blank(index)],
            leader_commit: None,
        });
        let peer = Peer::new(network, 2);
        let heard: Vec<String> = peer
            .pipeline(futures::stream::iter(requests))
            .map(|answer| match answer {
                Ok(Ok(matching)) => matching.map_or(0, |id| id.index + 1).to_string(),
                Ok(Err(StreamAppendError::Conflict(_))) => "conflict".into(),
                Ok(Err(StreamAppendError::HigherVote(_))) => "higher vote".into(),
                Err(_) => "again".into(),
            })
            .collect()
            .await;
        assert_eq!(heard.join(" "), expected);
    }
}

fn blank(index: u64) -> crate::consensus::Entry {
    let position = LogPosition { index, term: 3 };
    let entry = crate::log::LogEntry { position, kind: crate::log::EntryKind::Blank, body: Bytes::new() };
    crate::consensus::from_log_entry(entry).unwrap()
}

/// Nothing is before the first entry that a log could disagree with: a peer that says so is asked
/// again, and no more is made of it.
#[tokio::test(start_paused = true)]
async fn a_conflict_about_the_very_first_entry_is_no_word_about_the_log() {
    let answers = VecDeque::from([Ok(AppendEntriesResponse::Conflict)]);
    let network = Arc::new(network(Arc::new(Script(Mutex::new(answers))), Duration::from_millis(450)));
    let request = AppendEntriesRequest::<Types> {
        vote: Vote::new_committed(3, 1),
        prev_log_id: None,
        entries: vec![blank(1)],
        leader_commit: None,
    };
    let peer = Peer::new(network, 2);
    let heard: Vec<_> = peer.pipeline(futures::stream::iter([request])).collect().await;
    assert!(matches!(heard[..], [Err(_)]), "{heard:?}");
}

/// Loses the first messages, and answers the others.
struct Lossy(AtomicU64);

impl Transport for Lossy {
    fn call(&self, _to: NodeId, _group: GroupId, _message: Message) -> BoxFuture<'static, Result<Bytes>> {
        let is_lost = self.0.load(Ordering::Relaxed) > 0;
        if is_lost {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
        let answer = if is_lost { Err(Error::unavailable("lost")) } else { Ok(message::encode_response(&Response::Chunk)) };
        async move { answer }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_part_of_a_snapshot_is_sent_five_times_and_then_given_up() {
    for (lost, arrives) in [(0, true), (4, true), (5, false)] {
        let transport = Arc::new(Lossy(AtomicU64::new(lost)));
        let peer = Peer::new(Arc::new(network(transport.clone(), Duration::from_millis(450))), 2);
        let part = Request::SnapshotChunk { id: 1, number: 0, data: Bytes::from("a") };
        assert_eq!(peer.send_part(&part).await.is_ok(), arrives, "{lost}");
        assert_eq!(transport.0.load(Ordering::Relaxed), 0, "{lost}");
    }
}

/// A state machine that comes back with less than the log was truncated for has lost what it
/// promised to keep.
#[tokio::test(start_paused = true)]
async fn a_state_that_lost_what_was_durable_does_not_start() {
    let mut cluster = Cluster::new(1, 44).await;
    cluster.leader().await;
    for i in 0..100 {
        cluster.propose(1, &format!("{i}")).await.unwrap();
    }
    let node = &cluster.nodes[&1];
    node.group.set_truncatable(node.recorder.flush());
    sleep(Duration::from_secs(1)).await;
    let (disk, recorder) = cluster.kill(1).await;
    let start = async |recorder: Arc<Recorder>| {
        let runtime = Arc::new(TestRuntime::new(disk.clone(), 1));
        let log = NodeLog::open(runtime.clone(), LogOptions::default()).await.unwrap();
        let wire = Arc::new(Wire { net: Arc::default(), from: NodeId(1) });
        let machine = Arc::new(RecorderMachine(recorder));
        Group::start(GroupOptions::new(G, NodeId(1)), log, machine, wire, runtime).await.map(drop)
    };
    let lost = start(Arc::default()).await.unwrap_err();
    assert!(lost.message().contains("the state lost data that was durable"), "{lost}");
    start(recorder).await.unwrap();
}
