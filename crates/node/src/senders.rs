//! Who may send which request, in a secure cluster.
//!
//! A peer is the node that its certificate names. So a request whose body names another sender is
//! another node's, and is refused, whatever its kind. What a node may say of *itself*, and what is
//! asked without saying who asks, is judged where it is answered.
//!
//! Without TLS a peer is who it says it is, and none of this is looked at.

use crate::membership::shared::Shared;
use crate::transport::security::Caller;
use crate::transport::wire::{Request, RotationStep};
use meridian_base::{BallotMessage, Error, GroupId, NodeId, Peer, Result};
use meridian_sql::catalog::ids::{CONTROL_NODES, MONITOR};

/// What the log calls an operator at the node's own machine.
const LOCAL: &str = "local";

fn refused(why: String) -> Error {
    Error::unavailable(why)
}

/// The request itself, and who has sent it, if a third node has passed it on.
pub(crate) fn opened(shared: &Shared, from: Caller, request: Request) -> Result<(Caller, Request)> {
    let Request::Relayed { from: sender, request, seal } = request else { return Ok((from, request)) };
    if from.node() == NodeId(0) {
        return Err(refused("only members pass requests on".into()));
    }
    if let Some(certificates) = &shared.certificates {
        let tls = certificates.keys.tls().ok_or_else(|| refused("this process has no certificate yet".into()))?;
        let seal = seal.ok_or_else(|| refused(format!("a request in the name of {sender} is not sealed")))?;
        let sealed_by = tls.sealed_by(&seal, request.bytes()).map_err(|e| refused(e.to_string()))?;
        if sealed_by != sender {
            return Err(refused(format!("a request in the name of {sender} is one of {sealed_by}")));
        }
    }
    Ok((Caller::Node(sender), request.open()?))
}

/// Refuses a request that is not the caller's to send.
pub(crate) fn check(shared: &Shared, from: &Caller, request: &Request) -> Result<()> {
    match from {
        Caller::Role(role) => check_operator(shared, Some(role), request),
        Caller::Local => check_operator(shared, None, request),
        Caller::Node(node) if shared.certificates.is_some() => check_node(shared, *node, request),
        Caller::Stranger if shared.certificates.is_some() => Err(refused("nobody may ask without a certificate".into())),
        Caller::Node(_) | Caller::Stranger => Ok(()),
    }
}

/// Checks that an operator may send this command. `role`: the operator's; `None` for an operator at
/// the node's own machine, who may do everything.
fn check_operator(shared: &Shared, role: Option<&str>, request: &Request) -> Result<()> {
    let wanted = match request {
        Request::Status
        | Request::Versions
        | Request::Clock
        | Request::Transactions
        | Request::Groups
        | Request::Rotate { step: RotationStep::Look, .. } => Wanted::Look,
        Request::Stand { is_passed_on: false, .. } => Wanted::Nodes,
        Request::Init | Request::AdvanceClock { .. } | Request::CreateToken { .. } | Request::Rotate { .. } => Wanted::Everything,
        _ => return Err(Error::sql("42501", "only nodes may send that")),
    };
    if let Some(role) = role.filter(|role| !may(shared, role, wanted)) {
        return Err(Error::sql("42501", format!("role \"{role}\" may not do that")).hint(match wanted {
            Wanted::Look => "Members of pg_monitor and pg_meridian_nodes may look.",
            Wanted::Nodes => "Members of pg_meridian_nodes drain and decommission nodes.",
            Wanted::Everything => "Only superusers do that.",
        }));
    }
    Ok(())
}

/// An operator's command, for the log.
pub(crate) struct Asked {
    /// A role, or the member that passes the command on.
    by: String,
    what: String,
}

/// What an operator is about to change; `None`: nothing.
pub(crate) fn asked(from: &Caller, request: &Request) -> Option<Asked> {
    let by = match (from, request) {
        (Caller::Role(role), _) => role.clone(),
        (Caller::Local, _) => LOCAL.to_string(),
        (Caller::Node(node), Request::Stand { .. } | Request::EndInDoubt { .. }) => node.to_string(),
        (Caller::Node(_) | Caller::Stranger, _) => return None,
    };
    let what = match request {
        Request::EndInDoubt { group, id, at } => format!("end={id} group={group} commit={}", at.is_some()),
        Request::Init => "init".to_string(),
        Request::Stand { node, standing, .. } => format!("node={} standing={}", node.0, standing.as_str()),
        Request::AdvanceClock { by } => format!("advance_clock_secs={}", by.as_secs()),
        Request::Rotate { step: RotationStep::Look, .. } => return None,
        Request::Rotate { step, is_forced } => format!("rotate={step:?} forced={is_forced}"),
        Request::CreateToken { life_secs } => format!("token_life_secs={life_secs}"),
        _ => return None,
    };
    Some(Asked { by, what })
}

/// One event for each command of an operator, with how it ended. Of those that fail, somebody has
/// one in a while ([`crate::transport::refusals`]).
pub(crate) fn log(shared: &Shared, Asked { by, what }: &Asked, failure: Option<&Error>) {
    let Some(e) = failure else {
        tracing::info!(event = "operator", role = by, what, "an operator's command is done");
        return;
    };
    if let Some(more_before) = shared.rpc.refusals().note(by) {
        let (sqlstate, reason) = (e.sqlstate(), e.message());
        tracing::warn!(event = "operator", role = by, what, sqlstate, reason, more_before, "an operator's command has failed");
    }
}

