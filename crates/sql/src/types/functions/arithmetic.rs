//! Arithmetic and mathematics on integers, floats and decimals.

use super::args::Args;
use super::registry::Registry;
use super::{Call, ScalarFn};
use crate::types::cast::integer_range;
use crate::types::numeric::{Numeric, division_by_zero};
use crate::types::{Datum, Type};
use meridian_base::{Error, Result};

fn out_of_range(ty: &Type) -> Error {
    Error::sql("22003", format!("{} out of range", ty.base_name()))
}

/// A result of integer arithmetic: within the result type, or 22003.
fn bounded(c: &Call<'_>, v: Option<i64>) -> Result<Datum> {
    let (min, max) = integer_range(c.result);
    v.filter(|v| (min..=max).contains(v)).map(Datum::Int).ok_or_else(|| out_of_range(c.result))
}

/// A float result: 22003 if finite arguments made it infinite, or nonzero ones zero.
fn checked_float(c: &Call<'_>, v: f64, inputs_infinite: bool, zero_allowed: bool) -> Result<Datum> {
    let v = if *c.result == Type::Float4 { f64::from(v as f32) } else { v };
    if v.is_infinite() && !inputs_infinite {
        return Err(Error::sql("22003", "value out of range: overflow"));
    }
    if v == 0.0 && !zero_allowed {
        return Err(Error::sql("22003", "value out of range: underflow"));
    }
    Ok(Datum::Float(v))
}

macro_rules! int_op {
    ($method:ident) => {
        |c, a| bounded(c, a.int(0)?.$method(a.int(1)?))
    };
}

fn int_div(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    if a.int(1)? == 0 {
        return Err(division_by_zero());
    }
    bounded(c, a.int(0)?.checked_div(a.int(1)?))
}
fn int_mod(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    if a.int(1)? == 0 {
        return Err(division_by_zero());
    }
    // The most negative number modulo −1 is 0, not an overflow.
    Ok(Datum::Int(a.int(0)?.wrapping_rem(a.int(1)?)))
}

fn float_op(c: &Call<'_>, a: &[Datum], v: f64, zero_allowed: bool) -> Result<Datum> {
    checked_float(c, v, a.float(0)?.is_infinite() || a.float(1)?.is_infinite(), zero_allowed)
}
fn float_mul(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (x, y) = (a.float(0)?, a.float(1)?);
    float_op(c, a, x * y, x == 0.0 || y == 0.0)
}
fn float_div(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (x, y) = (a.float(0)?, a.float(1)?);
    if y == 0.0 && !x.is_nan() {
        return Err(division_by_zero());
    }
    float_op(c, a, x / y, x == 0.0 || y.is_infinite())
}

