//! The table of `docs/design/majority.md`: a site is brought into every state, every event happens
//! to it there, and what it does is written down as the table has it.

use meridian_base::escrow::Free;
use meridian_base::{GroupId, NodeId, Timestamp, TxnId};
use meridian_escrow::majority::{
    Accepted, Ballot, Here, Kept, Kind, Leader, Message, Part, Round, Rules, Site, Step, Value, Wants, Write,
};
use std::collections::{BTreeMap, BTreeSet};

const TABLE: &str = include_str!("../../../../docs/design/majority.md");

const LEADER: GroupId = GroupId(2);
const SITE: GroupId = GroupId(3);
const OTHER: GroupId = GroupId(4);
const INSTANCE: u64 = 5;
const OFFER: Free = Free { down: 2, up: 1 };

const STATES: [&str; 5] = ["Idle", "Bound", "Offered", "Voted", "Witness"];
const EVENTS: [&str; 11] =
    ["Ask↑", "Ask↓", "Accept↑", "Accept↓", "Decided", "earlier", "later", "Behind", "over", "ahead", "Begin"];

fn txn(n: u64) -> TxnId {
    TxnId { hlc: Timestamp(n), gateway: NodeId(1) }
}
fn ballot(number: u64) -> Ballot {
    Ballot { number, site: LEADER }
}

/// A value in which the site has part if it has offered.
fn value(of: Option<Free>) -> Value {
    let part = |offered: Free, granted: Free| Part { offered, granted };
    let (one, none) = (Free { down: 1, up: 1 }, Free::default());
    let mut parts = BTreeMap::from([(LEADER, part(one, one)), (OTHER, part(none, none))]);
    if let Some(offer) = of {
        parts.insert(SITE, part(offer, none));
        parts.insert(LEADER, part(one, Free { down: offer.down + 1, up: offer.up + 1 }));
    }
    Value { hlc: Timestamp(50), parts }
}

fn round(state: &str) -> Round {
    let new = Round { instance: INSTANCE, ..Round::new(txn(10)) };
    let accepted = |of| Some(Accepted { ballot: ballot(3), value: value(of) });
    match state {
        "Idle" => new,
        "Bound" => Round { promised: ballot(3), ..new },
        "Offered" => Round { promised: ballot(3), offer: Some(OFFER), ..new },
        "Voted" => Round { promised: ballot(3), offer: Some(OFFER), accepted: accepted(Some(OFFER)), ..new },
        "Witness" => Round { promised: ballot(3), accepted: accepted(None), ..new },
        _ => unreachable!("{state} is no state"),
    }
}

fn state(round: &Round) -> &'static str {
    match (round.promised == Ballot::NONE, round.offer.is_some(), round.accepted.is_some()) {
        (true, false, false) => "Idle",
        (false, false, false) => "Bound",
        (false, true, false) => "Offered",
        (false, true, true) => "Voted",
        (false, false, true) => "Witness",
        (true, ..) => unreachable!("offers and values come with a ballot: {round:?}"),
    }
}

/// What happens in a state; `None`: it cannot happen there.
fn happen(state: &str, event: &str) -> Option<Step> {
    let before = round(state);
    let site = Site::new(SITE, Rules::ALL);
    let here = Here {
        incarnation: Some(before.incarnation),
        over: Timestamp::MIN,
        free: Free { down: 4, up: 2 },
        keep: Free { down: 2, up: 1 },
        wants: Wants::default(),
        // SET waits there.
        may_offer: state != "Bound",
        now: Timestamp(90),
    };
    if before.promised == Ballot::NONE && event.ends_with('↓') {
        return None;
    }
    let own = INSTANCE;
    let kept = |instance| Kept { instance, hlc: Timestamp(40), change: Free { down: -1, up: 0 } };
    let (incarnation, instance, kind) = match event {
        "Ask↑" => (10, own, Kind::Ask { ballot: ballot(7) }),
        "Ask↓" => (10, own, Kind::Ask { ballot: ballot(2) }),
        "Accept↑" => (10, own, Kind::Accept { ballot: ballot(7), value: value(before.offer) }),
        "Accept↓" => (10, own, Kind::Accept { ballot: ballot(2), value: value(before.offer) }),
        "Decided" => (10, own, Kind::Decided { value: value(before.offer) }),
        "earlier" => (10, own - 1, Kind::Ask { ballot: ballot(7) }),
        "later" => (10, own + 1, Kind::Ask { ballot: ballot(7) }),
        "Behind" => {
            let part = before.offer.map(|_| kept(own));
            (10, own + 2, Kind::Behind { part, kept: BTreeMap::from([(OTHER, kept(own + 1))]) })
        }
        "over" => (9, own, Kind::Ask { ballot: ballot(7) }),
        "ahead" => (11, own, Kind::Ask { ballot: ballot(7) }),
        _ => {
            let sites = BTreeSet::from([LEADER, SITE, OTHER]);
            let begun = Leader::begin(&site, Some(&before), &here, before.incarnation, &sites, 0);
            let step = begun.map(|begun| Step {
                write: Some(begun.write),
                send: begun.leader.resend(here.now).into_iter().take(1).collect(),
            });
            return Some(step.unwrap_or_default());
        }
    };
    let message = Message { incarnation: txn(incarnation), instance, hlc: Timestamp(80), kind };
    Some(site.step(Some(&before), &here, LEADER, &message))
}

