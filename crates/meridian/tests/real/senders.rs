//! A member has a good certificate. It sends every kind of message in another node's name, and
//! absurd claims in its own name.
//!
//! The messages are those of the fixtures of their format, so a new kind is among them; what it
//! says of its sender is decided in [`forged`], which does not compile without that.

use crate::cluster::{command, id, sql, until};
use crate::process::Node;
use crate::secure::{joiner, secure_specs, shown, text, token};
use crate::strangers::{World, said};
use meridian_base::record::SchemaGrant;
use meridian_base::version::Versions;
use meridian_base::{BallotMessage, Clock, GroupId, NodeId, Peer, SchemaVersion, Timestamp, TxnId, Vote, envelope};
use meridian_node::room::Left;
use meridian_node::rpc::{Place, Rpc};
use meridian_node::security::{Keys, Protection};
use meridian_node::wire::{
    Ask, ClosedPromise, IssueCertificate, KeepRotation, Newcomer, Passed, Ping, Redemption, Request, Silence,
};
use meridian_pki::directory::{Directory, NODE};
use meridian_pki::join::TokenId;
use meridian_pki::rotation::{Endorsed, Phase, StoredRotation};
use meridian_pki::{Authority, PrivateKey};
use std::sync::Arc;
use std::time::Duration;

/// Whose name is used, and who uses it.
const VICTIM: NodeId = NodeId(1);
const MEMBER: NodeId = NodeId(2);
/// A group of which the member holds no replica.
const ELSEWHERE: GroupId = GroupId(77_777);

/// What a request says of its sender.
enum Says {
    /// The request names its sender. These name another node.
    Name(Vec<Request>),
    /// An operator sends it.
    Operator(Vec<Request>),
    /// Nothing: the sender is whoever the connection's certificate names, or it is of no matter who
    /// asks. Sessions' owners are completed with it.
    Nothing,
}

