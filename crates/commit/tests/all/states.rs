//! The state table of `docs/design/transaction-states.md`: a participant over the real tables is
//! brought into every state, every event happens to it there, and what it does is written down as
//! the table has it.

use crate::world::{Group, Hold, Scenario, Slice, WATERMARK, group_id, key, prepare, txn};
use meridian_base::limits::{EARLY_VOTES_MAX, PREPARE_WAIT_MAX};
use meridian_base::record::Record;
use meridian_base::{BallotMessage, Conflict, ConflictReason, Peer, Prepare, Refusal, Standing, Timestamp, Vote};
use meridian_commit::{Action, PlantedBug, Rules};
use std::collections::BTreeMap;
use std::time::Duration;

const TABLE: &str = include_str!("../../../../docs/design/transaction-states.md");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unknown,
    Waiting,
    Preparing,
    Refusing,
    Prepared,
    Refused,
    Deciding,
    Committed,
    Aborted,
    Forgotten,
}
const STATES: [State; 10] = [
    State::Unknown,
    State::Waiting,
    State::Preparing,
    State::Refusing,
    State::Prepared,
    State::Refused,
    State::Deciding,
    State::Committed,
    State::Aborted,
    State::Forgotten,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Prepare,
    Yes,
    No,
    VoteRequest,
    OutcomeAck,
    Durable,
    FailOver,
    Timer,
    Watermark,
}
const EVENTS: [Event; 9] = [
    Event::Prepare,
    Event::Yes,
    Event::No,
    Event::VoteRequest,
    Event::OutcomeAck,
    Event::Durable,
    Event::FailOver,
    Event::Timer,
    Event::Watermark,
];

/// A transaction of two groups; this is the first one.
fn scenario(rules: Rules) -> Scenario {
    let slice = |group| Slice { group, reads: &[1], writes: &[1] };
    Scenario {
        skews: &[0, 0],
        transactions: vec![vec![slice(0), slice(1)]],
        crashes: 0,
        watermark: true,
        timers: true,
        waits: true,
        gateway_asks: false,
        hold: Hold::No,
        rules,
    }
}

struct Case {
    group: Group,
    out: Vec<Action>,
}

impl Case {
    fn new(rules: Rules) -> Case {
        Case { group: Group::new(0, &scenario(rules)), out: Vec::new() }
    }

    fn receive(&mut self, message: BallotMessage) {
        self.group.receive(message, &mut self.out);
        self.log();
    }
    /// What is to be logged is on its way; decisions are the engine's.
    fn log(&mut self) {
        // It looks at everything that is in memory.
        if self.group.participant.len() < 100 {
            self.group.participant.invariant(&self.group.state);
        }
        for action in &self.out {
            match action {
                Action::Log(record) => self.group.pending.push(record.clone()),
                Action::Decide { id, at } => self.group.decide(*id, *at),
                Action::Send { .. } | Action::Certify(_) => {}
            }
        }
    }
    fn certify(&mut self) {
        self.out.clear();
        self.group.certify(txn(0), &mut self.out);
        self.log();
    }
    fn durable(&mut self) {
        self.out.clear();
        self.group.durable(&mut self.out);
        self.log();
    }
    fn happen(&mut self, event: Event) {
        self.out.clear();
        let (id, from) = (txn(0), group_id(1));
        match event {
            Event::Prepare => {
                let slices = &scenario(Rules::ALL).transactions[0];
                self.receive(BallotMessage::Prepare(Box::new(prepare(0, slices, &slices[0], Hold::No))));
            }
            Event::Yes => self.receive(BallotMessage::Vote { id, from, vote: Vote::Yes(Timestamp::from_micros(5)) }),
            Event::No => self.receive(BallotMessage::Vote { id, from, vote: Vote::No(Refusal::default()) }),
            Event::VoteRequest => self.receive(BallotMessage::VoteRequest { id, from: Peer::Group(from) }),
            Event::OutcomeAck => self.receive(BallotMessage::OutcomeAck { id, from, reply: true }),
            Event::Durable => self.durable(),
            Event::FailOver => self.group.fail_over(0, Rules::ALL),
            Event::Timer => {
                self.group.timer(&mut self.out);
                self.log();
            }
            Event::Watermark => {
                self.group.watermark(&mut self.out);
                self.log();
            }
        }
    }

