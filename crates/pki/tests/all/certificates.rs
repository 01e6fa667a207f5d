//! What certificates say, and what becomes of damaged ones.

use crate::world::*;
use meridian_base::NodeId;
use meridian_pki::authority::{AUTHORITY_LIFE_SECS, HOSTS_MAX, Hosts, NODE_LIFE_SECS};
use meridian_pki::identity::cluster_of;
use meridian_pki::verify::{PeerRefusal, Usage, verify};
use meridian_pki::{Authority, Bundle, Certificate, ClusterId, Identity, Kind, PrivateKey};
use proptest::prelude::*;
use rcgen::{CertificateParams, DnType, IsCa, KeyPair, SanType};

#[test]
fn certificates_say_who_and_until_when() {
    let cluster = Cluster::new();
    let authority = cluster.authority.certificate();
    assert_eq!(cluster_of(authority), Some(cluster.id));
    assert!(
        authority.is_authority && authority.not_after == NOW.plus(AUTHORITY_LIFE_SECS) && authority.not_before == beginning()
    );
    let pair = cluster.pair(7);
    let node = pair.certificate();
    assert_eq!(Identity::of(node), Some(Identity::Node { cluster: cluster.id, node: NodeId(7) }));
    assert_eq!((node.not_before, node.not_after), (beginning(), NOW.plus(NODE_LIFE_SECS)));
    assert!(!node.is_authority && node.is_for_servers() && node.is_for_clients() && node.may_sign_handshakes());
    assert_eq!((node.dns_names.clone(), node.addresses.clone()), (hosts().dns_names, hosts().addresses));
    assert_eq!(node.common_name.as_deref(), Some("node 7"));
    assert_ne!(node.serial, cluster.pair(7).certificate().serial);
    assert!((15..=20).contains(&node.serial.len()) && node.serial[0] & 0x80 == 0);
    let client = cluster.client("ada");
    assert_eq!(Identity::of(client.certificate()), Some(Identity::Role("ada".into())));
    assert!(!client.certificate().is_for_servers());
    assert_eq!(cluster.bundle().issuer_of(node), Some(authority));
    assert_eq!(Cluster::new().bundle().issuer_of(node), None);
}

#[test]
fn odd_names_are_nobodys() {
    let cluster = ClusterId(0xab);
    let of = |uris: &[&str], name: Option<&str>| {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        if let Some(name) = name {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        params.subject_alt_names = uris.iter().map(|u| SanType::URI((*u).try_into().expect("a URI"))).collect();
        let made = params.self_signed(&KeyPair::generate().expect("a key")).expect("signs");
        Identity::of(&Certificate::parse(made.der()).expect("a certificate"))
    };
    let good = cluster.node_uri(NodeId(7));
    assert_eq!(of(&[&good], None), Some(Identity::Node { cluster, node: NodeId(7) }));
    assert_eq!(of(&["spiffe://x/y", &good], Some("x")), Some(Identity::Node { cluster, node: NodeId(7) }));
    let other = cluster.node_uri(NodeId(8));
    let base = cluster.uri();
    for odd in [
        vec![good.as_str(), other.as_str()],
        vec![good.as_str(), good.as_str()],
        vec![base.as_str()],
        vec!["meridian://ab/node/7"],
        vec!["meridian://000000000000000000000000000000AB/node/7"],
        vec!["meridian://000000000000000000000000000000ab/node/07"],
        vec!["meridian://000000000000000000000000000000ab/node/+7"],
        vec!["meridian://000000000000000000000000000000ab/node/0"],
        vec!["meridian://000000000000000000000000000000ab/node/4294967296"],
        vec!["meridian://000000000000000000000000000000ab/node/7/"],
        vec!["meridian://00000000000000000000000000000000/node/7"],
    ] {
        assert_eq!(of(&odd, Some("root")), None, "{odd:?}");
    }
    assert_eq!(of(&[], Some("root")), Some(Identity::Role("root".into())));
    assert_eq!((of(&[], None), of(&[], Some(""))), (None, None));
}

#[test]
fn a_certificate_is_for_one_use() {
    let cluster = Cluster::new();
    let (bundle, client) = (cluster.bundle(), cluster.client("ada"));
    let as_server = verify(client.certificate().der(), &[], &bundle, Usage::Server, NOW);
    assert_eq!(as_server, Err(PeerRefusal::WrongUsage));
    // Nor is an authority's certificate anybody's.
    let authority = cluster.authority.certificate();
    assert_eq!(verify(authority.der(), &[], &bundle, Usage::Server, NOW), Err(PeerRefusal::WrongUsage));
    // And no node can be an authority.
    let key = PrivateKey::generate();
    let node = cluster.authority.sign_node(cluster.id, NodeId(1), &hosts(), &key.public().expect("P-256"), NOW, 99);
    assert_eq!(Authority::new(node.clone().expect("signs"), key).map(drop).map_err(|e| e.kind()), Err(Kind::Mismatch));
    assert_eq!(Bundle::new(vec![node.expect("signs")]).map_err(|e| e.kind()), Err(Kind::Mismatch));
}

#[test]
fn a_foreign_authority_signs_if_its_name_can_be_written() {
    let make = |names: &[(DnType, &str)]| {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, name) in names {
            params.distinguished_name.push(kind.clone(), *name);
        }
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let made = params.self_signed(&key).expect("signs");
        let pem = pem_of(&key.serialize_der());
        Authority::new(Certificate::parse(made.der()).expect("read"), PrivateKey::from_pem(pem.as_bytes()).expect("a key"))
    };
    let authority = make(&[(DnType::OrganizationName, "Example"), (DnType::CommonName, "Example Root")]).expect("an authority");
    assert_eq!(cluster_of(authority.certificate()), None);
    let pair = node_pair(&authority, ClusterId(5), 3, NOW);
    assert!(verify(pair.certificate().der(), &[], &bundle(&[&authority]), Usage::Server, NOW).is_ok());
}

