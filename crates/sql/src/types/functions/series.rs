//! `generate_series`.

use super::args::Args;
use super::registry::Registry;
use super::{Call, SetRows};
use crate::types::datetime::arithmetic::{timestamp_plus, timestamptz_plus};
use crate::types::{Datum, Type};
use meridian_base::{Error, Result};

fn zero_step() -> Error {
    Error::sql("22023", "step size cannot equal zero")
}

fn integers(_: &Call<'_>, a: &[Datum]) -> Result<SetRows> {
    let (start, stop, step) = (a.int(0)?, a.int(1)?, if a.len() > 2 { a.int(2)? } else { 1 });
    if step == 0 {
        return Err(zero_step());
    }
    let mut next = Some(start);
    Ok(Box::new(std::iter::from_fn(move || {
        let v = next.filter(|v| if step > 0 { *v <= stop } else { *v >= stop })?;
        next = v.checked_add(step);
        Some(Ok(vec![Datum::Int(v)]))
    })))
}

fn decimals(_: &Call<'_>, a: &[Datum]) -> Result<SetRows> {
    use crate::types::numeric::Numeric;
    let (start, stop) = (a.numeric(0)?.clone(), a.numeric(1)?.clone());
    let step = if a.len() > 2 { a.numeric(2)?.clone() } else { Numeric::from(1) };
    if step.is_zero() {
        return Err(zero_step());
    }
    for (n, what) in [(&start, "start"), (&stop, "stop"), (&step, "step size")] {
        if !n.is_finite() {
            let kind = if n.is_nan() { "NaN" } else { "infinity" };
            return Err(Error::sql(
                "22023",
                format!("{what}{} cannot be {kind}", if what == "step size" { "" } else { " value" }),
            ));
        }
    }
    let up = step.signum() > 0;
    let mut next = Some(start);
    Ok(Box::new(std::iter::from_fn(move || {
        let v = next.take().filter(|v| if up { *v <= stop } else { *v >= stop })?;
        next = v.add(&step).ok();
        Some(Ok(vec![Datum::Numeric(v)]))
    })))
}

fn times(c: &Call<'_>, a: &[Datum]) -> Result<SetRows> {
    let (start, stop, step) = (a.timestamp(0)?, a.timestamp(1)?, *a.interval(2)?);
    let direction = step.order();
    if direction == 0 {
        return Err(zero_step());
    }
    let zone = (c.args[0] == Type::Timestamptz).then(|| c.ctx.zone.clone());
    let mut next = Some(start);
    Ok(Box::new(std::iter::from_fn(move || {
        let v = next.filter(|v| if direction > 0 { *v <= stop } else { *v >= stop })?;
        let moved = match &zone {
            Some(z) => timestamptz_plus(v, &step, z),
            None => timestamp_plus(v, &step),
        };
        // Infinities do not move, and beyond the range there is nothing.
        next = moved.ok().filter(|n| *n != v);
        Some(Ok(vec![Datum::Timestamp(v)]))
    })))
}

pub fn register(r: &mut Registry) {
    for t in ["int4", "int8"] {
        r.set("generate_series", &format!("{t}, {t} -> {t}"), integers);
        r.set("generate_series", &format!("{t}, {t}, {t} -> {t}"), integers);
    }
    r.set("generate_series", "numeric, numeric -> numeric", decimals);
    r.set("generate_series", "numeric, numeric, numeric -> numeric", decimals);
    for t in ["timestamp", "timestamptz"] {
        r.set("generate_series", &format!("{t}, {t}, interval -> {t}"), times);
    }
}
