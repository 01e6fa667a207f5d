//! Who may talk to whom.

use crate::world::*;
use meridian_base::NodeId;
use meridian_pki::authority::NODE_LIFE_SECS;
use meridian_pki::directory::Pair;
use meridian_pki::tls::{Peer, SslMode, Tls, client_config, name_of};
use meridian_pki::verify::CLOCK_TOLERANCE_SECS;
use meridian_pki::{ClusterId, Kind, PrivateKey, Rules};
use rcgen::{CertificateParams, SanType};
use rustls::ProtocolVersion;
use rustls::pki_types::ServerName;
use std::sync::Arc;

#[tokio::test]
async fn nodes_know_each_other_by_their_certificates() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.tls(1), cluster.tls(2));
    assert_eq!(call(&a, &b, 2).await, Ok((NodeId(2), Peer::Node(NodeId(1)))));
    assert_eq!(call(&b, &a, 0).await, Ok((NodeId(1), Peer::Node(NodeId(2)))), "0 is any node");
    let shaken = shake(a.current().node_client.clone(), name_of(NodeId(2)), b.current().node_server.clone()).await;
    let connection = shaken.client.expect("a handshake");
    assert_eq!(connection.get_ref().1.protocol_version(), Some(ProtocolVersion::TLSv1_3));
}

#[tokio::test]
async fn another_node_than_the_one_that_was_called_is_refused() {
    let cluster = Cluster::new();
    let refused = call(&cluster.tls(1), &cluster.tls(2), 3).await.expect_err("refused");
    assert!(refused.contains("node 3 was called") && refused.contains("node 2"), "{refused}");
}

#[tokio::test]
async fn strangers_are_refused_on_both_sides() {
    let ours = Cluster::new();
    let theirs = Cluster::new();
    // Another authority, whatever its certificates say: another cluster's id, or ours.
    let pretender = Cluster { id: ours.id, ..Cluster::new() };
    for stranger in [theirs.tls(1), pretender.tls(1)] {
        assert!(call(&stranger, &ours.tls(2), 2).await.is_err());
        assert!(call(&ours.tls(2), &stranger, 1).await.is_err());
    }
    // The caller trusts us, and has a certificate that we do not.
    let both = bundle(&[&ours.authority, &theirs.authority]);
    let half = Tls::new(theirs.context(), both.clone(), &theirs.pair(1)).expect("TLS");
    assert!(call(&half, &ours.tls(2), 2).await.is_err());
    assert!(call(&ours.tls(2), &half, 1).await.is_err());
}

#[tokio::test]
async fn another_cluster_of_the_same_authority_is_refused() {
    let ours = Cluster::new();
    let other = ClusterId::random();
    let pair = node_pair(&ours.authority, other, 1, NOW);
    let theirs = Tls::new(meridian_pki::tls::Context { cluster: other, ..ours.context() }, ours.bundle(), &pair).expect("TLS");
    for refused in [call(&theirs, &ours.tls(2), 0).await, call(&ours.tls(2), &theirs, 0).await] {
        assert!(refused.is_err_and(|e| e.contains("another cluster")));
    }
    // And it is not taken as our own in the first place.
    let refused = Tls::new(ours.context(), ours.bundle(), &pair).expect_err("refused");
    assert!(refused.to_string().contains("another cluster"), "{refused}");
}

#[tokio::test]
async fn a_certificate_without_an_authority_is_refused() {
    let ours = Cluster::new();
    // Made by whoever has it, with the right names in it.
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![SanType::URI(ours.id.node_uri(NodeId(1)).try_into().expect("a URI"))];
    let made = params.self_signed(&key).expect("signs itself");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = vec![made.der().clone()];
    let secret = rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Credulous))
        .with_client_auth_cert(chain, secret.into())
        .expect("a configuration");
    let refused = talk(shake(Arc::new(config), name_of(NodeId(2)), ours.tls(2).current().node_server.clone()).await).await;
    assert!(refused.is_err());
}

/// A client that believes everybody.
#[derive(Debug)]
pub struct Credulous;

impl rustls::client::danger::ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &[rustls::pki_types::CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }
    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }
    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