fn integers(r: &mut Registry) {
    let types = ["int2", "int4", "int8"];
    let wider = |a: usize, b: usize| types[a.max(b)];
    for (i, a) in types.iter().enumerate() {
        for (j, b) in types.iter().enumerate() {
            let signature = format!("{a}, {b} -> {}", wider(i, j));
            r.operator("+", &signature, int_op!(checked_add));
            r.operator("-", &signature, int_op!(checked_sub));
            r.operator("*", &signature, int_op!(checked_mul));
            r.operator("/", &signature, int_div);
            if a == b {
                r.operator("%", &signature, int_mod);
                r.scalar("mod", &signature, int_mod);
                r.operator("&", &signature, |_, a| Ok(Datum::Int(a.int(0)? & a.int(1)?)));
                r.operator("|", &signature, |_, a| Ok(Datum::Int(a.int(0)? | a.int(1)?)));
                r.operator("#", &signature, |_, a| Ok(Datum::Int(a.int(0)? ^ a.int(1)?)));
            }
        }
        r.operator("-", &format!("{a} -> {a}"), |c, a| bounded(c, a.int(0)?.checked_neg()));
        r.operator("+", &format!("{a} -> {a}"), |_, a| Ok(a[0].clone()));
        r.operator("~", &format!("{a} -> {a}"), |_, a| Ok(Datum::Int(!a.int(0)?)));
        r.operator("@", &format!("{a} -> {a}"), |c, a| bounded(c, a.int(0)?.checked_abs()));
        r.scalar("abs", &format!("{a} -> {a}"), |c, a| bounded(c, a.int(0)?.checked_abs()));
        r.operator("<<", &format!("{a}, int4 -> {a}"), |c, a| shift(c, a, true));
        r.operator(">>", &format!("{a}, int4 -> {a}"), |c, a| shift(c, a, false));
    }
    for t in ["int4", "int8"] {
        r.scalar("gcd", &format!("{t}, {t} -> {t}"), |c, a| {
            let (mut x, mut y) = (a.int(0)?.unsigned_abs(), a.int(1)?.unsigned_abs());
            while y != 0 {
                (x, y) = (y, x % y);
            }
            bounded(c, i64::try_from(x).ok())
        });
        r.scalar("lcm", &format!("{t}, {t} -> {t}"), |c, a| {
            let (p, q) = (a.int(0)?, a.int(1)?);
            let (mut x, mut y) = (p.unsigned_abs(), q.unsigned_abs());
            while y != 0 {
                (x, y) = (y, x % y);
            }
            if x == 0 {
                return Ok(Datum::Int(0));
            }
            bounded(
                c,
                p.unsigned_abs().checked_div(x).and_then(|v| v.checked_mul(q.unsigned_abs())).and_then(|v| i64::try_from(v).ok()),
            )
        });
    }
}

/// Shifts wrap in the width of their type, as in C.
fn shift(c: &Call<'_>, a: &[Datum], left: bool) -> Result<Datum> {
    let (v, by) = (a.int(0)?, a.int(1)? as u32);
    Ok(Datum::Int(match c.result {
        Type::Int2 => i64::from(if left { (v as i32).wrapping_shl(by) as i16 } else { (v as i32).wrapping_shr(by) as i16 }),
        Type::Int4 => i64::from(if left { (v as i32).wrapping_shl(by) } else { (v as i32).wrapping_shr(by) }),
        _ => {
            if left {
                v.wrapping_shl(by)
            } else {
                v.wrapping_shr(by)
            }
        }
    }))
}

