//! Leaders by hand: what they ask, which value they take, and how they end.

use meridian_base::escrow::Free;
use meridian_base::{GroupId, NodeId, Timestamp, TxnId};
use meridian_escrow::majority::{
    Accepted, Ballot, End, Here, Kept, Kind, Leader, Message, Part, Round, Rules, Site, Step, Value, Want, Wants,
};
use std::collections::{BTreeMap, BTreeSet};

const OWN: GroupId = GroupId(2);
const INSTANCE: u64 = 3;
const NOW: Timestamp = Timestamp(100);

fn txn() -> TxnId {
    TxnId { hlc: Timestamp(9), gateway: NodeId(1) }
}
fn tokens(down: i128, up: i128) -> Free {
    Free { down, up }
}
fn here(free: Free, wants: Wants) -> Here {
    Here { incarnation: Some(txn()), over: Timestamp::MIN, free, keep: Free::default(), wants, may_offer: true, now: NOW }
}
fn wants(up: i128) -> Wants {
    Wants { down: Want::default(), up: Want { tokens: up, is_waiting: true } }
}
fn begin_with(stored: Round, of: u32, above: u64) -> Leader {
    let sites: BTreeSet<GroupId> = (2..2 + of).map(GroupId).collect();
    let site = Site::new(OWN, Rules::ALL);
    let begun = Leader::begin(&site, Some(&stored), &here(tokens(1, 1), wants(4)), txn(), &sites, above);
    begun.expect("a ballot begins").leader
}
fn begin(of: u32) -> Leader {
    begin_with(Round { instance: INSTANCE, ..Round::new(txn()) }, of, 0)
}
fn message(kind: Kind) -> Message {
    Message { incarnation: txn(), instance: INSTANCE, hlc: Timestamp(60), kind }
}
fn ballot(number: u64) -> Ballot {
    Ballot { number, site: OWN }
}
fn promise(offer: Option<Free>, accepted: Option<Accepted>) -> Message {
    message(Kind::Promise { ballot: ballot(1), offer, wants: Wants::default(), accepted })
}
/// What goes to whom, in short.
fn said(sent: &[(GroupId, Message)]) -> Vec<(u32, &'static str)> {
    let name = |kind: &Kind| match kind {
        Kind::Ask { .. } => "Ask",
        Kind::Accept { .. } => "Accept",
        Kind::Decided { .. } => "Decided",
        other => unreachable!("a leader says no {other:?}"),
    };
    sent.iter().map(|(to, message)| (to.0, name(&message.kind))).collect()
}
fn proposed(sent: &[(GroupId, Message)]) -> Value {
    match &sent.first().expect("a value is proposed").1.kind {
        Kind::Accept { value, .. } => value.clone(),
        other => panic!("{other:?}"),
    }
}
fn accepted(number: u64, site: u32, hlc: u64) -> Accepted {
    let part = Part { offered: tokens(1, 0), granted: tokens(1, 0) };
    let ballot = Ballot { number, site: GroupId(site) };
    Accepted { ballot, value: Value { hlc: Timestamp(hlc), parts: BTreeMap::from([(GroupId(site), part)]) } }
}

