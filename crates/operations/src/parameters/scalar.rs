//! Plain scalars of YAML: the core schema of YAML 1.2.

use cellwright_execution::parameters::{Integer, Value};

/// The meaning of a plain scalar.
#[derive(Debug, PartialEq)]
pub(super) enum Scalar {
    /// A value other than text.
    Value(Value),
    /// Text.
    Text,
    /// A number with more digits than supported.
    TooLarge,
}

/// Resolves a plain scalar.
pub(super) fn resolve(word: &str) -> Scalar {
    match word {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Value(Value::Null),
        "true" | "True" | "TRUE" => return Scalar::Value(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Scalar::Value(Value::Bool(false)),
        _ => {}
    }
    let unsigned = word.strip_prefix(['-', '+']).unwrap_or(word);
    let sign = if word.starts_with('-') { -1.0 } else { 1.0 };
    if !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return Scalar::Text;
    }
    match unsigned {
        ".inf" | ".Inf" | ".INF" => return float(sign * f64::INFINITY),
        ".nan" | ".NaN" | ".NAN" if unsigned.len() == word.len() => return float(f64::NAN),
        _ => {}
    }
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        // The schema allows no sign before these prefixes.
        if let Some(digits) = word.strip_prefix(prefix)
            && !digits.is_empty()
            && digits.chars().all(|digit| digit.is_digit(radix))
        {
            return match u128::from_str_radix(digits, radix) {
                Ok(number) => Scalar::Value(Value::Integer(number.into())),
                Err(_) => Scalar::TooLarge,
            };
        }
    }
    if unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return match Integer::parse(word) {
            Some(integer) => Scalar::Value(Value::Integer(integer)),
            None => Scalar::TooLarge,
        };
    }
    match word.parse() {
        Ok(number) if is_float(unsigned) => float(number),
        _ => Scalar::Text,
    }
}

fn float(number: f64) -> Scalar {
    Scalar::Value(Value::Float(number))
}

/// Whether the text is digits with a point or an exponent; `parse` accepts more than that.
fn is_float(unsigned: &str) -> bool {
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !digits.is_empty() && is_digits(digits)
    });
    is_digits(whole)
        && is_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent_fits
}

/// Returns the meaning of a plain scalar in YAML 1.1, which papermill reads, if it differs from YAML 1.2.
pub(super) fn yaml_1_1_meaning(word: &str) -> Option<String> {
    if let Some(meaning) = boolean_word(word) {
        return Some(meaning.to_string());
    }
    // Octal, which has the prefix `0o` in YAML 1.2.
    let digits = word.strip_prefix('0')?;
    if !digits.bytes().all(|byte| matches!(byte, b'0'..=b'7')) {
        return None;
    }
    let number = u64::from_str_radix(digits, 8).ok()?;
    (digits.parse() != Ok(number)).then(|| number.to_string())
}

/// The meaning of a word that is a boolean in YAML 1.1 only.
pub(super) fn boolean_word(word: &str) -> Option<bool> {
    match word {
        "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}
