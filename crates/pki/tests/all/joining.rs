//! Tokens, and the exchange over real connections.

use crate::handshakes::credulous;
use crate::world::*;
use meridian_base::{NodeId, envelope};
use meridian_pki::authority::NODE_LIFE_SECS;
use meridian_pki::join::*;
use meridian_pki::tls::{Peer, Tls, name_of};
use meridian_pki::{Fingerprint, Moment, PlantedBug, PrivateKey, Rules};
use proptest::prelude::*;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const ABOUT: &[u8] = b"node at a:1";

pub fn token(cluster: &Cluster) -> Token {
    Token::create(cluster.authority.certificate().fingerprint(), NOW.plus(TOKEN_LIFE_SECS))
}

pub fn joiner(token: &Token, key: &PrivateKey, rules: Rules) -> Joiner {
    Joiner::new(token.clone(), key.clone(), vec!["a.example".into()], ABOUT.to_vec(), rules)
}

/// What a node does with a message of a joiner: its answer, and what its log says.
pub fn host(
    cluster: &Cluster,
    stored: &mut Option<StoredToken>,
    node: u32,
    binding: Binding,
    message: &[u8],
) -> (Vec<u8>, Option<Refusal>) {
    let (mut host, now, rules) = (Host::new(binding, cluster.rules), cluster.hand.now(), cluster.rules);
    let mut action = host.received(message);
    loop {
        action = match action {
            HostAction::LookUp(id) => {
                let found = stored.as_ref().filter(|s| s.id == id);
                host.found(found, now)
            }
            HostAction::Register(admission) => {
                assert_eq!(admission.about, ABOUT);
                let row = stored.as_mut().expect("a token that was found");
                match row.redeem(&admission.key, NodeId(node), now, rules) {
                    Err(why) => host.refused(why),
                    Ok(node) => {
                        let (hosts, key) = (&admission.hosts, &admission.key);
                        let made = cluster.authority.sign_node(cluster.id, node, hosts, key, now, NODE_LIFE_SECS);
                        host.granted(&[made.expect("signs")], &cluster.bundle(), b"nodes".to_vec())
                    }
                }
            }
            HostAction::Send(bytes, why) => return (bytes, why),
        };
    }
}

/// A whole exchange over a connection. `None`: the handshake failed.
async fn exchange(
    cluster: &Cluster,
    tls: &Tls,
    stored: &mut Option<StoredToken>,
    node: u32,
    mut joiner: Joiner,
) -> Option<(JoinerAction, Option<Refusal>)> {
    let config = Arc::new(joiner.config(cluster.hand.clock()).expect("TLS"));
    let shaken = shake(config, name_of(NodeId(0)), tls.current().node_server.clone()).await;
    let (mut client, mut server) = (shaken.client.ok()?, shaken.server.ok()?);
    let connection = server.get_ref().1;
    assert_eq!(tls.peer(connection.peer_certificates(), connection.alpn_protocol()), Ok(Peer::Joiner));
    let there = Binding::export(connection).expect("a binding");
    let connection = client.get_ref().1;
    let here = Binding::export(connection).expect("a binding");
    assert_eq!(here, there);
    let shown = connection.peer_certificates().expect("shown").to_vec();
    let JoinerAction::Send(ask) = joiner.connected(&shown, &here, cluster.hand.now()) else { panic!("nothing is sent") };
    client.write_u32(ask.len() as u32).await.expect("sent");
    client.write_all(&ask).await.expect("sent");
    client.flush().await.expect("sent");
    let mut message = vec![0; server.read_u32().await.expect("received") as usize];
    server.read_exact(&mut message).await.expect("received");
    let (answer, why) = host(cluster, stored, node, there, &message);
    Some((joiner.received(&answer, cluster.hand.now()), why))
}

#[tokio::test]
async fn a_process_with_a_token_becomes_a_node() {
    let cluster = Cluster::new();
    let (tls, token, key) = (cluster.tls(1), token(&cluster), PrivateKey::generate());
    let mut stored = Some(StoredToken::of(&token));
    let (action, why) = exchange(&cluster, &tls, &mut stored, 2, joiner(&token, &key, cluster.rules)).await.expect("connected");
    let JoinerAction::Store(membership) = action else { panic!("{action:?}, {why:?}") };
    assert_eq!((membership.cluster, membership.node, membership.about.as_slice()), (cluster.id, NodeId(2), b"nodes".as_slice()));
    assert_eq!(membership.pair.certificate().dns_names, ["a.example"]);
    assert_eq!(why, None);
    let joined = Tls::new(cluster.context(), membership.bundle, &membership.pair).expect("TLS");
    assert_eq!(call(&joined, &tls, 1).await, Ok((NodeId(1), Peer::Node(NodeId(2)))));
    // The answer was lost: the same key gets the same node, even after the token's end.
    cluster.hand.set(token.expires.plus(10));
    let (again, _) = exchange(&cluster, &tls, &mut stored, 3, joiner(&token, &key, cluster.rules)).await.expect("connected");
    let JoinerAction::Store(again) = again else { panic!("{again:?}") };
    assert_eq!(again.node, NodeId(2));
}

