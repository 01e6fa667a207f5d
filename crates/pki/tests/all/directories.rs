//! Files: modes, crashes, what does not belong together, and the commands.

use crate::world::*;
use meridian_base::NodeId;
use meridian_pki::authority::{CLIENT_LIFE_SECS, NODE_LIFE_SECS};
use meridian_pki::commands::{create_ca, create_client, create_node, list};
use meridian_pki::directory::{AUTHORITIES, AUTHORITY_KEY, Directory, NEXT_AUTHORITY_KEY, NODE, client_name};
use meridian_pki::{Authority, Bundle, Kind, PrivateKey};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use tempfile::TempDir;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
}

fn saved() -> (TempDir, Directory, Cluster) {
    let place = TempDir::new().expect("a directory");
    let (directory, cluster) = (Directory::create(place.path().join("certs")).expect("made"), Cluster::new());
    directory.found(&cluster.authority).expect("saved");
    directory.save_pair(NODE, &cluster.pair(1)).expect("saved");
    (place, directory, cluster)
}

#[test]
fn what_is_saved_is_read_and_closed_to_others() {
    let (_place, directory, cluster) = saved();
    assert_eq!(mode(directory.path()), 0o700);
    for (name, expected) in [(AUTHORITIES, 0o644), (AUTHORITY_KEY, 0o600), ("node.crt", 0o644), ("node.key", 0o600)] {
        assert_eq!(mode(&directory.file(name)), expected, "{name}");
    }
    assert_eq!(directory.names().expect("names").len(), 4, "nothing is left behind");
    assert_eq!(directory.bundle().expect("read"), cluster.bundle());
    assert_eq!(directory.authority().expect("read").certificate(), cluster.authority.certificate());
    let pair = directory.pair(NODE).expect("read");
    assert!(cluster.context().clock.as_ref()() == NOW && pair.key().public().is_ok());
    // A second authority does not take the place of the first.
    assert_eq!(directory.found(&Cluster::new().authority).map_err(|e| e.kind()), Err(Kind::Refused));
}

#[test]
fn keys_that_others_can_read_are_refused() {
    let (_place, directory, _) = saved();
    let key = directory.file("node.key");
    for open in [0o604, 0o602, 0o660, 0o644, 0o777] {
        chmod(&key, open);
        let refused = directory.pair(NODE).expect_err("refused");
        assert_eq!(refused.kind(), Kind::Permissions);
        assert!(refused.to_string().contains("node.key") && refused.to_string().contains(&format!("{open:04o}")), "{refused}");
    }
    chmod(&key, 0o400);
    assert!(directory.pair(NODE).is_ok());
    chmod(directory.path(), 0o777);
    assert_eq!(Directory::create(directory.path()).map(drop).map_err(|e| e.kind()), Err(Kind::Permissions));
}

