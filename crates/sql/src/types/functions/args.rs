//! Typed access to arguments. The resolver made sure of the types; a mismatch is a bug and becomes
//! an XX000 rather than a panic.

use crate::types::datetime::interval;
use crate::types::jsonb::Json;
use crate::types::numeric::Numeric;
use crate::types::{ArrayValue, Datum, Interval};
use meridian_base::{Error, Result};

pub trait Args {
    fn bool(&self, i: usize) -> Result<bool>;
    fn int(&self, i: usize) -> Result<i64>;
    fn float(&self, i: usize) -> Result<f64>;
    fn numeric(&self, i: usize) -> Result<&Numeric>;
    fn text(&self, i: usize) -> Result<&str>;
    fn bytes(&self, i: usize) -> Result<&[u8]>;
    fn date(&self, i: usize) -> Result<i32>;
    fn time(&self, i: usize) -> Result<i64>;
    fn timestamp(&self, i: usize) -> Result<i64>;
    fn interval(&self, i: usize) -> Result<&Interval>;
    fn json(&self, i: usize) -> Result<&Json>;
    fn array(&self, i: usize) -> Result<&ArrayValue>;
}

macro_rules! getter {
    ($name:ident, $variant:ident, $ty:ty, |$v:ident| $e:expr) => {
        fn $name(&self, i: usize) -> Result<$ty> {
            match self.get(i) {
                Some(Datum::$variant($v)) => Ok($e),
                other => Err(mismatch(i, stringify!($name), other)),
            }
        }
    };
}

#[cold]
fn mismatch(i: usize, wanted: &str, got: Option<&Datum>) -> Error {
    Error::internal(format!("argument {} is {got:?} where {wanted} belongs", i + 1))
}

impl Args for [Datum] {
    getter!(bool, Bool, bool, |v| *v);
    getter!(int, Int, i64, |v| *v);
    getter!(float, Float, f64, |v| *v);
    getter!(numeric, Numeric, &Numeric, |v| v);
    getter!(text, Text, &str, |v| v.as_str());
    getter!(bytes, Bytea, &[u8], |v| v);
    getter!(date, Date, i32, |v| *v);
    getter!(time, Time, i64, |v| *v);
    getter!(timestamp, Timestamp, i64, |v| *v);
    getter!(interval, Interval, &Interval, |v| v);
    getter!(json, Jsonb, &Json, |v| v);
    getter!(array, Array, &ArrayValue, |v| v);
}

/// An interval's text, for messages.
pub fn interval_text(i: &Interval) -> String {
    let mut s = String::new();
    interval::write(&mut s, i);
    s
}
