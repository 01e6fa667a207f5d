//! Transactions in doubt: prepared at a group that misses a vote.
//!
//! As a rule they end by themselves, as soon as the participants reach each other. One whose
//! participant is gone for good, because all its nodes are lost, does not; it blocks the rows that
//! it reserves. `SHOW TRANSACTIONS` says why each of them waits, and `RESOLVE TRANSACTION` ends
//! one, as a last resort:
//!
//! * If a node that can be asked knows the outcome, or all votes together give it, that is the
//!   outcome, whatever the operator wants.
//! * If all participants answer, or one that answers has not voted and so will vote NO, the
//!   protocol ends it by itself: 55000.
//! * Else the operator's choice may contradict what the participant that cannot be reached has
//!   done: half of the transaction may be applied (T5). So the statement has to say `UNSAFE`, and
//!   the transaction has to be older than the watermark: then a participant that comes back later,
//!   prepared, is told «forgotten» after an abort, and aborts too; and after a commit the votes of
//!   all who answered now, and commits too, at the same timestamp unless its own vote is the
//!   largest. A participant that has not voted yet votes NO when it goes on, since the Prepare is
//!   too old by then.
//!
//!   Three kinds of participants contradict the operator. One that voted NO, or has not voted,
//!   contradicts a commit. One that was suspended while prepared contradicts an abort if the
//!   others' votes are in its network buffers: it reads them first, and commits. One that has the
//!   other outcome in its log contradicts either.

use crate::gateway::Gateway;
use crate::membership::ask::Ask;
use crate::membership::ranges;
use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::transport::wire::{Knowledge, Known, PreparedTransaction, Request, Response, Said};
use meridian_base::{Error, GroupId, NodeId, Result, Timestamp, TxnId, limits};
use meridian_sql::env::TransactionRow;
use meridian_sql::jobs::listed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A node that takes longer to say what is prepared there is left out.
const ASK_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a participant's primary is looked for.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// What the other live nodes answer; who does not answer is left out.
async fn ask_others(shared: &Arc<Shared>, request: Request) -> Vec<Response> {
    let others = shared.catalog.nodes().into_iter().filter(|n| n.id != shared.me() && shared.peers.is_live(n.id));
    let asked = others.map(|n| {
        let (shared, request) = (shared.clone(), request.clone());
        async move { shared.rpc.call(n.id, request, ASK_TIMEOUT).await }
    });
    futures::future::join_all(asked).await.into_iter().flatten().collect()
}

/// What is prepared at the groups that live nodes lead, and why it is. A node that does not answer
/// is left out.
pub(crate) async fn everywhere(shared: &Arc<Shared>) -> Vec<TransactionRow> {
    let mut prepared = shared.groups.transactions();
    for answer in ask_others(shared, Request::Transactions).await {
        if let Response::Transactions(theirs) = answer {
            prepared.extend(theirs);
        }
    }
    prepared.sort_by_key(|t| (t.id.hlc, t.id.gateway, t.group));
    let primaries: BTreeMap<GroupId, NodeId> = match prepared.is_empty() {
        true => BTreeMap::new(),
        false => ranges::everywhere(shared).await.into_iter().map(|(group, status)| (group, status.primary)).collect(),
    };
    let names = |groups: &[GroupId]| groups.iter().map(ToString::to_string).collect();
    let row = |t: PreparedTransaction| TransactionRow {
        id: t.id.to_string(),
        gateway: t.id.gateway,
        group: t.group.to_string(),
        age_micros: t.age_micros,
        participants: names(&t.participants),
        waits_for: names(&t.waits_for),
        why: match &t.waits_for[..] {
            [] => vec![t.stage],
            groups => groups.iter().map(|group| why(shared, *group, &primaries)).collect(),
        },
    };
    prepared.into_iter().map(row).collect()
}

