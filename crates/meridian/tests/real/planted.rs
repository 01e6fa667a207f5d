//! Nodes of a secure cluster in this process: renewal, and rules that are left out on purpose, to
//! see that they are missed.

use meridian_base::runtime::Runtime;
use meridian_base::version::Versions;
use meridian_base::{Clock, Error, GroupId, NodeId};
use meridian_node::rpc::{Place, Rpc};
use meridian_node::security::{Keys, Protection};
use meridian_node::wire::{NodeRecord, Request, RotationStep, Standing};
use meridian_node::{Node, NodeConfig, Security, Way, rotate_at, stand_at, status_of};
use meridian_pki::directory::{Directory, NODE};
use meridian_pki::join::Token;
use meridian_pki::tls::Tls;
use meridian_pki::{PlantedBug, Rules};
use meridian_server::{MachineRuntime, local_addr};
use meridian_store::Backend;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(60);
const ANY_CLOCK: Duration = Duration::from_secs(3_600);

fn runtime(dir: &Path) -> Arc<dyn Runtime> {
    Arc::new(MachineRuntime::open(dir).expect("a free directory"))
}

async fn start(dir: &Path, region: &str, join: Option<(&Node, &str)>, security: Security) -> Result<Node, Error> {
    let place = Place { region: region.into(), zone: "a".into() };
    let backend = Backend::Fjall { path: dir.join("store") };
    let mut config = NodeConfig::new(place, "127.0.0.1:0", "127.0.0.1:1", backend);
    config.log_options.segment_bytes = 4 << 20;
    let runtime = runtime(dir);
    config.local = Some(local_addr(dir));
    let mut security = security;
    if let Some((member, token)) = join {
        config.join = vec![member.addr()];
        security.token = Some(Token::parse(token).expect("a token"));
    }
    config.security = Some(security);
    Node::start(runtime, config).await
}

fn security(dir: &Path, rules: Rules) -> Security {
    Security { rules, ..Security::new(dir.join("certs")) }
}