#[tokio::test]
async fn refusals_are_told_apart_by_the_operator_only() {
    let cluster = Cluster::new();
    let (tls, good) = (cluster.tls(1), token(&cluster));
    let mut used = Some(StoredToken::of(&good));
    let first = PrivateKey::generate();
    exchange(&cluster, &tls, &mut used, 2, joiner(&good, &first, cluster.rules)).await.expect("connected");
    let forged = Token { secret: meridian_pki::secret::Secret::random(), ..good.clone() };
    let old = Token::create(good.authority, NOW.minus(1));
    let (id, mut fresh) = (good.id, Some(StoredToken::of(&good)));
    let mut stored_old = Some(StoredToken::of(&old));
    let cases = [
        (&good, &mut used, Refusal::Used(id, NodeId(2))),
        (&forged, &mut fresh, Refusal::Forged(id)),
        (&old, &mut stored_old, Refusal::Expired(old.id, old.expires)),
        (&good, &mut None, Refusal::Unknown(id)),
    ];
    for (token, stored, expected) in cases {
        let joiner = joiner(token, &PrivateKey::generate(), cluster.rules);
        let (action, why) = exchange(&cluster, &tls, stored, 3, joiner).await.expect("connected");
        assert!(matches!(action, JoinerAction::Fail(JoinFailure::Refused)), "{action:?}");
        assert_eq!(why, Some(expected));
    }
    assert!(fresh.is_some_and(|f| f.used.is_none()), "a forged token uses nothing up");
}

#[tokio::test]
async fn a_man_in_the_middle_learns_nothing() {
    let (ours, theirs) = (Cluster::new(), Cluster::new());
    let token = token(&ours);
    // Another cluster, one with our id, and one that shows our authority beside its certificate.
    let pretender = Cluster { id: ours.id, ..Cluster::new() };
    let both = bundle(&[&theirs.authority, &ours.authority]);
    let shows = Tls::new(theirs.context(), both, &theirs.pair(1)).expect("TLS");
    for man in [theirs.tls(1), pretender.tls(1), shows] {
        let mut joiner = joiner(&token, &PrivateKey::generate(), Rules::ALL);
        // The handshake fails.
        let config = Arc::new(joiner.config(ours.hand.clock()).expect("TLS"));
        assert!(shake(config, name_of(NodeId(0)), man.current().node_server.clone()).await.client.is_err());
        // A caller that left that out gets no message.
        let config = credulous(Some(meridian_pki::tls::JOIN_PROTOCOL));
        let client = shake(config, name_of(NodeId(0)), man.current().node_server.clone()).await.client.expect("connected");
        let connection = client.get_ref().1;
        let shown = connection.peer_certificates().expect("shown").to_vec();
        let binding = Binding::export(connection).expect("a binding");
        let action = joiner.connected(&shown, &binding, NOW);
        assert!(matches!(action, JoinerAction::Fail(JoinFailure::NotTheCluster(_))), "{action:?}");
    }
}