fn forged(request: Request) -> Says {
    use Says::{Name, Nothing, Operator};
    let id = TxnId { hlc: Timestamp(1 << 50), gateway: VICTIM };
    match request {
        Request::Raft { .. } => {
            // An append without entries of a leader that is not the sender: version, form, term,
            // leader, that it was elected, two empty positions, no entry.
            let head = [&[1, 0][..], &1_000_u64.to_le_bytes(), &VICTIM.0.to_le_bytes(), &[1]].concat();
            let message = [head, vec![0; 36]].concat().into();
            Name(vec![Request::Raft { group: GroupId::CATALOG, message, is_ordered: false }])
        }
        Request::Commit { group, owner, mut request } => {
            request.id.gateway = VICTIM;
            Name(vec![Request::Commit { group, owner, request }])
        }
        Request::Bring { number, reads, writes, .. } => Name(vec![Request::Bring { id, number, reads, writes }]),
        Request::CommitBrought { group, owner, mut request, pieces } => {
            request.id.gateway = VICTIM;
            Name(vec![Request::CommitBrought { group, owner, request, pieces }])
        }
        Request::ChangeCatalog { base, change, with, is_again, .. } => {
            Name(vec![Request::ChangeCatalog { id, base, change, with, is_again }])
        }
        Request::Ballot { .. } => {
            let to_gateway = |message| Request::Ballot { group: None, message };
            Name(vec![
                to_gateway(BallotMessage::VoteRequest { id, from: Peer::Gateway(VICTIM) }),
                to_gateway(BallotMessage::VoteRequest { id, from: Peer::Group(ELSEWHERE) }),
                to_gateway(BallotMessage::Vote { id, from: ELSEWHERE, vote: Vote::Yes(Timestamp(5)) }),
                to_gateway(BallotMessage::OutcomeAck { id, from: ELSEWHERE, reply: false }),
            ])
        }
        Request::Reserved { at, found, .. } => Name(vec![Request::Reserved { id, from: ELSEWHERE, at, found }]),
        Request::Rounds { group, mut messages } => {
            messages.from = ELSEWHERE;
            Name(vec![Request::Rounds { group, messages }])
        }
        Request::Grant { group, grant } => Name(vec![Request::Grant { group, grant }]),
        Request::Join { token, addr, sql_addr, region, zone, versions, .. } => {
            let join = |node: u32, is_passed_on: bool| Request::Join {
                node: NodeId(node),
                token,
                addr: addr.clone(),
                sql_addr: sql_addr.clone(),
                region: region.clone(),
                zone: zone.clone(),
                is_passed_on,
                versions,
            };
            Name(vec![join(1, true), join(1, false), join(3, true), join(0, true)])
        }
        Request::Relayed { .. } => {
            let request = Passed::new(&Request::Status).expect("it encodes");
            Name(vec![Request::Relayed { from: VICTIM, request, seal: None }])
        }
        Request::IssueCertificate(certify) => {
            Name(vec![Request::IssueCertificate(IssueCertificate { token: Some(TokenId([7; 8])), hosts: Vec::new(), ..certify })])
        }
        // Who may name the next authority is the present one, and nobody else.
        Request::KeepRotation(keep) => Name(vec![Request::KeepRotation(keep)]),
        Request::Stand { node, standing, .. } => Operator(vec![Request::Stand { node, standing, is_passed_on: false }]),
        Request::Muster { .. } => {
            let from = Newcomer { addr: "127.0.0.1:1".into(), token: 7 };
            Operator(vec![Request::Muster { from, ask: Ask::Who }])
        }
        Request::AdvanceClock { .. } => Operator(vec![Request::AdvanceClock { by: Duration::from_secs(5) }]),
        Request::CreateToken { .. } => Operator(vec![Request::CreateToken { life_secs: 60 }]),
        Request::Rotate { .. } | Request::Init => Operator(vec![request]),
        // A promise counts if the sender leads the group (`replica::closed`).
        Request::Closed(_)
        | Request::Read { .. }
        | Request::ReadReplica { .. }
        | Request::ReadPast { .. }
        | Request::ReadGlobal { .. }
        | Request::Holds { .. }
        | Request::Settled(_)
        | Request::Check { .. }
        | Request::Release { .. }
        | Request::ReleaseKeys { .. }
        | Request::AheadOf { .. }
        | Request::WaitsOf(_)
        | Request::ForgetDrawn { .. }
        | Request::Share { .. }
        | Request::Lead { .. }
        | Request::Build { .. }
        | Request::BuildState { .. }
        | Request::Ping(_)
        | Request::AwaitVersion { .. }
        | Request::Status
        | Request::Transactions
        | Request::Groups
        | Request::IsMember { .. }
        | Request::Clock
        | Request::Versions
        | Request::Relay { .. }
        | Request::Knows(_)
        | Request::EndInDoubt { .. }
        | Request::KeepToken(_)
        | Request::FindToken(_)
        | Request::Redeem(_)
        | Request::Authorities => Nothing,
    }
}

/// One request of each kind.
fn samples() -> Vec<Request> {
    let fixtures = include_str!("../../../node/tests/fixtures/messages.txt");
    let mut samples: Vec<Vec<u8>> = Vec::new();
    let mut is_request = false;
    for line in fixtures.lines() {
        match line.strip_prefix("  ") {
            Some(digits) if is_request && !digits.starts_with("= ") => {
                let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
                samples.last_mut().expect("an entry").extend((0..digits.len()).step_by(2).map(byte));
            }
            Some(_) => {}
            None => {
                is_request = line.starts_with("request ");
                samples.extend(is_request.then(Vec::new));
            }
        }
    }
    samples.iter().map(|bytes| envelope::decode(bytes).expect("a fixture is read")).collect()
}

