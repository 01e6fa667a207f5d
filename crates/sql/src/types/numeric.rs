//! Exact decimals.
//!
//! A value is a mantissa and a *display scale*: how many digits it shows after the point, trailing
//! zeros included. The scale of a result is not free: `1.10 + 1` is `2.10`, and a quotient has the
//! digits that PostgreSQL's `select_div_scale` gives it, so that text output agrees digit for
//! digit. Nearly all values fit an `i128`; what does not goes through big integers.

mod math;

use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::{BigInt, Sign};
use meridian_base::{Error, Result};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// PostgreSQL's `numeric`: an `i128` and a scale where that is enough, a big decimal on overflow,
/// and the special values.
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

/// Most digits after the point (`NUMERIC_DSCALE_MAX`).
pub const SCALE_MAX: u16 = 16_383;
/// Most digits before the point.
const INTEGER_DIGITS_MAX: u64 = 131_072;
/// Most digits that a computed scale may have (`NUMERIC_MAX_DISPLAY_SCALE`).
const DISPLAY_SCALE_MAX: i64 = 1_000;
/// Significant digits a quotient or root has at least (`NUMERIC_MIN_SIG_DIGITS`).
const SIGNIFICANT_MIN: i64 = 16;

const POW10: [i128; 39] = {
    let mut t = [1i128; 39];
    let mut i = 1;
    while i < 39 {
        t[i] = t[i - 1] * 10;
        i += 1;
    }
    t
};

fn big_pow10(n: u32) -> BigInt {
    BigInt::from(10u8).pow(n)
}

fn overflow() -> Error {
    Error::sql("22003", "value overflows numeric format")
}

/// Whether it has more digits before the point than PostgreSQL's format holds.
fn is_too_wide(mantissa: &BigInt, scale: u16) -> bool {
    let digits = INTEGER_DIGITS_MAX + u64::from(scale);
    // A digit is 3.32193 bits: far from the limit nothing has to be compared.
    let bits = mantissa.bits();
    bits > digits * 3322 / 1000 + 1
        || (bits >= digits * 3321 / 1000 && mantissa.magnitude() >= big_pow10(digits as u32).magnitude())
}

/// `n / d`, rounded half away from zero.
fn div_round(n: &BigInt, d: &BigInt) -> BigInt {
    let two_n = n * 2u8;
    let magnitude = (two_n.magnitude() + d.magnitude()) / (d.magnitude() * 2u8);
    BigInt::from_biguint(if (n.sign() == Sign::Minus) != (d.sign() == Sign::Minus) { Sign::Minus } else { Sign::Plus }, magnitude)
}

impl Numeric {
    pub const ZERO: Numeric = Numeric::Small { mantissa: 0, scale: 0 };

