//! Sorting rows.

use super::eval::{Frame, Row, eval_scalar};
use super::{BATCH, Runtime};
use crate::env::Transaction;
use crate::plan::eval::bulk::Bulk;
use crate::plan::node::SortPlan;
use crate::types::Datum;
use meridian_base::Result;
use std::cmp::Ordering;
use std::collections::VecDeque;

/// Compares two key values in one order.
pub(crate) fn compare(a: &Datum, b: &Datum, descending: bool, nulls_first: bool) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) => {
            if nulls_first {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        (false, true) => {
            if nulls_first {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        _ if descending => b.cmp(a),
        _ => a.cmp(b),
    }
}

/// The order of one value of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) descending: bool,
    pub(super) nulls_first: bool,
}

impl Way {
    /// That of [`Datum`]'s own order.
    pub(super) const PLAIN: Way = Way { descending: false, nulls_first: false };
}

impl From<&Way> for Way {
    fn from(way: &Way) -> Way {
        *way
    }
}

impl From<&SortPlan> for Way {
    fn from(key: &SortPlan) -> Way {
        Way { descending: key.descending, nulls_first: key.nulls_first }
    }
}

pub(super) fn compare_keys<'k, K>(a: &[Datum], b: &[Datum], keys: &'k [K]) -> Ordering
where
    Way: From<&'k K>,
{
    let mut each = a.iter().zip(b).zip(keys).map(|((a, b), k)| {
        let way = Way::from(k);
        compare(a, b, way.descending, way.nulls_first)
    });
    each.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// A row with its key in an order.
pub(super) struct Keyed {
    /// Of the first value of the key: it is not above that of a row behind this one.
    head: u64,
    pub(super) key: Row,
    pub(super) row: Row,
}

impl Keyed {
    pub(super) fn new<'k, K>(key: Row, row: Row, keys: &'k [K]) -> Keyed
    where
        Way: From<&'k K>,
    {
        let way = keys.first().map(Way::from);
        let head = key.first().zip(way).map_or(0, |(value, way)| head(value, way.descending, way.nulls_first));
        Keyed { head, key, row }
    }

    /// It is not above that of a row behind this one.
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    pub(super) fn compare<'k, K>(&self, other: &Keyed, keys: &'k [K]) -> Ordering
    where
        Way: From<&'k K>,
    {
        self.head.cmp(&other.head).then_with(|| compare_keys(&self.key, &other.key, keys))
    }
}

/// So many digits behind the point tell numerics apart.
const DIGITS: u16 = 4;

/// A number by which most values of one type can be told apart without a look at them: of a value
/// that [`compare`] has first it is not above the other's.
fn head(value: &Datum, descending: bool, nulls_first: bool) -> u64 {
    let signed = |n: i64| (n as u64) ^ (1 << 63);
    let ascending = match value {
        Datum::Null => return if nulls_first { 0 } else { u64::MAX },
        Datum::Bool(b) => u64::from(*b),
        Datum::Int(n) | Datum::Time(n) | Datum::Timestamp(n) => signed(*n),
        Datum::Date(n) => signed(i64::from(*n)),
        Datum::Numeric(n) => signed(n.floor_to_i64(DIGITS)),
        Datum::Float(v) if v.is_nan() => u64::MAX,
        // Zero without its sign; then the order of the bits, the other way round below zero.
        Datum::Float(v) => match (v + 0.0).to_bits() {
            bits if bits >> 63 == 0 => bits | 1 << 63,
            bits => !bits,
        },
        Datum::Text(t) => first_bytes(t.as_bytes()),
        Datum::Bytea(b) => first_bytes(b),
        Datum::Uuid(u) => first_bytes(&u[..]),
        // All alike.
        _ => 0,
    };
    if descending { !ascending } else { ascending }
}

fn first_bytes(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    let n = bytes.len().min(8);
    first[..n].copy_from_slice(&bytes[..n]);
    u64::from_be_bytes(first)
}

pub(super) async fn sort_key<T: Transaction>(
    keys: &[SortPlan],
    row: &[Datum],
    frame: &Frame,
    rt: &mut Runtime<'_, T>,
) -> Result<Row> {
    let mut key = Vec::with_capacity(keys.len());
    for k in keys {
        key.push(eval_scalar(&k.expr, row, frame, rt).await?);
    }
    Ok(key)
}