/// A cluster of two, of which the second one is a test's by now.
async fn cluster(dir: &std::path::Path) -> (Node, World, Arc<Rpc>) {
    let specs = secure_specs(dir, 2);
    let first = specs[0].start().await;
    let second = joiner(&specs[1], &first.addr, &token(&specs[0], "token", 600)).start().await;
    assert_eq!(id(&second), "n2");
    second.kill();
    let world = World::of(&specs[0].dir.join("certs"));
    let pair = Directory::at(specs[1].dir.join("certs")).pair(NODE).expect("its own");
    let rpc = world.rpc(&pair, world.bundle.clone(), world.cluster, None, MEMBER.0);
    let answer = said(&rpc, &first.addr, Request::Clock).await;
    assert!(answer.starts_with("answered"), "as itself: {answer}");
    // The node has heard by a ping what the second one holds: nothing of that group.
    let known = said(&rpc, &first.addr, Request::Status).await;
    assert!(known.starts_with("answered"), "{known}");
    (first, world, rpc)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_message_in_anothers_name_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let (first, _world, rpc) = cluster(dir.path()).await;
    let (mut forgeries, mut kinds) = (0, 0);
    for sample in samples() {
        kinds += 1;
        let (Says::Name(requests) | Says::Operator(requests)) = forged(sample) else { continue };
        for request in requests {
            forgeries += 1;
            let (shown, answer) = (format!("{request:?}"), said(&rpc, &first.addr, request).await);
            assert!(!answer.starts_with("answered"), "{shown} was {answer}");
        }
    }
    assert!(kinds >= 47 && forgeries >= 23, "{kinds} kinds, {forgeries} forgeries");
    assert_eq!(sql(&first, "SELECT 1").await, ["1"]);
    let status = text(&command(&["node", "status", "--data-dir", shown(&dir.path().join("n0"))]));
    assert!(status.contains("n2") && !status.contains("n3"), "{status}");
}

