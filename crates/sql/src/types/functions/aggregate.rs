//! Aggregates. Each is a small state machine per group; `finish` may be asked again and again
//! (window frames).

use super::args::Args;
use super::registry::Registry;
use super::{Accumulator, Aggregate, json};
use crate::types::jsonb::{Json, write_string};
use crate::types::numeric::Numeric;
use crate::types::{ArrayValue, Datum, EvalContext, Interval, Type};
use bytes::Bytes;
use meridian_base::{Error, Result};
use std::sync::Arc;

/// Aggregates that keep every value stop at this many bytes of them, roughly.
const HELD_MAX: usize = 64 << 20;

fn held(total: &mut usize, more: usize) -> Result<()> {
    *total += more + 16;
    if *total > HELD_MAX {
        return Err(Error::sql("53200", "an aggregate's state is too large").hint("Aggregate fewer rows at once."));
    }
    Ok(())
}

#[derive(Default)]
struct Count(i64);

impl Accumulator for Count {
    fn add(&mut self, _: &EvalContext, args: &[Datum]) -> Result<()> {
        self.0 += i64::from(!args.iter().any(Datum::is_null));
        Ok(())
    }
    fn remove(&mut self, args: &[Datum]) -> Result<bool> {
        self.0 -= i64::from(!args.iter().any(Datum::is_null));
        Ok(true)
    }
    fn finish(&self, _: &EvalContext) -> Result<Datum> {
        Ok(Datum::Int(self.0))
    }
}

/// `min`, `max`.
struct Extreme {
    best: Datum,
    max: bool,
}

impl Accumulator for Extreme {
    fn add(&mut self, _: &EvalContext, args: &[Datum]) -> Result<()> {
        let v = &args[0];
        // Of values that are equal, the last: it may look another way.
        if !v.is_null() && (self.best.is_null() || if self.max { *v >= self.best } else { *v <= self.best }) {
            self.best = v.clone();
        }
        Ok(())
    }
    fn remove(&mut self, args: &[Datum]) -> Result<bool> {
        Ok(args[0].is_null() || args[0] != self.best)
    }
    fn finish(&self, _: &EvalContext) -> Result<Datum> {
        Ok(self.best.clone())
    }
}

/// Sums of integers are exact in 128 bits; the result type decides what overflow means.
pub(crate) struct IntSum {
    pub(crate) sum: i128,
    pub(crate) count: i64,
    result: Type,
    average: bool,
}

impl IntSum {
    pub(crate) fn of(a: &Aggregate) -> IntSum {
        IntSum { sum: 0, count: 0, result: a.result.clone(), average: a.name == "avg" }
    }
}

impl Accumulator for IntSum {
    fn add(&mut self, _: &EvalContext, args: &[Datum]) -> Result<()> {
        if let Datum::Int(v) = args[0] {
            self.sum += i128::from(v);
            self.count += 1;
        }
        Ok(())
    }
    fn remove(&mut self, args: &[Datum]) -> Result<bool> {
        if let Datum::Int(v) = args[0] {
            self.sum -= i128::from(v);
            self.count -= 1;
        }
        Ok(true)
    }
    fn finish(&self, _: &EvalContext) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        let sum = Numeric::Small { mantissa: self.sum, scale: 0 };
        if self.average {
            return Ok(Datum::Numeric(sum.div(&Numeric::from(self.count))?));
        }
        if self.result == Type::Int8 {
            return match i64::try_from(self.sum) {
                Ok(v) => Ok(Datum::Int(v)),
                Err(_) => Err(Error::sql("22003", "bigint out of range")),
            };
        }
        Ok(Datum::Numeric(sum))
    }
}

/// How many of the numerics that were added have the most decimal places: sums have as many.
#[derive(Default)]
struct Scales {
    most: u16,
    having_most: i64,
}

impl Scales {
    fn add(&mut self, v: &Numeric) {
        let scale = v.scale();
        if scale > self.most {
            *self = Scales { most: scale, having_most: 0 };
        }
        self.having_most += i64::from(scale == self.most);
    }
    /// `false`: a sum without it would have fewer decimal places, or it was no number.
    fn remove(&mut self, v: &Numeric) -> bool {
        if !v.is_finite() {
            return false;
        }
        self.having_most -= i64::from(v.scale() == self.most);
        self.having_most > 0 || self.most == 0
    }
}

pub(crate) struct NumericSum {
    pub(crate) sum: Numeric,
    pub(crate) count: i64,
    scales: Scales,
    average: bool,
}

