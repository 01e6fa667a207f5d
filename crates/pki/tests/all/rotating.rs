//! The authority is replaced while nodes call each other, restart and lag behind.

use crate::world::*;
use meridian_base::NodeId;
use meridian_pki::rotation::{Endorsed, Hindrance, Phase, Report, Rotation, StoredRotation};
use meridian_pki::tls::Tls;
use meridian_pki::{Authority, Bundle, Fingerprint, Moment, PlantedBug, Rules};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn print(n: u8) -> Fingerprint {
    Fingerprint([n; 32])
}

/// Runs a rotation: each step is a node that catches up, or says what it has, or the cluster that
/// goes on. What is wrong if two nodes refuse each other.
fn run(nodes: u32, steps: &[(u32, u8)], rules: Rules) -> Result<Phase, String> {
    let mut rotation = Rotation::at(Phase::Settled { authority: print(1) }, rules);
    let start = Report { trusts: BTreeSet::from([print(1)]), shows: print(1) };
    let mut state: BTreeMap<NodeId, Report> = (1..=nodes).map(|n| (NodeId(n), start.clone())).collect();
    let mut reports: BTreeMap<NodeId, Option<Report>> = state.keys().map(|n| (*n, None)).collect();
    rotation.begin(print(2)).expect("begun");
    for (node, what) in steps {
        let node = NodeId(node % nodes + 1);
        let is = state.get_mut(&node).expect("a node");
        match what % 4 {
            0 => is.trusts = rotation.trusted(),
            // A node asks for a certificate, of whoever signs.
            1 => is.shows = rotation.signer(),
            2 => {
                reports.insert(node, Some(is.clone()));
            }
            _ => {
                let _ = rotation.advance(&reports, Moment(0), Moment(1));
            }
        }
        for (a, one) in &state {
            for (b, other) in &state {
                if !other.trusts.contains(&one.shows) {
                    return Err(format!("{b} refuses {a} in {:?}", rotation.phase()));
                }
            }
        }
    }
    Ok(rotation.phase())
}

#[test]
fn each_phase_waits_for_the_slowest_node() {
    let (old, new) = (print(1), print(2));
    let mut rotation = Rotation::at(Phase::Settled { authority: old }, Rules::ALL);
    assert!(rotation.begin(old).is_err());
    assert_eq!(rotation.advance(&BTreeMap::new(), Moment(0), NOW), Err(Hindrance::Settled));
    rotation.begin(new).expect("begun");
    assert!(rotation.begin(print(3)).is_err());
    assert_eq!((rotation.signer(), rotation.trusted()), (old, BTreeSet::from([old, new])));
    let report = |trusts: &[Fingerprint], shows| Some(Report { trusts: trusts.iter().copied().collect(), shows });
    let all = |one, two| BTreeMap::from([(NodeId(1), one), (NodeId(2), two)]);
    let waits = |node| Err(Hindrance::Nodes(BTreeSet::from([NodeId(node)])));
    assert_eq!(rotation.advance(&all(report(&[old, new], old), None), NOW, NOW), waits(2));
    assert_eq!(rotation.advance(&all(report(&[old], old), report(&[old, new], old)), NOW, NOW), waits(1));
    let ready = report(&[old, new], old);
    assert_eq!(rotation.advance(&all(ready.clone(), ready.clone()), NOW, NOW), Ok(Phase::Signing { old, new }));
    assert_eq!((rotation.signer(), rotation.trusted().len()), (new, 2));
    let done = report(&[old, new], new);
    assert_eq!(rotation.advance(&all(ready, done.clone()), Moment(0), NOW), waits(1));
    assert_eq!(rotation.advance(&all(done.clone(), done.clone()), NOW, NOW), Err(Hindrance::Outstanding(NOW)));
    assert_eq!(rotation.advance(&all(done.clone(), done), NOW, NOW.plus(1)), Ok(Phase::Settled { authority: new }));
    assert_eq!(rotation.trusted(), BTreeSet::from([new]));
}

#[test]
fn a_stolen_key_is_out_without_waiting() {
    let mut rotation = Rotation::at(Phase::Settled { authority: print(1) }, Rules::ALL);
    rotation.begin(print(2)).expect("begun");
    rotation.force();
    assert_eq!(rotation.force(), Phase::Settled { authority: print(2) });
    assert_eq!(rotation.force(), Phase::Settled { authority: print(2) });
}

#[test]
fn a_rotation_is_taken_back_until_the_new_authority_signs() {
    let mut rotation = Rotation::at(Phase::Settled { authority: print(1) }, Rules::ALL);
    rotation.begin(print(2)).expect("begun");
    assert_eq!(rotation.cancel(), Ok(Phase::Settled { authority: print(1) }));
    assert_eq!(rotation.cancel(), Ok(Phase::Settled { authority: print(1) }));
    rotation.begin(print(3)).expect("begun");
    rotation.force();
    assert!(rotation.cancel().is_err());
    assert_eq!(rotation.signer(), print(3));
}