/// A client without a certificate that believes everybody, for one protocol or none.
pub fn credulous(protocol: Option<&[u8]>) -> Arc<rustls::ClientConfig> {
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(rustls::ALL_VERSIONS)
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Credulous))
        .with_no_client_auth();
    config.alpn_protocols = protocol.iter().map(|p| p.to_vec()).collect();
    Arc::new(config)
}

#[tokio::test]
async fn whoever_has_no_certificate_may_join_and_nothing_else() {
    let cluster = Cluster::new();
    let tls = cluster.tls(1);
    for (protocol, peer) in [
        (Some(meridian_pki::tls::JOIN_PROTOCOL), Some(Peer::Joiner)),
        (Some(meridian_pki::tls::NODE_PROTOCOL), None),
        (None, None),
    ] {
        let shaken = shake(credulous(protocol), name_of(NodeId(0)), tls.current().node_server.clone()).await;
        let server = shaken.server.expect("a handshake");
        let connection = server.get_ref().1;
        assert_eq!(tls.peer(connection.peer_certificates(), connection.alpn_protocol()).ok(), peer);
    }
    // A protocol of others does not get so far.
    let shaken = shake(credulous(Some(b"h2")), name_of(NodeId(0)), tls.current().node_server.clone()).await;
    assert!(shaken.server.is_err() && shaken.client.is_err());
}

#[tokio::test]
async fn certificates_end_and_begin() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.tls(1), cluster.tls(2));
    let end = NOW.plus(NODE_LIFE_SECS);
    for (at, is_good) in [
        (beginning().minus(CLOCK_TOLERANCE_SECS + 1), false),
        (beginning().minus(CLOCK_TOLERANCE_SECS), true),
        (end, true),
        (end.plus(CLOCK_TOLERANCE_SECS), true),
        (end.plus(CLOCK_TOLERANCE_SECS + 1), false),
    ] {
        cluster.hand.set(at);
        assert_eq!(call(&a, &b, 2).await.is_ok(), is_good, "at {at}");
    }
    assert!(call(&a, &b, 2).await.is_err_and(|e| e.contains("has expired on")));
    // A node whose own certificate has expired says so when it starts.
    let refused = Tls::new(cluster.context(), cluster.bundle(), &node_pair(&cluster.authority, cluster.id, 3, NOW));
    assert!(refused.is_err_and(|e| e.to_string().contains("expired")));
}

#[tokio::test]
async fn an_authority_ends_too() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.tls(1), cluster.tls(2));
    let end = cluster.authority.certificate().not_after;
    // One that was signed on the last day holds no longer than the authority.
    cluster.hand.set(end.minus(100));
    let late = cluster.pair(1);
    assert_eq!(late.certificate().not_after, end);
    a.replace(cluster.bundle(), &late).expect("replaced");
    b.replace(cluster.bundle(), &cluster.pair(2)).expect("replaced");
    assert!(call(&a, &b, 2).await.is_ok());
    cluster.hand.set(end.plus(CLOCK_TOLERANCE_SECS + 1));
    assert!(call(&a, &b, 2).await.is_err_and(|e| e.contains("expired")));
    let refused = cluster.authority.sign_client("x", &PrivateKey::generate().public().expect("P-256"), cluster.hand.now(), 9);
    assert!(refused.is_err_and(|e| e.kind() == Kind::Expired));
}

#[tokio::test]
async fn a_decommissioned_node_is_refused_at_once() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.tls(1), cluster.tls(2));
    let (_, peer) = call(&b, &a, 1).await.expect("connected");
    assert!(a.still_admits(&peer));
    cluster.revoke(2);
    assert!(!a.still_admits(&peer), "live connections are ended by this");
    for refused in [call(&a, &b, 2).await, call(&b, &a, 1).await] {
        assert!(refused.is_err_and(|e| e.contains("decommissioned")));
    }
    assert!(call(&a, &cluster.tls(3), 3).await.is_ok());
    // The node itself is told: the alert is of its own kind.
    let shaken = shake(b.current().node_client.clone(), name_of(NodeId(0)), cluster.tls(3).current().node_server.clone()).await;
    assert!(shaken.server.is_err());
    let mut client = shaken.client.expect("TLS 1.3 answers before it is answered");
    let told = tokio::io::AsyncReadExt::read_u8(&mut client).await.expect_err("refused");
    assert_eq!(meridian_pki::tls::explain(&told), "the other side says that this node was decommissioned");
}