    /// From an integer mantissa and a scale, in the small form if it fits.
    fn from_big(mantissa: BigInt, scale: u16) -> Numeric {
        match i128::try_from(&mantissa) {
            Ok(m) => Numeric::Small { mantissa: m, scale },
            Err(_) => Numeric::Big(Box::new(BigDecimal::new(mantissa, i64::from(scale)))),
        }
    }
    /// As `from_big`, refusing what PostgreSQL's format could not hold; a scale beyond its limit is
    /// rounded away.
    fn checked(mantissa: BigInt, scale: u32) -> Result<Numeric> {
        let (mantissa, scale) = if scale > u32::from(SCALE_MAX) {
            (div_round(&mantissa, &big_pow10(scale - u32::from(SCALE_MAX))), SCALE_MAX)
        } else {
            (mantissa, scale as u16)
        };
        match is_too_wide(&mantissa, scale) {
            true => Err(overflow()),
            false => Ok(Numeric::from_big(mantissa, scale)),
        }
    }
    /// Whether computing with it may take long.
    pub(crate) fn is_large(&self) -> bool {
        const LARGE_BITS: u64 = 16_000;
        matches!(self, Numeric::Big(b) if b.as_bigint_and_scale().0.bits() > LARGE_BITS)
    }
    /// 22003 if it has more digits before the point than PostgreSQL's format holds.
    pub fn check_size(&self) -> Result<()> {
        let Numeric::Big(_) = self else { return Ok(()) };
        let Some((mantissa, scale)) = self.big() else { return Ok(()) };
        if !is_too_wide(&mantissa, scale) {
            return Ok(());
        }
        Err(overflow())
    }
    /// Mantissa and scale; `None` for the special values.
    fn big(&self) -> Option<(BigInt, u16)> {
        match self {
            Numeric::Small { mantissa, scale } => Some((BigInt::from(*mantissa), *scale)),
            Numeric::Big(b) => {
                let (m, s) = b.as_bigint_and_exponent();
                Some((m, s.clamp(0, i64::from(SCALE_MAX)) as u16))
            }
            _ => None,
        }
    }
    /// Mantissa as big-endian two's complement, as short as possible, and scale: the stored form.
    /// `None` for special values.
    pub fn to_parts(&self) -> Option<(Vec<u8>, u16)> {
        let (m, s) = self.big()?;
        Some((m.to_signed_bytes_be(), s))
    }
    /// The inverse of [`Numeric::to_parts`].
    pub fn from_parts(mantissa: &[u8], scale: u16) -> Numeric {
        if mantissa.len() <= 16 {
            let negative = mantissa.first().is_some_and(|b| b & 0x80 != 0);
            let mut wide = [if negative { 0xFF } else { 0 }; 16];
            wide[16 - mantissa.len()..].copy_from_slice(mantissa);
            return Numeric::Small { mantissa: i128::from_be_bytes(wide), scale };
        }
        Numeric::from_big(BigInt::from_signed_bytes_be(mantissa), scale)
    }
    /// Decimal digits of the absolute mantissa without leading zeros (empty for 0), whether
    /// negative, and scale.
    pub fn to_digits(&self) -> Option<(String, bool, u16)> {
        Some(match self {
            Numeric::Small { mantissa, scale } => {
                let digits = if *mantissa == 0 { String::new() } else { mantissa.unsigned_abs().to_string() };
                (digits, *mantissa < 0, *scale)
            }
            _ => {
                let (m, s) = self.big()?;
                (m.magnitude().to_string(), m.sign() == Sign::Minus, s)
            }
        })
    }
    /// From decimal digits; the inverse of [`Numeric::to_digits`].
    pub fn from_digits(digits: &str, negative: bool, scale: u16) -> Option<Numeric> {
        if digits.len() <= 38 {
            let m: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
            return Some(Numeric::Small { mantissa: if negative { -m } else { m }, scale });
        }
        let m: BigInt = digits.parse().ok()?;
        Some(Numeric::from_big(if negative { -m } else { m }, scale))
    }

    /// Digits after the point; 0 for the special values.
    pub fn scale(&self) -> u16 {
        match self {
            Numeric::Small { scale, .. } => *scale,
            Numeric::Big(_) => self.big().map_or(0, |b| b.1),
            _ => 0,
        }
    }
    /// Whether both are written the same: `1.5` and `1.50` are equal, and are not.
    pub(crate) fn is_identical(&self, other: &Numeric) -> bool {
        self.scale() == other.scale() && self == other
    }
    /// The fewest digits after the point that lose nothing.
    pub fn min_scale(&self) -> u16 {
        let Some((digits, _, scale)) = self.to_digits() else { return 0 };
        if digits.is_empty() {
            return 0;
        }
        let zeros = digits.len() - digits.trim_end_matches('0').len();
        scale.saturating_sub(zeros.min(usize::from(u16::MAX)) as u16)
    }
    pub fn is_nan(&self) -> bool {
        matches!(self, Numeric::NaN)
    }
    pub fn is_finite(&self) -> bool {
        matches!(self, Numeric::Small { .. } | Numeric::Big(_))
    }
    pub fn is_zero(&self) -> bool {
        matches!(self, Numeric::Small { mantissa: 0, .. })
    }
    /// -1, 0, 1; NaN counts as positive.
    pub fn signum(&self) -> i32 {
        match self {
            Numeric::Small { mantissa, .. } => mantissa.signum() as i32,
            Numeric::Big(b) => match b.sign() {
                Sign::Minus => -1,
                Sign::NoSign => 0,
                Sign::Plus => 1,
            },
            Numeric::NegInfinity => -1,
            _ => 1,
        }
    }

