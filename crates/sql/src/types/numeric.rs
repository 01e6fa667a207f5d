//! Exact decimals.

use bigdecimal::BigDecimal;

/// PostgreSQL's `numeric`: an `i128` and a scale where that is enough, a big decimal on overflow, and the special values.
#[derive(Clone, Debug)]
pub enum Numeric {
    /// `mantissa × 10^−scale`.
    Small {
        mantissa: i128,
        scale: u16,
    },
    Big(Box<BigDecimal>),
    NaN,
    PosInfinity,
    NegInfinity,
}