#[test]
fn all_answers_are_divided_at_once() {
    let mut leader = begin(3);
    assert_eq!(said(&leader.resend(NOW)), [(3, "Ask"), (4, "Ask")]);
    assert_eq!(leader.receive(GroupId(3), &promise(Some(tokens(2, 3)), None), NOW), []);
    assert_eq!(said(&leader.resend(NOW)), [(4, "Ask")]);
    // A site that only promises has no part.
    let sent = leader.receive(GroupId(4), &Message { hlc: Timestamp(170), ..promise(None, None) }, NOW);
    assert_eq!(said(&sent), [(2, "Accept"), (3, "Accept"), (4, "Accept")]);
    let value = proposed(&sent);
    // 3 down tokens in equal parts; of 4 up tokens all to whom waits for them.
    let parts = [
        (GroupId(2), Part { offered: tokens(1, 1), granted: tokens(2, 4) }),
        (GroupId(3), Part { offered: tokens(2, 3), granted: tokens(1, 0) }),
    ];
    assert_eq!(value, Value { hlc: NOW, parts: parts.into() }, "its time is that of those who have part");
    assert!(value.is_sound() && value.kept(GroupId(4), INSTANCE).is_none());

    let yes = message(Kind::Accepted { ballot: ballot(1) });
    assert_eq!(leader.receive(GroupId(4), &yes, NOW), []);
    assert_eq!(leader.receive(GroupId(4), &yes, NOW), [], "a repeated answer is one answer");
    assert_eq!(said(&leader.resend(NOW)), [(2, "Accept"), (3, "Accept")]);
    assert_eq!(said(&leader.receive(OWN, &yes, NOW)), [(2, "Decided"), (3, "Decided"), (4, "Decided")]);
    assert_eq!(leader.end(), Some(&End::Decided(value)));
    assert_eq!(leader.receive(GroupId(3), &yes, NOW), []);
}

#[test]
fn enough_is_a_majority_at_least() {
    let mut leader = begin(5);
    assert_eq!(leader.receive(GroupId(3), &promise(Some(tokens(0, 1)), None), NOW), []);
    assert_eq!(leader.enough(NOW), [], "two of five");
    let sent = leader.receive(GroupId(6), &promise(Some(tokens(0, 1)), None), NOW);
    assert_eq!(proposed(&sent).parts.keys().map(|site| site.0).collect::<Vec<_>>(), [2, 3, 6]);
    assert_eq!(leader.receive(GroupId(4), &promise(Some(tokens(0, 9)), None), NOW), [], "too late");

    let mut leader = begin(5);
    leader.receive(GroupId(3), &promise(Some(tokens(0, 1)), None), NOW);
    leader.receive(GroupId(4), &promise(Some(tokens(0, 1)), None), NOW);
    assert_eq!(said(&leader.resend(NOW)), [(5, "Ask"), (6, "Ask")], "more may come");
    assert_eq!(proposed(&leader.enough(NOW)).parts.len(), 3);
    // Alone, too.
    let mut alone = begin(1);
    assert_eq!(said(&alone.enough(NOW)), [(2, "Accept")]);
    assert_eq!(said(&alone.receive(OWN, &message(Kind::Accepted { ballot: ballot(1) }), NOW)), [(2, "Decided")]);
}

#[test]
fn of_accepted_values_the_highest_is_taken() {
    let mut leader = begin(5);
    leader.receive(GroupId(3), &promise(Some(tokens(0, 1)), Some(accepted(4, 3, 7))), NOW);
    let sent = leader.receive(GroupId(4), &promise(None, Some(accepted(4, 5, 8))), NOW);
    assert_eq!(proposed(&sent), accepted(4, 5, 8).value, "a majority is enough then");

    // Its own, too; and it need not have an offer out.
    let stored = Round { promised: ballot(6), accepted: Some(accepted(6, 2, 5)), instance: INSTANCE, ..Round::new(txn()) };
    let mut leader = begin_with(stored, 3, 0);
    let answer = Kind::Promise { ballot: ballot(7), offer: None, wants: Wants::default(), accepted: None };
    assert_eq!(proposed(&leader.receive(GroupId(3), &message(answer), NOW)), accepted(6, 2, 5).value);
}

#[test]
fn a_ballot_is_above_all_that_are_known() {
    let asks = |leader: &Leader| match leader.resend(NOW)[0].1.kind {
        Kind::Ask { ballot } => ballot,
        ref other => panic!("{other:?}"),
    };
    let stored = || Round { promised: Ballot { number: 5, site: GroupId(4) }, instance: INSTANCE, ..Round::new(txn()) };
    assert_eq!(asks(&begin(3)), ballot(1));
    assert_eq!(asks(&begin_with(stored(), 3, 0)), ballot(6));
    assert_eq!(asks(&begin_with(stored(), 3, 8)), ballot(9));
}

