//! Conversions between types, and in which contexts they happen by themselves (PostgreSQL manual, `CREATE CAST` and 10.2–10.4).

use super::{Datum, EvalContext, Type};
use meridian_base::Result;

/// Where a conversion is wanted; each context allows what the ones before it allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    /// An argument of an operator or function.
    Implicit,
    /// A value for a column.
    Assignment,
    /// `CAST(x AS t)`, `x::t`.
    Explicit,
}

/// Whether a value of one type may become another in a context. `Unknown` may become anything.
pub fn can_cast(from: &Type, to: &Type, context: CastContext) -> bool {
    let _ = (from, to, context);
    true
}

/// Converts a value, the target's modifier included (`varchar(3)`: an assignment of a longer text is 22001, an explicit cast cuts).
/// 42846 if there is no such conversion.
pub fn cast(value: Datum, from: &Type, to: &Type, context: CastContext, ctx: &EvalContext) -> Result<Datum> {
    let _ = (from, to, context, ctx);
    Ok(value)
}

/// The type that several expressions resolve to: `UNION`, `CASE`, `VALUES`, `ARRAY`, `COALESCE`, `IN` (manual, 10.5). 42804 with `what` in
/// its message («UNION types text and integer cannot be matched»). All unknown: text.
pub fn select_common_type(types: &[Type], what: &str) -> Result<Type> {
    let _ = (types, what);
    Ok(Type::Text)
}