impl NumericSum {
    pub(crate) fn of(a: &Aggregate) -> NumericSum {
        NumericSum { sum: Numeric::ZERO, count: 0, scales: Scales::default(), average: a.name == "avg" }
    }
}

impl Accumulator for NumericSum {
    fn add(&mut self, _: &EvalContext, args: &[Datum]) -> Result<()> {
        if let Datum::Numeric(v) = &args[0] {
            self.sum = self.sum.add(v)?;
            self.scales.add(v);
            self.count += 1;
        }
        Ok(())
    }
    fn remove(&mut self, args: &[Datum]) -> Result<bool> {
        let Datum::Numeric(v) = &args[0] else { return Ok(true) };
        self.sum = self.sum.sub(v)?;
        self.count -= 1;
        Ok(self.scales.remove(v))
    }
    fn finish(&self, _: &EvalContext) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        Ok(Datum::Numeric(if self.average { self.sum.div(&Numeric::from(self.count))? } else { self.sum.clone() }))
    }
}

fn overflow() -> Error {
    Error::sql("22003", "value out of range: overflow")
}

struct FloatSum {
    sum: f64,
    count: i64,
    narrow: bool,
}

impl Accumulator for FloatSum {
    fn add(&mut self, _: &EvalContext, args: &[Datum]) -> Result<()> {
        if let Datum::Float(v) = args[0] {
            let before = self.sum;
            // The sum of -0 is -0.
            self.sum = if self.count == 0 { v } else { self.sum + v };
            if self.narrow {
                self.sum = f64::from(self.sum as f32);
            }
            if self.sum.is_infinite() && before.is_finite() && v.is_finite() {
                return Err(overflow());
            }
            self.count += 1;
        }
        Ok(())
    }
    fn finish(&self, _: &EvalContext) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        Ok(Datum::Float(self.sum))
    }
}

struct IntervalSum {
    sum: Interval,
    count: i64,
    average: bool,
}

impl Accumulator for IntervalSum {
    fn add(&mut self, _: &EvalContext, args: &[Datum]) -> Result<()> {
        if let Datum::Interval(v) = &args[0] {
            self.sum = self.sum.checked_add(v)?;
            self.count += 1;
        }
        Ok(())
    }
    fn remove(&mut self, args: &[Datum]) -> Result<bool> {
        if let Datum::Interval(v) = &args[0] {
            self.sum = self.sum.checked_sub(v)?;
            self.count -= 1;
        }
        Ok(true)
    }
    fn finish(&self, _: &EvalContext) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        Ok(Datum::Interval(if self.average { self.sum.divided_by(self.count as f64)? } else { self.sum }))
    }
}

#[derive(Clone, Copy)]
struct Spread {
    sample: bool,
    root: bool,
}

/// Average (no spread) and variance of floats, by the recurrence of Youngs and Cramer that
/// PostgreSQL uses for both, so that an average fails where a variance would (`float8_accum`).
struct FloatMoments {
    n: f64,
    sum: f64,
    squares: f64,
    spread: Option<Spread>,
}

impl Accumulator for FloatMoments {
    fn add(&mut self, _: &EvalContext, args: &[Datum]) -> Result<()> {
        let Datum::Float(v) = args[0] else { return Ok(()) };
        let before = self.sum;
        self.n += 1.0;
        self.sum += v;
        if self.n > 1.0 {
            let d = v * self.n - self.sum;
            self.squares += d * d / (self.n * (self.n - 1.0));
            if self.sum.is_infinite() || self.squares.is_infinite() {
                if !before.is_infinite() && !v.is_infinite() {
                    return Err(overflow());
                }
                self.squares = f64::NAN;
            }
        } else if !v.is_finite() {
            self.squares = f64::NAN;
        }
        Ok(())
    }
    fn finish(&self, _: &EvalContext) -> Result<Datum> {
        let n = if self.spread.is_some_and(|s| s.sample) { self.n - 1.0 } else { self.n };
        if n <= 0.0 {
            return Ok(Datum::Null);
        }
        let Some(spread) = self.spread else { return Ok(Datum::Float(self.sum / n)) };
        let v = self.squares / n;
        Ok(Datum::Float(if spread.root { v.sqrt() } else { v }))
    }
}

/// Exact variance: `(n·Σx² − (Σx)²) / (n·(n−1))`.
struct NumericVariance {
    n: i64,
    sum: Numeric,
    squares: Numeric,
    scales: Scales,
    spread: Spread,
}