/// Why the vote of a group is missing.
fn why(shared: &Shared, group: GroupId, primaries: &BTreeMap<GroupId, NodeId>) -> String {
    if shared.catalog.has_deleted(group) {
        return format!("group {group} was deleted");
    }
    let home = shared.catalog.group(group).map(|g| format!(" in region \"{}\"", g.home)).unwrap_or_default();
    match primaries.get(&group) {
        Some(node) => format!("group {group}{home} has not voted yet; its primary {node} answers"),
        None => format!("no primary of group {group}{home} answers"),
    }
}

/// What this node knows of a transaction.
pub(crate) fn known_here(gateway: &Gateway, id: TxnId) -> Knowledge {
    Knowledge {
        is_counting: gateway.ballots.lock().contains_key(&id),
        groups: gateway.shared.groups.all().iter().filter(|r| r.is_serving()).filter_map(|r| r.known(id)).collect(),
    }
}

/// How a transaction in doubt can end.
#[derive(Debug, PartialEq, Eq)]
enum Way {
    /// No group has it in doubt.
    Over,
    /// The protocol ends it, and why.
    ByItself(String),
    /// A node knows: `None` is an abort.
    Known(Option<Timestamp>),
    /// These participants cannot be asked. `commit`: the timestamp of a commit by the votes that
    /// are known.
    InDoubt { missing: Vec<GroupId>, commit: Timestamp },
}

/// What follows from all that can be asked. `known`: of every group that answers.
fn way(known: &[Known]) -> Way {
    let participants: BTreeSet<GroupId> = known.iter().flat_map(|k| k.participants.iter().copied()).collect();
    let answering: Vec<&Known> = known.iter().filter(|k| participants.contains(&k.group)).collect();
    if !answering.iter().any(|k| matches!(k.said, Said::Yes(_))) {
        return Way::Over;
    }
    for k in &answering {
        match k.said {
            Said::Committed { at, .. } => return Way::Known(Some(at)),
            Said::Aborted => return Way::Known(None),
            Said::No => return Way::ByItself(format!("group {} has voted NO", k.group)),
            Said::Nothing => return Way::ByItself(format!("group {} has not voted, and will vote NO", k.group)),
            Said::Yes(_) => {}
        }
    }
    let mut votes: BTreeMap<GroupId, Option<Timestamp>> = answering.iter().flat_map(|k| k.votes.clone()).collect();
    votes.extend(answering.iter().filter_map(|k| if let Said::Yes(at) = k.said { Some((k.group, Some(at))) } else { None }));
    votes.retain(|group, _| participants.contains(group));
    if votes.values().any(Option::is_none) {
        return Way::Known(None);
    }
    let commit = votes.values().flatten().max().copied().unwrap_or_default();
    let missing: Vec<GroupId> = participants.iter().copied().filter(|g| !answering.iter().any(|k| k.group == *g)).collect();
    match votes.len() == participants.len() {
        _ if missing.is_empty() => Way::ByItself("all its participants answer".to_string()),
        true => Way::Known(Some(commit)),
        false => Way::InDoubt { missing, commit },
    }
}

fn refused(id: TxnId, why: impl std::fmt::Display) -> Error {
    Error::sql("55000", format!("transaction {id} is not ended by hand: {why}"))
        .hint("SHOW TRANSACTIONS shows what is in doubt, and why.")
}