#[test]
fn a_leader_that_no_majority_follows_ends() {
    let outbid = |by| message(Kind::Outbid { ballot: ballot(1), promised: Ballot { number: by, site: GroupId(4) } });
    let mut leader = begin(5);
    assert_eq!(leader.receive(GroupId(3), &outbid(5), NOW), []);
    leader.receive(GroupId(3), &outbid(7), NOW);
    assert_eq!(said(&leader.resend(NOW)), [(4, "Ask"), (5, "Ask"), (6, "Ask")]);
    leader.receive(GroupId(4), &outbid(6), NOW);
    assert_eq!((leader.end(), leader.highest()), (None, 7));
    leader.receive(GroupId(5), &outbid(6), NOW);
    assert_eq!((leader.end(), leader.highest()), (Some(&End::Outbid), 7));
    assert_eq!(leader.resend(NOW), []);

    // Without those who are outbid, all have answered.
    let mut leader = begin(3);
    leader.receive(GroupId(3), &outbid(5), NOW);
    let sent = leader.receive(GroupId(4), &promise(Some(tokens(0, 0)), None), NOW);
    assert_eq!(said(&sent), [(2, "Accept"), (4, "Accept")]);
}

#[test]
fn answers_to_other_ballots_say_nothing() {
    let mut leader = begin_with(Round { instance: INSTANCE, ..Round::new(txn()) }, 3, 4);
    let offer = Some(tokens(0, 1));
    let before = leader.clone();
    let other_site = Ballot { number: 5, site: GroupId(3) };
    let answer = |ballot| Kind::Promise { ballot, offer, wants: Wants::default(), accepted: None };
    let stray = [
        message(answer(ballot(4))),
        message(answer(other_site)),
        message(Kind::Accepted { ballot: ballot(5) }),
        message(Kind::Outbid { ballot: ballot(4), promised: other_site }),
        message(Kind::Decided { value: accepted(1, 3, 1).value }),
        message(Kind::Fetch),
        Message { instance: INSTANCE - 1, ..message(answer(ballot(5))) },
        Message { incarnation: TxnId::default(), ..message(answer(ballot(5))) },
        Message { incarnation: TxnId::default(), ..message(Kind::Over) },
        Message { instance: INSTANCE - 1, ..message(Kind::Behind { part: None, kept: BTreeMap::new() }) },
        message(Kind::Promise { ballot: ballot(5), offer: Some(tokens(-1, 0)), wants: Wants::default(), accepted: None }),
    ];
    for stray in &stray {
        assert_eq!(leader.receive(GroupId(3), stray, NOW), [], "{stray:?}");
        assert_eq!(leader, before, "{stray:?}");
    }
    // And those of sites that the row does not have.
    leader.receive(GroupId(9), &message(answer(ballot(5))), NOW);
    assert_eq!(leader, before);
}

#[test]
fn a_leader_ends_with_its_instance() {
    let mut leader = begin(3);
    let behind = Message { instance: INSTANCE + 1, ..message(Kind::Behind { part: None, kept: BTreeMap::new() }) };
    leader.receive(GroupId(3), &behind, NOW);
    assert_eq!((leader.end(), leader.resend(NOW)), (Some(&End::Behind), Vec::new()));
    let mut leader = begin(3);
    leader.receive(GroupId(3), &message(Kind::Over), NOW);
    assert_eq!(leader.end(), Some(&End::Over));

    let at = |instance| Round { instance, ..Round::new(txn()) };
    assert!(leader.is_current(&at(INSTANCE)) && !leader.is_current(&at(INSTANCE + 1)));
    assert!(!leader.is_current(&Round { instance: INSTANCE, ..Round::new(TxnId::default()) }));
}