fn pem_of(der: &[u8]) -> String {
    use base64::Engine;
    let body = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n")
}

#[test]
fn hosts_and_roles_are_checked() {
    let parsed = Hosts::parse(["a.b", "[::1]", "::1", "a.b", "10.0.0.1"]).expect("hosts");
    assert_eq!((parsed.dns_names.len(), parsed.addresses.len()), (1, 2));
    for bad in ["", " ", "a b", "a/b", "..", ".a", "ä.de", "a:1", "*.\0"] {
        assert!(Hosts::parse([bad]).is_err(), "{bad:?}");
    }
    let many: Vec<String> = (0..=HOSTS_MAX).map(|i| format!("h{i}.example")).collect();
    assert!(Hosts::parse(many.iter().map(String::as_str)).is_err());
    let (cluster, key) = (Cluster::new(), PrivateKey::generate().public().expect("P-256"));
    for bad in ["", "a\0b", "a\nb", &"x".repeat(64)] {
        assert!(cluster.authority.sign_client(bad, &key, NOW, 99).is_err(), "{bad:?}");
    }
    assert!(cluster.authority.sign_node(cluster.id, NodeId(0), &hosts(), &key, NOW, 99).is_err());
}

#[test]
fn every_bit_of_a_certificate_counts() {
    let cluster = Cluster::new();
    let (bundle, pair) = (cluster.bundle(), cluster.pair(7));
    let der = pair.certificate().der().to_vec();
    for at in 0..der.len() {
        for bit in 0..8 {
            let mut damaged = der.clone();
            damaged[at] ^= 1 << bit;
            assert!(verify(&damaged.into(), &[], &bundle, Usage::Server, NOW).is_err(), "byte {at}, bit {bit}");
        }
    }
    for len in 0..der.len() {
        assert!(Certificate::parse(&der[..len]).is_err());
        assert!(verify(&der[..len].to_vec().into(), &[], &bundle, Usage::Server, NOW).is_err());
    }
    let longer = [der.as_slice(), &[0]].concat();
    assert!(Certificate::parse(&longer).is_err());
}

#[test]
fn secrets_are_not_shown() {
    let cluster = Cluster::new();
    let pair = cluster.pair(1);
    let pem = pair.key().to_pem();
    let middle = pem.lines().nth(1).expect("a line");
    for shown in [format!("{pair:?}"), format!("{:?}", pair.key()), format!("{:?}", cluster.authority)] {
        assert!(!shown.contains(&middle[..16]) && shown.len() < 400, "{shown}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    /// Bytes that are no certificate, and some that nearly are, are errors and never a panic.
    #[test]
    fn no_certificate_panics(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
        garbage in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        use std::sync::OnceLock;
        static DER: OnceLock<Vec<u8>> = OnceLock::new();
        let der = DER.get_or_init(|| Cluster::new().pair(7).certificate().der().to_vec());
        let mut damaged = der.clone();
        for (at, to) in changes {
            let at = at.index(damaged.len());
            damaged[at] = to;
        }
        for bytes in [&damaged[..], &damaged[..cut.index(damaged.len())], &garbage[..]] {
            if let Ok(read) = Certificate::parse(bytes) {
                let _ = (Identity::of(&read), cluster_of(&read), meridian_pki::tls::end_point(&read));
                let _ = Bundle::new(vec![read]);
            }
        }
    }

    /// A text in the format PEM, damaged anywhere.
    #[test]
    fn no_text_panics(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        use std::sync::OnceLock;
        static TEXT: OnceLock<Vec<u8>> = OnceLock::new();
        let text = TEXT.get_or_init(|| {
            let cluster = Cluster::new();
            [cluster.bundle().to_pem().as_bytes(), cluster.pair(1).key().to_pem().as_bytes()].concat()
        });
        let mut damaged = text.clone();
        for (at, to) in changes {
            let at = at.index(damaged.len());
            damaged[at] = to;
        }
        damaged.truncate(cut.index(damaged.len()));
        let _ = (Bundle::from_pem(&damaged), PrivateKey::from_pem(&damaged));
    }
}