/// So many are sorted or merged at once.
const RUN: usize = 4 * BATCH;

/// A stable sort that gives the thread away between its slices: runs are sorted, then merged two by
/// two.
pub(crate) async fn sort_by<T: Transaction, I: Send + 'static>(
    items: Vec<I>,
    order: impl Fn(&I, &I) -> Ordering,
    rt: &mut Runtime<'_, T>,
) -> Result<Vec<I>> {
    let mut runs: Vec<Bulk<VecDeque<I>>> = Vec::new();
    let mut items: Bulk<VecDeque<I>> = Bulk::from(VecDeque::from(items));
    while !items.is_empty() {
        let len = items.len().min(RUN);
        let mut run: Vec<I> = items.drain(..len).collect();
        run.sort_by(&order);
        runs.push(VecDeque::from(run).into());
        rt.pause().await?;
    }
    // Neighbours, so that what was first stays first among equals.
    while runs.len() > 1 {
        let mut pairs = std::mem::take(&mut runs).into_iter();
        while let Some(mut a) = pairs.next() {
            let Some(mut b) = pairs.next() else {
                runs.push(a);
                break;
            };
            let mut merged = Bulk::from(VecDeque::with_capacity(a.len() + b.len()));
            while merge(&mut a, &mut b, &mut merged, &order) {
                rt.pause().await?;
            }
            runs.push(merged);
        }
    }
    Ok(runs.pop().map(Bulk::take).unwrap_or_default().into())
}

/// Takes the next of two runs, at most [`RUN`] of them; whether there may be more.
fn merge<I>(a: &mut VecDeque<I>, b: &mut VecDeque<I>, merged: &mut VecDeque<I>, order: impl Fn(&I, &I) -> Ordering) -> bool {
    for _ in 0..RUN {
        let from_a = match (a.front(), b.front()) {
            (Some(x), Some(y)) => order(x, y).is_le(),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return false,
        };
        merged.extend(if from_a { a.pop_front() } else { b.pop_front() });
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{compare, head};
    use crate::types::Datum;
    use crate::types::numeric::Numeric;

    fn numbers() -> Vec<Datum> {
        let texts = [
            "0",
            "0.0000",
            "-0.00001",
            "0.00001",
            "0.00009",
            "-0.0001",
            "-0.00011",
            "1",
            "1.00",
            "-1",
            "12.3456",
            "12.34561",
            "12.34559",
            "-12.34561",
            "922337203685477.5807",
            "922337203685477.5808",
            "9223372036854775807",
            "-9223372036854775808",
            "1e30",
            "-1e30",
            "1e38",
            "170141183460469231731687303715884105727",
            "1e-37",
            "-1e-37",
            "1e-60",
            "-1e-60",
            "1e400",
            "-1e400",
            "12345678901234567890123456789012345678901234567890.5",
            "0.1234567890123456789012345678901234567890123456789",
            "-0.1234567890123456789012345678901234567890123456789",
            "NaN",
            "Infinity",
            "-Infinity",
        ];
        texts.iter().map(|t| Datum::Numeric(Numeric::parse(t).expect("a number").expect("no overflow"))).collect()
    }

    fn floats() -> Vec<Datum> {
        let values =
            [0.0, -0.0, 1.0, -1.0, 1e300, -1e300, 1e-310, -1e-310, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        values.into_iter().map(Datum::Float).collect()
    }

    #[test]
    fn a_head_is_never_above_that_of_a_value_behind() {
        for values in [numbers(), floats()] {
            let mut differ = 0;
            for (descending, nulls_first) in [(false, false), (true, true), (false, true), (true, false)] {
                for a in values.iter().chain([&Datum::Null]) {
                    for b in values.iter().chain([&Datum::Null]) {
                        let (x, y) = (head(a, descending, nulls_first), head(b, descending, nulls_first));
                        match compare(a, b, descending, nulls_first) {
                            std::cmp::Ordering::Less => assert!(x <= y, "{a:?} {b:?}"),
                            std::cmp::Ordering::Equal => assert_eq!(x, y, "{a:?} {b:?}"),
                            std::cmp::Ordering::Greater => assert!(x >= y, "{a:?} {b:?}"),
                        }
                        differ += usize::from(x != y);
                    }
                }
            }
            assert!(differ > values.len() * values.len(), "most are told apart");
        }
    }
}