    fn is(state: State) -> Case {
        let mut case = Case::new(Rules::ALL);
        let events: &[Event] = match state {
            State::Unknown => &[],
            State::Waiting | State::Preparing => &[Event::Prepare],
            State::Refusing => &[Event::VoteRequest],
            State::Refused => &[Event::VoteRequest, Event::Durable],
            State::Prepared | State::Deciding | State::Committed | State::Aborted => &[Event::Prepare],
            State::Forgotten => &[Event::Watermark],
        };
        events.iter().for_each(|e| case.happen(*e));
        if matches!(state, State::Preparing | State::Prepared | State::Deciding | State::Committed | State::Aborted) {
            case.certify();
        }
        if matches!(state, State::Prepared | State::Deciding | State::Committed | State::Aborted) {
            case.durable();
        }
        match state {
            State::Deciding => case.happen(Event::Yes),
            State::Committed => [Event::Yes, Event::Durable].into_iter().for_each(|e| case.happen(e)),
            State::Aborted => [Event::No, Event::Durable].into_iter().for_each(|e| case.happen(e)),
            _ => {}
        }
        assert_eq!(case.state(), state);
        case
    }

    fn state(&self) -> State {
        let pending = self.group.pending.last();
        match (self.group.standing(0), pending) {
            (Standing::Prepared(_), Some(Record::Outcome(_))) => State::Deciding,
            (Standing::Prepared(_), _) => State::Prepared,
            (Standing::Refused, _) => State::Refused,
            (Standing::Decided { at: Some(_), .. }, _) => State::Committed,
            (Standing::Decided { at: None, .. }, _) => State::Aborted,
            (_, Some(Record::Prepared(_))) => State::Preparing,
            (_, Some(Record::Refused(_))) => State::Refusing,
            (_, _) if self.group.participant.certifying(txn(0)).is_some() => State::Waiting,
            (Standing::Forgotten, _) => State::Forgotten,
            (Standing::Unknown, _) => State::Unknown,
        }
    }

    /// What it did, in the words of the table.
    fn did(&self) -> String {
        let mut did: Vec<String> = Vec::new();
        let mut say = |what: &str, to: Option<&Peer>| {
            let whom = match to {
                Some(Peer::Gateway(_)) => " to the gateway",
                Some(Peer::Group(_)) => " to the group",
                None => "",
            };
            did.push(format!("{what}{whom}"));
        };
        for action in &self.out {
            match action {
                Action::Send { to, message } => match message {
                    BallotMessage::Vote { vote: Vote::Yes(_), .. } => say("YES", Some(to)),
                    BallotMessage::Vote { vote: Vote::No(_), .. } => say("NO", Some(to)),
                    BallotMessage::Vote { vote: Vote::Forgotten, .. } => say("FORGOTTEN", Some(to)),
                    BallotMessage::VoteRequest { .. } => say("VoteRequest", Some(to)),
                    BallotMessage::OutcomeAck { reply, .. } => say(if *reply { "OutcomeAck?" } else { "OutcomeAck" }, Some(to)),
                    BallotMessage::Prepare(_) => say("Prepare", Some(to)),
                },
                Action::Log(Record::Prepared(_)) => say("**log** Prepared", None),
                Action::Log(Record::Refused(_)) => say("**log** Refused", None),
                Action::Log(Record::Settled(_)) => say("**log** Settled", None),
                Action::Log(_) => say("**log** something else", None),
                Action::Certify(_) => say("certify", None),
                Action::Decide { at: Some(_), .. } => say("**log** Outcome(commit)", None),
                Action::Decide { at: None, .. } => say("**log** Outcome(abort)", None),
            }
        }
        if did.is_empty() { "–".into() } else { did.join(", ") }
    }
}

fn cell(state: State, event: Event) -> String {
    let mut case = Case::is(state);
    if event == Event::Durable && case.group.pending.is_empty() {
        return "–".into();
    }
    case.happen(event);
    let to = case.state();
    let arrow = if to == state { String::new() } else { format!(" → {to:?}") };
    format!("{}{arrow}", case.did())
}