/// A value as an exact number.
fn exact(args: &[Datum]) -> Result<Option<Numeric>> {
    Ok(match &args[0] {
        Datum::Null => None,
        Datum::Int(v) => Some(Numeric::from(*v)),
        _ => Some(args.numeric(0)?.clone()),
    })
}

impl Accumulator for NumericVariance {
    fn add(&mut self, _: &EvalContext, args: &[Datum]) -> Result<()> {
        let Some(v) = exact(args)? else { return Ok(()) };
        self.n += 1;
        self.squares = self.squares.add(&v.mul(&v)?)?;
        self.sum = self.sum.add(&v)?;
        self.scales.add(&v);
        Ok(())
    }
    fn remove(&mut self, args: &[Datum]) -> Result<bool> {
        let Some(v) = exact(args)? else { return Ok(true) };
        self.n -= 1;
        self.squares = self.squares.sub(&v.mul(&v)?)?;
        self.sum = self.sum.sub(&v)?;
        Ok(self.scales.remove(&v))
    }
    fn finish(&self, ctx: &EvalContext) -> Result<Datum> {
        let below = if self.spread.sample { self.n - 1 } else { self.n };
        if below <= 0 {
            return Ok(Datum::Null);
        }
        let n = Numeric::from(self.n);
        let numerator = n.mul(&self.squares)?.sub(&self.sum.mul(&self.sum)?)?;
        if numerator.is_finite() && numerator.signum() <= 0 {
            return Ok(Datum::Numeric(Numeric::ZERO));
        }
        let v = numerator.div(&n.mul(&Numeric::from(below))?)?;
        // The root is as long as the quotient (numeric.c `numeric_stddev_internal`).
        Ok(Datum::Numeric(if self.spread.root { v.sqrt_to(v.scale(), &|| ctx.system.interrupted())? } else { v }))
    }
}

/// `bool_and`, `bool_or`, by how many are true of how many.
struct Bools {
    all: i64,
    trues: i64,
    and: bool,
}

impl Bools {
    fn count(&mut self, args: &[Datum], by: i64) {
        if let Datum::Bool(v) = args[0] {
            self.all += by;
            self.trues += by * i64::from(v);
        }
    }
}

impl Accumulator for Bools {
    fn add(&mut self, _: &EvalContext, args: &[Datum]) -> Result<()> {
        self.count(args, 1);
        Ok(())
    }
    fn remove(&mut self, args: &[Datum]) -> Result<bool> {
        self.count(args, -1);
        Ok(true)
    }
    fn finish(&self, _: &EvalContext) -> Result<Datum> {
        Ok(match self.all {
            0 => Datum::Null,
            all if self.and => Datum::Bool(self.trues == all),
            _ => Datum::Bool(self.trues > 0),
        })
    }
}

/// `bit_and`, `bit_or`, `bit_xor`.
struct Fold {
    value: Option<i64>,
    f: fn(i64, i64) -> i64,
}

impl Accumulator for Fold {
    fn add(&mut self, _: &EvalContext, args: &[Datum]) -> Result<()> {
        if let Datum::Int(v) = args[0] {
            self.value = Some(self.value.map_or(v, |x| (self.f)(x, v)));
        }
        Ok(())
    }
    fn finish(&self, _: &EvalContext) -> Result<Datum> {
        Ok(self.value.map_or(Datum::Null, Datum::Int))
    }
}

struct ArrayAgg {
    element: Type,
    items: Vec<Datum>,
    held: usize,
    any: bool,
    /// The values are arrays themselves and become rows.
    nested: bool,
}

impl Accumulator for ArrayAgg {
    fn add(&mut self, ctx: &EvalContext, args: &[Datum]) -> Result<()> {
        match &args[0] {
            Datum::Null if self.nested => return Err(Error::sql("22004", "cannot accumulate null arrays")),
            Datum::Array(a) if self.nested && a.items.is_empty() => {
                return Err(Error::sql("2202E", "cannot accumulate empty arrays"));
            }
            _ => {}
        }
        held(&mut self.held, weight(&args[0], ctx))?;
        self.any = true;
        self.items.push(args[0].clone());
        Ok(())
    }
    fn held(&self) -> usize {
        self.held
    }
    fn finish(&self, _: &EvalContext) -> Result<Datum> {
        if !self.any {
            return Ok(Datum::Null);
        }
        if self.nested {
            return ArrayValue::nest(self.element.clone(), &self.items);
        }
        Ok(ArrayValue::datum(self.element.clone(), self.items.clone()))
    }
}

