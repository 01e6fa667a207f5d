//! The port for nodes of a secure cluster, and who connects there: with bad certificates, with
//! garbage, and with a good certificate in somebody else's name.

use crate::cluster::{id, sql, until};
use crate::secure::{joiner, secure_specs, token};
use meridian_base::runtime::Runtime;
use meridian_base::version::Versions;
use meridian_base::{Clock, NodeId};
use meridian_node::rpc::{Place, Rpc};
use meridian_node::security::{Keys, Protection};
use meridian_node::wire::Request;
use meridian_pki::authority::{Authority, Hosts};
use meridian_pki::directory::{Directory, Pair};
use meridian_pki::tls::Tls;
use meridian_pki::verify::Bundle;
use meridian_pki::{ClusterId, Moment, PrivateKey};
use meridian_server::MachineRuntime;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const CALL: Duration = Duration::from_secs(5);
const ANY_CLOCK: Duration = Duration::from_secs(3_600);
const DAY: u64 = 86_400;

/// A cluster, by the files of its founder.
pub struct World {
    pub runtime: Arc<dyn Runtime>,
    pub cluster: ClusterId,
    pub authority: Authority,
    pub bundle: Bundle,
    _scratch: tempfile::TempDir,
}

impl World {
    pub fn of(certs: &Path) -> World {
        let scratch = tempfile::tempdir().expect("a directory");
        let runtime: Arc<dyn Runtime> = Arc::new(MachineRuntime::open(scratch.path()).expect("a free directory"));
        let directory = Directory::at(certs);
        let (authority, bundle) = (directory.authority().expect("the founder's"), directory.bundle().expect("readable"));
        let cluster = meridian_pki::identity::cluster_of(authority.certificate()).expect("it names the cluster");
        World { runtime, cluster, authority, bundle, _scratch: scratch }
    }
    pub fn now(&self) -> Moment {
        Moment::from_micros(self.runtime.physical_micros())
    }
    pub fn pair(&self, authority: &Authority, cluster: ClusterId, node: u32, from: Moment, life: u64) -> Pair {
        let key = PrivateKey::generate();
        let hosts = Hosts::default();
        let public = key.public().expect("a key");
        let made = authority.sign_node(cluster, NodeId(node), &hosts, &public, from, life).expect("it signs");
        Pair::new(vec![made], key).expect("they belong together")
    }
    /// A process with a certificate, whose clock is at `at` when it verifies its own, and that says
    /// of itself that it is a node.
    pub fn rpc(&self, pair: &Pair, bundle: Bundle, cluster: ClusterId, at: Option<Moment>, says: u32) -> Arc<Rpc> {
        let keys = Keys::new(Default::default());
        let mut context = keys.context(cluster.0, &self.runtime);
        if let Some(at) = at {
            context.clock = Arc::new(move || at);
        }
        keys.set(Arc::new(Tls::new(context, bundle, pair).expect("it verifies its own")));
        let clock = Arc::new(Clock::new(ANY_CLOCK));
        let rpc = Rpc::protected(self.runtime.clone(), clock, Versions::OWN, None, None, Protection::Node(keys));
        rpc.identify(cluster.0, NodeId(says), Place { region: "r0".into(), zone: "a".into() }, "");
        rpc
    }
}