fn table() -> String {
    let header: Vec<String> = EVENTS.iter().map(|e| format!("{e:?}")).collect();
    let mut lines = vec![format!("| | {} |", header.join(" | ")), format!("| --- |{}", " --- |".repeat(EVENTS.len()))];
    for state in STATES {
        let cells: Vec<String> = EVENTS.iter().map(|e| cell(state, *e)).collect();
        lines.push(format!("| **{state:?}** | {} |", cells.join(" | ")));
    }
    lines.join("\n")
}

/// Up to when the reads of GLOBAL rows hold is noted in the slice that is certified, and in no
/// other.
#[test]
fn what_is_certified_may_be_noted_in_until_it_is() {
    let mut case = Case::new(Rules::ALL);
    assert!(case.group.participant.certifying_mut(txn(0)).is_none());
    case.happen(Event::Prepare);
    assert!(case.group.participant.certifying_mut(txn(1)).is_none());
    let until = Timestamp::from_micros(9);
    case.group.participant.certifying_mut(txn(0)).expect("it is being certified").global.hold_until = until;
    assert_eq!(case.group.participant.certifying(txn(0)).map(|slice| slice.global.hold_until), Some(until));
    case.certify();
    assert!(case.group.participant.certifying_mut(txn(0)).is_none());
}

#[test]
fn the_document_has_the_table_of_the_code() {
    let table = table();
    let documented =
        TABLE.split_once("<!-- participant table, from the code -->").and_then(|(_, rest)| rest.split_once("<!-- end -->"));
    let documented = documented.expect("the table is marked").0.trim();
    assert!(documented == table, "docs/design/transaction-states.md should have\n\n{table}\n");
}

/// Counterexample 17: what another group has reserved ends although this one cannot certify.
#[test]
fn a_prepare_does_not_wait_for_ever() {
    for bug in [false, true] {
        let rules = if bug { Rules::without(PlantedBug::WaitWithoutBound) } else { Rules::ALL };
        let mut case = Case::new(rules);
        case.happen(Event::Prepare);
        case.happen(Event::VoteRequest);
        case.happen(Event::Timer);
        assert_eq!(case.state() == State::Refusing, !bug);
    }
}

/// A Prepare that is held back is certified when the hold is over, when somebody asks, or when only
/// its vote is missing.
#[test]
fn a_prepare_that_is_held_is_certified_when_it_is_wanted() {
    for wanted in [Event::Timer, Event::VoteRequest, Event::Yes] {
        let mut case = Case::new(Rules::ALL);
        let slices = &scenario(Rules::ALL).transactions[0];
        let mut held = prepare(0, slices, &slices[0], Hold::Back);
        held.hold = Duration::from_millis(40);
        case.receive(BallotMessage::Prepare(Box::new(held)));
        assert_eq!(case.did(), "–");
        case.happen(wanted);
        assert_eq!(case.did(), "certify");
        case.certify();
        case.durable();
        let voted = "YES to the group, YES to the gateway";
        assert!(case.did().starts_with(voted) && case.did().matches("YES").count() == 2, "once each");
        assert_eq!(case.state() == State::Deciding, wanted == Event::Yes);
    }
}

/// However long a gateway wants it held back: what other groups have reserved ends soon.
#[test]
fn a_prepare_is_not_held_back_for_longer_than_it_may_wait() {
    let due = |hold: Duration| {
        let mut case = Case::new(Rules::ALL);
        let slices = &scenario(Rules::ALL).transactions[0];
        let held = Prepare { hold, ..prepare(0, slices, &slices[0], Hold::Back) };
        case.receive(BallotMessage::Prepare(Box::new(held)));
        case.group.participant.next_tick().expect("it waits")
    };
    assert_eq!(due(Duration::from_secs(3_600)), due(PREPARE_WAIT_MAX));
    assert!(due(Duration::from_millis(10)) < due(PREPARE_WAIT_MAX));
}