fn weight(v: &Datum, _: &EvalContext) -> usize {
    match v {
        Datum::Text(t) => t.as_bytes().len(),
        Datum::Bytea(b) => b.len(),
        Datum::Array(a) => a.items.len() * 32,
        Datum::Jsonb(_) | Datum::Record(_) => 128,
        _ => 24,
    }
}

/// `string_agg` on text and bytea.
struct StringAgg {
    bytes: Option<Vec<u8>>,
    is_text: bool,
}

impl Accumulator for StringAgg {
    fn add(&mut self, _: &EvalContext, args: &[Datum]) -> Result<()> {
        let raw = |d: &Datum| match d {
            Datum::Text(t) => Some(Bytes::copy_from_slice(t.as_bytes())),
            Datum::Bytea(b) => Some(b.clone()),
            _ => None,
        };
        let Some(v) = raw(&args[0]) else { return Ok(()) };
        match &mut self.bytes {
            None => self.bytes = Some(v.to_vec()),
            Some(all) => {
                if let Some(delimiter) = raw(&args[1]) {
                    all.extend_from_slice(&delimiter);
                }
                all.extend_from_slice(&v);
                held(&mut { all.len() }, 0)?;
            }
        }
        Ok(())
    }
    fn held(&self) -> usize {
        self.bytes.as_ref().map_or(0, Vec::len)
    }
    fn finish(&self, _: &EvalContext) -> Result<Datum> {
        Ok(match &self.bytes {
            None => Datum::Null,
            Some(b) if self.is_text => Datum::text(String::from_utf8_lossy(b).into_owned()),
            Some(b) => Datum::Bytea(Bytes::copy_from_slice(b)),
        })
    }
}

/// `json_agg`, `jsonb_agg`, `json_object_agg`, `jsonb_object_agg`.
struct JsonAgg {
    args: Vec<Type>,
    text: Vec<u8>,
    documents: Vec<(String, Json)>,
    any: bool,
    binary: bool,
}

impl JsonAgg {
    fn is_object(&self) -> bool {
        self.args.len() == 2
    }
}

impl Accumulator for JsonAgg {
    fn add(&mut self, ctx: &EvalContext, args: &[Datum]) -> Result<()> {
        let value = args.last().unwrap_or(&Datum::Null);
        let ty = self.args.last().cloned().unwrap_or(Type::Text);
        let key = if self.is_object() {
            if args[0].is_null() {
                return Err(Error::sql("22004", "field name must not be null"));
            }
            args[0].to_text(&self.args[0], ctx)
        } else {
            String::new()
        };
        held(&mut self.held(), 0)?;
        if self.binary {
            self.documents.push((key, json::to_document(value, &ty, ctx)?));
        } else {
            if self.any {
                // PostgreSQL puts each row or array on a line of its own.
                let lines = !self.is_object() && !value.is_null() && matches!(ty, Type::Record | Type::Array(_));
                self.text.extend_from_slice(if lines { b", \n " } else { b", " });
            }
            if self.is_object() {
                write_string(&key, &mut self.text);
                self.text.extend_from_slice(b" : ");
            }
            json::write_value(value, &ty, ctx, &mut self.text);
        }
        self.any = true;
        Ok(())
    }
    fn held(&self) -> usize {
        self.text.len() + self.documents.len() * 64
    }
    fn finish(&self, _: &EvalContext) -> Result<Datum> {
        if !self.any {
            return Ok(Datum::Null);
        }
        if self.binary {
            let j = if self.is_object() {
                Json::object(self.documents.clone())
            } else {
                Json::Array(self.documents.iter().map(|d| d.1.clone()).collect())
            };
            return Ok(Datum::Jsonb(Arc::new(j)));
        }
        let text = String::from_utf8_lossy(&self.text);
        Ok(Datum::text(if self.is_object() { format!("{{ {text} }}") } else { format!("[{text}]") }))
    }
}

