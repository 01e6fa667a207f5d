//! Roots, powers and logarithms of exact decimals: fixed-point series over big integers, with guard
//! digits, rounded to the scale that PostgreSQL would show.

use super::{
    BigInt, DISPLAY_SCALE_MAX, Numeric, SIGNIFICANT_MIN, Sign, big_pow10, div_round, division_by_zero, first_digit, overflow,
};
use meridian_base::{Error, Result};

/// Digits computed beyond those that are shown.
const GUARD: u32 = 12;
/// Beyond the power of `e` with this exponent everything overflows, or is nothing (numeric.c
/// `exp_var`).
const EXPONENT_MAX: f64 = 6_000.0;
/// The same for other bases, by their logarithm (numeric.c `power_var`).
const POWER_MAX: f64 = EXPONENT_MAX * 1.003_333;
/// A power of so many bits at most is computed exactly.
const EXACT_BITS_MAX: u64 = 8_192;

/// Roots of numbers of so many bits at most are computed at once.
const ROOT_BITS: u64 = 4_096;

/// Asked in every long loop; its error ends the computation.
pub type Check<'c> = &'c dyn Fn() -> Result<()>;

/// A fixed-point number: `value × 2^-bits`.
struct Fixed<'c> {
    bits: usize,
    one: BigInt,
    check: Check<'c>,
}

