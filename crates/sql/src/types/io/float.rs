//! Floats as PostgreSQL prints them: the shortest digits that read back to the same value, in
//! scientific notation outside a range that depends on the type.

/// Appends a `double precision`. See [`crate::types::Style::extra_float_digits`].
pub fn write_f64(v: f64, extra_float_digits: i8, out: &mut Vec<u8>) {
    if special(v, out) {
        return;
    }
    if extra_float_digits > 0 {
        return notation(&format!("{v:e}"), 15, out);
    }
    general(v, (15 + i32::from(extra_float_digits)).max(1) as usize, out)
}

/// Appends a `real`.
pub fn write_f32(v: f32, extra_float_digits: i8, out: &mut Vec<u8>) {
    if special(f64::from(v), out) {
        return;
    }
    if extra_float_digits > 0 {
        return notation(&format!("{v:e}"), 6, out);
    }
    general(f64::from(v), (6 + i32::from(extra_float_digits)).max(1) as usize, out)
}

fn special(v: f64, out: &mut Vec<u8>) -> bool {
    let text: &[u8] = match v {
        v if v.is_nan() => b"NaN",
        f64::INFINITY => b"Infinity",
        f64::NEG_INFINITY => b"-Infinity",
        _ => return false,
    };
    out.extend_from_slice(text);
    true
}

/// C's `%.{digits}g`.
fn general(v: f64, digits: usize, out: &mut Vec<u8>) {
    let text = format!("{:.*e}", digits - 1, v);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    notation(&format!("{mantissa}e{exponent}"), digits as i32, out)
}

/// Rewrites `d.ddde±x`: plain if `-4 <= x < plain_below`, else with a two-digit exponent.
fn notation(scientific: &str, plain_below: i32, out: &mut Vec<u8>) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..plain_below).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        out.extend_from_slice(format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs()).as_bytes());
        return;
    }
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(m) => (true, m),
        None => (false, mantissa),
    };
    if negative {
        out.push(b'-');
    }
    let digits: Vec<u8> = mantissa.bytes().filter(|b| *b != b'.').collect();
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-exponent - 1) as usize, b'0');
        out.extend_from_slice(&digits);
        return;
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        out.extend_from_slice(&digits);
        out.resize(out.len() + whole - digits.len(), b'0');
    } else {
        out.extend_from_slice(&digits[..whole]);
        out.push(b'.');
        out.extend_from_slice(&digits[whole..]);
    }
}