/// See [`meridian_sql::env::Environment::resolve_transaction`].
pub(crate) async fn resolve(gateway: &Arc<Gateway>, id: &str, commit: bool, is_unsafe: bool) -> Result<Vec<String>> {
    let id = parse(id).ok_or_else(|| Error::sql("22023", format!("\"{id}\" is not the id of a transaction")))?;
    let shared = &gateway.shared;
    let mut known = known_here(gateway, id);
    for answer in ask_others(shared, Request::Knows(id)).await {
        if let Response::Knows(theirs) = answer {
            known.is_counting |= theirs.is_counting;
            known.groups.extend(theirs.groups);
        }
    }
    if known.is_counting {
        return Err(refused(id, "its gateway still counts the votes"));
    }
    let (mut outcome, how) = match way(&known.groups) {
        Way::Over => return Err(Error::sql("42704", format!("no group that answers has transaction {id} in doubt"))),
        Way::ByItself(why) => return Err(refused(id, format!("{why}, so it ends by itself"))),
        Way::Known(outcome) => (outcome, "as others know it"),
        Way::InDoubt { missing, commit: at } => {
            let young = known.groups.iter().any(|k| matches!(k.said, Said::Yes(_)) && !k.is_old);
            if young {
                let lag = limits::WATERMARK_LAG.as_secs();
                return Err(refused(id, format!("it is younger than {lag} s, and those who vote in it may still answer")));
            }
            let missing = listed(&missing);
            if !is_unsafe {
                let contrary = if commit { "aborted" } else { "committed" };
                return Err(refused(id, format!("{missing} cannot be asked"))
                    .detail(format!("If {missing} has {contrary} it, half of it is applied and the other half is not, for ever."))
                    .hint(
                        "Bring the nodes of the group back if that is possible at all. If they are lost for good, say UNSAFE.",
                    ));
            }
            (commit.then_some(at), "by the operator's decision")
        }
    };
    let word = if outcome.is_some() { "commits" } else { "aborts" };
    tracing::warn!("{id}, which is in doubt, {word} {how}");
    // Two operators may want opposite outcomes. Both tell the group with the smallest number first,
    // and no other group before that one has answered. Its log puts the two in order.
    let prepared: BTreeSet<GroupId> = known.groups.iter().filter(|k| matches!(k.said, Said::Yes(_))).map(|k| k.group).collect();
    let (mut ended, mut told) = (Vec::new(), vec![format!("transaction {id} {word} {how}")]);
    for group in prepared {
        let said = match shared.call_primary(group, END_PATIENCE, &End { group, id, at: outcome }).await {
            Ok(said) => said,
            // It says why, and nothing is changed.
            Err(e) if ended.is_empty() && !e.is_unavailable() => return Err(e),
            Err(e) if ended.is_empty() => {
                return Err(Error::unavailable(format!("group {group}, which ends transaction {id} first, has not answered"))
                    .detail(e.message().to_string())
                    .hint("Run the statement again: a group that has ended the transaction keeps its outcome."));
            }
            Err(e) => {
                told.push(format!("group {group} has not been told ({}): run the statement again", e.message()));
                continue;
            }
        };
        if said == Said::Nothing && !ended.is_empty() {
            // By itself: the participant that was missing has come back.
            told.push(format!("group {group} has ended it already"));
            continue;
        }
        if let Some(contrary) = contrary(said, outcome) {
            return Err(match &ended[..] {
                [] => refused(id, format!("group {group} {contrary}")),
                groups => Error::sql("55000", format!("half of transaction {id} is applied and the other half is not"))
                    .detail(format!("{} {word} it by this statement; group {group} {contrary}.", listed(groups)))
                    .hint("Another operator has ended it meanwhile. Compare the rows, and mend them by hand."),
            });
        }
        if let Said::Committed { at, .. } = said {
            // With the votes that another operator knew.
            outcome = Some(at);
        }
        ended.push(group);
        told.push(format!("group {group} ends it"));
    }
    Ok(told)
}

/// What a group has done, if that is not what it was told to do.
fn contrary(said: Said, outcome: Option<Timestamp>) -> Option<&'static str> {
    match (said, outcome) {
        (Said::Committed { .. }, None) => Some("has committed it"),
        (Said::Aborted | Said::No, Some(_)) => Some("has aborted it"),
        // An abort may be forgotten at once. A commit is not, before every participant has it.
        (Said::Nothing, Some(_)) => Some("has ended it already, as an abort or with every other participant"),
        _ => None,
    }
}

/// Tells a group's primary. A second copy finds nothing in doubt, and hears what it has ended as.
struct End {
    group: GroupId,
    id: TxnId,
    at: Option<Timestamp>,
}

impl Ask for End {
    type Answer = Said;
    const TIMEOUT: Duration = ASK_TIMEOUT;
    fn request(&self) -> Request {
        Request::EndInDoubt { group: self.group, id: self.id, at: self.at }
    }
    fn answer(response: Response) -> Option<Said> {
        if let Response::Ended(said) = response { Some(said) } else { None }
    }
    async fn here(&self, _: &Arc<Shared>, replica: &Arc<Replica>) -> Result<Said> {
        replica.end_in_doubt(self.id, self.at).await
    }
}