async fn clock_that_is_far_ahead_moves_no_other(first: &Node, world: &World) {
    let (keys, ahead) = (Keys::new(Default::default()), Arc::new(Clock::new(Duration::from_secs(365 * 86_400))));
    let pair = world.pair(&world.authority, world.cluster, MEMBER.0, world.now(), 86_400);
    let tls = meridian_pki::tls::Tls::new(keys.context(world.cluster.0, &world.runtime), world.bundle.clone(), &pair);
    keys.set(Arc::new(tls.expect("it verifies its own")));
    let micros = world.runtime.physical_micros();
    ahead.observe(Timestamp::from_micros(micros + 86_400_000_000), micros).expect("its own");
    let hasty = Rpc::protected(world.runtime.clone(), ahead, Versions::OWN, None, None, Protection::Node(keys));
    hasty.identify(world.cluster.0, MEMBER, Place { region: "r0".into(), zone: "a".into() }, "");
    let answer = said(&hasty, &first.addr, Request::Status).await;
    assert!(answer.contains("ahead of this node's"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn absurd_claims_of_a_member_stop_nobody() {
    let dir = tempfile::tempdir().expect("a directory");
    let (first, world, rpc) = cluster(dir.path()).await;
    sql(&first, "CREATE TABLE IF NOT EXISTS t (k INT8 PRIMARY KEY)").await;
    let key = || PrivateKey::generate().public().expect("a key");
    let many = 100_000;
    let version = SchemaVersion(u64::MAX);
    let record = |region: &str, addr: &str| meridian_node::wire::NodeRecord {
        id: NodeId(0),
        addr: addr.into(),
        sql_addr: "127.0.0.1:2".into(),
        region: region.into(),
        zone: "z".into(),
        standing: Default::default(),
    };
    let join = |region: &str, addr: &str| Request::Join {
        node: MEMBER,
        token: 0,
        addr: addr.into(),
        sql_addr: "127.0.0.1:2".into(),
        region: region.into(),
        zone: "z".into(),
        is_passed_on: true,
        versions: Versions::OWN,
    };
    let redeem = |record| {
        let (token, versions) = (TokenId([7; 8]), Versions::OWN);
        Request::Redeem(Box::new(Redemption { token, key: key(), record, versions }))
    };
    let far = meridian_pki::Moment(u64::MAX / 2);
    let token = meridian_pki::join::Token::create(world.authority.certificate().fingerprint(), far);
    let own = Authority::create(world.cluster, world.now()).expect("made");
    let endorsed = Endorsed::new(&own, own.certificate()).expect("signed");
    let phase = Phase::Introduced { old: endorsed.old(), new: endorsed.new_authority() };
    let next = StoredRotation { phase, endorsed, signer: MEMBER, is_forced: false };

    // What is refused.
    for request in [
        Request::AwaitVersion { version },
        Request::Grant {
            group: GroupId::CATALOG,
            grant: SchemaGrant { version, bound: Timestamp::MAX, seq: u64::MAX, ..SchemaGrant::default() },
        },
        // Nothing is wrong with it, but that the member does not lead the catalog: a number ahead
        // of the catalog's would outlast every grant of the catalog's own.
        Request::Grant { group: GroupId::CATALOG, grant: SchemaGrant { seq: 1 << 10, ..SchemaGrant::default() } },
        join("\n", "127.0.0.1:1"),
        join(&"r".repeat(10_000), "127.0.0.1:1"),
        join("r9", "nowhere"),
        redeem(record("", "127.0.0.1:1")),
        redeem(record("r9", &"x".repeat(10_000))),
        Request::IssueCertificate(IssueCertificate {
            key: key(),
            hosts: (0..many).map(|n| format!("h{n}.example")).collect(),
            token: None,
        }),
        Request::IssueCertificate(IssueCertificate { key: key(), hosts: vec!["*".into(), "a b".into()], token: None }),
        Request::KeepToken(meridian_pki::join::StoredToken::of(&token)),
        Request::KeepRotation(Box::new(KeepRotation { expected: None, next })),
        Request::Stand { node: NodeId(u32::MAX), standing: Default::default(), is_passed_on: true },
    ] {
        let (shown, answer) = (format!("{request:.120?}"), said(&rpc, &first.addr, request).await);
        assert!(!answer.starts_with("answered"), "{shown} was {answer:.200}");
    }
    // What nothing comes of.
    let groups = || (0..many).map(GroupId);
    for request in [
        Request::Ping(Ping {
            physical_micros: u64::MAX,
            incarnation: 7,
            leads: groups().map(|group| (group, u64::MAX)).collect(),
            holds: groups().collect(),
            certified: Some(version),
            protected: Timestamp::MIN,
            hears: (0..many).map(NodeId).collect(),
            left: Left::Nothing,
            full: groups().map(|group| (group, Left::Nothing)).collect(),
            lost: groups().map(|group| (group, Silence { micros: u64::MAX, silent: u32::MAX, of: 0 })).collect(),
            is_host: true,
        }),
        Request::Closed(groups().map(|group| ClosedPromise { group, closed: Timestamp(u64::MAX - 1), index: 0 }).collect()),
        Request::Settled(groups().collect()),
        Request::Release {
            group: GroupId::CATALOG,
            owner: meridian_region::Owner {
                gateway: VICTIM,
                session: Default::default(),
                began: Timestamp::MAX,
                since: Timestamp::MIN,
            },
        },
        redeem(record("r9", "127.0.0.1:1")),
    ] {
        // It may be refused as well.
        let _ = said(&rpc, &first.addr, request).await;
    }
    clock_that_is_far_ahead_moves_no_other(&first, &world).await;

    let begun = tokio::time::Instant::now();
    for n in 0..20 {
        sql(&first, &format!("INSERT INTO t VALUES ({n}) ON CONFLICT (k) DO NOTHING")).await;
    }
    sql(&first, "CREATE TABLE IF NOT EXISTS u (k INT8 PRIMARY KEY)").await;
    assert_eq!(sql(&first, "SELECT count(*) FROM t").await, ["20"]);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    let state = || text(&command(&["node", "status", "--data-dir", shown(&dir.path().join("n0"))]));
    until("the member to be silent and known", async || state().contains("n2")).await;
    assert!(!state().contains("n3"), "{}", state());
}