/// A site without a share takes part, and leads, under the row's incarnation.
#[test]
fn a_site_without_a_share_takes_part() {
    let site = Site::new(OWN, Rules::ALL);
    let here = Here { incarnation: None, ..here(tokens(0, 0), wants(1)) };
    let ask = Message { instance: 0, ..message(Kind::Ask { ballot: Ballot { number: 1, site: GroupId(3) } }) };
    let step = site.step(None, &here, GroupId(3), &ask);
    let round = step.write.expect("it promises").round;
    assert_eq!((round.incarnation, round.offer), (txn(), Some(tokens(0, 0))));
    assert!(site.is_out(Some(&round), None) && !site.may_set(Some(&round), None));
    // The row was deleted since.
    let over = |here: &Here, stored: Option<&Round>| {
        let step = site.step(stored, here, GroupId(3), &ask);
        step.write.is_none() && matches!(step.send[..], [(GroupId(3), Message { kind: Kind::Over, .. })])
    };
    assert!(over(&Here { over: txn().hlc, ..here }, None) && !over(&Here { over: Timestamp(8), ..here }, None));
    // And inserted again, as other sites have told.
    let newer = Round::new(TxnId { hlc: Timestamp(10), ..txn() });
    assert!(over(&here, Some(&newer)));
    // An older round is none.
    let older = Round { promised: ballot(9), ..Round::new(TxnId { hlc: Timestamp(8), ..txn() }) };
    let again = site.step(Some(&older), &here, GroupId(3), &ask);
    assert_eq!(again.write.map(|write| write.round), Some(round));
}

/// What is held is the offer, of the share's incarnation.
#[test]
fn an_offer_is_held() {
    let site = Site::new(OWN, Rules::ALL);
    let here = Here { keep: tokens(2, 9), ..here(tokens(5, 5), Wants::default()) };
    let step = site.step(
        None,
        &here,
        GroupId(3),
        &Message { instance: 0, ..message(Kind::Ask { ballot: Ballot { number: 1, site: GroupId(3) } }) },
    );
    let round = step.write.expect("it promises").round;
    assert_eq!(site.held(Some(&round), Some(txn())), tokens(3, 0));
    assert_eq!(site.held(Some(&round), Some(TxnId::default())), tokens(0, 0));
    assert_eq!(site.held(None, Some(txn())), tokens(0, 0));
    assert!(!site.is_out(Some(&round), Some(TxnId::default())) && site.may_set(None, Some(txn())));
    // A higher ballot finds the same offer, whatever is free now.
    let higher = Message { instance: 0, ..message(Kind::Ask { ballot: Ballot { number: 2, site: GroupId(3) } }) };
    let step = site.step(Some(&round), &Here { free: tokens(9, 9), ..here }, GroupId(3), &higher);
    assert_eq!(step.write.map(|write| write.round.offer), Some(Some(tokens(3, 0))));
}

/// What is kept for a site goes when the site is seen beyond it, with the next write.
#[test]
fn what_a_site_has_is_not_kept_for_it() {
    let site = Site::new(OWN, Rules::ALL);
    let here = here(tokens(5, 5), Wants::default());
    let kept = Kept { instance: INSTANCE - 1, hlc: NOW, change: tokens(1, 0) };
    let all = BTreeMap::from([(GroupId(3), kept), (GroupId(4), kept)]);
    let stored = Round { instance: INSTANCE, kept: all.clone(), ..Round::new(txn()) };
    let of = |site| Kind::Ask { ballot: Ballot { number: 1, site: GroupId(site) } };
    let step = site.step(Some(&stored), &here, GroupId(3), &message(of(3)));
    assert_eq!(step.write.map(|write| write.round.kept), Some(BTreeMap::from([(GroupId(4), kept)])));
    // In the instance of the decision it is not beyond it, and gets its part, and what others lack.
    let asked = Message { instance: INSTANCE - 1, ..message(of(3)) };
    let step = site.step(Some(&stored), &here, GroupId(3), &asked);
    let told = Kind::Behind { part: Some(kept), kept: BTreeMap::from([(GroupId(4), kept)]) };
    assert_eq!((step.write, step.send), (None, vec![(GroupId(3), Message { hlc: NOW, ..message(told) })]));
    // Who has no part is told so, with all of it.
    let asked = Message { instance: INSTANCE - 1, ..message(Kind::Fetch) };
    let step = site.step(Some(&stored), &here, GroupId(5), &asked);
    let told = Kind::Behind { part: None, kept: all };
    assert_eq!((step.write, step.send), (None, vec![(GroupId(5), Message { hlc: NOW, ..message(told) })]));
}