/// An id as it is shown: `t<clock>.<gateway>`.
fn parse(id: &str) -> Option<TxnId> {
    let (hlc, gateway) = id.strip_prefix('t')?.split_once('.')?;
    let (hlc, gateway) = (hlc.parse().ok()?, gateway.parse().ok()?);
    Some(TxnId { hlc: Timestamp(hlc), gateway: NodeId(gateway) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(group: u32, said: Said, votes: &[(u32, Option<u64>)]) -> Known {
        Known {
            group: GroupId(group),
            said,
            participants: match said {
                Said::Yes(_) | Said::Committed { .. } => vec![GroupId(7), GroupId(8), GroupId(9)],
                _ => Vec::new(),
            },
            votes: votes.iter().map(|(g, at)| (GroupId(*g), at.map(Timestamp))).collect(),
            is_old: true,
        }
    }
    fn yes(group: u32, at: u64, votes: &[(u32, Option<u64>)]) -> Known {
        known(group, Said::Yes(Timestamp(at)), votes)
    }

    #[test]
    fn whoever_knows_the_outcome_is_believed() {
        let committed = Said::Committed { vote: Timestamp(60), at: Timestamp(90) };
        assert_eq!(way(&[yes(7, 50, &[]), known(8, committed, &[])]), Way::Known(Some(Timestamp(90))));
        assert_eq!(way(&[yes(7, 50, &[]), known(8, Said::Aborted, &[])]), Way::Known(None));
        assert_eq!(way(&[yes(7, 50, &[(9, None)]), yes(8, 60, &[])]), Way::Known(None), "9 voted NO, and is lost");
        let both = [yes(7, 50, &[]), yes(8, 60, &[(9, Some(90))])];
        assert_eq!(way(&both), Way::Known(Some(Timestamp(90))), "one of them has the vote of who is lost");
    }

    #[test]
    fn the_protocol_ends_what_it_can() {
        assert!(matches!(way(&[yes(7, 50, &[]), yes(8, 60, &[]), yes(9, 90, &[])]), Way::ByItself(_)));
        assert!(matches!(way(&[yes(7, 50, &[]), known(8, Said::No, &[])]), Way::ByItself(_)));
        assert!(matches!(way(&[yes(7, 50, &[]), known(8, Said::Nothing, &[])]), Way::ByItself(_)));
        assert_eq!(way(&[known(7, Said::Nothing, &[]), known(12, Said::Nothing, &[])]), Way::Over);
    }

    #[test]
    fn in_doubt_is_what_somebody_lost_may_know() {
        let doubt = Way::InDoubt { missing: vec![GroupId(9)], commit: Timestamp(60) };
        assert_eq!(way(&[yes(7, 50, &[(8, Some(60))]), yes(8, 60, &[(7, Some(50))]), known(12, Said::Nothing, &[])]), doubt);
    }

    #[test]
    fn what_a_group_has_done_counts_and_not_what_it_was_told() {
        let committed = Said::Committed { vote: Timestamp(60), at: Timestamp(90) };
        let commit = Some(Timestamp(90));
        assert_eq!((contrary(committed, commit), contrary(Said::Aborted, None)), (None, None));
        assert_eq!(contrary(Said::Nothing, None), None, "aborted, and forgotten");
        for (said, outcome) in [(committed, None), (Said::Aborted, commit), (Said::No, commit), (Said::Nothing, commit)] {
            assert!(contrary(said, outcome).is_some(), "{said:?} {outcome:?}");
        }
    }

    #[test]
    fn an_id_is_read_as_it_is_shown() {
        let id = TxnId { hlc: Timestamp(123), gateway: NodeId(4) };
        assert_eq!(parse(&id.to_string()), Some(id));
        for bad in ["", "t", "t1", "1.2", "t1.", "t1.x", "t-1.2"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