/// The last but one does not have it certified: the others' votes are as far away as before.
#[test]
fn a_prepare_that_is_held_waits_for_every_other_vote() {
    let mut case = Case::new(Rules::ALL);
    let slices = &scenario(Rules::ALL).transactions[0];
    let participants = vec![group_id(0), group_id(1), group_id(2)];
    let held = Prepare { hold: Duration::from_millis(40), participants, ..prepare(0, slices, &slices[0], Hold::Back) };
    case.receive(BallotMessage::Prepare(Box::new(held)));
    for (from, did) in [(0, "–"), (1, "–"), (1, "–"), (2, "certify")] {
        case.out.clear();
        case.receive(BallotMessage::Vote { id: txn(0), from: group_id(from), vote: Vote::Yes(Timestamp::from_micros(5)) });
        assert_eq!(case.did(), did, "from {from}");
    }
}

/// A group's own vote is what its log says, whoever claims to speak for it.
#[test]
fn a_vote_in_this_groups_name_is_not_counted() {
    for vote in [Vote::Yes(Timestamp::from_micros(5)), Vote::No(Refusal::default()), Vote::Forgotten] {
        let mut case = Case::is(State::Prepared);
        case.out.clear();
        case.receive(BallotMessage::Vote { id: txn(0), from: group_id(0), vote });
        assert_eq!((case.did().as_str(), case.state()), ("–", State::Prepared));
        assert!(case.group.participant.votes(txn(0)).is_empty());
    }
}

/// The watermark passes a transaction that has begun to vote here: it votes, and is not called
/// forgotten meanwhile.
#[test]
fn what_has_begun_to_vote_is_not_forgotten_before_it_has() {
    for (state, event, did) in [
        (State::Waiting, Event::Prepare, "–"),
        (State::Waiting, Event::VoteRequest, "–"),
        (State::Waiting, Event::No, "**log** Refused"),
        (State::Preparing, Event::Prepare, "–"),
        (State::Preparing, Event::VoteRequest, "–"),
        (State::Refusing, Event::VoteRequest, "–"),
    ] {
        let mut case = Case::is(state);
        case.happen(Event::Watermark);
        case.happen(event);
        assert_eq!(case.did(), did, "{state:?}, {event:?}");
    }
}

/// Nobody else is there to remind a new term of it: time does.
#[test]
fn a_transaction_of_one_group_ends_in_whatever_term() {
    let mut case = Case::new(Rules::ALL);
    let slices = &scenario(Rules::ALL).transactions[0];
    let alone = Prepare { participants: vec![group_id(0)], ..prepare(0, slices, &slices[0], Hold::No) };
    case.receive(BallotMessage::Prepare(Box::new(alone)));
    case.certify();
    case.durable();
    assert_eq!(case.state(), State::Deciding);
    case.happen(Event::FailOver);
    assert_eq!(case.state(), State::Prepared);
    case.happen(Event::Timer);
    assert_eq!(case.did(), "**log** Outcome(commit)");
    case.durable();
    assert_eq!(case.state(), State::Committed);
    case.happen(Event::FailOver);
    case.happen(Event::Watermark);
    case.happen(Event::Timer);
    assert_eq!(case.did(), "**log** Settled");
}

/// One that is to vote last certifies when the other has voted YES, however early that came, and
/// refuses if it has to vote before.
#[test]
fn a_prepare_that_is_last_is_certified_after_the_others_alone() {
    let last = || {
        let slices = &scenario(Rules::ALL).transactions[0];
        BallotMessage::Prepare(Box::new(prepare(0, slices, &slices[0], Hold::Last)))
    };
    for (event, done) in [(Event::Timer, "refuse"), (Event::VoteRequest, "refuse"), (Event::Yes, "certify")] {
        let mut case = Case::new(Rules::ALL);
        case.receive(last());
        assert_eq!(case.did(), "–");
        case.happen(event);
        let did = case.did();
        assert!(did.contains(if done == "refuse" { "Refused" } else { done }), "{event:?}: {did}");
    }
    let mut case = Case::new(Rules::ALL);
    case.happen(Event::Yes);
    case.receive(last());
    assert_eq!(case.did(), "certify");
}

#[test]
fn what_is_settled_takes_no_space() {
    let mut case = Case::new(Rules::ALL);
    for event in [Event::Prepare, Event::Yes, Event::OutcomeAck] {
        case.happen(event);
    }
    case.certify();
    case.durable();
    assert_eq!(case.state(), State::Deciding, "the other's vote was there already");
    case.durable();
    assert_eq!(case.state(), State::Committed);
    case.happen(Event::Watermark);
    assert_eq!(case.did(), "**log** Settled");
    case.durable();
    assert_eq!(case.state(), State::Forgotten);
    assert!(case.group.participant.is_empty() && case.group.state.ballots_len() == 0);
    assert!(txn(0).hlc < WATERMARK);
}