/// What an operator's command needs.
#[derive(Clone, Copy)]
enum Wanted {
    Look,
    Nodes,
    Everything,
}

/// Whether a role may do that, by the newest catalog that this node knows. A node that has none yet
/// knows `root` alone.
fn may(shared: &Shared, role: &str, wanted: Wanted) -> bool {
    let catalog = shared.catalog.newest();
    let Some(role) = catalog.find_role(role).filter(|role| role.can_login) else { return false };
    let who = catalog.authority(role.id, "");
    match wanted {
        Wanted::Look => who.has(MONITOR) || who.has(CONTROL_NODES),
        Wanted::Nodes => who.has(CONTROL_NODES),
        Wanted::Everything => who.is_superuser,
    }
}

/// A node speaks for itself.
fn check_node(shared: &Shared, from: NodeId, request: &Request) -> Result<()> {
    let speaks_for = |node: NodeId, what: &str| match node == from {
        true => Ok(()),
        false => Err(refused(format!("{from} sends {what} in the name of {node}"))),
    };
    let speaks_for_group = |group: GroupId| match may_lead(shared, from, group) {
        true => Ok(()),
        false => Err(refused(format!("{from} speaks for group {group}, of which it holds no replica"))),
    };
    match request {
        // What operators ask. A member passes on what it was asked.
        Request::Init
        | Request::Muster { .. }
        | Request::AdvanceClock { .. }
        | Request::CreateToken { .. }
        | Request::Rotate { .. } => Err(refused("only an operator asks for that".into())),
        Request::Stand { is_passed_on: false, .. } => Err(refused("only an operator asks for that".into())),
        Request::Join { node, .. } => speaks_for(*node, "where it is"),
        Request::Commit { request, .. } | Request::CommitBrought { request, .. } => speaks_for(request.id.gateway, "a commit"),
        Request::Bring { id, .. } => speaks_for(id.gateway, "a commit"),
        Request::ChangeCatalog { id, .. } => speaks_for(id.gateway, "a schema step"),
        Request::Ballot { message: BallotMessage::Prepare(prepare), .. } => speaks_for(prepare.id().gateway, "a ballot"),
        Request::Ballot { message: BallotMessage::VoteRequest { from: Peer::Gateway(node), .. }, .. } => {
            speaks_for(*node, "a request for a vote")
        }
        Request::Ballot { message: BallotMessage::VoteRequest { from: Peer::Group(group), .. }, .. }
        | Request::Ballot { message: BallotMessage::Vote { from: group, .. }, .. }
        | Request::Ballot { message: BallotMessage::OutcomeAck { from: group, .. }, .. }
        | Request::Reserved { from: group, .. } => speaks_for_group(*group),
        Request::Rounds { messages, .. } => speaks_for_group(messages.from),
        Request::Grant { .. } if !may_lead_catalog(shared, from) => {
            Err(refused(format!("{from} does not lead the catalog and grants nothing")))
        }
        // Who sends the others is compared with what they say where they are answered: a candidate
        // or a leader (`membership::departure`), a promise's primary (`replica::closed`), the owner
        // of an entry of a queue (`answers`), an index in the catalog (`gateway::builds`).
        Request::Stand { is_passed_on: true, .. }
        | Request::Grant { .. }
        | Request::Raft { .. }
        | Request::Read { .. }
        | Request::ReadReplica { .. }
        | Request::ReadPast { .. }
        | Request::ReadGlobal { .. }
        | Request::Holds { .. }
        | Request::Settled(_)
        | Request::Closed(_)
        | Request::Check { .. }
        | Request::Release { .. }
        | Request::Ping(_)
        | Request::AwaitVersion { .. }
        | Request::Status
        | Request::Transactions
        | Request::Groups
        | Request::IsMember { .. }
        | Request::AheadOf { .. }
        | Request::WaitsOf(_)
        | Request::Clock
        | Request::ForgetDrawn { .. }
        | Request::ReleaseKeys { .. }
        | Request::Relay { .. }
        | Request::Relayed { .. }
        | Request::Knows(_)
        | Request::EndInDoubt { .. }
        | Request::Versions
        | Request::Share { .. }
        | Request::Lead { .. }
        | Request::Build { .. }
        | Request::BuildState { .. }
        | Request::KeepToken(_)
        | Request::FindToken(_)
        | Request::Redeem(_)
        | Request::IssueCertificate(_)
        | Request::Authorities
        | Request::KeepRotation(_) => Ok(()),
    }
}

/// Whether a node may be a group's primary: it holds a replica, as far as this node knows.
fn may_lead(shared: &Shared, node: NodeId, group: GroupId) -> bool {
    let is_member = shared.groups.replica(group).is_some_and(|replica| {
        let members = replica.raft().members();
        members.voters.contains(&node) || members.learners.contains(&node)
    });
    // A node that was not heard of has just been started.
    is_member || shared.peers.all.read().get(&node).is_none_or(|peer| peer.holds.contains(&group))
}

/// Whether a node may be the catalog's primary: it votes, and this node knows no other leader. One
/// that has just been elected sends its grants again until this node has heard of it.
fn may_lead_catalog(shared: &Shared, node: NodeId) -> bool {
    shared.groups.replica(GroupId::CATALOG).is_none_or(|replica| {
        let (members, leader) = (replica.raft().members(), replica.raft().role().leader);
        (members.voters.contains(&node) || !members.are_settled()) && leader.is_none_or(|leader| leader == node)
    })
}
