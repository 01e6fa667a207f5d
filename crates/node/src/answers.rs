//! What a node answers other nodes.

use crate::catalog::rows::NodeRow;
use crate::catalog::steps::StepCall;
use crate::gateway::Gateway;
use crate::gateway::builds;
use crate::gateway::env::Env;
use crate::gateway::in_doubt;
use crate::gateway::majority::LEAD_PATIENCE;
use crate::membership::clocks;
use crate::membership::hosting;
use crate::membership::joining::NEW;
use crate::membership::pings;
use crate::membership::ranges;
use crate::membership::registering::{register, stand};
use crate::membership::shared::Shared;
use crate::membership::space::disk_full;
use crate::membership::{rotating, signing, tokens};
use crate::replica::Replica;
use crate::replica::brought::{KEPT_FOR, Piece};
use crate::schema::coordinator::SPREAD_TIMEOUT;
use crate::senders;
use crate::transport::rpc::Handler;
use crate::transport::security::Caller;
use crate::transport::wire::{Joined, NodeRecord, Ping, Request, Response, Standing};
use futures::FutureExt;
use futures::future::BoxFuture;
use meridian_base::record::SchemaGrant;
use meridian_base::{CommitOutcome, CommitRequest, Error, ErrorKind, GroupId, NodeId, Result, Timestamp, limits};
use meridian_pki::join::Binding;
use meridian_region::Owner;
use std::sync::Arc;
use std::time::Duration;

/// Answers other nodes.
pub(crate) struct NodeHandler(pub(crate) Arc<Gateway>);

impl Handler for NodeHandler {
    fn handle(&self, from: Caller, request: Request) -> BoxFuture<'static, Response> {
        let gateway = self.0.clone();
        async move {
            match answer(&gateway, from, request).await {
                Ok((response, _)) => response,
                Err((e, Some(group))) if e.kind() == ErrorKind::NotPrimary => {
                    Response::NotPrimary { hint: gateway.shared.groups.replica(group).and_then(|r| r.raft().role().leader) }
                }
                Err((e, _)) => Response::Error(e),
            }
        }
        .boxed()
    }

    fn join(&self, addr: String, binding: Binding, ask: Vec<u8>) -> BoxFuture<'static, Vec<u8>> {
        let shared = self.0.shared.clone();
        async move { hosting::answer(&shared, &addr, binding, &ask, |record| check_record(&shared, record, 0)).await }.boxed()
    }
}

type Answer = std::result::Result<(Response, Option<GroupId>), (Error, Option<GroupId>)>;

async fn answer(gateway: &Arc<Gateway>, from: Caller, request: Request) -> Answer {
    let (from, request) = senders::opened(&gateway.shared, from, request).map_err(|e| (e, None))?;
    let asked = senders::asked(&from, &request);
    let answered = match senders::check(&gateway.shared, &from, &request) {
        Ok(()) => answer_known(gateway, from.node(), request).await,
        Err(e) => {
            if let Caller::Node(node) = from {
                gateway.shared.rpc.say_refused(&node.to_string(), &e);
            }
            Err((e, None))
        }
    };
    if let Some(asked) = asked {
        senders::log(&gateway.shared, &asked, answered.as_ref().err().map(|(e, _)| e));
    }
    answered
}

/// The same of a request that is the sender's to send.
async fn answer_known(gateway: &Arc<Gateway>, from: NodeId, request: Request) -> Answer {
    let about = match &request {
        Request::Raft { group, .. }
        | Request::Read { group, .. }
        | Request::Commit { group, .. }
        | Request::CommitBrought { group, .. }
        | Request::Release { group, .. }
        | Request::ReleaseKeys { group, .. }
        | Request::Grant { group, .. }
        | Request::ReadReplica { group, .. }
        | Request::ReadPast { group, .. }
        | Request::ReadGlobal { group, .. }
        | Request::Holds { group, .. }
        | Request::Check { group, .. }
        | Request::IsMember { group }
        | Request::EndInDoubt { group, .. }
        | Request::AheadOf { group, .. }
        | Request::Share { group, .. }
        | Request::Rounds { group, .. }
        | Request::Lead { group, .. }
        | Request::Build { group, .. }
        | Request::BuildState { group, .. }
        | Request::Ballot { group: Some(group), .. } => Some(*group),
        Request::ChangeCatalog { .. }
        | Request::Join { .. }
        | Request::Stand { .. }
        | Request::KeepToken(_)
        | Request::FindToken(_)
        | Request::Redeem(_)
        | Request::KeepRotation(_) => Some(GroupId::CATALOG),
        Request::Ping(_)
        | Request::Status
        | Request::Transactions
        | Request::Groups
        | Request::AwaitVersion { .. }
        | Request::Closed(_)
        | Request::Settled(_)
        | Request::Bring { .. }
        | Request::Reserved { .. }
        | Request::WaitsOf(_)
        | Request::Clock
        | Request::Versions
        | Request::AdvanceClock { .. }
        | Request::ForgetDrawn { .. }
        | Request::Relay { .. }
        | Request::Relayed { .. }
        | Request::Knows(_)
        | Request::CreateToken { .. }
        | Request::IssueCertificate(_)
        | Request::Authorities
        | Request::Rotate { .. }
        | Request::Ballot { group: None, .. } => None,
        Request::Muster { .. } | Request::Init => None,
    };
    answer_about(gateway, from, request).await.map(|r| (r, about)).map_err(|e| (e, about))
}