    /// Reads text; `None` if it is not a number.
    pub fn parse(text: &str) -> Option<Result<Numeric>> {
        let t = text.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
        let (negative, rest) = match t.as_bytes().first()? {
            b'-' => (true, &t[1..]),
            b'+' => (false, &t[1..]),
            _ => (false, t),
        };
        if rest.eq_ignore_ascii_case("nan") {
            return (rest.len() == t.len()).then_some(Ok(Numeric::NaN));
        }
        if rest.eq_ignore_ascii_case("infinity") || rest.eq_ignore_ascii_case("inf") {
            return Some(Ok(if negative { Numeric::NegInfinity } else { Numeric::PosInfinity }));
        }
        let (number, exponent) = match rest.find(['e', 'E']) {
            Some(at) => {
                let e = &rest[at + 1..];
                let digits = e.strip_prefix(['+', '-']).unwrap_or(e);
                if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                    return None;
                }
                match e.parse::<i32>() {
                    Ok(e) if e.abs() < i32::MAX / 2 => (&rest[..at], i64::from(e)),
                    _ => return Some(Err(overflow())),
                }
            }
            None => (rest, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
            return None;
        }
        if exponent == 0 && whole.len() + fraction.len() <= 38 {
            let mut m: i128 = 0;
            for b in whole.bytes().chain(fraction.bytes()) {
                m = m * 10 + i128::from(b - b'0');
            }
            return Some(Ok(Numeric::Small { mantissa: if negative { -m } else { m }, scale: fraction.len() as u16 }));
        }
        Some(Numeric::parse_wide(whole, fraction, exponent, negative))
    }
    fn parse_wide(whole: &str, fraction: &str, exponent: i64, negative: bool) -> Result<Numeric> {
        let whole_digits = whole.trim_start_matches('0').len() as i64 + exponent;
        if whole_digits > INTEGER_DIGITS_MAX as i64
            || exponent < -(i64::from(SCALE_MAX) + whole.len() as i64 + 1) && exponent < -100_000
        {
            return Err(overflow());
        }
        let m: BigInt = format!("{whole}{fraction}").parse().map_err(|_| overflow())?;
        let m = if negative { -m } else { m };
        let scale = fraction.len() as i64 - exponent;
        if scale < 0 {
            if m.sign() == Sign::NoSign {
                return Ok(Numeric::ZERO);
            }
            return Numeric::checked(m * big_pow10(scale.unsigned_abs() as u32), 0);
        }
        if scale > i64::from(SCALE_MAX) {
            return Err(overflow());
        }
        Numeric::checked(m, scale as u32)
    }

    /// Sign changed.
    pub fn neg(&self) -> Numeric {
        match self {
            Numeric::Small { mantissa, scale } => match mantissa.checked_neg() {
                Some(m) => Numeric::Small { mantissa: m, scale: *scale },
                None => Numeric::from_big(-BigInt::from(*mantissa), *scale),
            },
            Numeric::Big(b) => {
                let (m, s) = b.as_bigint_and_exponent();
                Numeric::from_big(-m, s as u16)
            }
            Numeric::NaN => Numeric::NaN,
            Numeric::PosInfinity => Numeric::NegInfinity,
            Numeric::NegInfinity => Numeric::PosInfinity,
        }
    }
    pub fn abs(&self) -> Numeric {
        if self.signum() < 0 { self.neg() } else { self.clone() }
    }