/// It is logged once, however often the others say that they know the outcome.
#[test]
fn what_is_on_its_way_to_be_settled_is_not_settled_again() {
    let mut case = Case::is(State::Committed);
    case.happen(Event::Watermark);
    let settles = |case: &mut Case| {
        case.happen(Event::OutcomeAck);
        case.did().contains("**log** Settled")
    };
    assert!(settles(&mut case));
    assert!(!settles(&mut case));
    case.durable();
    assert_eq!(case.state(), State::Forgotten);
}

/// Two groups that commit, abort, refuse and acknowledge, with the watermark a thousand
/// transactions behind.
#[test]
fn what_is_remembered_does_not_grow_with_what_has_happened() {
    let scenario = scenario(Rules::ALL);
    let mut groups: Vec<Group> = (0..2).map(|n| Group::new(n, &scenario)).collect();
    let mut largest = 0;
    for t in 0..30_000 {
        let slice = |group| Slice { group, reads: &[], writes: &[1] };
        let slices = [slice(0), slice(1)];
        let mut messages: Vec<(usize, BallotMessage)> = Vec::new();
        for n in 0..2 {
            let message = match t % 7 {
                // The second group has never heard of it.
                3 if n == 1 => BallotMessage::VoteRequest { id: txn(t), from: Peer::Group(group_id(0)) },
                _ => BallotMessage::Prepare(Box::new(prepare(t, &slices, &slices[n], Hold::No))),
            };
            messages.push((n, message));
        }
        while let Some((n, message)) = messages.pop() {
            let mut out = Vec::new();
            groups[n].receive(message, &mut out);
            groups[n].go_on(&mut out, &mut messages);
        }
        for group in &mut groups {
            let mut out = Vec::new();
            group.watermark_to(txn(t.saturating_sub(1_000)).hlc, &mut out);
            group.go_on(&mut out, &mut messages);
            group.history.clear();
            largest = largest.max(group.participant.len()).max(group.state.ballots_len());
        }
        assert!(groups.iter().all(|g| g.state.prepared().len() == 0), "everything ends");
    }
    assert!((900..1_100).contains(&largest), "{largest} remembered");
}

/// A last resort: what is prepared and waits for votes that nobody can give. In every other state
/// something else ends it.
#[test]
fn an_operator_ends_what_is_in_doubt_once_and_nothing_else() {
    for state in STATES {
        for at in [None, Some(Timestamp::from_micros(1_000_000_000))] {
            let mut case = Case::is(state);
            let expected = match state {
                State::Prepared => vec![Action::Decide { id: txn(0), at }],
                _ => vec![],
            };
            let mut out = Vec::new();
            for _ in 0..2 {
                case.group.participant.end_in_doubt(&case.group.state, txn(0), at, &mut out);
            }
            assert_eq!(out, expected, "{state:?}");
            // Votes that come now change nothing.
            case.happen(Event::No);
            assert!(state != State::Prepared || case.did() == "–", "{}", case.did());
        }
    }
}

/// A group may be deleted when no other one names it: from before the record is in the log until
/// everybody has acknowledged the outcome.
#[test]
fn a_participant_names_whoever_it_may_still_ask() {
    for state in STATES {
        let case = Case::is(state);
        let named: Vec<_> = case.group.participant.names(&case.group.state).into_iter().collect();
        let is_open = matches!(state, State::Preparing | State::Prepared | State::Deciding | State::Committed);
        let expected = if is_open { vec![group_id(0), group_id(1)] } else { vec![] };
        assert_eq!(named, expected, "{state:?}");
    }
}

/// The other group is waited for: with its vote when this one is prepared, with its acknowledgement
/// when it has committed.
#[test]
fn what_is_missing_is_told_group_by_group() {
    for state in STATES {
        let case = Case::is(state);
        let missing = case.group.participant.waits_for(&case.group.state, txn(0));
        let expected = if matches!(state, State::Prepared | State::Committed) { vec![group_id(1)] } else { vec![] };
        assert_eq!(missing, expected, "{state:?}");
    }
    let mut case = Case::is(State::Committed);
    case.happen(Event::OutcomeAck);
    assert_eq!(case.group.participant.waits_for(&case.group.state, txn(0)), []);
}

