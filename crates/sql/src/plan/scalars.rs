//! Every expression that an operator computes, those of the operators below it left out.

use super::node::{BoundPlan, DmlPlanKind, KeyPart, KeyRangeParts, Node, Scalar, Scan, UpsertPlan, WindowPlan};

impl Node {
    /// In no particular order.
    pub(crate) fn scalars(&self) -> Vec<&Scalar> {
        match self {
            Node::Values(rows) => rows.iter().flatten().collect(),
            Node::Scan(scan) => scan.scalars(),
            Node::Computed { .. }
            | Node::Shares(_)
            | Node::LockRows { .. }
            | Node::SetOp { .. }
            | Node::WorkTable { .. }
            | Node::First { .. } => Vec::new(),
            Node::Function { calls, .. } | Node::ProjectSet { calls, .. } => calls.iter().flat_map(|(_, args)| args).collect(),
            Node::Filter { conds, .. } => conds.iter().collect(),
            Node::Numbers(numbers) => numbers.filter.iter().collect(),
            Node::Estimates(estimates) => estimates.filter.iter().collect(),
            Node::Project { exprs, .. } => exprs.iter().collect(),
            Node::HashJoin { left_keys, right_keys, on, .. } => left_keys.iter().chain(right_keys).chain(on).collect(),
            Node::LoopJoin { args, on, .. } => args.iter().chain(on).collect(),
            Node::Aggregate { keys, aggs, .. } => {
                let of_aggregates =
                    aggs.iter().flat_map(|a| a.args.iter().chain(&a.filter).chain(a.order.iter().map(|o| &o.expr)));
                keys.iter().chain(of_aggregates).collect()
            }
            Node::Distinct { on, .. } => on.iter().flatten().collect(),
            Node::Sort { keys, most, .. } => {
                let most = most.iter().flat_map(|m| std::iter::once(&m.limit).chain(&m.offset));
                keys.iter().map(|k| &k.expr).chain(most).collect()
            }
            Node::Limit { limit, offset, .. } => limit.iter().chain(offset).collect(),
            Node::Cte { args, .. } => args.iter().collect(),
            Node::Window { calls, most, .. } => calls.iter().flat_map(WindowPlan::scalars).chain(most).collect(),
            Node::Dml(d) => {
                let set: Vec<&Scalar> = match &d.kind {
                    DmlPlanKind::Insert { conflict, .. } => {
                        conflict.iter().filter_map(|c| c.update.as_ref()).flat_map(UpsertPlan::scalars).collect()
                    }
                    DmlPlanKind::Update { set, deltas, .. } => set.iter().chain(deltas).map(|(_, e)| e).collect(),
                    DmlPlanKind::Delete => Vec::new(),
                };
                set.into_iter().chain(&d.returning).collect()
            }
        }
    }
}

impl Scan {
    fn scalars(&self) -> Vec<&Scalar> {
        let places = self.places.iter().flat_map(|p| p.values.iter().chain(p.range.iter().flat_map(KeyRangeParts::scalars)));
        let range = self.range.iter().flat_map(KeyRangeParts::scalars);
        self.prefix.iter().flat_map(KeyPart::scalars).chain(places).chain(range).chain(&self.filter).collect()
    }
}

impl KeyRangeParts {
    fn scalars(&self) -> impl Iterator<Item = &Scalar> {
        self.lower.iter().chain(&self.upper).map(|(e, _)| e).chain(&self.like)
    }
}

impl KeyPart {
    fn scalars(&self) -> Vec<&Scalar> {
        match self {
            KeyPart::Eq(e) | KeyPart::Any(e) => vec![e],
            KeyPart::In(list) => list.iter().collect(),
            KeyPart::Null => Vec::new(),
        }
    }
}

impl WindowPlan {
    fn scalars(&self) -> Vec<&Scalar> {
        let order = self.order.iter().map(|o| &o.expr);
        let bounds = [&self.start, &self.end].into_iter().filter_map(bound);
        self.args.iter().chain(&self.filter).chain(&self.partition).chain(order).chain(bounds).collect()
    }
}

fn bound(bound: &BoundPlan) -> Option<&Scalar> {
    match bound {
        BoundPlan::Preceding(e) | BoundPlan::Following(e) => Some(e),
        BoundPlan::UnboundedPreceding | BoundPlan::CurrentRow | BoundPlan::UnboundedFollowing => None,
    }
}
