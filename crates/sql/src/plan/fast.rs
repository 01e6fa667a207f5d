//! Recognises the statements that one function runs.

use super::node::{DmlPlan, DmlPlanKind, KeyPart, Node, Scan};
use crate::plan::expr::Expr;
use std::sync::Arc;

/// A point statement: its whole plan, known to have one of these shapes.
pub(crate) struct FastPlan {
    pub(crate) kind: FastKind,
    pub(crate) node: Arc<Node>,
}

pub(crate) enum FastKind {
    /// One row by its primary key, its columns shown as they are stored: ordinal and type of each.
    Get { fields: Vec<(u32, crate::types::Type)> },
    /// One row by its primary key, changed in columns that no foreign key looks at.
    Update,
    /// One row of values.
    Insert,
}

impl FastPlan {
    /// The point read, of a get or an update.
    pub(crate) fn scan(&self) -> Option<&Scan> {
        let mut node = &*self.node;
        loop {
            node = match node {
                Node::Scan(s) => return Some(s),
                Node::Project { input, .. } => input,
                Node::Dml(d) => &d.input,
                _ => return None,
            };
        }
    }
    pub(crate) fn dml(&self) -> Option<&DmlPlan> {
        match &*self.node {
            Node::Dml(d) => Some(d),
            _ => None,
        }
    }
}

pub(crate) fn recognise(node: &Arc<Node>) -> Option<FastPlan> {
    let kind = match &**node {
        Node::Dml(d) => change(d)?,
        Node::Project { input, exprs } => {
            let slots = exprs.iter().map(|e| if let Expr::Slot(s) = e.expr { Some(s) } else { None });
            get(input, slots.collect::<Option<Vec<_>>>()?)?
        }
        Node::Scan(s) => get(node, (0..s.columns.len() as u32).collect())?,
        _ => return None,
    };
    Some(FastPlan { kind, node: node.clone() })
}

fn get(node: &Node, slots: Vec<u32>) -> Option<FastKind> {
    let s = point(node)?;
    let field = |slot: u32| {
        let ordinal = s.columns[slot as usize];
        (ordinal, s.types[ordinal as usize].clone())
    };
    Some(FastKind::Get { fields: slots.into_iter().map(field).collect() })
}

/// A scan that is one key of the primary index, without further conditions.
pub(super) fn point(node: &Node) -> Option<&Scan> {
    let Node::Scan(s) = node else { return None };
    let simple = |p: &KeyPart| matches!(p, KeyPart::Eq(e) if !e.pending);
    let regions = s.regions.as_ref().is_none_or(|r| simple(&r.part));
    (s.index == 0 && s.is_point && s.filter.is_empty() && s.places.is_empty() && regions && s.prefix.iter().all(simple))
        .then_some(s)
}

fn change(d: &DmlPlan) -> Option<FastKind> {
    if !d.returning.is_empty() {
        return None;
    }
    let id = d.table.table.id;
    let (parents, children) = (d.keys.parents.get(&id), d.keys.children.get(&id));
    match &d.kind {
        DmlPlanKind::Insert { conflict: None, .. } => match &*d.input {
            Node::Values(rows) if rows.len() == 1 && !rows[0].iter().any(|e| e.pending) => Some(FastKind::Insert),
            _ => None,
        },
        DmlPlanKind::Update { set, deltas, .. } if deltas.is_empty() && d.table.table.escrow.is_empty() => {
            let s = point(&d.input)?;
            let is_set = |o: &u32| set.iter().any(|s| s.0 == *o) || d.table.generated.iter().any(|g| g.0 == *o);
            let own = parents.into_iter().flatten().any(|(fk, _, _)| fk.columns.iter().any(is_set));
            let others = children.into_iter().flatten().any(|(_, fk)| fk.parent_columns.iter().any(is_set));
            let whole = s.columns.len() == d.table.types.len();
            (!own && !others && whole && !set.iter().any(|s| s.1.pending)).then_some(FastKind::Update)
        }
        _ => None,
    }
}