/// A cell, as the table has it.
fn cell(before: &str, event: &str) -> String {
    let Some(Step { write, send }) = happen(before, event) else { return "–".into() };
    if write.is_none() && send.is_empty() {
        return "–".into();
    }
    let old = round(before);
    let mut next = before;
    let mut does = Vec::new();
    if let Some(Write { round: new, granted }) = &write {
        new.invariant(SITE);
        next = state(new);
        let is_same = new.instance == old.instance;
        let written = [
            (is_same && new.promised != old.promised, "promise"),
            (is_same && new.offer != old.offer, "offer"),
            (is_same && new.accepted != old.accepted, "value"),
            (granted.is_some(), "grants"),
            (new.instance == old.instance + 1, "t + 1"),
            (new.instance > old.instance + 1, "the sender's t"),
            (new.kept != old.kept, "kept"),
        ];
        let written: Vec<&str> = written.iter().filter(|(is, _)| *is).map(|(_, what)| *what).collect();
        does.push(format!("**write** {}", written.join(", ")));
    }
    for (_, message) in &send {
        let said = match &message.kind {
            Kind::Promise { offer: None, .. } => "Promise without an offer",
            Kind::Promise { .. } => "Promise",
            Kind::Outbid { .. } => "Outbid",
            Kind::Accepted { .. } => "Accepted",
            Kind::Fetch => "Fetch",
            Kind::Behind { .. } => "Behind",
            Kind::Over => "Over",
            Kind::Ask { .. } => "Ask to the others",
            Kind::Accept { .. } | Kind::Decided { .. } => unreachable!("a site says no {message:?}"),
        };
        does.push(said.into());
    }
    match next == before {
        true => does.join("; "),
        false => format!("{} → {next}", does.join("; ")),
    }
}

#[test]
fn the_table_is_what_the_code_does() {
    let mut table = format!("| | {} |\n|{}\n", STATES.join(" | "), " --- |".repeat(STATES.len() + 1));
    for event in EVENTS {
        let cells: Vec<String> = STATES.iter().map(|before| cell(before, event)).collect();
        table.push_str(&format!("| **{event}** | {} |\n", cells.join(" | ")));
    }
    let (start, end) = ("<!-- site table, from the code -->\n\n", "\n<!-- end -->");
    let written = TABLE.split_once(start).and_then(|(_, rest)| rest.split_once(end)).map_or("", |(table, _)| table);
    assert!(written == table, "the table of docs/design/majority.md is not:\n{table}");
}

/// What a decision writes is one transaction (E18): grants, the next instance, no offer, and what
/// the others may not have.
#[test]
fn a_decision_is_one_write() {
    let Some(Step { write: Some(write), send }) = happen("Voted", "Decided") else { panic!("a decision is applied") };
    assert!(send.is_empty());
    let granted = write.granted.expect("the site has part");
    assert_eq!((granted.grant.down, granted.grant.up, granted.above), (-OFFER.down, -OFFER.up, Timestamp(50)));
    assert_eq!(granted.grant.incarnation, txn(10));
    let kept = |down, up| Kept { instance: INSTANCE, hlc: Timestamp(50), change: Free { down, up } };
    let expected = BTreeMap::from([(LEADER, kept(OFFER.down, OFFER.up)), (OTHER, kept(0, 0))]);
    assert_eq!(write.round, Round { instance: INSTANCE + 1, kept: expected, ..Round::new(txn(10)) });
}