/// Whether one token makes two nodes.
async fn makes_two_nodes(rules: Rules) -> bool {
    let dir = tempfile::tempdir().expect("a directory");
    let dirs = ["n1", "n2", "n3"].map(|name| dir.path().join(name));
    dirs.iter().for_each(|dir| std::fs::create_dir(dir).expect("a directory"));
    let first = start(&dirs[0], "r0", None, security(&dirs[0], rules)).await.expect("a founder");
    let token = first.create_token(600).await.expect("a token");
    let second = start(&dirs[1], "r1", Some((&first, &token)), security(&dirs[1], rules)).await.expect("it joins");
    let third = start(&dirs[2], "r2", Some((&first, &token)), security(&dirs[2], rules)).await;
    let joined = match &third {
        Ok(_) => true,
        Err(e) => {
            assert_eq!(e.sqlstate(), "28000", "{e}");
            false
        }
    };
    for node in [Some(first), Some(second), third.ok()].into_iter().flatten() {
        node.shutdown().await;
    }
    joined
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_makes_one_node_and_two_where_that_rule_is_left_out() {
    assert!(!makes_two_nodes(Rules::ALL).await);
    assert!(makes_two_nodes(Rules::without(PlantedBug::TokenUsedTwice)).await);
}

/// Takes a node out of its cluster.
async fn decommission(way: &Way, node: NodeId) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = status_of(way).await.expect("it answers");
        let found = status.iter().find(|n| n.node.id == node).expect("it is known");
        let next = match found.node.standing {
            Standing::Decommissioned => return,
            Standing::Decommissioning if found.holds.iter().all(|g| *g == GroupId::CATALOG) => Standing::Decommissioned,
            _ => Standing::Decommissioning,
        };
        let _ = stand_at(way, node, next).await;
        assert!(Instant::now() < deadline, "it is not decommissioned");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Whether the cluster still answers a decommissioned node's certificate: on a connection that was
/// open before, and on a new one.
async fn is_heard_afterwards(rules: Rules) -> (bool, bool) {
    let dir = tempfile::tempdir().expect("a directory");
    let dirs = ["n1", "n2"].map(|name| dir.path().join(name));
    dirs.iter().for_each(|dir| std::fs::create_dir(dir).expect("a directory"));
    let first = start(&dirs[0], "r0", None, security(&dirs[0], rules)).await.expect("a founder");
    let token = first.create_token(600).await.expect("a token");
    let second = start(&dirs[1], "r1", Some((&first, &token)), security(&dirs[1], rules)).await.expect("it joins");
    let scratch = tempfile::tempdir().expect("a directory");
    let runtime = runtime(scratch.path());
    let cluster = first.tls().expect("it is secure").cluster();
    let thief = || {
        let certs = Directory::at(dirs[1].join("certs"));
        let keys = Keys::new(Rules::ALL);
        let (bundle, pair) = (certs.bundle().expect("readable"), certs.pair(NODE).expect("readable"));
        keys.set(Arc::new(Tls::new(keys.context(cluster.0, &runtime), bundle, &pair).expect("good")));
        let clock = Arc::new(Clock::new(ANY_CLOCK));
        let rpc = Rpc::protected(runtime.clone(), clock, Versions::OWN, None, None, Protection::Node(keys));
        rpc.identify(cluster.0, NodeId(2), Place { region: "r1".into(), zone: "a".into() }, "");
        let of_first = NodeRecord {
            id: NodeId(1),
            addr: first.addr(),
            sql_addr: String::new(),
            region: "r0".into(),
            zone: "a".into(),
            standing: Standing::Active,
        };
        rpc.learn(&of_first);
        rpc
    };
    let heard = async |rpc: &Arc<Rpc>| rpc.call(NodeId(1), Request::Clock, Duration::from_secs(5)).await.is_ok();
    let open = thief();
    assert!(heard(&open).await, "it is a member");
    let way = Way::plain(runtime.clone(), &local_addr(&dirs[0]));
    decommission(&way, NodeId(2)).await;
    // The catalog's row is applied by then where it was written.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let after = (heard(&open).await, heard(&thief()).await);
    for node in [first, second] {
        node.shutdown().await;
    }
    after
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decommissioned_nodes_certificate_is_refused_and_trusted_where_that_rule_is_left_out() {
    assert_eq!(is_heard_afterwards(Rules::ALL).await, (false, false));
    assert_eq!(is_heard_afterwards(Rules::without(PlantedBug::IgnoresRevocation)).await, (true, true));
}

/// Whether another authority signs before a node that is down trusts it.
async fn signs_early(rules: Rules) -> bool {
    let dir = tempfile::tempdir().expect("a directory");
    let dirs = ["n1", "n2"].map(|name| dir.path().join(name));
    dirs.iter().for_each(|dir| std::fs::create_dir(dir).expect("a directory"));
    let first = start(&dirs[0], "r0", None, security(&dirs[0], rules)).await.expect("a founder");
    let token = first.create_token(600).await.expect("a token");
    let second = start(&dirs[1], "r1", Some((&first, &token)), security(&dirs[1], rules)).await.expect("it joins");
    second.shutdown().await;
    let scratch = tempfile::tempdir().expect("a directory");
    let way = Way::plain(runtime(scratch.path()), &local_addr(&dirs[0]));
    let begun = rotate_at(&way, RotationStep::Begin, false).await.expect("begun");
    assert!(begun.behind().contains(&NodeId(2)), "{begun:?}");
    let signs = match rotate_at(&way, RotationStep::Sign, false).await {
        Ok(_) => true,
        Err(e) => {
            assert_eq!(e.sqlstate(), "55006", "{e}");
            false
        }
    };
    first.shutdown().await;
    signs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_waits_for_every_node_and_does_not_where_that_rule_is_left_out() {
    assert!(!signs_early(Rules::ALL).await);
    assert!(signs_early(Rules::without(PlantedBug::SignsEarly)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_renew_themselves_and_are_reloaded() {
    let dir = tempfile::tempdir().expect("a directory");
    let dirs = ["n1", "n2"].map(|name| dir.path().join(name));
    dirs.iter().for_each(|dir| std::fs::create_dir(dir).expect("a directory"));
    // They begin an hour before they are made: at two thirds of their life they are at once.
    let brief = |dir: &Path| Security { life_secs: 120, ..security(dir, Rules::ALL) };
    let first = start(&dirs[0], "r0", None, brief(&dirs[0])).await.expect("a founder");
    let token = first.create_token(600).await.expect("a token");
    let second = start(&dirs[1], "r1", Some((&first, &token)), brief(&dirs[1])).await.expect("it joins");
    let serial = |node: &Node| node.tls().expect("it is secure").current().certificate.serial.clone();
    let before = [serial(&first), serial(&second)];
    let deadline = Instant::now() + PATIENCE;
    while serial(&first) == before[0] || serial(&second) == before[1] {
        assert!(Instant::now() < deadline, "they are not renewed");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    // What is in the files is what is shown, and they can be read again.
    for (node, dir) in [(&first, &dirs[0]), (&second, &dirs[1])] {
        let is_kept = || Directory::at(dir.join("certs")).pair(NODE).expect("readable").certificate().serial == serial(node);
        while !is_kept() {
            assert!(Instant::now() < deadline, "it is not kept");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        node.reload_certificates().expect("they are good");
    }
    // A file that is damaged changes nothing.
    let shown = serial(&second);
    std::fs::write(dirs[1].join("certs/node.crt"), "garbage").expect("a file");
    assert!(second.reload_certificates().is_err());
    assert_eq!(serial(&second), shown);
    for node in [first, second] {
        node.shutdown().await;
    }
}
