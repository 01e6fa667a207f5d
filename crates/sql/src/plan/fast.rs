//! Recognises the statements that one function runs.

use super::physical::Node;
use std::sync::Arc;

/// A point statement.
pub(crate) enum FastPlan {
    /// One row by its primary key, its columns shown as they are stored.
    Get(FastGet),
}

/// See [`FastPlan::Get`].
pub(crate) struct FastGet {
    /// A [`Node::Scan`] that is a single point of the primary index without further conditions.
    pub(crate) scan: Arc<Node>,
    /// The whole plan.
    pub(crate) whole: Arc<Node>,
    /// Ordinal and type of each output column.
    pub(crate) fields: Vec<(u32, crate::types::Type)>,
}

pub(crate) fn recognise(node: &Arc<Node>) -> Option<FastPlan> {
    use super::expr::Expr;
    use super::physical::KeyPart;
    let (scan, slots) = match &**node {
        Node::Project { input, exprs } => {
            let slots = exprs.iter().map(|e| if let Expr::Slot(s) = e.expr { Some(s) } else { None });
            (input, slots.collect::<Option<Vec<_>>>()?)
        }
        Node::Scan(s) => (node, (0..s.columns.len() as u32).collect()),
        _ => return None,
    };
    let Node::Scan(s) = &**scan else { return None };
    let simple = |p: &KeyPart| matches!(p, KeyPart::Eq(e) if !e.pending);
    if s.index != 0 || !s.is_point || !s.filter.is_empty() || !s.prefix.iter().all(simple) {
        return None;
    }
    let field = |slot: u32| {
        let ordinal = s.columns[slot as usize];
        (ordinal, s.types[ordinal as usize].clone())
    };
    Some(FastPlan::Get(FastGet { scan: scan.clone(), whole: node.clone(), fields: slots.into_iter().map(field).collect() }))
}
