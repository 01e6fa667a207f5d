//! What the network must look like, judged without a database.

use crate::run::Verdict;
use crate::session::Attempted;
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Follow {
    pub follower: i64,
    pub followed: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Post {
    pub user: i64,
    pub id: i64,
}

/// What clients know of things that were to be written.
pub(super) struct Told<T> {
    acknowledged: BTreeSet<T>,
    doubtful: BTreeSet<T>,
}

impl<T> Default for Told<T> {
    fn default() -> Told<T> {
        Told { acknowledged: BTreeSet::new(), doubtful: BTreeSet::new() }
    }
}

impl<T: Ord> Told<T> {
    pub fn note(&mut self, what: T, attempted: &Attempted<()>) {
        match attempted {
            Attempted::Committed(()) => self.acknowledged.insert(what),
            Attempted::Unknown(..) => self.doubtful.insert(what),
            Attempted::Failed(_) => false,
        };
    }
}

/// What clients know.
#[derive(Default)]
pub(super) struct Known {
    pub follows: Told<Follow>,
    pub posts: Told<Post>,
}

/// What there is.
#[derive(Default)]
pub(super) struct Found {
    pub producers: BTreeSet<Follow>,
    pub consumers: BTreeSet<Follow>,
    /// Those that clients wrote, in this run or before.
    pub posts: BTreeSet<Post>,
}

pub(super) fn judge(found: &Found, known: &Known, verdict: &mut Verdict) {
    let halves: Vec<&Follow> = found.producers.symmetric_difference(&found.consumers).take(5).collect();
    verdict.examined += found.producers.len() as u64;
    verdict.expect(halves.is_empty(), || format!("somebody is followed and has no follower, or the reverse: {halves:?}"));
    let lost: Vec<&Follow> = known.follows.acknowledged.difference(&found.producers).take(5).collect();
    verdict.expect(lost.is_empty(), || format!("acknowledged follows are lost: {lost:?}"));
    let lost: Vec<&Post> = known.posts.acknowledged.difference(&found.posts).take(5).collect();
    verdict.examined += known.posts.acknowledged.len() as u64;
    verdict.expect(lost.is_empty(), || format!("acknowledged posts are lost: {lost:?}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::Error;

    const A: Follow = Follow { follower: 1, followed: 12 };
    const B: Follow = Follow { follower: 2, followed: 3 };
    const POST: Post = Post { user: 1, id: 1 << 31 };

    fn violations(change: impl FnOnce(&mut Found)) -> Vec<String> {
        let mut known = Known::default();
        known.follows.note(A, &Attempted::Committed(()));
        known.follows.note(B, &Attempted::Unknown(Error::unknown_outcome("who knows"), None));
        known.posts.note(POST, &Attempted::Committed(()));
        let mut found = Found { producers: [A].into(), consumers: [A].into(), posts: [POST].into() };
        change(&mut found);
        let mut verdict = Verdict::default();
        judge(&found, &known, &mut verdict);
        assert!(verdict.examined > 3);
        verdict.violations
    }

    #[test]
    fn doubts_may_have_happened_but_not_by_half() {
        assert_eq!(violations(|_| {}), Vec::<String>::new());
        let happened = |found: &mut Found| {
            found.producers.insert(B);
            found.consumers.insert(B);
        };
        assert_eq!(violations(happened), Vec::<String>::new());
        let halves: [fn(&mut Found) -> bool; 2] = [|found| found.producers.insert(B), |found| found.consumers.insert(B)];
        for half in halves {
            let violations = violations(|found| assert!(half(found), "it was not there"));
            assert_eq!(violations.len(), 1, "{violations:?}");
            assert!(violations[0].starts_with("somebody is followed"), "{violations:?}");
        }
    }

    #[test]
    fn what_is_lost_is_found() {
        let lost = violations(|found| {
            found.producers.clear();
            found.consumers.clear();
            found.posts.clear();
        });
        assert_eq!(lost.len(), 2, "{lost:?}");
        assert!(lost[0].starts_with("acknowledged follows are lost") && lost[1].starts_with("acknowledged posts are lost"));
    }
}