#[tokio::test]
async fn certificates_are_replaced_in_the_middle() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.tls(1), cluster.tls(2));
    let before = b.current();
    let old = talk(shake(a.current().node_client.clone(), name_of(NodeId(2)), before.node_server.clone()).await).await;
    let old = old.expect("connected");
    b.replace(cluster.bundle(), &cluster.pair(2)).expect("replaced");
    let after = b.current();
    assert_ne!(before.certificate.serial, after.certificate.serial);
    assert_ne!(before.end_point, after.end_point, "new handshakes bind to the new certificate");
    // The open connection goes on; a handshake that began before does too; a new one uses the new.
    assert!(talk(old).await.is_ok());
    assert!(talk(shake(a.current().node_client.clone(), name_of(NodeId(2)), before.node_server.clone()).await).await.is_ok());
    let new =
        shake(a.current().node_client.clone(), name_of(NodeId(2)), after.node_server.clone()).await.client.expect("connected");
    assert_eq!(new.get_ref().1.peer_certificates().expect("shown")[0], *after.certificate.der());
    // What cannot be used changes nothing.
    let wrong = [
        b.replace(cluster.bundle(), &cluster.pair(3)),
        b.replace(Cluster::new().bundle(), &cluster.pair(2)),
        b.replace(cluster.bundle(), &Cluster::new().pair(2)),
        b.replace(cluster.bundle(), &cluster.client("root")),
    ];
    assert!(wrong.iter().all(Result::is_err), "{wrong:?}");
    assert_eq!(b.current().certificate, after.certificate);
}

#[tokio::test]
async fn no_session_is_resumed() {
    let cluster = Cluster::new();
    let (a, b) = (cluster.tls(1), cluster.tls(2));
    for _ in 0..3 {
        let shaken = shake(a.current().node_client.clone(), name_of(NodeId(2)), b.current().node_server.clone()).await;
        let shaken = talk(shaken).await.expect("connected");
        let kind = shaken.client.expect("connected").get_ref().1.handshake_kind();
        assert_eq!(kind, Some(rustls::HandshakeKind::Full));
    }
}

#[tokio::test]
async fn an_operator_and_a_node_are_told_apart() {
    let cluster = Cluster::new();
    let tls = cluster.tls(1);
    let root = cluster.client("root");
    let mut config = client_config(SslMode::VerifyCa, Some(cluster.bundle()), Some(&root), cluster.hand.clock()).expect("TLS");
    config.alpn_protocols = vec![meridian_pki::tls::NODE_PROTOCOL.to_vec()];
    let shaken = talk(shake(Arc::new(config), name_of(NodeId(1)), tls.current().node_server.clone()).await).await;
    let server = shaken.expect("connected").server.expect("connected");
    let connection = server.get_ref().1;
    let peer = tls.peer(connection.peer_certificates(), connection.alpn_protocol());
    assert_eq!(peer, Ok(Peer::Role("root".into())));
    // A client's certificate makes no node.
    let refused = Tls::new(cluster.context(), cluster.bundle(), &root).expect_err("refused");
    assert!(refused.to_string().contains("not for this use"), "{refused}");
}

async fn login(cluster: &Cluster, tls: &Tls, mode: SslMode, host: &str, pair: Option<&Pair>) -> Result<Option<String>, String> {
    let bundle = (mode != SslMode::Require).then(|| cluster.bundle());
    let config = client_config(mode, bundle, pair, cluster.hand.clock()).map_err(|e| e.to_string())?;
    let name = ServerName::try_from(host.to_string()).expect("a host");
    let shaken = talk(shake(Arc::new(config), name, tls.current().sql_server.clone()).await).await?;
    let server = shaken.server.expect("connected");
    let connection = server.get_ref().1;
    assert_eq!(connection.alpn_protocol(), Some(b"postgresql".as_slice()));
    tls.client(connection.peer_certificates()).map_err(|e| e.to_string())
}