fn floats(r: &mut Registry) {
    for a in ["float4", "float8"] {
        for b in ["float4", "float8"] {
            let wide = if a == "float4" && b == "float4" { "float4" } else { "float8" };
            let signature = format!("{a}, {b} -> {wide}");
            r.operator("+", &signature, |c, a| float_op(c, a, a.float(0)? + a.float(1)?, true));
            r.operator("-", &signature, |c, a| float_op(c, a, a.float(0)? - a.float(1)?, true));
            r.operator("*", &signature, float_mul);
            r.operator("/", &signature, float_div);
        }
        r.operator("-", &format!("{a} -> {a}"), |_, a| Ok(Datum::Float(-a.float(0)?)));
        r.operator("+", &format!("{a} -> {a}"), |_, a| Ok(a[0].clone()));
        r.operator("@", &format!("{a} -> {a}"), |_, a| Ok(Datum::Float(a.float(0)?.abs())));
        r.scalar("abs", &format!("{a} -> {a}"), |_, a| Ok(Datum::Float(a.float(0)?.abs())));
    }
    for name in [
        "ceil", "ceiling", "floor", "round", "trunc", "cbrt", "degrees", "radians", "sin", "cos", "tan", "atan", "sinh", "cosh",
        "tanh", "asinh", "sign", "cot",
    ] {
        r.scalar(name, "float8 -> float8", unary_body(name));
    }
    r.scalar("sqrt", "float8 -> float8", |_, a| float_sqrt(a.float(0)?));
    r.operator("|/", "float8 -> float8", |_, a| float_sqrt(a.float(0)?));
    r.operator("||/", "float8 -> float8", |_, a| Ok(Datum::Float(a.float(0)?.cbrt())));
    r.scalar("exp", "float8 -> float8", |c, a| {
        let v = a.float(0)?;
        checked_float(c, v.exp(), v.is_infinite(), v.is_infinite())
    });
    r.scalar("ln", "float8 -> float8", |_, a| Ok(Datum::Float(log_domain(a.float(0)?)?.ln())));
    r.scalar("log", "float8 -> float8", |_, a| Ok(Datum::Float(log_domain(a.float(0)?)?.log10())));
    r.scalar("log10", "float8 -> float8", |_, a| Ok(Datum::Float(log_domain(a.float(0)?)?.log10())));
    r.scalar("asin", "float8 -> float8", |_, a| in_unit(a.float(0)?, f64::asin));
    r.scalar("acos", "float8 -> float8", |_, a| in_unit(a.float(0)?, f64::acos));
    r.scalar("atan2", "float8, float8 -> float8", |_, a| Ok(Datum::Float(a.float(0)?.atan2(a.float(1)?))));
    for name in ["power", "pow"] {
        r.scalar(name, "float8, float8 -> float8", float_power);
        r.scalar(name, "numeric, numeric -> numeric", |c, a| Ok(Datum::Numeric(a.numeric(0)?.power(a.numeric(1)?, &check(c))?)));
    }
    r.operator("^", "float8, float8 -> float8", float_power);
    r.operator("^", "numeric, numeric -> numeric", |c, a| Ok(Datum::Numeric(a.numeric(0)?.power(a.numeric(1)?, &check(c))?)));
    r.scalar("pi", "-> float8", |_, _| Ok(Datum::Float(std::f64::consts::PI)));
    r.scalar("random", "-> float8", |c, _| {
        // 53 bits: every double in [0, 1) of that spacing equally likely.
        Ok(Datum::Float((c.ctx.system.random() >> 11) as f64 / (1u64 << 53) as f64))
    })
    .volatile();
}

fn unary_body(name: &str) -> ScalarFn {
    macro_rules! body {
        ($f:expr) => {
            |_, a| Ok(Datum::Float($f(a.float(0)?)))
        };
    }
    macro_rules! of_angle {
        ($f:expr) => {
            |_, a| match a.float(0)? {
                v if v.is_infinite() => Err(Error::sql("22003", "input is out of range")),
                v => Ok(Datum::Float($f(v))),
            }
        };
    }
    match name {
        "ceil" | "ceiling" => body!(f64::ceil),
        "floor" => body!(f64::floor),
        "round" => body!(f64::round_ties_even),
        "trunc" => body!(f64::trunc),
        "cbrt" => body!(f64::cbrt),
        "degrees" => body!(f64::to_degrees),
        "radians" => body!(f64::to_radians),
        "sin" => of_angle!(f64::sin),
        "cos" => of_angle!(f64::cos),
        "tan" => of_angle!(f64::tan),
        "atan" => body!(f64::atan),
        "sinh" => body!(f64::sinh),
        "cosh" => body!(f64::cosh),
        "tanh" => body!(f64::tanh),
        "asinh" => body!(f64::asinh),
        "cot" => of_angle!(|v: f64| 1.0 / v.tan()),
        // PostgreSQL's is 0 for NaN, and for both zeros.
        _ => body!(|v: f64| if v == 0.0 || v.is_nan() { 0.0 } else { v.signum() }),
    }
}

