//! Where the recursive term of a `WITH RECURSIVE` may name itself (PostgreSQL manual, 7.8.2): once,
//! and not where the rows of one round do not tell what all rows would.

use super::rel::{JoinKind, Rel, SetOp};
use meridian_base::{Error, Result};
use std::collections::BTreeSet;

/// 42P19 if a term uses its work table, of this id, in another way.
pub(super) fn check(term: &Rel, id: u32, name: &str) -> Result<()> {
    let must_not =
        |appear: &str| Err(Error::sql("42P19", format!("recursive reference to query \"{name}\" must not appear {appear}")));
    let mut everywhere = 0;
    term.visit(&mut |rel| everywhere += usize::from(is_work_table(rel, id)));
    if everywhere > count(term, id, &mut BTreeSet::new()) {
        return must_not("within a subquery");
    }
    if let Some(place) = refused(term, id, &mut BTreeSet::new()) {
        return match place {
            Place::Aggregate => {
                Err(Error::sql("42P19", "aggregate functions are not allowed in a recursive query's recursive term"))
            }
            Place::OuterJoin => must_not("within an outer join"),
            Place::Except => must_not("within EXCEPT"),
        };
    }
    if everywhere > 1 { must_not("more than once") } else { Ok(()) }
}

enum Place {
    Aggregate,
    OuterJoin,
    Except,
}

fn is_work_table(rel: &Rel, id: u32) -> bool {
    matches!(rel, Rel::WorkTable { id: other, .. } if *other == id)
}

/// How often it is used, but for subqueries in expressions.
fn count(rel: &Rel, id: u32, ctes: &mut BTreeSet<u32>) -> usize {
    let here = usize::from(is_work_table(rel, id));
    if !rel.is_first_of_cte(ctes) {
        return here;
    }
    here + rel.inputs().into_iter().map(|input| count(input, id, ctes)).sum::<usize>()
}

/// Whether it is in the `FROM` of the same `SELECT`.
fn is_in_from(rel: &Rel, id: u32) -> bool {
    match rel {
        Rel::Filter { input, .. } => is_in_from(input, id),
        Rel::Join { left, right, .. } => is_in_from(left, id) || is_in_from(right, id),
        rel => is_work_table(rel, id),
    }
}

/// The first place where it must not be.
fn refused(rel: &Rel, id: u32, ctes: &mut BTreeSet<u32>) -> Option<Place> {
    let uses = |rel: &Rel| count(rel, id, &mut BTreeSet::new()) > 0;
    match rel {
        Rel::Aggregate { input, aggs, .. } if !aggs.is_empty() && is_in_from(input, id) => Some(Place::Aggregate),
        Rel::Join { kind: JoinKind::Left, right, .. } if uses(right) => Some(Place::OuterJoin),
        Rel::Join { kind: JoinKind::Full, left, right, .. } if uses(left) || uses(right) => Some(Place::OuterJoin),
        Rel::SetOp { op: SetOp::Except, right, .. } if uses(right) => Some(Place::Except),
        rel if !rel.is_first_of_cte(ctes) => None,
        rel => rel.inputs().into_iter().find_map(|input| refused(input, id, ctes)),
    }
}