fn int_sum(a: &Aggregate) -> Box<dyn Accumulator> {
    Box::new(IntSum::of(a))
}
fn numeric_sum(a: &Aggregate) -> Box<dyn Accumulator> {
    Box::new(NumericSum::of(a))
}
fn float_sum(a: &Aggregate) -> Box<dyn Accumulator> {
    Box::new(FloatSum { sum: 0.0, count: 0, narrow: a.result == Type::Float4 })
}
fn interval_sum(a: &Aggregate) -> Box<dyn Accumulator> {
    Box::new(IntervalSum { sum: Interval::default(), count: 0, average: a.name == "avg" })
}
fn spread(name: &str) -> Spread {
    Spread { sample: !name.ends_with("_pop"), root: name.starts_with("stddev") }
}
fn float_moments(a: &Aggregate) -> Box<dyn Accumulator> {
    let spread = if a.name == "avg" { None } else { Some(spread(a.name)) };
    Box::new(FloatMoments { n: 0.0, sum: 0.0, squares: 0.0, spread })
}
fn numeric_variance(a: &Aggregate) -> Box<dyn Accumulator> {
    Box::new(NumericVariance {
        n: 0,
        sum: Numeric::ZERO,
        squares: Numeric::ZERO,
        scales: Scales::default(),
        spread: spread(a.name),
    })
}
fn fold(a: &Aggregate) -> Box<dyn Accumulator> {
    let f: fn(i64, i64) -> i64 = match a.name {
        "bit_and" => |x, y| x & y,
        "bit_xor" => |x, y| x ^ y,
        _ => |x, y| x | y,
    };
    Box::new(Fold { value: None, f })
}
fn bools(a: &Aggregate) -> Box<dyn Accumulator> {
    Box::new(Bools { all: 0, trues: 0, and: a.name != "bool_or" })
}
fn json_agg(a: &Aggregate) -> Box<dyn Accumulator> {
    let binary = a.name.starts_with("jsonb");
    Box::new(JsonAgg { args: a.args.clone(), text: Vec::new(), documents: Vec::new(), any: false, binary })
}

pub fn register(r: &mut Registry) {
    r.aggregate("count", "-> int8", |_| Box::<Count>::default());
    r.aggregate("count", "any -> int8", |_| Box::<Count>::default());
    for t in [
        "int2",
        "int4",
        "int8",
        "float4",
        "float8",
        "numeric",
        "text",
        "bpchar",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "interval",
        "oid",
        "anyarray",
        "crdb_internal_region",
    ] {
        r.aggregate("min", &format!("{t} -> {t}"), |_| Box::new(Extreme { best: Datum::Null, max: false }));
        r.aggregate("max", &format!("{t} -> {t}"), |_| Box::new(Extreme { best: Datum::Null, max: true }));
    }
    for (t, sum) in [("int2", "int8"), ("int4", "int8"), ("int8", "numeric")] {
        r.aggregate("sum", &format!("{t} -> {sum}"), int_sum);
        r.aggregate("avg", &format!("{t} -> numeric"), int_sum);
    }
    r.aggregate("sum", "numeric -> numeric", numeric_sum);
    r.aggregate("avg", "numeric -> numeric", numeric_sum);
    r.aggregate("sum", "float4 -> float4", float_sum);
    r.aggregate("sum", "float8 -> float8", float_sum);
    r.aggregate("avg", "float4 -> float8", float_moments);
    r.aggregate("avg", "float8 -> float8", float_moments);
    r.aggregate("sum", "interval -> interval", interval_sum);
    r.aggregate("avg", "interval -> interval", interval_sum);
    for name in ["stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop"] {
        for t in ["int2", "int4", "int8", "numeric"] {
            r.aggregate(name, &format!("{t} -> numeric"), numeric_variance);
        }
        for t in ["float4", "float8"] {
            r.aggregate(name, &format!("{t} -> float8"), float_moments);
        }
    }
    for name in ["bool_and", "bool_or", "every"] {
        r.aggregate(name, "bool -> bool", bools);
    }
    for name in ["bit_and", "bit_or", "bit_xor"] {
        for t in ["int2", "int4", "int8"] {
            r.aggregate(name, &format!("{t} -> {t}"), fold);
        }
    }
    fn array_agg(a: &Aggregate) -> Box<dyn Accumulator> {
        let element = a.result.element().cloned().unwrap_or(Type::Text);
        let nested = matches!(a.args[0], Type::Array(_));
        Box::new(ArrayAgg { element, items: Vec::new(), held: 0, any: false, nested })
    }
    r.aggregate("array_agg", "anyelement -> anyarray", array_agg);
    r.aggregate("string_agg", "text, text -> text", |_| Box::new(StringAgg { bytes: None, is_text: true }));
    r.aggregate("string_agg", "bytea, bytea -> bytea", |_| Box::new(StringAgg { bytes: None, is_text: false }));
    r.aggregate("json_agg", "any -> json", json_agg);
    r.aggregate("jsonb_agg", "any -> jsonb", json_agg);
    r.aggregate("json_object_agg", "any, any -> json", json_agg);
    r.aggregate("jsonb_object_agg", "any, any -> jsonb", json_agg);
}