    pub fn add(&self, o: &Numeric) -> Result<Numeric> {
        if let (Numeric::Small { mantissa: a, scale: s }, Numeric::Small { mantissa: b, scale: t }) = (self, o)
            && let Some((a, b, scale)) = align(*a, *s, *b, *t)
            && let Some(m) = a.checked_add(b)
        {
            return Ok(Numeric::Small { mantissa: m, scale });
        }
        match (self.big(), o.big()) {
            (Some((a, s)), Some((b, t))) => {
                let scale = s.max(t);
                let a = a * big_pow10(u32::from(scale - s));
                let b = b * big_pow10(u32::from(scale - t));
                Numeric::checked(a + b, u32::from(scale))
            }
            _ => Ok(match (self, o) {
                (Numeric::NaN, _) | (_, Numeric::NaN) => Numeric::NaN,
                (Numeric::PosInfinity, Numeric::NegInfinity) | (Numeric::NegInfinity, Numeric::PosInfinity) => Numeric::NaN,
                (Numeric::PosInfinity, _) | (_, Numeric::PosInfinity) => Numeric::PosInfinity,
                _ => Numeric::NegInfinity,
            }),
        }
    }
    pub fn sub(&self, o: &Numeric) -> Result<Numeric> {
        if let (Numeric::Small { mantissa: a, scale: s }, Numeric::Small { mantissa: b, scale: t }) = (self, o)
            && let Some((a, b, scale)) = align(*a, *s, *b, *t)
            && let Some(m) = a.checked_sub(b)
        {
            return Ok(Numeric::Small { mantissa: m, scale });
        }
        self.add(&o.neg())
    }
    /// What its digits take beside the value itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Numeric::Big(d) => size_of::<BigDecimal>() + d.as_bigint_and_scale().0.bits() as usize / 8,
            _ => 0,
        }
    }
    pub fn mul(&self, o: &Numeric) -> Result<Numeric> {
        if let (Numeric::Small { mantissa: a, scale: s }, Numeric::Small { mantissa: b, scale: t }) = (self, o)
            && let Some(m) = a.checked_mul(*b)
            && s + t <= SCALE_MAX
        {
            return Ok(Numeric::Small { mantissa: m, scale: s + t });
        }
        match (self.big(), o.big()) {
            (Some((a, s)), Some((b, t))) => Numeric::checked(a * b, u32::from(s) + u32::from(t)),
            _ if self.is_nan() || o.is_nan() || self.is_zero() || o.is_zero() => Ok(Numeric::NaN),
            _ if self.signum() * o.signum() > 0 => Ok(Numeric::PosInfinity),
            _ => Ok(Numeric::NegInfinity),
        }
    }
    /// The quotient, with the scale that PostgreSQL selects. 22012 for a zero divisor.
    pub fn div(&self, o: &Numeric) -> Result<Numeric> {
        if self.is_nan() || o.is_nan() {
            return Ok(Numeric::NaN);
        }
        if o.is_zero() {
            return Err(division_by_zero());
        }
        let ((a, s), (b, t)) = match (self.big(), o.big()) {
            (Some(a), Some(b)) => (a, b),
            (Some(_), None) => return Ok(Numeric::ZERO),
            (None, None) => return Ok(Numeric::NaN),
            (None, Some(_)) if self.signum() * o.signum() > 0 => return Ok(Numeric::PosInfinity),
            (None, Some(_)) => return Ok(Numeric::NegInfinity),
        };
        let scale = div_scale(self, o);
        Numeric::checked(quotient(&a, s, &b, t, scale), scale as u32)
    }
    /// The remainder, with the dividend's sign.
    pub fn rem(&self, o: &Numeric) -> Result<Numeric> {
        if self.is_nan() || o.is_nan() {
            return Ok(Numeric::NaN);
        }
        if o.is_zero() {
            return Err(division_by_zero());
        }
        if let (Numeric::Small { mantissa: a, scale: s }, Numeric::Small { mantissa: b, scale: t }) = (self, o)
            && let Some((a, b, scale)) = align(*a, *s, *b, *t)
        {
            return Ok(Numeric::Small { mantissa: a.wrapping_rem(b), scale });
        }
        match (self.big(), o.big()) {
            (Some((a, s)), Some((b, t))) => {
                let scale = s.max(t);
                let a = a * big_pow10(u32::from(scale - s));
                let b = b * big_pow10(u32::from(scale - t));
                Ok(Numeric::from_big(a % b, scale))
            }
            (None, _) => Ok(Numeric::NaN),
            (_, None) => Ok(self.clone()),
        }
    }
    /// The quotient, cut to an integer.
    pub fn div_trunc(&self, o: &Numeric) -> Result<Numeric> {
        match (self.big(), o.big()) {
            (Some((a, s)), Some((b, t))) if !o.is_zero() => {
                let scale = s.max(t);
                let a = a * big_pow10(u32::from(scale - s));
                let b = b * big_pow10(u32::from(scale - t));
                Numeric::checked(a / b, 0)
            }
            _ => self.div(o),
        }
    }

    /// Rounded half away from zero to `digits` after the point; negative digits round before it.
    pub fn round(&self, digits: i32) -> Numeric {
        self.rescale(digits, div_round)
    }
    /// Cut to `digits` after the point.
    pub fn trunc(&self, digits: i32) -> Numeric {
        self.rescale(digits, |n, d| n / d)
    }
    fn rescale(&self, digits: i32, divide: impl Fn(&BigInt, &BigInt) -> BigInt) -> Numeric {
        let digits = digits.clamp(-(INTEGER_DIGITS_MAX as i32), i32::from(SCALE_MAX));
        let Some((m, s)) = self.big() else { return self.clone() };
        let scale = digits.max(0) as u16;
        if digits >= i32::from(s) {
            return Numeric::from_big(m * big_pow10(u32::from(scale - s)), scale);
        }
        let cut = divide(&m, &big_pow10((i32::from(s) - digits) as u32));
        if digits < 0 {
            return Numeric::from_big(cut * big_pow10(digits.unsigned_abs()), 0);
        }
        Numeric::from_big(cut, scale)
    }
    /// The largest integer not above it.
    pub fn floor(&self) -> Numeric {
        let cut = self.trunc(0);
        if self.is_finite() && self.signum() < 0 && cut != *self { cut.sub(&Numeric::from(1)).unwrap_or(cut) } else { cut }
    }
    /// The smallest integer not below it.
    pub fn ceil(&self) -> Numeric {
        self.neg().floor().neg()
    }
    /// Trailing zeros after the point removed.
    pub fn trim_scale(&self) -> Numeric {
        self.trunc(i32::from(self.min_scale()))
    }
    /// The greatest common divisor, with the larger of the two scales; `check` ends a long
    /// computation.
    pub fn gcd(&self, o: &Numeric, check: &dyn Fn() -> Result<()>) -> Result<Numeric> {
        let (Some((a, s)), Some((b, t))) = (self.big(), o.big()) else { return Ok(Numeric::NaN) };
        let scale = s.max(t);
        let (mut a, mut b) = (a * big_pow10(u32::from(scale - s)), b * big_pow10(u32::from(scale - t)));
        while b != BigInt::from(0) {
            check()?;
            (a, b) = (b.clone(), a % b);
        }
        Numeric::checked(BigInt::from(a.into_parts().1), u32::from(scale))
    }
    /// The least common multiple, with the larger of the two scales.
    pub fn lcm(&self, o: &Numeric, check: &dyn Fn() -> Result<()>) -> Result<Numeric> {
        let scale = i32::from(self.scale().max(o.scale()));
        match self.gcd(o, check)? {
            Numeric::NaN => Ok(Numeric::NaN),
            _ if self.is_zero() || o.is_zero() => Ok(Numeric::from(0).round(scale)),
            of_both => Ok(self.div_trunc(&of_both)?.mul(o)?.abs().round(scale)),
        }
    }
    /// Rounded to a column's precision and scale; 22003 if it does not fit.
    pub fn with_precision(&self, precision: u16, scale: i16) -> Result<Numeric> {
        let refuse = |detail: String| Err(Error::sql("22003", "numeric field overflow").detail(detail));
        match self {
            Numeric::NaN => return Ok(Numeric::NaN),
            Numeric::PosInfinity | Numeric::NegInfinity => {
                return refuse(format!("A field with precision {precision}, scale {scale} cannot hold an infinite value."));
            }
            Numeric::Small { scale: s, mantissa }
                if i32::from(*s) == i32::from(scale) && precision < 38 && mantissa.abs() < POW10[usize::from(precision)] =>
            {
                return Ok(self.clone());
            }
            _ => {}
        }
        let rounded = self.round(i32::from(scale));
        let whole_digits = i32::from(precision) - i32::from(scale);
        let (digits, _, s) = rounded.to_digits().unwrap_or_default();
        let fits = digits.is_empty() || digits.len() as i32 - i32::from(s) <= whole_digits;
        if !fits {
            let bound = if whole_digits == 0 { "1".to_string() } else { format!("10^{whole_digits}") };
            return refuse(format!(
                "A field with precision {precision}, scale {scale} must round to an absolute value less than {bound}."
            ));
        }
        Ok(rounded)
    }

    /// Rounded to an integer; `None` if it is not finite or too large.
    pub fn to_i64(&self) -> Option<i64> {
        match self.round(0) {
            Numeric::Small { mantissa, .. } => i64::try_from(mantissa).ok(),
            _ => None,
        }
    }
    /// The largest integer that is not above the number times `10^digits`, or the nearest that an
    /// `i64` holds; NaN is above all numbers. Of a smaller number it is never larger.
    pub fn floor_to_i64(&self, digits: u16) -> i64 {
        let clamp = |n: i128| n.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        match self {
            Numeric::NaN | Numeric::PosInfinity => i64::MAX,
            Numeric::NegInfinity => i64::MIN,
            Numeric::Small { mantissa, scale } if *scale <= digits => match POW10.get(usize::from(digits - scale)) {
                Some(factor) => clamp(mantissa.saturating_mul(*factor)),
                None => clamp(mantissa.signum().saturating_mul(i128::MAX)),
            },
            // Below one if there is no such power.
            Numeric::Small { mantissa, scale } => match POW10.get(usize::from(scale - digits)) {
                Some(divisor) => clamp(mantissa.div_euclid(*divisor)),
                None => mantissa.signum().min(0) as i64,
            },
            Numeric::Big(_) => {
                let Some((mantissa, scale)) = self.big() else { return 0 };
                let is_negative = mantissa.sign() == Sign::Minus;
                let far = if is_negative { i64::MIN } else { i64::MAX };
                if scale <= digits {
                    return i64::try_from(mantissa * big_pow10(u32::from(digits - scale))).unwrap_or(far);
                }
                let divisor = big_pow10(u32::from(scale - digits));
                let quotient = &mantissa / &divisor;
                let is_rounded_up = is_negative && &quotient * &divisor != mantissa;
                i64::try_from(quotient - i32::from(is_rounded_up)).unwrap_or(far)
            }
        }
    }
    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        match self {
            Numeric::NaN => f64::NAN,
            Numeric::PosInfinity => f64::INFINITY,
            Numeric::NegInfinity => f64::NEG_INFINITY,
            Numeric::Small { mantissa, scale: 0 } => *mantissa as f64,
            // The standard library's parser rounds correctly; dividing would round twice.
            n => n.to_string().parse().unwrap_or(f64::NAN),
        }
    }
    /// From a float, with the 15 (float4: 6) digits that PostgreSQL keeps.
    pub fn from_f64(v: f64, digits: usize) -> Numeric {
        if v.is_nan() {
            return Numeric::NaN;
        }
        if v.is_infinite() {
            return if v > 0.0 { Numeric::PosInfinity } else { Numeric::NegInfinity };
        }
        let text = format!("{:.*e}", digits - 1, v);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mantissa = if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
        match Numeric::parse(&format!("{mantissa}e{exponent}")) {
            Some(Ok(n)) => n,
            _ => Numeric::NaN,
        }
    }
}

