//! Samya's Algorithm 2 in integers.
//!
//! As printed it makes tokens (line 13 adds those of a site that is rejected once more, and the sum
//! of what is wanted never shrinks) or loses the remainder of a division (counterexample 100). Here
//! the tokens granted are those offered, always.
//!
//! It also lets a large forecast reject a small want of a statement that waits. Here statements
//! come first, and forecasts share the rest in proportion.

/// What a site brings to a round, of one pool of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// Tokens that it gives away: they are divided with all others, and some may come back.
    pub offered: i128,
    /// Tokens that it wants.
    pub wanted: i128,
    /// A statement waits for all that is wanted: a part is of no use. Otherwise a forecast says it,
    /// and a part is welcome.
    pub is_waiting: bool,
}

/// How many tokens each site gets, in the order of the sites. Their sum is that of the offers.
/// Sites of equal standing are served in their order.
pub fn allocate(sites: &[Site]) -> Vec<i128> {
    assert!(sites.iter().all(|s| s.offered >= 0 && s.wanted >= 0), "tokens are counted from 0 on: {sites:?}");
    let all: i128 = sites.iter().map(|s| s.offered).sum();
    if sites.is_empty() {
        return Vec::new();
    }
    // 1. Wants of statements that wait come before forecasts. One that is above all offers is zero.
    let fits = |s: &Site| s.is_waiting && s.wanted <= all;
    let mut wanted: Vec<i128> = sites.iter().map(|s| if fits(s) { s.wanted } else { 0 }).collect();
    let mut rejected: Vec<usize> = Vec::new();
    // 2. The smallest are rejected until the others can be served; of equal ones the last.
    while wanted.iter().sum::<i128>() > all {
        let smallest = (0..sites.len()).filter(|at| wanted[*at] > 0).min_by_key(|at| (wanted[*at], std::cmp::Reverse(*at)));
        let at = smallest.expect("a sum above that of the offers has a part above zero");
        rejected.push(at);
        wanted[at] = 0;
    }
    // 3. Of the rejected those that fit into what is left, the largest first.
    rejected.sort_by_key(|at| (std::cmp::Reverse(sites[*at].wanted), *at));
    for at in rejected {
        if sites[at].wanted <= all - wanted.iter().sum::<i128>() {
            wanted[at] = sites[at].wanted;
        }
    }
    // Forecasts share what is left in proportion, where it is not enough for all of them.
    let left = all - wanted.iter().sum::<i128>();
    let forecast: Vec<i128> = sites.iter().map(|s| if s.is_waiting { 0 } else { s.wanted.min(left) }).collect();
    let sum = forecast.iter().sum::<i128>();
    for (want, forecast) in wanted.iter_mut().zip(forecast) {
        *want += if sum <= left { forecast } else { proportion(forecast, left, sum) };
    }
    // 4. The rest in equal parts, the remainder one each.
    let (left, count) = (all - wanted.iter().sum::<i128>(), sites.len() as i128);
    let granted: Vec<i128> =
        wanted.iter().zip(0..).map(|(want, at)| want + left / count + i128::from(at < left % count)).collect();
    assert_eq!(granted.iter().sum::<i128>(), all, "what is granted is what was offered");
    granted
}

/// `part * whole / sum`, rounded down, of numbers up to those of 128 bits: `part <= sum`.
fn proportion(part: i128, whole: i128, sum: i128) -> i128 {
    match part.checked_mul(whole) {
        Some(product) => product / sum,
        // Near enough: what is lost by it is divided with the rest.
        None => (part >> 64).saturating_mul(whole / ((sum >> 64) + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn site(offered: i128, wanted: i128, is_waiting: bool) -> Site {
        Site { offered, wanted, is_waiting }
    }

    #[test]
    fn wants_are_met_and_the_rest_is_divided() {
        assert_eq!(allocate(&[]), Vec::<i128>::new());
        assert_eq!(allocate(&[site(0, 3, true), site(10, 0, false), site(1, 0, false)]), [6, 3, 2]);
        assert_eq!(allocate(&[site(10, 0, false); 3]), [10, 10, 10]);
        assert_eq!(allocate(&[site(10, 0, false), site(0, 0, false), site(0, 0, false)]), [4, 3, 3]);
    }

    /// Counterexample 100: as printed, 20 tokens of 10 are handed out.
    #[test]
    fn no_token_is_made_when_more_is_wanted_than_there_is() {
        assert_eq!(allocate(&[site(5, 3, false), site(5, 20, false)]), [3, 7], "3 * 10 / 13, and the remainder");
        assert_eq!(allocate(&[site(5, 4, true), site(5, 20, false), site(0, 2, false)]), [5, 4, 1], "who waits comes first");
        assert_eq!(allocate(&[site(5, 3, true), site(5, 20, true)]), [7, 3], "nobody can wait for more than there is");
        assert_eq!(allocate(&[site(5, 6, true), site(5, 6, true)]), [8, 2], "of equal ones the first");
        assert_eq!(allocate(&[site(4, 6, true), site(4, 5, true), site(4, 2, true)]), [7, 5, 0]);
    }

    #[test]
    fn of_the_rejected_the_largest_that_fit_are_served() {
        assert_eq!(allocate(&[site(10, 6, true), site(0, 5, true), site(0, 3, true)]), [7, 0, 3]);
        assert_eq!(allocate(&[site(11, 8, true), site(0, 5, true), site(0, 3, true), site(0, 2, true)]), [8, 0, 3, 0]);
        assert_eq!(allocate(&[site(0, 2, true), site(0, 3, true), site(0, 5, true), site(11, 8, true)]), [0, 3, 0, 8]);
    }

    proptest! {
        #[test]
        fn what_is_granted_is_what_was_offered(
            sites in prop::collection::vec((0..1_000i128, 0..2_000i128, any::<bool>()), 1..8)
        ) {
            let sites: Vec<Site> = sites.into_iter().map(|(o, w, is)| site(o, w, is)).collect();
            let granted = allocate(&sites);
            let all: i128 = sites.iter().map(|s| s.offered).sum();
            prop_assert_eq!(granted.iter().sum::<i128>(), all);
            prop_assert!(granted.iter().all(|n| *n >= 0));
            // Who alone wants something, and not too much, gets it.
            if let [one] = sites.iter().enumerate().filter(|(_, s)| s.wanted > 0).collect::<Vec<_>>()[..]
                && one.1.wanted <= all
            {
                prop_assert!(granted[one.0] >= one.1.wanted);
            }
        }
    }
}
