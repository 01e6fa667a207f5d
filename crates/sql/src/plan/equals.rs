//! Columns of different relations that equal each other, directly or by way of others. To join one
//! more relation takes one equality for each such class, whichever that is: so relations may be
//! joined that no condition of the statement names together (PostgreSQL's equivalence classes).

use crate::plan::expr::{Cmp, ColId, Expr};
use std::collections::BTreeMap;

/// A column, and the leaf of a cluster of joins that it is of.
pub(super) type Member = (usize, ColId);

/// The columns that a condition says are equal.
pub(super) fn equality(c: &Expr) -> Option<(ColId, ColId)> {
    match c {
        Expr::Compare(Cmp::Eq, p) => match **p {
            (Expr::Column(a), Expr::Column(b)) => Some((a, b)),
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn equal(a: ColId, b: ColId) -> Expr {
    Expr::Compare(Cmp::Eq, Box::new((Expr::Column(a), Expr::Column(b))))
}

/// The classes that conditions make of columns of different leaves.
pub(super) fn classes(conds: &[Expr], leaf_of: impl Fn(ColId) -> Option<usize>) -> Vec<Vec<Member>> {
    let mut classes: Vec<Vec<Member>> = Vec::new();
    for (a, b) in conds.iter().filter_map(equality) {
        let (Some(of_a), Some(of_b)) = (leaf_of(a), leaf_of(b)) else { continue };
        if of_a == of_b {
            continue;
        }
        let has = |class: &Vec<Member>| class.iter().any(|(_, id)| *id == a || *id == b);
        let (joined, others): (Vec<_>, Vec<_>) = classes.into_iter().partition(has);
        let mut one: Vec<Member> = joined.into_iter().flatten().collect();
        for member in [(of_a, a), (of_b, b)] {
            if !one.contains(&member) {
                one.push(member);
            }
        }
        classes = others;
        classes.push(one);
    }
    classes
}

/// What is known to be equal while leaves are joined one after the other.
pub(super) struct Linked<'c> {
    classes: &'c [Vec<Member>],
    /// Columns that are known to equal each other have the same number.
    part_of: BTreeMap<ColId, ColId>,
}

impl<'c> Linked<'c> {
    pub(super) fn new(classes: &'c [Vec<Member>]) -> Linked<'c> {
        Linked { classes, part_of: classes.iter().flatten().map(|(_, id)| (*id, *id)).collect() }
    }

    /// Notes an equality; whether it says something new.
    fn link(&mut self, a: ColId, b: ColId) -> bool {
        let (Some(a), Some(b)) = (self.part_of.get(&a).copied(), self.part_of.get(&b).copied()) else { return true };
        self.part_of.values_mut().filter(|part| **part == b).for_each(|part| *part = a);
        a != b
    }

    /// The conditions with which a leaf is joined: of those that were written, `on`, the ones that
    /// say something new, and what else follows for its columns.
    pub(super) fn join(&mut self, on: Vec<Expr>, next: usize, is_there: impl Fn(usize) -> bool) -> Vec<Expr> {
        let mut out: Vec<Expr> = Vec::with_capacity(on.len());
        for c in on {
            if equality(&c).is_none_or(|(a, b)| self.link(a, b)) {
                out.push(c);
            }
        }
        for class in self.classes {
            for (_, own) in class.iter().filter(|(leaf, _)| *leaf == next) {
                for (_, other) in class.iter().filter(|(leaf, id)| is_there(*leaf) || (*leaf == next && id != own)) {
                    if self.link(*other, *own) {
                        out.push(equal(*other, *own));
                    }
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leaf 0 has the columns 0 to 9, leaf 1 those from 10 on, and so on.
    fn of(conds: &[(ColId, ColId)]) -> (Vec<Expr>, Vec<Vec<Member>>) {
        let conds: Vec<Expr> = conds.iter().map(|(a, b)| equal(*a, *b)).collect();
        let classes = classes(&conds, |id| Some(id as usize / 10));
        (conds, classes)
    }

    #[test]
    fn one_equality_joins_each_leaf_of_a_class() {
        let (conds, classes) = of(&[(1, 11), (11, 21), (21, 1), (2, 12)]);
        assert_eq!(classes, [vec![(0, 1), (1, 11), (2, 21)], vec![(0, 2), (1, 12)]]);
        let mut linked = Linked::new(&classes);
        assert_eq!(linked.join(Vec::new(), 2, |_| false), []);
        // It was not written, and follows.
        assert_eq!(linked.join(Vec::new(), 1, |leaf| leaf == 2), [equal(21, 11)]);
        // Three were written, of which one says nothing new.
        assert_eq!(linked.join(conds, 0, |leaf| leaf != 0), [equal(1, 11), equal(2, 12)]);
    }

    #[test]
    fn columns_of_one_leaf_that_equal_the_same_column_equal_each_other() {
        let (conds, classes) = of(&[(1, 11), (2, 11)]);
        let mut linked = Linked::new(&classes);
        assert_eq!(linked.join(Vec::new(), 0, |_| false), [equal(2, 1)]);
        assert_eq!(linked.join(conds, 1, |leaf| leaf == 0), [equal(1, 11)]);
    }

    #[test]
    fn equalities_within_a_leaf_make_no_class() {
        let (conds, classes) = of(&[(1, 2)]);
        assert_eq!(classes, Vec::<Vec<Member>>::new());
        assert_eq!(Linked::new(&classes).join(conds.clone(), 0, |_| false), conds);
    }
}