/// 22012.
pub fn division_by_zero() -> Error {
    Error::sql("22012", "division by zero")
}

/// Both mantissas at the larger scale; `None` on overflow.
fn align(a: i128, s: u16, b: i128, t: u16) -> Option<(i128, i128, u16)> {
    match s.cmp(&t) {
        Ordering::Equal => Some((a, b, s)),
        Ordering::Less => Some((a.checked_mul(*POW10.get(usize::from(t - s))?)?, b, t)),
        Ordering::Greater => Some((a, b.checked_mul(*POW10.get(usize::from(s - t))?)?, s)),
    }
}

/// `(a·10^-s) / (b·10^-t)`, rounded to `scale`.
fn quotient(a: &BigInt, s: u16, b: &BigInt, t: u16, scale: i64) -> BigInt {
    let shift = scale - i64::from(s) + i64::from(t);
    if shift >= 0 { div_round(&(a * big_pow10(shift as u32)), b) } else { div_round(a, &(b * big_pow10((-shift) as u32))) }
}

/// Weight and value of the first base-10000 digit, as PostgreSQL stores them.
fn first_digit(n: &Numeric) -> (i64, i64) {
    let (digits, _, scale) = n.to_digits().unwrap_or_default();
    if digits.is_empty() {
        return (0, 0);
    }
    let exponent = digits.len() as i64 - 1 - i64::from(scale);
    let weight = exponent.div_euclid(4);
    let wanted = (exponent - 4 * weight + 1) as usize;
    let mut first = 0;
    for i in 0..wanted {
        first = first * 10 + digits.as_bytes().get(i).map_or(0, |b| i64::from(b - b'0'));
    }
    (weight, first)
}