impl<'c> Fixed<'c> {
    /// With so many decimal digits behind the point.
    fn new(digits: u32, check: Check<'c>) -> Fixed<'c> {
        Fixed::of_bits(bits_of(u64::from(digits)), check)
    }
    fn of_bits(bits: usize, check: Check<'c>) -> Fixed<'c> {
        Fixed { bits, one: BigInt::from(1) << bits, check }
    }
    fn of(&self, n: &Numeric) -> BigInt {
        let (m, s) = n.big().unwrap_or_default();
        div_round(&(m << self.bits), &big_pow10(u32::from(s)))
    }
    fn mul(&self, a: &BigInt, b: &BigInt) -> BigInt {
        (a * b) >> self.bits
    }
    fn round_to(&self, v: &BigInt, scale: i64) -> Numeric {
        Numeric::from_big(div_round(&(v * big_pow10(scale as u32)), &self.one), scale as u16)
    }
    /// `ln(n)` for `n > 0`: halved or doubled into [2/3, 4/3], then the series of
    /// `2·atanh((v-1)/(v+1))`.
    fn ln(&self, n: &Numeric) -> Result<BigInt> {
        let (m, s) = n.big().unwrap_or_default();
        let ten = big_pow10(u32::from(s));
        let mut doublings = m.bits() as i64 - ten.bits() as i64;
        let shift = self.bits as i64 - doublings;
        let mut x = if shift >= 0 { (m << shift as usize) / ten } else { m / (ten << (-shift) as usize) };
        while &x * 3 > &self.one * 4 {
            x >>= 1;
            doublings += 1;
        }
        while &x * 3 < &self.one * 2 {
            x <<= 1;
            doublings -= 1;
        }
        let mut result = self.two_atanh(&(&x - &self.one), &(&x + &self.one))?;
        if doublings != 0 {
            result += self.two_atanh(&BigInt::from(1), &BigInt::from(3))? * doublings;
        }
        Ok(result)
    }
    fn two_atanh(&self, numerator: &BigInt, denominator: &BigInt) -> Result<BigInt> {
        let z = (numerator << self.bits) / denominator;
        let z2 = self.mul(&z, &z);
        let (mut term, mut sum, mut k) = (z.clone(), z, 1u32);
        // A negative one is shifted towards -1.
        while term.bits() > 1 {
            (self.check)()?;
            term = self.mul(&term, &z2);
            k += 2;
            sum += &term / k;
        }
        Ok(sum * 2)
    }
    /// `e^v`: the argument is halved until it is small, the series summed, the result squared back.
    fn exp(&self, v: &BigInt) -> Result<BigInt> {
        let halvings = (v.bits() as i64 - self.one.bits() as i64 + 8).max(0) as usize + self.bits.isqrt() / 4;
        // Each squaring doubles the error.
        let inner = Fixed::of_bits(self.bits + 2 * halvings + 16, self.check);
        let x = (v << (inner.bits - self.bits)) >> halvings;
        let (mut term, mut sum, mut k) = (inner.one.clone(), inner.one.clone(), 1u32);
        while term.bits() > 1 {
            (self.check)()?;
            term = inner.mul(&term, &x) / k;
            sum += &term;
            k += 1;
        }
        for _ in 0..halvings {
            (self.check)()?;
            sum = inner.mul(&sum, &sum);
        }
        Ok(sum >> (inner.bits - self.bits))
    }
}

/// The whole part of a square root. Newton's steps, each with twice as many bits as the one before.
fn root(n: &BigInt, check: Check<'_>) -> Result<BigInt> {
    if n.bits() <= ROOT_BITS {
        return Ok(n.sqrt());
    }
    check()?;
    // The upper half of the root's bits, by the upper half of the number's, of which an even number
    // is left out.
    let low = n.bits() as usize / 4;
    let high = root(&(n >> (2 * low)), check)?;
    check()?;
    let guess = high << low;
    let mut x: BigInt = (&guess + n / &guess) >> 1usize;
    // One step from there is never below the root, and above it by little.
    loop {
        check()?;
        if &x * &x <= *n {
            return Ok(x);
        }
        x -= 1;
    }
}

/// How many binary digits are worth so many decimal ones.
fn bits_of(digits: u64) -> usize {
    (digits * 3_322 / 1_000 + 1) as usize
}

/// Where the first digit of `ln(n)` stands, roughly (`estimate_ln_dweight`).
fn ln_weight(n: &Numeric) -> i64 {
    let v = n.to_f64();
    if (0.9..=1.1).contains(&v) {
        let d = n.sub(&Numeric::from(1)).unwrap_or(Numeric::ZERO);
        if d.is_zero() {
            return 0;
        }
        let (weight, first) = first_digit(&d);
        return weight * 4 + (first as f64).log10() as i64;
    }
    let (digits, _, scale) = n.to_digits().unwrap_or_default();
    let lead: f64 = format!("0.{}", &digits[..digits.len().min(15)]).parse().unwrap_or(0.5);
    let ln = lead.ln() + (digits.len() as f64 - f64::from(scale)) * std::f64::consts::LN_10;
    ln.abs().log10() as i64
}

fn ln_domain(n: &Numeric) -> Result<()> {
    if n.is_zero() {
        return Err(Error::sql("2201E", "cannot take logarithm of zero"));
    }
    if n.signum() < 0 {
        return Err(Error::sql("2201E", "cannot take logarithm of a negative number"));
    }
    Ok(())
}

/// A positive binary number: `mantissa × 2^exponent`.
struct Float {
    mantissa: BigInt,
    exponent: i64,
}

impl Float {
    /// With at least so many bits.
    fn quotient(numerator: BigInt, denominator: &BigInt, bits: u64) -> Float {
        let shift = (bits + denominator.bits()).saturating_sub(numerator.bits()) + 1;
        Float { mantissa: (numerator << shift as usize) / denominator, exponent: -(shift as i64) }
    }
    /// Cut to so many bits.
    fn mul(&self, o: &Float, bits: u64) -> Float {
        let (product, exponent) = (&self.mantissa * &o.mantissa, self.exponent + o.exponent);
        let cut = product.bits().saturating_sub(bits);
        Float { mantissa: product >> cut as usize, exponent: exponent + cut as i64 }
    }
}

impl Numeric {
    /// The square root. 2201F for negative numbers.
    pub fn sqrt(&self, check: Check<'_>) -> Result<Numeric> {
        if !self.is_nan() && self.signum() < 0 {
            return Err(Error::sql("2201F", "cannot take square root of a negative number"));
        }
        let (weight, _) = first_digit(self);
        let result_weight = (weight + 1) * 2 - 1;
        let scale = (SIGNIFICANT_MIN - result_weight).max(i64::from(self.scale())).clamp(0, DISPLAY_SCALE_MAX);
        self.sqrt_to(scale as u16, check)
    }
    /// The square root of what is not negative, with so many digits behind the point.
    pub fn sqrt_to(&self, scale: u16, check: Check<'_>) -> Result<Numeric> {
        let Some((m, s)) = self.big() else { return Ok(self.clone()) };
        // One digit more than shown, then rounded: the integer root cuts.
        let digits = 2 * (u32::from(scale) + 1);
        let wide =
            if u32::from(s) <= digits { m * big_pow10(digits - u32::from(s)) } else { m / big_pow10(u32::from(s) - digits) };
        Ok(Numeric::from_big(div_round(&root(&wide, check)?, &BigInt::from(10)), scale))
    }
    /// `e` to its power.
    pub fn exp(&self, check: Check<'_>) -> Result<Numeric> {
        match self {
            Numeric::NegInfinity => return Ok(Numeric::ZERO),
            n if !n.is_finite() => return Ok(self.clone()),
            _ => {}
        }
        let weight = self.to_f64() * std::f64::consts::LOG10_E;
        if self.to_f64() >= EXPONENT_MAX {
            return Err(overflow());
        }
        let scale =
            (SIGNIFICANT_MIN - weight.clamp(-2000.0, 2000.0) as i64).max(i64::from(self.scale())).clamp(0, DISPLAY_SCALE_MAX);
        if weight < -(DISPLAY_SCALE_MAX as f64) - 10.0 {
            return Ok(Numeric::Small { mantissa: 0, scale: scale as u16 });
        }
        let f = Fixed::new(scale as u32 + GUARD + weight.max(0.0) as u32, check);
        Ok(f.round_to(&f.exp(&f.of(self))?, scale))
    }
    /// The natural logarithm.
    pub fn ln(&self, check: Check<'_>) -> Result<Numeric> {
        if self.is_nan() {
            return Ok(Numeric::NaN);
        }
        ln_domain(self)?;
        if !self.is_finite() {
            return Ok(self.clone());
        }
        let scale = (SIGNIFICANT_MIN - ln_weight(self)).max(i64::from(self.scale())).clamp(0, DISPLAY_SCALE_MAX);
        let f = Fixed::new(scale as u32 + GUARD, check);
        Ok(f.round_to(&f.ln(self)?, scale))
    }
    /// The logarithm to a base.
    pub fn log(&self, base: &Numeric, check: Check<'_>) -> Result<Numeric> {
        if self.is_nan() || base.is_nan() {
            return Ok(Numeric::NaN);
        }
        ln_domain(base)?;
        ln_domain(self)?;
        if !base.is_finite() || !self.is_finite() {
            return Ok(if base.is_finite() {
                Numeric::PosInfinity
            } else if self.is_finite() {
                Numeric::ZERO
            } else {
                Numeric::NaN
            });
        }
        let weight = ln_weight(self) - ln_weight(base);
        let scale =
            (SIGNIFICANT_MIN - weight).max(i64::from(self.scale())).max(i64::from(base.scale())).clamp(0, DISPLAY_SCALE_MAX);
        // Two logarithms of numbers near 1 have few digits.
        let small = (-ln_weight(base)).max(0) * 2 + (-ln_weight(self)).max(0);
        let f = Fixed::new(scale as u32 + 2 * GUARD + small as u32, check);
        let below = f.ln(base)?;
        if below.sign() == Sign::NoSign {
            return Err(division_by_zero());
        }
        Ok(f.round_to(&((f.ln(self)? << f.bits) / below), scale))
    }
    /// A power. Exact for small whole exponents, else by logarithm.
    pub fn power(&self, exponent: &Numeric, check: Check<'_>) -> Result<Numeric> {
        let whole = exponent.is_finite() && exponent.trunc(0) == *exponent;
        if exponent.is_zero() || *self == Numeric::from(1) {
            if !self.is_finite() || !exponent.is_finite() {
                return Ok(Numeric::from(1));
            }
            let of_exponent = if whole { 0 } else { i64::from(exponent.scale()) };
            let scale = SIGNIFICANT_MIN.max(i64::from(self.scale())).max(of_exponent).min(DISPLAY_SCALE_MAX);
            return Ok(Numeric::from_big(big_pow10(scale as u32), scale as u16));
        }
        if self.is_nan() || exponent.is_nan() {
            return Ok(Numeric::NaN);
        }
        if self.is_zero() && exponent.signum() < 0 {
            return Err(Error::sql("2201F", "zero raised to a negative power is undefined"));
        }
        if self.signum() < 0 && !whole && exponent.is_finite() {
            return Err(Error::sql("2201F", "a negative number raised to a non-integer power yields a complex result"));
        }
        if !self.is_finite() || !exponent.is_finite() {
            return Ok(self.power_of_infinity(exponent));
        }
        if self.is_zero() {
            // A whole exponent keeps the digits of the base.
            let scale = if whole { SIGNIFICANT_MIN.max(i64::from(self.scale())) } else { SIGNIFICANT_MIN };
            return Ok(Numeric::Small { mantissa: 0, scale: scale as u16 });
        }
        let magnitude = self.abs();
        let log10 = {
            let (digits, _, scale) = magnitude.to_digits().unwrap_or_default();
            let lead: f64 = format!("0.{}", &digits[..digits.len().min(17)]).parse().unwrap_or(0.5);
            lead.log10() + digits.len() as f64 - f64::from(scale)
        };
        let weight = log10 * exponent.to_f64();
        if weight > 131_072.0 {
            return Err(overflow());
        }
        // A whole exponent shows 16 digits behind the point, any other one 16 significant digits
        // (`power_var`).
        let scale = if whole {
            SIGNIFICANT_MIN.max(i64::from(self.scale())).min(DISPLAY_SCALE_MAX)
        } else {
            (SIGNIFICANT_MIN - weight.clamp(-2000.0, 2000.0) as i64)
                .max(i64::from(self.scale()))
                .max(i64::from(exponent.scale()))
                .clamp(0, DISPLAY_SCALE_MAX)
        };
        if weight < -(DISPLAY_SCALE_MAX as f64) - 10.0 {
            return Ok(Numeric::Small { mantissa: 0, scale: scale as u16 });
        }
        if whole && let Some(e) = exponent.to_i64() {
            return self.power_whole(e, scale, weight, check);
        }
        let logarithm = weight * std::f64::consts::LN_10;
        if logarithm.abs() > POWER_MAX {
            return match logarithm > 0.0 {
                true => Err(overflow()),
                false => Ok(Numeric::Small { mantissa: 0, scale: DISPLAY_SCALE_MAX as u16 }),
            };
        }
        let digits = scale as u32 + weight.abs() as u32 + GUARD + 8 + exponent.to_f64().abs().max(1.0).log10() as u32;
        let f = Fixed::new(digits, check);
        let e = exponent.big().unwrap_or_default();
        let v = f.exp(&div_round(&(f.ln(&magnitude)? * e.0), &big_pow10(u32::from(e.1))))?;
        let r = f.round_to(&v, scale);
        // A whole exponent that is larger than an integer is; a large enough one is even as often
        // as it is odd.
        let is_odd = whole && exponent.rem(&Numeric::from(2)).is_ok_and(|r| !r.is_zero());
        Ok(if self.signum() < 0 && is_odd { r.neg() } else { r })
    }
    /// By squaring, in binary numbers that keep as many digits as the result shows (numeric.c
    /// `power_var_int`). `weight`: how many digits the result has before the point.
    fn power_whole(&self, exponent: i64, scale: i64, weight: f64, check: Check<'_>) -> Result<Numeric> {
        let (m, s) = self.big().unwrap_or_default();
        let n = exponent.unsigned_abs();
        if m.bits().max(u64::from(s) * 4).saturating_mul(n) <= EXACT_BITS_MAX {
            let (top, digits) = (m.pow(n as u32), u32::from(s) * n as u32);
            let (numerator, denominator) = if exponent >= 0 { (top, big_pow10(digits)) } else { (big_pow10(digits), top) };
            return Ok(Numeric::from_big(div_round(&(numerator * big_pow10(scale as u32)), &denominator), scale as u16));
        }
        let shown = (weight.max(0.0) as u64 + scale as u64) + u64::from(GUARD);
        // Each of the squarings, and the divisions before and after them, may cost a bit, and
        // doubles what is lost before.
        let bits = bits_of(shown) as u64 + 2 * u64::from(n.ilog2()) + 64;
        let base = Float::quotient(m.magnitude().clone().into(), &big_pow10(u32::from(s)), bits);
        let mut power = Float { mantissa: BigInt::from(1), exponent: 0 };
        for at in (0..=n.ilog2()).rev() {
            check()?;
            power = power.mul(&power, bits);
            if n >> at & 1 == 1 {
                power = power.mul(&base, bits);
            }
        }
        if exponent < 0 {
            let inverse = Float::quotient(BigInt::from(1), &power.mantissa, bits);
            power = Float { exponent: inverse.exponent - power.exponent, ..inverse };
        }
        let scaled = power.mantissa * big_pow10(scale as u32);
        let rounded = match power.exponent {
            e @ 0.. => scaled << e as usize,
            e => div_round(&scaled, &(BigInt::from(1) << e.unsigned_abs() as usize)),
        };
        let r = Numeric::checked(rounded, scale as u32)?;
        Ok(if self.signum() < 0 && n % 2 == 1 { r.neg() } else { r })
    }
    fn power_of_infinity(&self, exponent: &Numeric) -> Numeric {
        let one = Numeric::from(1);
        if !exponent.is_finite() {
            let size = self.abs().cmp(&one);
            return match (size, exponent.signum() > 0) {
                (std::cmp::Ordering::Equal, _) => one,
                (std::cmp::Ordering::Greater, true) | (std::cmp::Ordering::Less, false) => Numeric::PosInfinity,
                _ => Numeric::ZERO,
            };
        }
        let odd = exponent.rem(&Numeric::from(2)).is_ok_and(|r| !r.is_zero());
        match (self.signum() < 0, exponent.signum() > 0) {
            (_, false) => Numeric::ZERO,
            (true, true) if odd => Numeric::NegInfinity,
            _ => Numeric::PosInfinity,
        }
    }
}