#[tokio::test]
async fn clients_verify_as_much_as_they_want() {
    let (ours, theirs) = (Cluster::new(), Cluster::new());
    let (tls, stranger) = (ours.tls(1), theirs.tls(1));
    for host in ["db.example.org", "127.0.0.1", "::1"] {
        assert_eq!(login(&ours, &tls, SslMode::VerifyFull, host, None).await, Ok(None), "{host}");
    }
    let refused = login(&ours, &tls, SslMode::VerifyFull, "other.example.org", None).await;
    assert!(refused.is_err_and(|e| e.contains("not for the host")));
    assert_eq!(login(&ours, &tls, SslMode::VerifyCa, "other.example.org", None).await, Ok(None));
    assert!(login(&ours, &stranger, SslMode::VerifyCa, "db.example.org", None).await.is_err());
    assert_eq!(login(&ours, &stranger, SslMode::Require, "db.example.org", None).await, Ok(None));
    assert!(client_config(SslMode::VerifyFull, None, None, ours.hand.clock()).is_err());
}

#[tokio::test]
async fn clients_show_roles() {
    let (ours, theirs) = (Cluster::new(), Cluster::new());
    let tls = ours.tls(1);
    let with = async |pair: &Pair| login(&ours, &tls, SslMode::VerifyFull, "db.example.org", Some(pair)).await;
    assert_eq!(with(&ours.client("ada")).await, Ok(Some("ada".into())));
    assert_eq!(with(&ours.client("Zoë Ω")).await, Ok(Some("Zoë Ω".into())));
    assert!(with(&theirs.client("ada")).await.is_err());
    assert!(with(&ours.pair(2)).await.is_err(), "a node's certificate is no login");
    let old = ours.client("ada");
    ours.hand.set(NOW.plus(86_400 + CLOCK_TOLERANCE_SECS + 1));
    assert!(with(&old).await.is_err(), "expired");
}

#[tokio::test]
async fn clients_may_use_tls_1_2_and_nodes_may_not() {
    let cluster = Cluster::new();
    let tls = cluster.tls(1);
    let old = |pair: Option<&Pair>| {
        let builder = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS12])
            .expect("TLS 1.2")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Credulous));
        match pair {
            None => Arc::new(builder.with_no_client_auth()),
            Some(pair) => {
                let key = rustls::pki_types::PrivateKeyDer::try_from(pem_der(&pair.key().to_pem())).expect("a key");
                Arc::new(builder.with_client_auth_cert(vec![pair.certificate().der().clone()], key).expect("TLS"))
            }
        }
    };
    let ada = cluster.client("ada");
    for (pair, role) in [(None, None), (Some(&ada), Some("ada".to_string()))] {
        let shaken = talk(shake(old(pair), name_of(NodeId(0)), tls.current().sql_server.clone()).await).await.expect("connected");
        let server = shaken.server.expect("connected");
        let connection = server.get_ref().1;
        assert_eq!(connection.protocol_version(), Some(ProtocolVersion::TLSv1_2));
        assert_eq!(tls.client(connection.peer_certificates()), Ok(role));
    }
    assert!(talk(shake(old(None), name_of(NodeId(0)), tls.current().node_server.clone()).await).await.is_err());
}

fn pem_der(text: &str) -> Vec<u8> {
    use rustls::pki_types::pem::PemObject;
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes()).expect("PKCS #8");
    key.secret_pkcs8_der().to_vec()
}

#[test]
fn the_end_point_is_the_hash_of_the_certificate() {
    let cluster = Cluster::new();
    let (tls, rules) = (cluster.tls(1), Rules::ALL);
    assert_eq!(rules, Rules::default());
    let current = tls.current();
    assert_eq!(current.end_point.as_deref(), Some(current.certificate.fingerprint().0.as_slice()));
    // By the function of the signature; Ed25519 has none.
    let made = |algorithm| {
        let key = rcgen::KeyPair::generate_for(algorithm).expect("a key");
        parse(CertificateParams::default().self_signed(&key).expect("signs").der()).expect("a certificate")
    };
    assert_eq!(meridian_pki::tls::end_point(&made(&rcgen::PKCS_ECDSA_P384_SHA384)).map(|h| h.len()), Some(48));
    assert_eq!(meridian_pki::tls::end_point(&made(&rcgen::PKCS_ED25519)), None);
}