/// The scale of a quotient: at least 16 significant digits, and at least the scales of both sides
/// (`select_div_scale`).
fn div_scale(a: &Numeric, b: &Numeric) -> i64 {
    let ((wa, fa), (wb, fb)) = (first_digit(a), first_digit(b));
    let weight = wa - wb - i64::from(fa <= fb);
    (SIGNIFICANT_MIN - weight * 4).max(i64::from(a.scale())).max(i64::from(b.scale())).clamp(0, DISPLAY_SCALE_MAX)
}

impl From<i64> for Numeric {
    fn from(v: i64) -> Numeric {
        Numeric::Small { mantissa: i128::from(v), scale: 0 }
    }
}

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((digits, negative, scale)) = self.to_digits() else {
            return f.write_str(match self {
                Numeric::PosInfinity => "Infinity",
                Numeric::NegInfinity => "-Infinity",
                _ => "NaN",
            });
        };
        let scale = usize::from(scale);
        if negative {
            f.write_str("-")?;
        }
        if digits.len() > scale {
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            f.write_str(whole)?;
            if scale > 0 {
                write!(f, ".{fraction}")?;
            }
            return Ok(());
        }
        f.write_str("0")?;
        if scale > 0 {
            write!(f, ".{digits:0>scale$}")?;
        }
        Ok(())
    }
}