async fn answer_about(gateway: &Arc<Gateway>, from: NodeId, request: Request) -> Result<Response> {
    let shared = &gateway.shared;
    let primary = |group: GroupId| primary(shared, group);
    let own = |owner: Owner| Owner { gateway: from, ..owner };
    let is_open = shared.life.is_open();
    if !is_for_strangers(&request) && !shared.rpc.knows(from) && from != shared.me() {
        return Err(Error::unavailable(format!("node {from} is not known here")));
    }
    match request {
        Request::Muster { from, ask } => Ok(Response::Mustered(shared.mustered(&from, ask).await?)),
        Request::Init => done(shared.init().await),
        _ if !is_open => Err(not_open(shared)),
        Request::Raft { .. } if from == NodeId(0) => Err(Error::unavailable("only members take part in the consensus protocol")),
        Request::Raft { group, message, .. } => {
            let replica = shared.addressed(group, from, &message).await?;
            Ok(Response::Raft(replica.raft().handle(message).await?))
        }
        Request::Read { group, mut view, ops } => Ok(Response::Read(primary(group)?.read(from, &mut view, &ops).await?)),
        of_commit @ (Request::Commit { .. } | Request::Bring { .. } | Request::CommitBrought { .. }) => {
            about_commit(shared, from, of_commit).await
        }
        Request::ReadReplica { group, view, ops } => Ok(Response::ReadReplica(primary(group)?.read_closed(&view, &ops)?)),
        Request::ReadPast { group, at, patience, ops } => {
            Ok(Response::ReadPast(primary(group)?.read_past(at, patience, &ops).await?))
        }
        Request::ReadGlobal { group, view, patience, ops } => {
            Ok(Response::ReadReplica(primary(group)?.read_global(&view, patience, &ops).await?))
        }
        Request::Holds { group, entries, needed, patience } => {
            Ok(Response::Holds(primary(group)?.holds(&entries, needed, patience).await?))
        }
        Request::Settled(groups) => {
            Ok(Response::Settled(groups.iter().map(|g| shared.groups.replica(*g).map(|replica| replica.settled())).collect()))
        }
        Request::Closed(promises) => {
            let replicas = promises.iter().filter_map(|promise| Some((shared.groups.replica(promise.group)?, promise)));
            replicas.for_each(|(replica, promise)| replica.promised(from, promise));
            Ok(Response::Done)
        }
        Request::Check { group, entries, schema, at } => {
            Ok(Response::Checked(primary(group)?.check(&entries, &schema, at).await?))
        }
        Request::Ballot { group: Some(group), message } => done(primary(group)?.ballot(message)),
        Request::Ballot { group: None, message } => {
            crate::gateway::txn::voted(gateway, message);
            Ok(Response::Done)
        }
        Request::Reserved { id, from, at, found } => {
            crate::gateway::txn::reserved(gateway, id, from, at, found);
            Ok(Response::Done)
        }
        Request::Release { group, owner } => {
            primary(group)?.release_locks(own(owner));
            Ok(Response::Done)
        }
        of_escrow @ (Request::Share { .. } | Request::Rounds { .. } | Request::Lead { .. }) => {
            about_escrow(shared, of_escrow).await
        }
        Request::ForgetDrawn { sequence } => {
            gateway.sessions.read().iter().for_each(|sessions| sessions.forget_drawn(sequence));
            Ok(Response::Done)
        }
        Request::ReleaseKeys { group, owner, keys } => {
            primary(group)?.release_keys(own(owner), &keys);
            Ok(Response::Done)
        }
        Request::AheadOf { group, waiter } => Ok(Response::Owners(primary(group)?.ahead_of(waiter)?)),
        Request::WaitsOf(owners) => Ok(Response::WaitsOf(gateway.waiting.of(&owners))),
        Request::Ping(ping) => Ok(pong(shared, from, ping)),
        of_schema @ (Request::ChangeCatalog { .. }
        | Request::AwaitVersion { .. }
        | Request::Grant { .. }
        | Request::Build { .. }
        | Request::BuildState { .. }) => about_schema(gateway, from, of_schema).await,
        Request::Join { node, token, addr, sql_addr, region, zone, is_passed_on, versions } => {
            let record = NodeRecord { id: node, addr, sql_addr, region, zone, standing: Standing::Active };
            join(shared, NodeRow { record, versions }, token, is_passed_on).await
        }
        Request::Relay { to, patience, request, seal } => shared.peers.relay(from, to, patience, request, seal).await,
        Request::Relayed { .. } => Err(Error::unavailable("only members pass requests on, and only once")),
        of_cluster @ (Request::Status
        | Request::Clock
        | Request::Versions
        | Request::AdvanceClock { .. }
        | Request::Transactions
        | Request::Groups
        | Request::Stand { .. }) => about_cluster(shared, of_cluster).await,
        of_identities @ (Request::CreateToken { .. }
        | Request::KeepToken(_)
        | Request::FindToken(_)
        | Request::Redeem(_)
        | Request::Authorities
        | Request::Rotate { .. }
        | Request::KeepRotation(_)
        | Request::IssueCertificate(_)) => about_identities(shared, from, of_identities).await,
        Request::IsMember { group } => Ok(Response::IsMember(shared.groups.is_member(group, from)?)),
        Request::Knows(id) => Ok(Response::Knows(in_doubt::known_here(gateway, id))),
        Request::EndInDoubt { group, id, at } => Ok(Response::Ended(primary(group)?.end_in_doubt(id, at).await?)),
    }
}