#[test]
fn errors_name_the_file_and_the_cause() {
    let (_place, directory, _) = saved();
    let write = |name: &str, bytes: &[u8]| fs::write(directory.file(name), bytes).expect("written");
    let certificate = fs::read(directory.file("node.crt")).expect("read");
    let key = fs::read(directory.file("node.key")).expect("read");
    let failed = |part: &str, kind: Kind| {
        let e = directory.pair(NODE).expect_err("refused");
        assert!(e.to_string().contains("node.") && e.to_string().contains(part), "{e}");
        assert_eq!(e.kind(), kind, "{e}");
    };
    write("node.crt", &certificate[..certificate.len() / 2]);
    failed("cut", Kind::Malformed);
    write("node.crt", b"\xff\xfe garbage");
    failed("no text", Kind::Malformed);
    write("node.crt", b"");
    failed("no certificate", Kind::Malformed);
    write("node.crt", b"-----BEGIN CERTIFICATE-----\n@@@@\n-----END CERTIFICATE-----\n");
    failed("no base64", Kind::Malformed);
    write("node.crt", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    failed("no certificate that can be read", Kind::Malformed);
    write("node.crt", &vec![b'x'; (1 << 20) + 1]);
    failed("no file of certificates", Kind::Malformed);
    write("node.crt", &certificate);
    write("node.key", &certificate);
    failed("no private key", Kind::Malformed);
    write("node.key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    failed("damaged or of a kind", Kind::Malformed);
    write("node.key", b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
    failed("encrypted", Kind::Malformed);
    write("node.key", [key.as_slice(), &key].concat().as_slice());
    failed("more than one", Kind::Malformed);
    write("node.key", PrivateKey::generate().to_pem().as_bytes());
    failed("not that of the certificate", Kind::Mismatch);
    fs::remove_file(directory.file("node.key")).expect("removed");
    failed("cannot read", Kind::Absent);
    fs::create_dir(directory.file("node.key")).expect("made");
    failed("no file of certificates", Kind::Malformed);
    write(AUTHORITY_KEY, PrivateKey::generate().to_pem().as_bytes());
    let e = directory.authority().expect_err("refused");
    assert!(e.to_string().contains("ca.key") && e.kind() == Kind::Mismatch, "{e}");
    write(AUTHORITIES, &certificate);
    assert_eq!(directory.bundle().map_err(|e| e.kind()), Err(Kind::Mismatch), "a node is no authority");
}

/// A pair is replaced in three steps; after a crash behind each of them there is a whole pair.
#[test]
fn a_crash_leaves_the_old_pair_or_the_new_one() {
    let (_place, directory, cluster) = saved();
    let file = |name: &str| fs::read(directory.file(name)).expect("read");
    let old = directory.pair(NODE).expect("read").certificate().clone();
    let (old_crt, old_key) = (file("node.crt"), file("node.key"));
    let next = cluster.pair(1);
    directory.save_pair(NODE, &next).expect("saved");
    let (new_crt, new_key) = (file("node.crt"), file("node.key"));
    let crashed = |crt: &[u8], key: &[u8], beside: &[u8]| {
        fs::write(directory.file("node.crt"), crt).expect("written");
        fs::write(directory.file("node.key"), key).expect("written");
        fs::write(directory.file("node.key.next"), beside).expect("written");
        chmod(&directory.file("node.key.next"), 0o600);
        directory.pair(NODE).expect("a pair").certificate().clone()
    };
    assert_eq!(crashed(&old_crt, &old_key, &new_key), old);
    assert_eq!(crashed(&new_crt, &old_key, &new_key), *next.certificate());
    // The next replacement, and a crash in its first step: the pair is there still.
    let third = cluster.pair(1);
    directory.save_pair(NODE, &third).expect("saved");
    assert_eq!(directory.pair(NODE).expect("a pair").certificate(), third.certificate());
    assert!(!directory.has("node.key.next"));
    crashed(&new_crt, &old_key, &new_key);
    directory.save_pair(NODE, &third).expect("saved");
    assert_eq!(directory.pair(NODE).expect("a pair").certificate(), third.certificate());
    // A torn temporary file is nobody's.
    fs::write(directory.file(".node.key.0123"), b"half").expect("written");
    assert!(directory.pair(NODE).is_ok());
}

#[test]
fn an_operator_makes_certificates_elsewhere() {
    let place = TempDir::new().expect("a directory");
    let (ca, node, laptop) = (place.path().join("ca"), place.path().join("node"), place.path().join("laptop"));
    let fingerprint = create_ca(&ca, NOW).expect("an authority");
    assert_eq!(create_ca(&ca, NOW).map_err(|e| e.kind()), Err(Kind::Refused));
    create_node(&ca, &node, NodeId(3), &hosts(), None, NOW, NODE_LIFE_SECS).expect("a node");
    create_client(&ca, &laptop, "root", NOW, CLIENT_LIFE_SECS).expect("a client");
    create_client(&ca, &laptop, "ada", NOW, CLIENT_LIFE_SECS).expect("another one");
    for bad in ["../x", "a/b", "", "a\nb"] {
        assert!(client_name(bad).is_err() && create_client(&ca, &laptop, bad, NOW, 9).is_err(), "{bad:?}");
    }
    assert_eq!(Directory::at(&node).names().expect("names"), ["ca.crt", "node.crt", "node.key"], "the key stays where it is");
    assert_eq!(Directory::at(&node).authority().map(drop).map_err(|e| e.kind()), Err(Kind::Absent));
    let lines = list(&laptop, NOW).expect("a list");
    let shown: Vec<_> = lines.iter().map(|l| (l.file.as_str(), l.has_key, l.problem.as_deref())).collect();
    assert_eq!(shown, [("ca.crt", false, None), ("client.ada.crt", true, None), ("client.root.crt", true, None)]);
    assert_eq!(lines[0].fingerprint, Some(fingerprint));
    assert_eq!(lines[1].holder, "role \"ada\"");
    assert!(list(&ca, NOW).expect("a list")[0].has_key);
    // What is wrong is said.
    let problem = |now, at: usize| list(&laptop, now).expect("a list")[at].problem.clone().unwrap_or_default();
    assert!(problem(NOW.plus(CLIENT_LIFE_SECS - 86_400), 1).contains("expires on"));
    assert!(problem(NOW.plus(CLIENT_LIFE_SECS + 86_400), 1).contains("expired"));
    let file = |name: &str| laptop.join(name);
    fs::rename(file("client.ada.key"), file("client.bob.key")).expect("renamed");
    assert!(problem(NOW, 1).contains("not here"));
    fs::rename(file("client.ada.crt"), file("client.bob.crt")).expect("renamed");
    assert!(problem(NOW, 1).contains("not named"));
    fs::copy(file("client.root.key"), file("client.bob.key")).expect("copied");
    assert!(problem(NOW, 1).contains("not that of the certificate"));
    fs::write(file("client.bob.crt"), "garbage").expect("written");
    assert!(problem(NOW, 1).contains("no certificate"));
    fs::write(file("ca.crt"), Cluster::new().bundle().to_pem()).expect("written");
    assert!(problem(NOW, 2).contains("not signed by"));
    assert_eq!(list(&place.path().join("nowhere"), NOW).map_err(|e| e.kind()), Err(Kind::Absent));
}

#[test]
fn an_authority_is_replaced_in_its_directory() {
    let (_place, directory, cluster) = saved();
    let next = Authority::create(cluster.id, NOW).expect("an authority");
    assert_eq!(directory.promote().map_err(|e| e.kind()), Err(Kind::Absent));
    directory.introduce(&next).expect("introduced");
    assert_eq!(directory.introduce(&next).map_err(|e| e.kind()), Err(Kind::Refused));
    assert_eq!(directory.bundle().expect("read").authorities().len(), 2);
    assert_eq!(directory.authority().expect("read").certificate(), cluster.authority.certificate(), "the old one signs");
    assert_eq!(mode(&directory.file(NEXT_AUTHORITY_KEY)), 0o600);
    assert_eq!(directory.next_authority().expect("read").map(|a| a.certificate().clone()).as_ref(), Some(next.certificate()));
    directory.promote().expect("promoted");
    assert_eq!(directory.authority().expect("read").certificate(), next.certificate());
    assert!(directory.next_authority().expect("read").is_none());
    // A crash before the certificate was there, and after it was there alone.
    fs::copy(directory.file("node.key"), directory.file(NEXT_AUTHORITY_KEY)).expect("copied");
    assert_eq!(directory.next_authority().map(drop).map_err(|e| e.kind()), Err(Kind::Mismatch));
    directory.forget_next().expect("removed");
    directory.forget_next().expect("twice is once");
    let mut bundle = directory.bundle().expect("read");
    bundle.remove(cluster.authority.certificate().fingerprint()).expect("removed");
    assert_eq!(bundle.clone().remove(next.certificate().fingerprint()).map_err(|e| e.kind()), Err(Kind::Refused));
    directory.save_bundle(&bundle).expect("saved");
    assert_eq!(directory.bundle().map(|b| b.authorities().len()), Ok(1));
    assert!(Bundle::default().authorities().is_empty() && !directory.has(NEXT_AUTHORITY_KEY));
}
