//! Fixtures of the formats of this crate, and what damaged bytes do: nothing.

use meridian_base::escrow::Free;
use meridian_base::{GroupId, NodeId, Timestamp, TxnId, envelope};
use meridian_escrow::majority::{
    Accepted, Ballot, Here, Kept, Kind, Leader, Message, Part, Round, Rules, Site, Value, Want, Wants,
};
use meridian_fixtures::Fixtures;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn txn(n: u64) -> TxnId {
    TxnId { hlc: Timestamp(n), gateway: NodeId(1) }
}
fn tokens(down: i128, up: i128) -> Free {
    Free { down, up }
}
fn ballot(number: u64) -> Ballot {
    Ballot { number, site: GroupId(2) }
}
fn value() -> Value {
    let parts = [
        (GroupId(2), Part { offered: tokens(3, 0), granted: tokens(1, 4) }),
        (GroupId(4), Part { offered: tokens(0, 5), granted: tokens(2, 1) }),
    ];
    Value { hlc: Timestamp(70), parts: parts.into() }
}
fn accepted() -> Option<Accepted> {
    Some(Accepted { ballot: ballot(6), value: value() })
}
fn kept() -> BTreeMap<GroupId, Kept> {
    BTreeMap::from([(GroupId(5), Kept { instance: 7, hlc: Timestamp(60), change: tokens(-1, 2) })])
}
fn round() -> Round {
    let offer = Some(tokens(3, 1));
    Round { instance: 8, promised: ballot(6), offer, accepted: accepted(), kept: kept(), ..Round::new(txn(9)) }
}

/// One of each kind.
fn messages() -> Vec<Message> {
    let want = |tokens| Want { tokens, is_waiting: true };
    let wants = Wants { down: want(2), up: Want::default() };
    let part = Some(Kept { instance: 3, hlc: Timestamp(50), change: tokens(0, -1) });
    let kinds = [
        Kind::Ask { ballot: ballot(7) },
        Kind::Promise { ballot: ballot(7), offer: Some(tokens(3, 1)), wants, accepted: accepted() },
        Kind::Outbid { ballot: ballot(5), promised: ballot(7) },
        Kind::Accept { ballot: ballot(7), value: value() },
        Kind::Accepted { ballot: ballot(7) },
        Kind::Decided { value: value() },
        Kind::Fetch,
        Kind::Behind { part, kept: kept() },
        Kind::Over,
    ];
    kinds.map(|kind| Message { incarnation: txn(9), instance: 8, hlc: Timestamp(80), kind }).into()
}

fn read_round(bytes: &[u8]) -> Result<(String, Vec<u8>), String> {
    let round = Round::decode(bytes).ok_or("it is no round")?;
    Ok((format!("{round:?}"), round.encode().to_vec()))
}

fn read_message(bytes: &[u8]) -> Result<(String, Vec<u8>), String> {
    let message: Message = envelope::decode(bytes).map_err(|e| e.to_string())?;
    Ok((format!("{message:?}"), envelope::encode(&message)))
}

#[test]
fn what_was_written_is_read() {
    let mut fixtures = Fixtures::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/formats.txt"));
    fixtures.bytes("round, new", &Round::new(txn(9)).encode(), read_round);
    fixtures.bytes("round", &round().encode(), read_round);
    for (i, message) in messages().iter().enumerate() {
        let bytes = envelope::encode(message);
        assert_eq!(envelope::decode::<Message>(&bytes).as_ref(), Ok(message));
        fixtures.bytes(&format!("message {i}"), &bytes, read_message);
    }
    fixtures.finish();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    /// A damaged message that can still be read breaks no site and no leader.
    #[test]
    fn no_message_panics(
        of in 0..9usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        from in 2..6u32,
        instance in 0..10u64,
    ) {
        let mut bytes = envelope::encode(&messages()[of]);
        for (at, to) in changes {
            let at = at.index(bytes.len());
            bytes[at] = to;
        }
        let Ok(message) = envelope::decode::<Message>(&bytes) else { return Ok(()) };
        let stored = Round { instance, kept: BTreeMap::new(), ..round() };
        let here = Here {
            incarnation: Some(txn(9)),
            over: Timestamp::MIN,
            free: tokens(9, 9),
            keep: tokens(0, 0),
            wants: Wants::default(),
            may_offer: true,
            now: Timestamp(90),
        };
        let site = Site::new(GroupId(3), Rules::ALL);
        let sites: BTreeSet<GroupId> = (2..6).map(GroupId).collect();
        let mut at = stored;
        for _ in 0..2 {
            let begun = Leader::begin(&site, Some(&at), &here, txn(9), &sites, 0).expect("a ballot may begin");
            let mut leader = begun.leader;
            leader.enough(here.now);
            leader.receive(GroupId(from), &message, here.now);
            if let Some(write) = site.step(Some(&at), &here, GroupId(from), &message).write {
                write.round.invariant(GroupId(3));
                prop_assert_eq!(Round::decode(&write.round.encode()), Some(write.round.clone()));
                at = write.round;
            }
        }
    }
}