/// Commits of gateways on other nodes, in one group.
async fn about_commit(shared: &Arc<Shared>, from: NodeId, request: Request) -> Result<Response> {
    let own = |owner: Owner| Owner { gateway: from, ..owner };
    match request {
        Request::Commit { group, owner, request } => commit(shared, &primary(shared, group)?, own(owner), &request).await,
        Request::Bring { id, number, reads, writes } => {
            let now = shared.runtime.physical_micros();
            if !shared.groups.common.room.admits(3 * limits::PART_BYTES as u64) {
                return Err(disk_full("The node that leads the rows has no room for a large transaction."));
            }
            if shared.groups.common.brought.keep(now, id, number, Piece { reads, writes })? {
                // Its gateway may be lost, and no other slice come for long.
                let waiting = shared.clone();
                shared.spawn(async move {
                    tokio::time::sleep(KEPT_FOR + Duration::from_secs(1)).await;
                    waiting.groups.common.brought.forget_old(waiting.runtime.physical_micros());
                });
            }
            Ok(Response::Done)
        }
        Request::CommitBrought { group, owner, request, pieces } => {
            let replica = primary(shared, group)?;
            let request = shared.groups.common.brought.whole(request, pieces)?;
            commit(shared, &replica, own(owner), &request).await
        }
        other => Err(misplaced(&other)),
    }
}

/// What the regions of an escrow column ask each other.
async fn about_escrow(shared: &Arc<Shared>, request: Request) -> Result<Response> {
    let primary = |group: GroupId| primary(shared, group);
    match request {
        Request::Share { group, key } => {
            let replica = primary(group)?;
            Ok(Response::Share { offer: replica.share(&key).await?, now: replica.hybrid_now() })
        }
        Request::Rounds { group, messages } => {
            let replica = primary(group)?;
            match replica.is_serving() {
                true => shared.hear_rounds(&replica, messages).await,
                false => return Err(Error::not_primary(group)),
            }
            Ok(Response::Done)
        }
        Request::Lead { group, lead, patience } => {
            let replica = primary(group)?;
            Ok(Response::Led(shared.lead_rounds(&replica, &lead, patience.min(LEAD_PATIENCE)).await?))
        }
        other => Err(misplaced(&other)),
    }
}