fn float_sqrt(v: f64) -> Result<Datum> {
    if v < 0.0 {
        return Err(Error::sql("2201F", "cannot take square root of a negative number"));
    }
    Ok(Datum::Float(v.sqrt()))
}
fn log_domain(v: f64) -> Result<f64> {
    if v == 0.0 {
        return Err(Error::sql("2201E", "cannot take logarithm of zero"));
    }
    if v < 0.0 {
        return Err(Error::sql("2201E", "cannot take logarithm of a negative number"));
    }
    Ok(v)
}
fn in_unit(v: f64, f: fn(f64) -> f64) -> Result<Datum> {
    if v.abs() > 1.0 {
        return Err(Error::sql("22003", "input is out of range"));
    }
    Ok(Datum::Float(f(v)))
}
fn float_power(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (x, y) = (a.float(0)?, a.float(1)?);
    if x == 0.0 && y < 0.0 {
        return Err(Error::sql("2201F", "zero raised to a negative power is undefined"));
    }
    if x < 0.0 && y.is_finite() && y.trunc() != y {
        return Err(Error::sql("2201F", "a negative number raised to a non-integer power yields a complex result"));
    }
    checked_float(c, x.powf(y), x.is_infinite() || y.is_infinite(), x == 0.0 || x.is_infinite() || y.is_infinite())
}