/// What a joiner sends on a connection with this binding to a node of the cluster.
pub fn asked(cluster: &Cluster, token: &Token, key: &PrivateKey, binding: Binding) -> Vec<u8> {
    let shown = [cluster.pair(1).certificate().der().clone(), cluster.authority.certificate().der().clone()];
    match joiner(token, key, cluster.rules).connected(&shown, &binding, NOW) {
        JoinerAction::Send(bytes) => bytes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_proof_is_good_on_one_connection_for_one_request() {
    let cluster = Cluster::new();
    let token = token(&cluster);
    let key = PrivateKey::generate();
    let bytes = asked(&cluster, &token, &key, Binding([1; 32]));
    let judge = |binding, bytes: &[u8]| host(&cluster, &mut Some(StoredToken::of(&token)), 2, binding, bytes).1;
    assert_eq!(judge(Binding([1; 32]), &bytes), None);
    assert_eq!(judge(Binding([2; 32]), &bytes), Some(Refusal::Forged(token.id)));
    let ask: Ask = envelope::decode(&bytes).expect("read");
    let changed = |change: &dyn Fn(&mut Ask)| {
        let mut ask = ask.clone();
        change(&mut ask);
        judge(Binding([1; 32]), &envelope::encode(&ask))
    };
    let forged = Some(Refusal::Forged(token.id));
    let other = PrivateKey::generate().public().expect("P-256");
    assert_eq!(changed(&|a| a.key = other.clone()), forged);
    assert_eq!(changed(&|a| a.hosts.push("evil.example".into())), forged);
    assert_eq!(changed(&|a| a.about.push(1)), forged);
    assert_eq!(changed(&|a| a.proof[0] ^= 1), forged);
    assert_eq!(changed(&|a| a.possession[9] ^= 1), Some(Refusal::NoPossession(token.id)));
    assert_eq!(changed(&|a| a.token = TokenId([0; 8])), Some(Refusal::Unknown(TokenId([0; 8]))));
    assert_eq!(changed(&|a| a.hosts = vec!["a".into(); 33]), Some(Refusal::Malformed));
    assert_eq!(changed(&|a| a.hosts = vec!["a b".into()]), Some(Refusal::Malformed));
    assert_eq!(changed(&|a| a.about = vec![0; 5_000]), Some(Refusal::Malformed));
    // Whoever reads what is stored cannot make a proof of it.
    let stored = envelope::encode(&StoredToken::of(&token));
    let secret = token.secret.expose();
    assert!(!stored.windows(32).any(|w| w == secret) && !bytes.windows(32).any(|w| w == secret));
}

#[test]
fn answers_are_checked() {
    let (cluster, other) = (Cluster::new(), Cluster::new());
    let (token, key) = (token(&cluster), PrivateKey::generate());
    let shown = [cluster.pair(1).certificate().der().clone(), cluster.authority.certificate().der().clone()];
    let told = |answer: &Answer, now: Moment| {
        let mut joiner = joiner(&token, &key, Rules::ALL);
        let JoinerAction::Send(_) = joiner.connected(&shown, &Binding([1; 32]), NOW) else { panic!("nothing is sent") };
        joiner.received(&envelope::encode(answer), now)
    };
    let public = key.public().expect("P-256");
    let grant = |cluster: &Cluster, id, key: &PrivateKey| {
        let public = key.public().expect("P-256");
        let made = cluster.authority.sign_node(id, NodeId(2), &hosts(), &public, NOW, NODE_LIFE_SECS).expect("signs");
        let authorities = vec![cluster.authority.certificate().der().to_vec()];
        Granted { chain: vec![made.der().to_vec()], authorities, about: Vec::new() }
    };
    let good = grant(&cluster, cluster.id, &key);
    assert!(matches!(told(&Answer::Granted(good.clone()), NOW), JoinerAction::Store(_)));
    assert!(matches!(told(&Answer::NotNow, NOW), JoinerAction::Retry));
    let client = cluster.authority.sign_client("x", &public, NOW, 99).expect("signs").der().to_vec();
    for bad in [
        grant(&cluster, cluster.id, &PrivateKey::generate()),
        grant(&cluster, other.id, &key),
        grant(&other, other.id, &key),
        Granted { authorities: Vec::new(), ..good.clone() },
        Granted { chain: Vec::new(), ..good.clone() },
        Granted { chain: vec![vec![1, 2, 3]], ..good.clone() },
        Granted { chain: vec![client], ..good.clone() },
        Granted { authorities: grant(&other, other.id, &key).authorities, ..good.clone() },
    ] {
        let action = told(&Answer::Granted(bad), NOW);
        assert!(matches!(action, JoinerAction::Fail(JoinFailure::BadAnswer(_))), "{action:?}");
    }
    assert!(matches!(told(&Answer::Granted(good), NOW.plus(2 * NODE_LIFE_SECS)), JoinerAction::Fail(_)));
}

#[test]
fn every_character_of_a_token_counts() {
    let cluster = Cluster::new();
    let token = token(&cluster);
    let text = token.reveal();
    assert_eq!(text.len(), 112);
    assert_eq!(Token::parse(&text), Ok(token.clone()));
    assert_eq!(Token::parse(&format!("  {}\r\n", text.as_str())), Ok(token.clone()));
    for at in 0..text.len() {
        for other in b"Aq0-_=.~ \n" {
            let mut bytes = text.as_bytes().to_vec();
            if bytes[at] == *other {
                continue;
            }
            bytes[at] = *other;
            assert!(Token::parse(std::str::from_utf8(&bytes).expect("text")).is_err(), "{at}");
        }
        let is = Token::parse(&text[..at]).expect_err("cut");
        assert!(if at >= 4 { is == TokenError::Length { is: at } } else { is == TokenError::Other || is == TokenError::Version });
    }
    let swapped = format!("{}{}{}{}", &text[..20], &text[21..22], &text[20..21], &text[22..]);
    assert!(swapped == *text || Token::parse(&swapped) == Err(TokenError::Mistyped));
    assert!(Token::parse(&format!("{}x", text.as_str())).is_err_and(|e| e.to_string().contains("too long")));
    assert_eq!(Token::parse(&text.replacen("mj1", "mj2", 1)), Err(TokenError::Version));
    assert_eq!(Token::parse("hello"), Err(TokenError::Other));
    let shown = format!("{token:?} {:?}", StoredToken::of(&token));
    assert!(!shown.contains(&text[30..40]) && !text.contains(&shown[..10]));
}

#[test]
fn every_bit_of_a_request_counts() {
    let cluster = Cluster::new();
    let (token, key) = (token(&cluster), PrivateKey::generate());
    let bytes = asked(&cluster, &token, &key, Binding([1; 32]));
    let stored = StoredToken::of(&token);
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let (_, why) = host(&cluster, &mut Some(stored.clone()), 2, Binding([1; 32]), &damaged);
            assert!(why.is_some(), "byte {at}, bit {bit}");
        }
        assert!(host(&cluster, &mut Some(stored.clone()), 2, Binding([1; 32]), &bytes[..at]).1.is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn tokens_are_read_as_they_were_written(id: [u8; 8], secret: [u8; 32], end in 0..1u64 << 40, authority: [u8; 32]) {
        let token = Token {
            id: TokenId(id),
            secret: meridian_pki::secret::Secret::new(secret),
            expires: Moment(end),
            authority: Fingerprint(authority),
        };
        prop_assert_eq!(Token::parse(&token.reveal()), Ok(token));
    }

    /// Whatever comes, both sides say something and go on living.
    #[test]
    fn no_message_panics(garbage in prop::collection::vec(any::<u8>(), 0..300), text in ".{0,150}") {
        use std::sync::OnceLock;
        static CLUSTER: OnceLock<(Cluster, Token, PrivateKey, Vec<rustls::pki_types::CertificateDer<'static>>)> = OnceLock::new();
        let (cluster, token, key, shown) = CLUSTER.get_or_init(|| {
            let cluster = Cluster::new();
            let token = token(&cluster);
            let shown = vec![cluster.pair(1).certificate().der().clone(), cluster.authority.certificate().der().clone()];
            (cluster, token, PrivateKey::generate(), shown)
        });
        let (_, why) = host(cluster, &mut Some(StoredToken::of(token)), 2, Binding([1; 32]), &garbage);
        prop_assert!(why.is_some());
        let mut joiner = joiner(token, key, Rules::ALL);
        let sent = matches!(joiner.connected(shown, &Binding([1; 32]), NOW), JoinerAction::Send(_));
        prop_assert!(sent);
        let stored = matches!(joiner.received(&garbage, NOW), JoinerAction::Store(_));
        prop_assert!(!stored);
        let _ = Token::parse(&text);
        let _ = Token::parse(&format!("mj1.{text}"));
    }
}

/// The words that a joiner is told for each way of being refused.
pub fn told(bug: Rules) -> Vec<String> {
    let cluster = Cluster::with(meridian_pki::ClusterId(7), bug);
    let (good, key) = (token(&cluster), PrivateKey::generate());
    let bytes = asked(&cluster, &good, &key, Binding([1; 32]));
    let mut used = StoredToken::of(&good);
    used.redeem(&PrivateKey::generate().public().expect("P-256"), NodeId(9), NOW, bug).expect("redeemed");
    let cases = [(None, 1), (Some(used), 1), (Some(StoredToken::of(&good)), 2)];
    let say = |(mut stored, binding): (Option<StoredToken>, u8)| {
        let (answer, _) = host(&cluster, &mut stored, 2, Binding([binding; 32]), &bytes);
        match envelope::decode(&answer).expect("an answer") {
            Answer::Refused(said) => said,
            other => format!("{other:?}"),
        }
    };
    cases.map(say).to_vec()
}

#[test]
fn one_message_for_all() {
    assert!(told(Rules::ALL).iter().all(|said| said == REFUSED));
    assert!(told(Rules::without(PlantedBug::RefusalTellsWhy)).iter().any(|said| said != REFUSED));
}