/// Steps of the schema, and the builds that they wait for.
async fn about_schema(gateway: &Arc<Gateway>, from: NodeId, request: Request) -> Result<Response> {
    let shared = &gateway.shared;
    let primary = |group: GroupId| primary(shared, group);
    match request {
        Request::ChangeCatalog { id, base, change, with, is_again } => {
            let call = StepCall { id, from, base, change, with, is_again };
            shared.steps.change(call).await.map(Response::CatalogChanged)
        }
        Request::AwaitVersion { version } if !shared.freshness.may_be_a_version(version) => {
            Err(Error::unavailable("there cannot be such a version"))
        }
        Request::AwaitVersion { version } => done(Env(gateway.clone()).await_version(version, SPREAD_TIMEOUT).await),
        Request::Grant { group, grant } => {
            let replica = primary(group)?;
            check_grant(shared, &replica, &grant)?;
            Ok(Response::Granted { bound: replica.grant(grant).await? })
        }
        Request::Build { group, build } => {
            let (at, entry) = builds::begin(shared, &primary(group)?, &build).await?;
            Ok(Response::Building { at, entry })
        }
        Request::BuildState { group, index, at, entry, through } => {
            let (replica, look) = (primary(group)?, builds::Look { group, index, at, entry, through });
            Ok(Response::BuildState(builds::state(shared, &replica, &look)?))
        }
        other => Err(misplaced(&other)),
    }
}

/// What the nodes are, and what operators ask of them.
async fn about_cluster(shared: &Arc<Shared>, request: Request) -> Result<Response> {
    match request {
        Request::Status => {
            let mut status = shared.status(&ranges::everywhere(shared).await);
            clocks::add_reports(shared, &mut status).await;
            Ok(Response::Status(status))
        }
        Request::Clock => Ok(Response::Clock(clocks::report(shared))),
        Request::Versions => Ok(Response::Versions(shared.catalog.versions())),
        Request::AdvanceClock { by } => done(clocks::advance(shared, by).await),
        Request::Transactions => Ok(Response::Transactions(shared.groups.transactions())),
        Request::Groups => Ok(Response::Groups(ranges::led_here(shared))),
        Request::Stand { node, standing, is_passed_on } => done(stand(shared, node, standing, is_passed_on).await),
        other => Err(misplaced(&other)),
    }
}

/// Tokens, certificates and authorities: who may be a node.
async fn about_identities(shared: &Arc<Shared>, from: NodeId, request: Request) -> Result<Response> {
    match request {
        Request::CreateToken { life_secs } => Ok(Response::NewToken(tokens::create(shared, life_secs).await?)),
        Request::KeepToken(token) => done(tokens::keep_here(shared, token).await),
        Request::FindToken(token) => Ok(Response::Token(tokens::find_here(shared, token).await?)),
        Request::Redeem(redemption) => {
            check_record(shared, &redemption.record, 0)?;
            Ok(Response::Redeemed(tokens::redeem_here(shared, *redemption).await?))
        }
        Request::Authorities => Ok(Response::Authorities(rotating::report(shared)?)),
        Request::Rotate { step, is_forced } => Ok(Response::Rotation(rotating::rotate(shared, step, is_forced).await?)),
        Request::KeepRotation(keep) => done(rotating::keep_here(shared, *keep).await),
        Request::IssueCertificate(certify) => Ok(Response::Issued(signing::sign(shared, from, &certify).await?)),
        other => Err(misplaced(&other)),
    }
}

/// An error in the lists of [`answer_about`].
fn misplaced(request: &Request) -> Error {
    Error::internal(format!("a request was taken for one of another kind: {request:?}"))
}

fn primary(shared: &Shared, group: GroupId) -> Result<Arc<Replica>> {
    shared.groups.replica(group).ok_or_else(|| Error::not_primary(group))
}

fn pong(shared: &Arc<Shared>, from: NodeId, ping: Ping) -> Response {
    pings::hear(shared, from, ping, None);
    Response::Pong(pings::own_ping(shared))
}

/// The answer to what there is nothing to say about.
fn done<T>(outcome: Result<T>) -> Result<Response> {
    outcome.map(|_| Response::Done)
}

/// A commit in one group. Its locks are released with it; a conflict comes with what the gateway's
/// replica does not have yet.
async fn commit(shared: &Arc<Shared>, replica: &Arc<Replica>, owner: Owner, request: &CommitRequest) -> Result<Response> {
    let outcome = shared.commit_at(replica, request).await?;
    let fresh = match &outcome {
        CommitOutcome::Conflict(_) => replica.out_of_date(&request.reads)?,
        _ => Vec::new(),
    };
    replica.release_locks(owner);
    Ok(Response::Commit(outcome, fresh))
}

