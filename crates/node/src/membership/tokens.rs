//! What is asked of the catalog's primary about join tokens.

use crate::catalog::steps::Job;
use crate::membership::ask::Ask;
use crate::membership::certificates::now;
use crate::membership::founding::JOIN_CALL;
use crate::membership::shared::Shared;
use crate::replica::Replica;
use crate::transport::wire::{Redemption, Request, Response, TokenText};
use meridian_base::version::ClusterVersion;
use meridian_base::{Error, GroupId, NodeId, Result};
use meridian_pki::join::{Refusal, StoredToken, Token, TokenId};
use meridian_pki::verify::CLOCK_TOLERANCE_SECS;
use std::sync::Arc;
use std::time::Duration;

/// How long the catalog's primary is looked for.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest life of a token: thirty days.
const LIFE_SECS_MAX: u64 = 30 * 86_400;

/// Makes a token, for an operator.
pub(crate) async fn create(shared: &Arc<Shared>, life_secs: u64) -> Result<TokenText> {
    let Some(tls) = shared.certificates.as_ref().and_then(|c| c.keys.tls()) else {
        return Err(Error::sql("55000", "a cluster that was started with --insecure needs no tokens")
            .hint("Nodes join it by --join alone."));
    };
    if life_secs == 0 || life_secs > LIFE_SECS_MAX {
        return Err(Error::sql("22023", format!("a token is good for 1 to {LIFE_SECS_MAX} seconds")));
    }
    if shared.catalog.cluster_version() < ClusterVersion::ESCROW {
        return Err(Error::sql("55000", "tokens need every node's program to be of this version"));
    }
    let current = tls.current();
    let signer = current.bundle.issuer_of(&current.certificate);
    let authority = signer.ok_or_else(|| Error::internal("this node's certificate has no authority"))?.fingerprint();
    let token = Token::create(authority, now(&shared.runtime).plus(life_secs));
    shared.call_primary(GroupId::CATALOG, PATIENCE, &Keep(StoredToken::of(&token))).await?;
    Ok(TokenText(token.reveal().to_string()))
}

/// What the catalog has of a token.
pub(crate) async fn find(shared: &Arc<Shared>, token: TokenId) -> Result<Option<StoredToken>> {
    shared.call_primary(GroupId::CATALOG, PATIENCE, &Find(token)).await
}

/// A process whose proof was right becomes a node.
pub(crate) async fn redeem(shared: &Arc<Shared>, redemption: Redemption) -> Result<std::result::Result<NodeId, Refusal>> {
    shared.call_primary(GroupId::CATALOG, PATIENCE, &redemption).await
}

struct Keep(StoredToken);

impl Ask for Keep {
    type Answer = ();
    const TIMEOUT: Duration = JOIN_CALL;
    fn request(&self) -> Request {
        Request::KeepToken(self.0.clone())
    }
    fn answer(response: Response) -> Option<()> {
        matches!(response, Response::Done).then_some(())
    }
    async fn here(&self, shared: &Arc<Shared>, _: &Arc<Replica>) -> Result<()> {
        keep_here(shared, self.0.clone()).await
    }
}

struct Find(TokenId);

impl Ask for Find {
    type Answer = Option<StoredToken>;
    const TIMEOUT: Duration = JOIN_CALL;
    fn request(&self) -> Request {
        Request::FindToken(self.0)
    }
    fn answer(response: Response) -> Option<Option<StoredToken>> {
        if let Response::Token(found) = response { Some(found) } else { None }
    }
    async fn here(&self, shared: &Arc<Shared>, _: &Arc<Replica>) -> Result<Option<StoredToken>> {
        find_here(shared, self.0).await
    }
}

impl Ask for Redemption {
    type Answer = std::result::Result<NodeId, Refusal>;
    const TIMEOUT: Duration = JOIN_CALL;
    fn request(&self) -> Request {
        Request::Redeem(Box::new(self.clone()))
    }
    fn answer(response: Response) -> Option<std::result::Result<NodeId, Refusal>> {
        if let Response::Redeemed(answer) = response { Some(answer) } else { None }
    }
    async fn here(&self, shared: &Arc<Shared>, _: &Arc<Replica>) -> Result<std::result::Result<NodeId, Refusal>> {
        redeem_here(shared, self.clone()).await
    }
}

/// The answers of the catalog's primary.
pub(crate) async fn keep_here(shared: &Arc<Shared>, token: StoredToken) -> Result<()> {
    // The node that made it may be another one, whose clock differs.
    if token.expires > now(&shared.runtime).plus(LIFE_SECS_MAX + CLOCK_TOLERANCE_SECS) || token.used.is_some() {
        return Err(Error::sql("22023", "a new token is good for thirty days at most, and nobody has used it"));
    }
    shared.steps.ask(|reply| Job::KeepToken { token, reply }).await
}

pub(crate) async fn find_here(shared: &Arc<Shared>, token: TokenId) -> Result<Option<StoredToken>> {
    shared.steps.ask(|reply| Job::FindToken { token, reply }).await
}

pub(crate) async fn redeem_here(shared: &Arc<Shared>, redemption: Redemption) -> Result<std::result::Result<NodeId, Refusal>> {
    crate::membership::registering::refuse_taken_address(shared, &redemption.record).await?;
    shared.steps.ask(|reply| Job::Redeem { redemption: Box::new(redemption), reply }).await
}