/// How a Prepare may be treated is asked while it is certified, and is what it says.
#[test]
fn a_prepare_that_is_certified_keeps_its_turn_and_its_place_in_the_queue() {
    for (has_queued, is_late) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut case = Case::new(Rules::ALL);
        let slices = &scenario(Rules::ALL).transactions[0];
        let prepare = Prepare { has_queued, is_late, ..prepare(0, slices, &slices[0], Hold::No) };
        let asked = |case: &Case| (case.group.participant.has_queued(txn(0)), case.group.participant.is_late(txn(0)));
        assert_eq!(asked(&case), (false, false), "unknown");
        case.receive(BallotMessage::Prepare(Box::new(prepare)));
        assert_eq!(asked(&case), (has_queued, is_late));
        case.certify();
        assert_eq!(asked(&case), (false, false), "it is not certified any more");
    }
}

/// The other participants may have forgotten the transaction by then, or an operator may have ended
/// it there.
#[test]
fn a_prepare_that_is_older_than_the_watermark_may_be_gets_a_no() {
    for (rules, expected) in [(Rules::ALL, State::Refusing), (Rules::without(PlantedBug::LatePrepareAsNew), State::Waiting)] {
        let mut case = Case::new(rules);
        case.group.timer(&mut case.out);
        let slices = &scenario(rules).transactions[0];
        case.receive(BallotMessage::Prepare(Box::new(prepare(0, slices, &slices[0], Hold::No))));
        assert_eq!(case.state(), expected);
    }
}

/// T4: whoever hears a vote may rely on it, whatever becomes of this group's primary.
#[test]
fn a_vote_is_told_when_its_record_is_durable_and_not_before() {
    let is_sent = |action: &Action| matches!(action, Action::Send { .. });
    let mut case = Case::is(State::Waiting);
    case.certify();
    assert!(!case.out.iter().any(is_sent), "{}", case.did());
    assert_eq!(case.state(), State::Preparing);
    case.durable();
    assert_eq!(case.did(), "YES to the group, YES to the gateway");
    let mut case = Case::is(State::Refusing);
    assert!(!case.out.iter().any(is_sent), "{}", case.did());
    case.durable();
    assert!(case.out.iter().any(is_sent));
}

/// What the retry wants to know is for the gateway; the other groups need the NO alone.
#[test]
fn why_it_was_refused_is_told_to_the_gateway_alone() {
    let mut case = Case::is(State::Waiting);
    let conflict = Conflict { key: key(1), reason: ConflictReason::ConcurrentWrite };
    let refusal = Refusal { conflict: Some(conflict), fresh: Vec::new() };
    case.out.clear();
    case.group.participant.certified(txn(0), Err(refusal.clone()), &mut case.out);
    case.log();
    case.durable();
    let told = case.out.iter().filter_map(|action| match action {
        Action::Send { to, message: BallotMessage::Vote { vote: Vote::No(refusal), .. } } => Some((*to, refusal.clone())),
        _ => None,
    });
    let told: BTreeMap<Peer, Refusal> = told.collect();
    let gateway = Peer::Gateway(txn(0).gateway);
    assert_eq!(told, BTreeMap::from([(Peer::Group(group_id(1)), Refusal::default()), (gateway, refusal)]));
}

#[test]
fn votes_that_nobody_waits_for_are_dropped() {
    let mut case = Case::new(Rules::ALL);
    for t in 0..2 * EARLY_VOTES_MAX {
        case.receive(BallotMessage::Vote { id: txn(t), from: group_id(1), vote: Vote::Yes(Timestamp(9)) });
        assert_eq!(case.group.participant.len(), (t + 1).min(EARLY_VOTES_MAX), "none is dropped before that");
    }
    for _ in 0..=EARLY_VOTES_MAX / 512 {
        case.happen(Event::Timer);
    }
    assert!(case.group.participant.is_empty(), "and after a while all of them");
    case.group.participant.invariant(&case.group.state);
}