/// A node joins, or comes back at another address.
async fn join(shared: &Arc<Shared>, row: NodeRow, token: u128, is_passed_on: bool) -> Result<Response> {
    check_record(shared, &row.record, token)?;
    // In a secure cluster a node says it itself to the catalog's primary: it is told where the
    // nodes are, of which one is that.
    let is_elsewhere = shared.groups.local_primary(GroupId::CATALOG).is_none();
    if shared.certificates.is_some() && is_elsewhere {
        let (cluster, nodes) = (shared.rpc.cluster(), shared.catalog.nodes());
        return match is_passed_on {
            true => Err(Error::not_primary(GroupId::CATALOG)),
            false => Ok(Response::Joined(Joined { cluster, node: NodeId(0), nodes })),
        };
    }
    let node = register(shared, row, token, is_passed_on).await?;
    // What a member is of it knows before it has the catalog: it may have joined just now, and
    // passes this on.
    Ok(Response::Joined(Joined { cluster: shared.rpc.cluster(), node, nodes: shared.catalog.nodes() }))
}

/// Whether a sender that is not in this node's catalog may send the request. Such senders are nodes
/// that join, operators' commands, and new voters that this copy of the catalog does not have yet.
fn is_for_strangers(request: &Request) -> bool {
    matches!(
        request,
        Request::Raft { .. }
            | Request::Join { .. }
            | Request::Muster { .. }
            | Request::Init
            | Request::Ping(_)
            | Request::Status
            | Request::Stand { .. }
            | Request::Transactions
            | Request::Groups
            | Request::Clock
            | Request::Versions
            | Request::AdvanceClock { .. }
            | Request::CreateToken { .. }
            | Request::Rotate { .. }
    )
}

/// A grant that the catalog cannot have made would outlast every other one: the group would keep it
/// for ever.
fn check_grant(shared: &Shared, replica: &Replica, grant: &SchemaGrant) -> Result<()> {
    const SEQ_AHEAD_MAX: u64 = 1 << 20;
    let last = replica.core.lock().state.grant().seq;
    let now = Timestamp::from_micros(shared.runtime.physical_micros());
    let is_absurd = !shared.freshness.may_be_a_version(grant.version)
        || grant.seq.saturating_sub(last) > SEQ_AHEAD_MAX
        || grant.bound.since(now) > limits::SCHEMA_LEASE * 2;
    if is_absurd { Err(Error::unavailable("the catalog cannot have granted that")) } else { Ok(()) }
}

/// 22023 if what a node says of itself cannot be true; 53300 if the cluster has as many nodes as it
/// may.
fn check_record(shared: &Shared, record: &NodeRecord, token: u128) -> Result<()> {
    let absurd = |what: &str, value: &str| {
        let shown: String = value.chars().take(64).collect();
        Err(Error::sql("22023", format!("a node cannot join with {what} {shown:?}")))
    };
    for (what, name) in [("region", &record.region), ("zone", &record.zone)] {
        if name.is_empty() || name.len() > limits::PLACE_BYTES_MAX || name.chars().any(char::is_control) {
            return absurd(what, name);
        }
    }
    for (what, addr) in [("address", &record.addr), ("SQL address", &record.sql_addr)] {
        let is_addr = addr.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        let is_plain = !addr.chars().any(|c| c.is_control() || c.is_whitespace());
        if !is_addr || !is_plain || addr.len() > limits::PLACE_BYTES_MAX {
            return absurd(what, addr);
        }
    }
    let members = shared.catalog.nodes().iter().filter(|n| n.standing != Standing::Decommissioned).count();
    if (record.id == NodeId(0) || token == NEW) && members >= limits::NODES_MAX {
        return Err(Error::sql("53300", format!("the cluster has {} nodes, and may have no more", limits::NODES_MAX)));
    }
    if record.id != NodeId(0) && token != NEW && !shared.catalog.nodes().iter().any(|n| n.id == record.id) {
        return Err(Error::unavailable(format!("node {} is not known here", record.id)));
    }
    Ok(())
}

/// The answer of a process that does not know who it is yet, or has not read what it knows.
fn not_open(shared: &Shared) -> Error {
    match shared.me() {
        NodeId(0) => Error::unavailable(format!("the process at {} is not a member of a cluster yet", shared.peers.addr))
            .hint("Its log says what it waits for."),
        node => Error::unavailable(format!("node {node} is starting")),
    }
}
