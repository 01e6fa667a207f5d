//! Roots, powers and logarithms of exact decimals: fixed-point series over big integers, with guard digits, rounded to the scale that
//! PostgreSQL would show.

use super::{
    BigInt, DISPLAY_SCALE_MAX, Numeric, SIGNIFICANT_MIN, Sign, big_pow10, div_round, division_by_zero, first_digit, overflow,
};
use meridian_base::{Error, Result};

/// Digits computed beyond those that are shown.
const GUARD: u32 = 12;

/// A fixed-point number: `value × 10^-digits`.
struct Fixed {
    digits: u32,
    one: BigInt,
}

impl Fixed {
    fn new(digits: u32) -> Fixed {
        Fixed { digits, one: big_pow10(digits) }
    }
    fn of(&self, n: &Numeric) -> BigInt {
        let (m, s) = n.big().unwrap_or_default();
        if u32::from(s) <= self.digits {
            m * big_pow10(self.digits - u32::from(s))
        } else {
            div_round(&m, &big_pow10(u32::from(s) - self.digits))
        }
    }
    fn mul(&self, a: &BigInt, b: &BigInt) -> BigInt {
        (a * b) / &self.one
    }
    fn round_to(&self, v: &BigInt, scale: i64) -> Numeric {
        let cut = div_round(v, &big_pow10(self.digits - scale as u32));
        Numeric::from_big(cut, scale as u16)
    }
    /// `ln(v)` for `v > 0`: halves and doubles into [2/3, 4/3], then the series of `2·atanh((v-1)/(v+1))`.
    fn ln(&self, v: &BigInt) -> BigInt {
        let bits = v.bits() as i64 - self.one.bits() as i64;
        let mut x = if bits >= 0 { v >> bits as usize } else { v << (-bits) as usize };
        let mut doublings = bits;
        while &x * 3 > &self.one * 4 {
            x >>= 1;
            doublings += 1;
        }
        while &x * 3 < &self.one * 2 {
            x <<= 1;
            doublings -= 1;
        }
        let mut result = self.two_atanh(&(&x - &self.one), &(&x + &self.one));
        if doublings != 0 {
            result += self.two_atanh(&BigInt::from(1), &BigInt::from(3)) * doublings;
        }
        result
    }
    fn two_atanh(&self, numerator: &BigInt, denominator: &BigInt) -> BigInt {
        let z = numerator * &self.one / denominator;
        let z2 = self.mul(&z, &z);
        let (mut term, mut sum, mut k) = (z.clone(), z, 1u32);
        while term.sign() != Sign::NoSign {
            term = self.mul(&term, &z2);
            k += 2;
            sum += &term / k;
        }
        sum * 2
    }
    /// `e^v`: the argument is halved until it is small, the series summed, the result squared back.
    fn exp(&self, v: &BigInt) -> BigInt {
        let halvings = (v.bits() as i64 - self.one.bits() as i64 + 8).max(0) as u32;
        let inner = Fixed::new(self.digits + halvings);
        let x = (v * big_pow10(halvings)) >> halvings as usize;
        let (mut term, mut sum, mut k) = (inner.one.clone(), inner.one.clone(), 1u32);
        while term.sign() != Sign::NoSign {
            term = inner.mul(&term, &x) / k;
            sum += &term;
            k += 1;
        }
        for _ in 0..halvings {
            sum = inner.mul(&sum, &sum);
        }
        sum / big_pow10(halvings)
    }
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

impl Numeric {
    /// The square root. 2201F for negative numbers.
    pub fn sqrt(&self) -> Result<Numeric> {
        if !self.is_nan() && self.signum() < 0 {
            return Err(Error::sql("2201F", "cannot take square root of a negative number"));
        }
        let Some((m, s)) = self.big() else { return Ok(self.clone()) };
        let (weight, _) = first_digit(self);
        let result_weight = (weight + 1) * 2 - 1;
        let scale = (SIGNIFICANT_MIN - result_weight).max(i64::from(s)).clamp(0, DISPLAY_SCALE_MAX);
        // One digit more than shown, then rounded: the integer root cuts.
        let digits = 2 * (scale as u32 + 1);
        let wide =
            if u32::from(s) <= digits { m * big_pow10(digits - u32::from(s)) } else { m / big_pow10(u32::from(s) - digits) };
        Ok(Numeric::from_big(div_round(&wide.sqrt(), &BigInt::from(10)), scale as u16))
    }
    /// `e` to its power.
    pub fn exp(&self) -> Result<Numeric> {
        match self {
            Numeric::NegInfinity => return Ok(Numeric::ZERO),
            n if !n.is_finite() => return Ok(self.clone()),
            _ => {}
        }
        let weight = self.to_f64() * std::f64::consts::LOG10_E;
        if weight > 6_000.0 * 21.0 {
            return Err(overflow());
        }
        let scale =
            (SIGNIFICANT_MIN - weight.clamp(-2000.0, 2000.0) as i64).max(i64::from(self.scale())).clamp(0, DISPLAY_SCALE_MAX);
        if weight < -(DISPLAY_SCALE_MAX as f64) - 10.0 {
            return Ok(Numeric::Small { mantissa: 0, scale: scale as u16 });
        }
        let f = Fixed::new(scale as u32 + GUARD + weight.max(0.0) as u32);
        Ok(f.round_to(&f.exp(&f.of(self)), scale))
    }
    /// The natural logarithm.
    pub fn ln(&self) -> Result<Numeric> {
        if self.is_nan() {
            return Ok(Numeric::NaN);
        }
        ln_domain(self)?;
        if !self.is_finite() {
            return Ok(self.clone());
        }
        let scale = (SIGNIFICANT_MIN - ln_weight(self)).max(i64::from(self.scale())).clamp(0, DISPLAY_SCALE_MAX);
        let f = Fixed::new(scale as u32 + GUARD + u32::from(self.scale()));
        Ok(f.round_to(&f.ln(&f.of(self)), scale))
    }
    /// The logarithm to a base.
    pub fn log(&self, base: &Numeric) -> Result<Numeric> {
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
        let f = Fixed::new(scale as u32 + 2 * GUARD + u32::from(self.scale().max(base.scale())));
        let below = f.ln(&f.of(base));
        if below.sign() == Sign::NoSign {
            return Err(division_by_zero());
        }
        Ok(f.round_to(&(f.ln(&f.of(self)) * &f.one / below), scale))
    }
    /// A power. Exact for small whole exponents, else by logarithm.
    pub fn power(&self, exponent: &Numeric) -> Result<Numeric> {
        if exponent.is_zero() || (self.is_finite() && *self == Numeric::from(1)) {
            return Ok(Numeric::Small { mantissa: 10i128.pow(16), scale: 16 });
        }
        if self.is_nan() || exponent.is_nan() {
            return Ok(Numeric::NaN);
        }
        let whole = exponent.is_finite() && exponent.trunc(0) == *exponent;
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
            return Ok(Numeric::Small { mantissa: 0, scale: 16 });
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
        // A whole exponent shows 16 digits behind the point, any other one 16 significant digits (`power_var`).
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
        let extra = weight.abs() as u32 + GUARD + 8;
        if whole && let Some(e) = exponent.to_i64() {
            let f = Fixed::new(scale as u32 + extra + u32::from(self.scale()));
            if e.unsigned_abs() <= 4096 {
                return self.power_whole(e, scale);
            }
            let v = f.exp(&(f.ln(&f.of(&magnitude)) * e));
            let r = f.round_to(&v, scale);
            return Ok(if self.signum() < 0 && e % 2 != 0 { r.neg() } else { r });
        }
        let f = Fixed::new(scale as u32 + extra + u32::from(self.scale()) + u32::from(exponent.scale()));
        let v = f.exp(&f.mul(&f.ln(&f.of(&magnitude)), &f.of(exponent)));
        Ok(f.round_to(&v, scale))
    }
    fn power_whole(&self, exponent: i64, scale: i64) -> Result<Numeric> {
        let (m, s) = self.big().unwrap_or_default();
        let n = exponent.unsigned_abs() as u32;
        let (top, digits) = (m.pow(n), u32::from(s) * n);
        let (numerator, denominator) = if exponent >= 0 { (top, big_pow10(digits)) } else { (big_pow10(digits), top) };
        Ok(Numeric::from_big(div_round(&(numerator * big_pow10(scale as u32)), &denominator), scale as u16))
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