/// What becomes of a question.
pub async fn said(rpc: &Arc<Rpc>, addr: &str, request: Request) -> String {
    match rpc.call_addr(addr, request, CALL).await {
        Ok(answer) => format!("answered: {answer:?}"),
        Err(e) => e.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_that_are_not_good_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = secure_specs(dir.path(), 1);
    let node = specs[0].start().await;
    let world = World::of(&specs[0].dir.join("certs"));
    let now = world.now();
    let other = Authority::create(world.cluster, now).expect("made");
    let both = |authority: &Authority| {
        Bundle::new(vec![world.bundle.authorities()[0].clone(), authority.certificate().clone()]).expect("two")
    };

    // One that is good, to see that the others are refused for what they are.
    let good = world.pair(&world.authority, world.cluster, 1, now, DAY);
    let answer = said(&world.rpc(&good, world.bundle.clone(), world.cluster, None, 1), &node.addr, Request::Clock).await;
    assert!(answer.starts_with("answered"), "{answer}");

    let own = world.pair(&other, world.cluster, 1, now, DAY);
    let expired = world.pair(&world.authority, world.cluster, 1, now.minus(3_000), 1_000);
    let strange = ClusterId(world.cluster.0 ^ 1);
    let of_another = world.pair(&world.authority, strange, 1, now, DAY);
    for (what, rpc) in [
        ("of its own authority", world.rpc(&own, both(&other), world.cluster, None, 1)),
        ("expired", world.rpc(&expired, world.bundle.clone(), world.cluster, Some(now.minus(2_500)), 1)),
        ("another cluster's", world.rpc(&of_another, world.bundle.clone(), strange, None, 1)),
    ] {
        let answer = said(&rpc, &node.addr, Request::Clock).await;
        assert!(!answer.starts_with("answered"), "{what}: {answer}");
    }
    // A good certificate, and another node's name in the greeting.
    let answer = said(&world.rpc(&good, world.bundle.clone(), world.cluster, None, 7), &node.addr, Request::Clock).await;
    assert!(answer.contains("says that it is node"), "{answer}");
    // Nobody's.
    let plain = Rpc::new(world.runtime.clone(), Arc::new(Clock::new(ANY_CLOCK)), Versions::OWN, None, None);
    let answer = said(&plain, &node.addr, Request::Status).await;
    assert!(!answer.starts_with("answered"), "{answer}");
    until("a word to the operator", async || node.log().contains("refused a node at")).await;
    assert_eq!(sql(&node, "SELECT 1").await, ["1"]);
}

/// Connections that say nothing, or garbage, take no place from others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::disallowed_methods, reason = "a test opens connections")]
async fn half_open_connections_and_garbage_keep_nobody_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = secure_specs(dir.path(), 2);
    let first = specs[0].start().await;
    let mut silent = Vec::new();
    for at in 0..600_u32 {
        let mut stream = tokio::net::TcpStream::connect(&first.addr).await.expect("it listens");
        if at % 3 == 0 {
            let garbage: Vec<u8> = (0..200).map(|byte: u32| (byte * 31 + at) as u8).collect();
            let _ = stream.write_all(&garbage).await;
        }
        silent.push(stream);
    }
    let begun = tokio::time::Instant::now();
    let second = joiner(&specs[1], &first.addr, &token(&specs[0], "token", 600)).start().await;
    assert_eq!(id(&second), "n2");
    println!("joined beside {} silent connections in {:?}", silent.len(), begun.elapsed());
    // Their time is over.
    for mut stream in silent {
        let mut bytes = [0; 64];
        let ended = async { while stream.read(&mut bytes).await.is_ok_and(|n| n > 0) {} };
        tokio::time::timeout(Duration::from_secs(20), ended).await.expect("the node ends it");
    }
}

/// Garbage at the port for clients is a line for the operator, and not a line each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::disallowed_methods, reason = "a test opens connections")]
async fn garbage_at_the_port_for_clients_is_told_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let specs = secure_specs(dir.path(), 1);
    let node = specs[0].start().await;
    for first in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x16, 3, 1, 0, 5, 1, 2, 3, 4, 5], &[0, 0, 0, 9, 0, 9, 0, 0, 0]] {
        for _ in 0..100 {
            let mut stream = tokio::net::TcpStream::connect(&specs[0].sql_listen).await.expect("it listens");
            let _ = stream.write_all(first).await;
            let mut bytes = [0; 512];
            let ended = async { while stream.read(&mut bytes).await.is_ok_and(|n| n > 0) {} };
            tokio::time::timeout(Duration::from_secs(20), ended).await.expect("the node ends it");
        }
    }
    let lines = || node.log().lines().filter(|line| line.contains("event=\"client_refused\"")).count();
    until("a word to the operator", async || lines() > 0).await;
    // One in ten seconds, and the connections took a part of a minute at most.
    assert!(lines() <= 6, "{}", node.log());
    assert_eq!(sql(&node, "SELECT 1").await, ["1"]);
}