fn decimals(r: &mut Registry) {
    let binary: [(&'static str, ScalarFn); 5] = [
        ("+", |_, a| Ok(Datum::Numeric(a.numeric(0)?.add(a.numeric(1)?)?))),
        ("-", |_, a| Ok(Datum::Numeric(a.numeric(0)?.sub(a.numeric(1)?)?))),
        ("*", |_, a| Ok(Datum::Numeric(a.numeric(0)?.mul(a.numeric(1)?)?))),
        ("/", |_, a| Ok(Datum::Numeric(a.numeric(0)?.div(a.numeric(1)?)?))),
        ("%", |_, a| Ok(Datum::Numeric(a.numeric(0)?.rem(a.numeric(1)?)?))),
    ];
    for (op, body) in binary {
        r.operator(op, "numeric, numeric -> numeric", body);
    }
    r.scalar("mod", "numeric, numeric -> numeric", |_, a| Ok(Datum::Numeric(a.numeric(0)?.rem(a.numeric(1)?)?)));
    r.scalar("div", "numeric, numeric -> numeric", |_, a| Ok(Datum::Numeric(a.numeric(0)?.div_trunc(a.numeric(1)?)?)));
    r.scalar("gcd", "numeric, numeric -> numeric", |c, a| Ok(Datum::Numeric(a.numeric(0)?.gcd(a.numeric(1)?, &check(c))?)));
    r.scalar("lcm", "numeric, numeric -> numeric", |c, a| Ok(Datum::Numeric(a.numeric(0)?.lcm(a.numeric(1)?, &check(c))?)));
    r.operator("-", "numeric -> numeric", |_, a| Ok(Datum::Numeric(a.numeric(0)?.neg())));
    r.operator("+", "numeric -> numeric", |_, a| Ok(a[0].clone()));
    r.operator("@", "numeric -> numeric", |_, a| Ok(Datum::Numeric(a.numeric(0)?.abs())));
    r.scalar("abs", "numeric -> numeric", |_, a| Ok(Datum::Numeric(a.numeric(0)?.abs())));
    r.scalar("round", "numeric -> numeric", |_, a| Ok(Datum::Numeric(a.numeric(0)?.round(0))));
    r.scalar("round", "numeric, int4 -> numeric", |_, a| {
        let rounded = a.numeric(0)?.round(a.int(1)? as i32);
        rounded.check_size().map(|()| Datum::Numeric(rounded))
    });
    r.scalar("trunc", "numeric -> numeric", |_, a| Ok(Datum::Numeric(a.numeric(0)?.trunc(0))));
    r.scalar("trunc", "numeric, int4 -> numeric", |_, a| Ok(Datum::Numeric(a.numeric(0)?.trunc(a.int(1)? as i32))));
    r.scalar("floor", "numeric -> numeric", |_, a| Ok(Datum::Numeric(a.numeric(0)?.floor())));
    for name in ["ceil", "ceiling"] {
        r.scalar(name, "numeric -> numeric", |_, a| Ok(Datum::Numeric(a.numeric(0)?.ceil())));
    }
    r.scalar("sign", "numeric -> numeric", |_, a| {
        let n = a.numeric(0)?;
        Ok(Datum::Numeric(if n.is_nan() { Numeric::NaN } else { Numeric::from(i64::from(n.signum())) }))
    });
    r.scalar("sqrt", "numeric -> numeric", |c, a| Ok(Datum::Numeric(a.numeric(0)?.sqrt(&check(c))?)));
    r.scalar("exp", "numeric -> numeric", |c, a| Ok(Datum::Numeric(a.numeric(0)?.exp(&check(c))?)));
    r.scalar("ln", "numeric -> numeric", |c, a| Ok(Datum::Numeric(a.numeric(0)?.ln(&check(c))?)));
    for name in ["log", "log10"] {
        r.scalar(name, "numeric -> numeric", |c, a| Ok(Datum::Numeric(a.numeric(0)?.log(&Numeric::from(10), &check(c))?)));
    }
    r.scalar("log", "numeric, numeric -> numeric", |c, a| Ok(Datum::Numeric(a.numeric(1)?.log(a.numeric(0)?, &check(c))?)));
    r.scalar("scale", "numeric -> int4", |_, a| {
        let n = a.numeric(0)?;
        Ok(if n.is_finite() { Datum::Int(i64::from(n.scale())) } else { Datum::Null })
    });
    r.scalar("min_scale", "numeric -> int4", |_, a| {
        let n = a.numeric(0)?;
        Ok(if n.is_finite() { Datum::Int(i64::from(n.min_scale())) } else { Datum::Null })
    });
    r.scalar("trim_scale", "numeric -> numeric", |_, a| Ok(Datum::Numeric(a.numeric(0)?.trim_scale())));
    r.scalar("factorial", "int8 -> numeric", factorial).dear_above(500);
    r.scalar("width_bucket", "numeric, numeric, numeric, int4 -> int4", |_, a| {
        let (v, low, high, n) = (a.numeric(0)?, a.numeric(1)?, a.numeric(2)?, a.int(3)?);
        bucket(v.to_f64(), low.to_f64(), high.to_f64(), n)
    });
    r.scalar("width_bucket", "float8, float8, float8, int4 -> int4", |_, a| {
        bucket(a.float(0)?, a.float(1)?, a.float(2)?, a.int(3)?)
    });
}

/// What long computations ask whether they are to end.
fn check<'c>(c: &'c Call<'_>) -> impl Fn() -> Result<()> + 'c {
    || c.ctx.system.interrupted()
}

fn factorial(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let n = a.int(0)?;
    if n < 0 {
        return Err(Error::sql("22003", "factorial of a negative number is undefined"));
    }
    // PostgreSQL's own bound.
    if n > 32_177 {
        return Err(Error::sql("22003", "value overflows numeric format"));
    }
    let mut product = Numeric::from(1);
    for i in 2..=n {
        c.ctx.system.interrupted()?;
        product = product.mul(&Numeric::from(i))?;
    }
    Ok(Datum::Numeric(product))
}

fn bucket(v: f64, low: f64, high: f64, n: i64) -> Result<Datum> {
    if n <= 0 {
        return Err(Error::sql("2201G", "count must be greater than zero"));
    }
    if v.is_nan() || low.is_nan() || high.is_nan() {
        return Err(Error::sql("2201G", "operand, lower bound, and upper bound cannot be NaN"));
    }
    if low == high {
        return Err(Error::sql("2201G", "lower bound cannot equal upper bound"));
    }
    let share = (v - low) / (high - low);
    Ok(Datum::Int(if share < 0.0 {
        0
    } else if share >= 1.0 {
        n + 1
    } else {
        (share * n as f64) as i64 + 1
    }))
}

pub fn register(r: &mut Registry) {
    integers(r);
    floats(r);
    decimals(r);
}
