//! What expressions ask of sequences.

use super::Runtime;
use crate::catalog::authority::denied;
use crate::catalog::privileges::Privileges;
use crate::env::Transaction;
use crate::plan::expr::SequenceOp;
use crate::types::Datum;
use meridian_base::{DescriptorId, Error, Result};

pub(super) async fn draw<T: Transaction>(
    op: SequenceOp,
    target: Option<DescriptorId>,
    args: &[Datum],
    is_identity: bool,
    rt: &mut Runtime<'_, T>,
) -> Result<i64> {
    let sequences = rt.ctx.sequences;
    if op == SequenceOp::Last {
        let (sequence, value) = sequences.lastval()?;
        may_draw(op, sequence, rt)?;
        return Ok(value);
    }
    let found = target.and_then(|id| rt.ctx.catalog.sequence_by_id(id));
    let sequence = found.ok_or_else(|| Error::sql("42809", "this is not a sequence"))?;
    if !is_identity {
        may_draw(op, sequence.id, rt)?;
    }
    match (op, args) {
        (SequenceOp::Next, _) => sequences.nextval(&sequence, rt.ctx.catalog).await,
        (SequenceOp::Current, _) => sequences.currval(sequence.id),
        (_, [Datum::Int(value), rest @ ..]) => {
            let is_called = !matches!(rest.first(), Some(Datum::Bool(false)));
            sequences.setval(&sequence, rt.ctx.catalog, *value, is_called).await
        }
        _ => Err(Error::internal("setval without a value")),
    }
}

/// 42501 unless the user may do this to a sequence, by the statement's catalog and by the newest
/// one.
fn may_draw<T: Transaction>(op: SequenceOp, sequence: DescriptorId, rt: &Runtime<'_, T>) -> Result<()> {
    let any_of = match op {
        SequenceOp::Next => Privileges::USAGE.with(Privileges::UPDATE),
        SequenceOp::Set => Privileges::UPDATE,
        SequenceOp::Current | SequenceOp::Last => Privileges::USAGE.with(Privileges::SELECT),
    };
    let eval = rt.ctx.eval;
    let newest = rt.ctx.system.newest();
    let is_newest = newest.seen == rt.ctx.catalog.seen || rt.ctx.catalog.is_private;
    let catalogs = [Some(rt.ctx.catalog), Some(&newest).filter(|_| !is_newest)];
    for catalog in catalogs.into_iter().flatten() {
        if catalog.role_by_id(eval.role).is_some_and(|r| r.is_superuser) {
            continue;
        }
        let who = catalog.authority(eval.role, &eval.database);
        let Some((kind, access)) = catalog.access(sequence) else { continue };
        if catalog.held(&who, kind, access).and(any_of).is_empty() {
            let name = catalog.sequence_by_id(sequence).map(|s| s.name.clone()).unwrap_or_default();
            return Err(denied("sequence", &name));
        }
    }
    Ok(())
}