/// NaN equals itself and is larger than everything; the scale does not matter.
impl Ord for Numeric {
    fn cmp(&self, o: &Numeric) -> Ordering {
        fn rank(n: &Numeric) -> i32 {
            match n {
                Numeric::NegInfinity => -1,
                Numeric::PosInfinity => 1,
                Numeric::NaN => 2,
                _ => 0,
            }
        }
        let (a, b) = (rank(self), rank(o));
        if a != 0 || b != 0 {
            return a.cmp(&b);
        }
        if let (Numeric::Small { mantissa: a, scale: s }, Numeric::Small { mantissa: b, scale: t }) = (self, o)
            && let Some((a, b, _)) = align(*a, *s, *b, *t)
        {
            return a.cmp(&b);
        }
        match (self.big(), o.big()) {
            (Some((a, s)), Some((b, t))) => {
                let scale = s.max(t);
                (a * big_pow10(u32::from(scale - s))).cmp(&(b * big_pow10(u32::from(scale - t))))
            }
            _ => Ordering::Equal,
        }
    }
}
impl PartialOrd for Numeric {
    fn partial_cmp(&self, o: &Numeric) -> Option<Ordering> {
        Some(self.cmp(o))
    }
}
impl PartialEq for Numeric {
    fn eq(&self, o: &Numeric) -> bool {
        self.cmp(o) == Ordering::Equal
    }
}
impl Eq for Numeric {}
impl Hash for Numeric {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Numeric::Small { mantissa, scale } => {
                // Equal values of different scales hash alike: without trailing zeros after the
                // point.
                let (mut m, mut s) = (*mantissa, *scale);
                while s > 0 && m % 10 == 0 {
                    (m, s) = (m / 10, s - 1);
                }
                (m, s).hash(state)
            }
            Numeric::Big(_) => match self.trim_scale() {
                n @ Numeric::Small { .. } => n.hash(state),
                n => n.to_digits().hash(state),
            },
            Numeric::NaN => 2u8.hash(state),
            Numeric::PosInfinity => 1u8.hash(state),
            Numeric::NegInfinity => 3u8.hash(state),
        }
    }
}