#[test]
fn only_the_old_authority_names_the_new_one() {
    let cluster = Cluster::new();
    let (next, thief) = (Authority::create(cluster.id, NOW), Authority::create(cluster.id, NOW));
    let (next, thief) = (next.expect("made"), thief.expect("made"));
    let endorsed = Endorsed::new(&cluster.authority, next.certificate()).expect("signed");
    let (old, new) = (cluster.authority.certificate().fingerprint(), next.certificate().fingerprint());
    assert_eq!((endorsed.old(), endorsed.new_authority()), (old, new));
    assert_eq!(endorsed.certificate(&cluster.bundle(), cluster.id).as_ref(), Ok(next.certificate()));
    // By somebody else, for another cluster, for what is no authority.
    let own = Endorsed::new(&thief, thief.certificate()).expect("signed");
    assert!(own.certificate(&cluster.bundle(), cluster.id).is_err());
    assert!(endorsed.certificate(&cluster.bundle(), meridian_pki::ClusterId(1)).is_err());
    let node = Endorsed::new(&cluster.authority, cluster.pair(1).certificate()).expect("signed");
    assert!(node.certificate(&cluster.bundle(), cluster.id).is_err());
    // Each bit counts.
    let bytes = meridian_base::envelope::encode(&endorsed);
    for at in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[at / 8] ^= 1 << (at % 8);
        let Ok(read) = meridian_base::envelope::decode::<Endorsed>(&changed) else { continue };
        let believed = read.certificate(&cluster.bundle(), cluster.id);
        // A signature has other encodings of the same numbers; the certificate has none.
        assert!(believed.is_err() || believed.as_ref() == Ok(next.certificate()), "bit {at}");
    }
}

#[test]
fn a_stored_rotation_goes_forward() {
    let cluster = Cluster::new();
    let next = Authority::create(cluster.id, NOW).expect("made");
    let last = Authority::create(cluster.id, NOW).expect("made");
    let (old, new) = (cluster.authority.certificate().fingerprint(), next.certificate().fingerprint());
    let endorsed = Endorsed::new(&cluster.authority, next.certificate()).expect("signed");
    let at = |phase| StoredRotation { phase, endorsed: endorsed.clone(), signer: NodeId(1), is_forced: false };
    let introduced = at(Phase::Introduced { old, new });
    let signing = at(Phase::Signing { old, new });
    let (done, cancelled) = (at(Phase::Settled { authority: new }), at(Phase::Settled { authority: old }));
    let all = [&introduced, &signing, &done, &cancelled];
    let follow = |before: Option<&StoredRotation>| all.map(|next| next.may_follow(before));
    assert_eq!(follow(None), [true, false, false, false]);
    assert_eq!(follow(Some(&introduced)), [false, true, false, true]);
    assert_eq!(follow(Some(&signing)), [false, false, true, false]);
    assert_eq!(follow(Some(&done)), [false; 4]);
    assert_eq!(follow(Some(&cancelled)), [true, false, false, false]);
    // Another node's, or with another authority in the middle.
    let other = StoredRotation { signer: NodeId(2), ..signing.clone() };
    assert!(!other.may_follow(Some(&introduced)));
    let other = Endorsed::new(&cluster.authority, last.certificate()).expect("signed");
    assert!(!StoredRotation { endorsed: other, ..signing }.may_follow(Some(&introduced)));
    // The next one begins with the authority that signs now.
    let after = Endorsed::new(&next, last.certificate()).expect("signed");
    let (old, new) = (after.old(), after.new_authority());
    let again = StoredRotation { phase: Phase::Introduced { old, new }, endorsed: after, signer: NodeId(2), is_forced: false };
    assert!(again.may_follow(Some(&done)) && !again.may_follow(Some(&cancelled)));
}

/// Random steps; a bug is found by some of them.
pub fn explore(rules: Rules) -> Result<(), String> {
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut is_complete = false;
    for _ in 0..4_000 {
        let steps: Vec<(u32, u8)> = (0..120)
            .map(|_| {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                ((seed >> 8) as u32, (seed >> 40) as u8)
            })
            .collect();
        is_complete |= matches!(run(3, &steps, rules)?, Phase::Settled { .. });
    }
    assert!(is_complete, "some rotation gets to its end");
    Ok(())
}

proptest! {
    #[test]
    fn nobody_is_refused_in_between(nodes in 1..5u32, steps in prop::collection::vec((any::<u32>(), any::<u8>()), 0..200)) {
        prop_assert_eq!(run(nodes, &steps, Rules::ALL).err(), None);
    }
}

/// The same with certificates and handshakes.
#[tokio::test]
async fn handshakes_go_on_through_a_rotation() {
    let cluster = Cluster::new();
    let next = Authority::create(cluster.id, NOW).expect("an authority");
    let both = bundle(&[&cluster.authority, &next]);
    let only = bundle(&[&next]);
    let nodes: Vec<Tls> = (1..=3).map(|n| cluster.tls(n)).collect();
    let all_talk = async || {
        for (i, from) in nodes.iter().enumerate() {
            for (j, to) in nodes.iter().enumerate().filter(|(j, _)| *j != i) {
                call(from, to, j as u32 + 1).await.expect("accepted");
            }
        }
    };
    let change = async |what: &dyn Fn(u32) -> (Bundle, meridian_pki::directory::Pair)| {
        for (i, node) in nodes.iter().enumerate() {
            let (bundle, pair) = what(i as u32 + 1);
            node.replace(bundle, &pair).expect("replaced");
            all_talk().await;
        }
    };
    change(&|n| (both.clone(), cluster.pair(n))).await;
    change(&|n| (both.clone(), node_pair(&next, cluster.id, n, NOW))).await;
    change(&|n| (only.clone(), node_pair(&next, cluster.id, n, NOW))).await;
    // The old one is worth nothing any more.
    assert!(call(&cluster.tls(4), &nodes[0], 1).await.is_err());
    assert!(nodes[0].replace(only, &cluster.pair(1)).is_err());
    assert_ne!(Rules::without(PlantedBug::SignsEarly), Rules::ALL);
}
