//! Each planted bug is noticed, and nothing is noticed without one.

use crate::joining::{asked, host, token, told};
use crate::rotating::explore;
use crate::world::*;
use meridian_base::{NodeId, envelope};
use meridian_pki::join::{Ask, Binding, Joiner, JoinerAction, REFUSED, StoredToken};
use meridian_pki::scram::Verifier;
use meridian_pki::secret::Secret;
use meridian_pki::tls::{Context, Tls, name_of};
use meridian_pki::{ClusterId, PlantedBug, PrivateKey, Rules};

/// What is wrong, if a rule is broken that this bug is about.
async fn probe(bug: PlantedBug, rules: Rules) -> Option<String> {
    let cluster = Cluster::with(ClusterId::random(), rules);
    let wrong = |is_wrong: bool, what: &str| is_wrong.then(|| what.to_string());
    let admits = |from: &Tls, to: &Tls, called| {
        let (from, to) = (from.current(), to.current());
        async move { talk(shake(from.node_client.clone(), name_of(NodeId(called)), to.node_server.clone()).await).await.is_ok() }
    };
    match bug {
        PlantedBug::IgnoresCluster => {
            let other = ClusterId::random();
            let context = Context { cluster: other, ..cluster.context() };
            let theirs = Tls::new(context, cluster.bundle(), &node_pair(&cluster.authority, other, 1, NOW)).expect("TLS");
            wrong(admits(&theirs, &cluster.tls(2), 2).await, "another cluster's node is admitted")
        }
        PlantedBug::IgnoresWhoAnswers => wrong(admits(&cluster.tls(1), &cluster.tls(2), 3).await, "node 2 answers for node 3"),
        PlantedBug::IgnoresExpiry => {
            let (a, b) = (cluster.tls(1), cluster.tls(2));
            cluster.hand.set(NOW.plus(2 * meridian_pki::authority::NODE_LIFE_SECS));
            wrong(admits(&a, &b, 2).await, "a certificate holds for ever")
        }
        PlantedBug::IgnoresRevocation => {
            cluster.revoke(1);
            let (a, b) = (cluster.tls(1), cluster.tls(2));
            wrong(admits(&a, &b, 2).await || admits(&b, &a, 1).await, "a decommissioned node is admitted")
        }
        PlantedBug::NodeIsRole => {
            let (tls, pair) = (cluster.tls(1), cluster.pair(2));
            let mode = meridian_pki::tls::SslMode::Require;
            let config = meridian_pki::tls::client_config(mode, None, Some(&pair), cluster.hand.clock()).expect("TLS");
            let shaken = shake(config.into(), name_of(NodeId(0)), tls.current().sql_server.clone()).await;
            wrong(talk(shaken).await.is_ok(), "a node logs in as a role")
        }
        PlantedBug::JoinerTrustsAnybody => {
            let other = Cluster::new();
            let mut joiner = Joiner::new(token(&cluster), PrivateKey::generate(), Vec::new(), Vec::new(), rules);
            let shown = [other.pair(1).certificate().der().clone(), other.authority.certificate().der().clone()];
            let action = joiner.connected(&shown, &Binding([1; 32]), NOW);
            wrong(matches!(action, JoinerAction::Send(_)), "a joiner sends a proof to a stranger")
        }
        PlantedBug::TokenUsedTwice => {
            let token = token(&cluster);
            let mut stored = Some(StoredToken::of(&token));
            let refusals = [2, 3].map(|node| {
                let bytes = asked(&cluster, &token, &PrivateKey::generate(), Binding([1; 32]));
                host(&cluster, &mut stored, node, Binding([1; 32]), &bytes).1
            });
            assert_eq!(refusals[0], None);
            wrong(refusals[1].is_none(), "a token makes two nodes")
        }
        PlantedBug::TokenIgnoresExpiry => {
            let token = token(&cluster);
            let bytes = asked(&cluster, &token, &PrivateKey::generate(), Binding([1; 32]));
            cluster.hand.set(token.expires.plus(1));
            let why = host(&cluster, &mut Some(StoredToken::of(&token)), 2, Binding([1; 32]), &bytes).1;
            wrong(why.is_none(), "a token is good for ever")
        }
        PlantedBug::ProofUnbound => {
            // Whoever was on the other connection signs for itself, with its own key.
            let token = token(&cluster);
            let key = PrivateKey::generate();
            let mut seen: Ask = envelope::decode(&asked(&cluster, &token, &key, Binding([1; 32]))).expect("read");
            let here: Ask = envelope::decode(&asked(&cluster, &token, &key, Binding([2; 32]))).expect("read");
            seen.possession = here.possession;
            let bytes = envelope::encode(&seen);
            let why = host(&cluster, &mut Some(StoredToken::of(&token)), 2, Binding([2; 32]), &bytes).1;
            wrong(why.is_none(), "a proof is good on another connection")
        }
        PlantedBug::KeyUnbound => {
            let token = token(&cluster);
            let mut seen: Ask =
                envelope::decode(&asked(&cluster, &token, &PrivateKey::generate(), Binding([1; 32]))).expect("read");
            let thief: Ask = envelope::decode(&asked(&cluster, &token, &PrivateKey::generate(), Binding([1; 32]))).expect("read");
            (seen.key, seen.possession) = (thief.key, thief.possession);
            let bytes = envelope::encode(&seen);
            let why = host(&cluster, &mut Some(StoredToken::of(&token)), 2, Binding([1; 32]), &bytes).1;
            wrong(why.is_none(), "whoever passes a request on puts its own key in")
        }
        PlantedBug::RefusalTellsWhy => wrong(told(rules).iter().any(|said| said != REFUSED), "a joiner learns why"),
        PlantedBug::ResumesSessions => {
            let (a, b) = (cluster.tls(1), cluster.tls(2));
            let mut kinds = Vec::new();
            for _ in 0..3 {
                let shaken = shake(a.current().node_client.clone(), name_of(NodeId(2)), b.current().node_server.clone()).await;
                let shaken = talk(shaken).await.expect("connected");
                kinds.push(shaken.server.expect("connected").get_ref().1.handshake_kind());
            }
            wrong(kinds.contains(&Some(rustls::HandshakeKind::Resumed)), "a session is resumed")
        }
        PlantedBug::SignsEarly | PlantedBug::RemovesEarly => explore(rules).err(),
        PlantedBug::RandomMockSalt => {
            let secret = Secret::new([1; 32]);
            let mock = || Verifier::mock(&secret, "nobody", rules).salt;
            wrong(mock() != mock(), "an unknown user is known by its salt")
        }
    }
}

#[tokio::test]
async fn every_planted_bug_is_noticed() {
    for bug in PlantedBug::ALL {
        assert_eq!(probe(bug, Rules::ALL).await, None, "{bug:?}");
        let noticed = probe(bug, Rules::without(bug)).await;
        println!("{bug:?}: {}", noticed.unwrap_or_else(|| panic!("{bug:?} is not noticed")));
    }
}