#[test]
fn a_repeated_message_is_answered_again_and_not_written() {
    let site = Site::new(OWN, Rules::ALL);
    let here = here(tokens(5, 5), Wants::default());
    let ballot = Ballot { number: 1, site: GroupId(3) };
    let value = accepted(1, 3, 7).value;
    let mut stored = Round { instance: INSTANCE, ..Round::new(txn()) };
    for kind in [Kind::Ask { ballot }, Kind::Accept { ballot, value }] {
        let first = site.step(Some(&stored), &here, GroupId(3), &message(kind.clone()));
        stored = first.write.expect("it is new").round;
        let second = site.step(Some(&stored), &here, GroupId(3), &message(kind));
        assert_eq!((second.write, second.send), (None, first.send));
    }
}

#[test]
fn numbers_that_are_far_ahead_are_ignored() {
    const FAR: u64 = 1 << 33;
    let stored = Round { instance: INSTANCE, promised: ballot(5), ..Round::new(txn()) };
    let from = GroupId(3);
    let site = Site::new(OWN, Rules::ALL);
    let hears = |instance: u64, kind: Kind| {
        let message = Message { instance, ..message(kind) };
        site.step(Some(&stored), &here(tokens(1, 1), wants(4)), from, &message) != Step::default()
    };
    let of_other = |number: u64| Ballot { number, site: from };
    assert!(hears(INSTANCE, Kind::Ask { ballot: of_other(6) }));
    assert!(!hears(INSTANCE, Kind::Ask { ballot: of_other(FAR) }));
    assert!(!hears(INSTANCE, Kind::Accept { ballot: of_other(FAR), value: accepted(1, 3, 50).value }));
    let behind = || Kind::Behind { part: None, kept: BTreeMap::new() };
    assert!(hears(INSTANCE + 2, behind()));
    assert!(!hears(FAR, behind()));

    let mut leader = begin(3);
    leader.receive(from, &message(Kind::Outbid { ballot: ballot(1), promised: of_other(FAR) }), NOW);
    assert_eq!(leader.highest(), 1);
    leader.receive(from, &message(Kind::Outbid { ballot: ballot(1), promised: of_other(7) }), NOW);
    assert_eq!(leader.highest(), 7);
}

#[test]
fn values_with_sites_that_the_row_does_not_have_are_ignored() {
    let sites: BTreeSet<GroupId> = [2, 3, 4].map(GroupId).into();
    let value = |site: u32| accepted(1, site, 50).value;
    let kept = |site: u32| BTreeMap::from([(GroupId(site), Kept { instance: 1, hlc: NOW, change: tokens(0, 0) })]);
    let about: [&dyn Fn(u32) -> Kind; 4] = [
        &|site| Kind::Accept { ballot: ballot(1), value: value(site) },
        &|site| Kind::Decided { value: value(site) },
        &|site| Kind::Behind { part: None, kept: kept(site) },
        &|site| Kind::Promise { ballot: ballot(1), offer: None, wants: Wants::default(), accepted: Some(accepted(1, site, 50)) },
    ];
    for about in about {
        assert!(message(about(4)).is_of(&sites));
        assert!(!message(about(9)).is_of(&sites));
    }
    let mut leader = begin(3);
    assert_eq!(leader.receive(GroupId(3), &promise(None, Some(accepted(1, 9, 50))), NOW), []);
    assert_eq!(said(&leader.receive(GroupId(3), &promise(None, Some(accepted(1, 4, 50))), NOW)).len(), 3);
}
