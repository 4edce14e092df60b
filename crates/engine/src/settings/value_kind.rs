//! [`ValueKind`]: the type of a setting's value, and how it is parsed from a file or an environment variable.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::time::Duration;

use toml::de::{DeInteger, DeValue};

use super::value::Value;

/// Longest time that can be set, in seconds: about thirty years. Longer ones are errors.
const SECONDS_MAX: f64 = 1e9;

/// The type of a setting's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// True or false. The words are accepted in environment variables, in addition to `1`, `true`, `0`, `false` and the
    /// like.
    Flag(&'static [(&'static str, bool)]),
    /// A whole number within bounds.
    Number { min: u64, max: u64 },
    /// A duration in seconds.
    Seconds,
    /// A number from 0 up to, but not including, 1.
    Fraction,
    /// A number of bytes.
    Bytes { max: u64 },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Text; empty means unset.
    Text,
    /// A list of texts, none of them empty.
    Texts,
    /// A file or a directory; empty means unset.
    Path,
    /// Names of environment variables; a final `*` makes a name a prefix.
    VariableNames,
    /// Environment variables with their values.
    Variables,
    /// A command: a list of arguments, or a line for the shell.
    Command,
}

impl ValueKind {
    /// Describes valid values, for errors.
    pub fn expected(self) -> String {
        match self {
            Self::Flag(_) => "true or false".to_owned(),
            Self::Number { min, max } => format!("a whole number from {min} to {max}"),
            Self::Seconds => "a number of seconds from 0 up, such as 30 or 0.5".to_owned(),
            Self::Fraction => "a number from 0 up to 1, such as 0 or 1e-6".to_owned(),
            Self::Bytes { max: u64::MAX } => {
                "a number of bytes, such as 1000000, \"512 MB\" or \"2 GiB\"".to_owned()
            }
            Self::Bytes { max } => format!(
                "a number of bytes, such as 50000 or \"20 KiB\", up to {}",
                Value::Bytes(max)
            ),
            Self::Choice(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                format!("one of {}", words.join(", "))
            }
            Self::Text => "text in quotes".to_owned(),
            Self::Texts => "a list of texts, such as [\"python3.13\", \"~/envs\"]".to_owned(),
            Self::Path => "a path in quotes".to_owned(),
            Self::VariableNames => {
                "a list of variable names, such as [\"STAGE\", \"AWS_*\"]".to_owned()
            }
            Self::Variables => "a table of variables, such as { LANG = \"C.UTF-8\" }".to_owned(),
            Self::Command => "a command, such as [\"pass\", \"show\", \"jupyter\"]".to_owned(),
        }
    }

    /// Describes valid values of an environment variable, for errors.
    pub fn expected_in_variable(self) -> String {
        match self {
            Self::VariableNames => {
                "names of variables with commas between them, such as STAGE,AWS_*".to_owned()
            }
            Self::Texts => "texts with commas between them, such as python3.13,~/envs".to_owned(),
            other => other.expected(),
        }
    }

    /// Parses the value of an environment variable or the default of a definition.
    pub fn parse_text(self, input: &OsStr) -> Option<Value> {
        if self == Self::Path && !input.is_empty() {
            return Some(Value::Path(input.into()));
        }
        let text = input.to_str()?.trim();
        match self {
            Self::Flag(words) => parse_flag(text, words).map(Value::Flag),
            Self::Number { min, max } => checked_number(text.parse().ok()?, min, max),
            Self::Seconds => checked_seconds(text.parse().ok()?),
            Self::Fraction => checked_fraction(text.parse().ok()?),
            Self::Bytes { max } => checked_bytes(max, parse_bytes(text)?),
            Self::Choice(words) => parse_choice(text, words),
            Self::Text | Self::Path if text.is_empty() => Some(Value::Unset),
            Self::Text => checked_text(text),
            Self::Path | Self::Command => None,
            Self::Texts => checked_texts(split_list(text)),
            Self::VariableNames => checked_names(split_list(text)),
            // A table has no good form in an environment variable.
            Self::Variables => text.is_empty().then(|| Value::Table(BTreeMap::new())),
        }
    }

    /// Whether the TOML type fits, regardless of the value.
    pub fn accepts_type(self, input: &DeValue<'_>) -> bool {
        match self {
            Self::Flag(_) => input.is_bool(),
            Self::Number { .. } => input.is_integer(),
            Self::Seconds | Self::Fraction => input.is_integer() || input.is_float(),
            Self::Bytes { .. } => input.is_integer() || input.is_str(),
            Self::Choice(_) | Self::Text | Self::Path => input.is_str(),
            Self::Texts | Self::VariableNames => input.is_array(),
            Self::Variables => input.is_table(),
            Self::Command => input.is_array() || input.is_str(),
        }
    }

    /// Parses a value of a file.
    pub fn parse_toml(self, input: &DeValue<'_>) -> Option<Value> {
        match (self, input) {
            (Self::Flag(_), DeValue::Boolean(flag)) => Some(Value::Flag(*flag)),
            (Self::Number { min, max }, DeValue::Integer(input)) => {
                checked_number(parse_integer(input)?, min, max)
            }
            (Self::Seconds, DeValue::Integer(input)) => {
                let whole = u32::try_from(parse_integer(input)?).ok()?;
                checked_seconds(f64::from(whole))
            }
            (Self::Seconds, DeValue::Float(input)) => checked_seconds(input.as_str().parse().ok()?),
            (Self::Fraction, DeValue::Integer(input)) => {
                let whole = u32::try_from(parse_integer(input)?).ok()?;
                checked_fraction(f64::from(whole))
            }
            (Self::Fraction, DeValue::Float(input)) => {
                checked_fraction(input.as_str().parse().ok()?)
            }
            (Self::Bytes { max }, DeValue::Integer(input)) => {
                checked_bytes(max, parse_integer(input)?)
            }
            (Self::Bytes { max }, DeValue::String(input)) => {
                checked_bytes(max, parse_bytes(input)?)
            }
            (Self::Choice(words), DeValue::String(input)) => parse_choice(input, words),
            (Self::Text | Self::Path, DeValue::String(input)) if input.is_empty() => {
                Some(Value::Unset)
            }
            (Self::Text, DeValue::String(input)) => checked_text(input),
            (Self::Path, DeValue::String(input)) => {
                (!input.contains('\0')).then(|| Value::Path(input.as_ref().into()))
            }
            (Self::Command, DeValue::String(line)) => {
                let line = line.trim();
                let words = ["sh", "-c", line].map(str::to_owned);
                (!line.is_empty()).then(|| checked_texts(words.into()))?
            }
            (Self::Texts | Self::VariableNames | Self::Command, DeValue::Array(input)) => {
                let items = input.iter().map(|item| item.get_ref().as_str());
                let items: Vec<String> = items
                    .map(|item| Some(item?.to_owned()))
                    .collect::<Option<_>>()?;
                match self {
                    Self::Command if items.is_empty() => None,
                    Self::VariableNames => checked_names(items),
                    _ => checked_texts(items),
                }
            }
            (Self::Variables, DeValue::Table(input)) => {
                let mut table = BTreeMap::new();
                for (name, value) in input {
                    let (name, value) = (name.get_ref().as_ref(), value.get_ref().as_str()?);
                    if !is_variable_name(name) || value.contains('\0') {
                        return None;
                    }
                    table.insert(name.to_owned(), value.to_owned());
                }
                Some(Value::Table(table))
            }
            _ => None,
        }
    }
}

fn parse_flag(text: &str, words: &[(&str, bool)]) -> Option<bool> {
    let plain = [
        ("1", true),
        ("true", true),
        ("yes", true),
        ("on", true),
        ("0", false),
        ("false", false),
        ("no", false),
        ("off", false),
    ];
    let text = text.to_ascii_lowercase();
    let mut all = plain.iter().chain(words);
    all.find(|(word, _)| *word == text).map(|(_, flag)| *flag)
}

fn checked_number(number: u64, min: u64, max: u64) -> Option<Value> {
    (min..=max)
        .contains(&number)
        .then_some(Value::Number(number))
}

/// A whole number of a file, in any base of TOML.
fn parse_integer(input: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(input.as_str(), input.radix()).ok()
}

fn checked_seconds(seconds: f64) -> Option<Value> {
    if !(0.0..=SECONDS_MAX).contains(&seconds) {
        return None;
    }
    Duration::try_from_secs_f64(seconds)
        .ok()
        .map(Value::Seconds)
}

fn checked_fraction(number: f64) -> Option<Value> {
    (0.0..1.0)
        .contains(&number)
        .then_some(Value::Fraction(number))
}

fn checked_bytes(max: u64, bytes: u64) -> Option<Value> {
    (bytes <= max).then_some(Value::Bytes(bytes))
}

fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (count, unit) = text.split_at(end);
    let scale: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return None,
    };
    let (whole, fraction) = count.split_once('.').unwrap_or((count, "0"));
    let whole: u64 = whole.parse().ok()?;
    // The fraction in integers: floating point is not exact.
    let digits = u32::try_from(fraction.len())
        .ok()
        .filter(|digits| *digits <= 9)?;
    let fraction: u64 = fraction.parse().ok()?;
    let part = u128::from(fraction) * u128::from(scale) / 10_u128.pow(digits);
    whole
        .checked_mul(scale)?
        .checked_add(u64::try_from(part).ok()?)
}

fn parse_choice(text: &str, words: &[&str]) -> Option<Value> {
    let found = words.iter().find(|word| word.eq_ignore_ascii_case(text))?;
    Some(Value::Text((*found).to_owned()))
}

fn checked_text(text: &str) -> Option<Value> {
    (!text.contains('\0')).then(|| Value::Text(text.to_owned()))
}

/// The items of a list in an environment variable.
fn split_list(text: &str) -> Vec<String> {
    let items = text.split(',').map(str::trim);
    items
        .filter(|item| !item.is_empty())
        .map(str::to_owned)
        .collect()
}

fn checked_texts(texts: Vec<String>) -> Option<Value> {
    let good = |text: &String| !text.is_empty() && !text.contains('\0');
    texts.iter().all(good).then_some(Value::List(texts))
}

fn checked_names(names: Vec<String>) -> Option<Value> {
    // Spaces, quotes and brackets come from another syntax of lists: such a name would match nothing.
    let plain =
        |c: char| !c.is_whitespace() && !c.is_control() && !"\"'`[]{}<>,;:|&$\\".contains(c);
    let good = |name: &String| {
        let stem = name.strip_suffix('*').unwrap_or(name);
        name == "*" || (is_variable_name(stem) && stem.chars().all(plain))
    };
    names.iter().all(good).then_some(Value::List(names))
}

/// Whether an environment variable can have this name.
fn is_variable_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0', '*'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_accept_decimal_and_binary_units() {
        let cases = [
            ("0", Some(0)),
            ("1024", Some(1024)),
            ("512 MB", Some(512_000_000)),
            ("2GiB", Some(2 << 30)),
            ("1.5 kib", Some(1536)),
            ("0.1 GB", Some(100_000_000)),
            ("17 TiB", Some(17 << 40)),
            ("", None),
            ("-1", None),
            ("1.2.3", None),
            ("5 apples", None),
            ("99999999999999999999", None),
            ("99999999999 TiB", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn displayed_values_parse_back() {
        let number = ValueKind::Number { min: 0, max: 9 };
        let many = ValueKind::Bytes { max: u64::MAX };
        let cases = [
            (ValueKind::Flag(&[]), "true"),
            (number, "7"),
            (ValueKind::Seconds, "0.5"),
            (ValueKind::Seconds, "86400"),
            (ValueKind::Fraction, "1e-6"),
            (ValueKind::Fraction, "0.25"),
            (many, "2 GiB"),
            (many, "1001"),
            (ValueKind::Choice(&["one", "two"]), "two"),
            (ValueKind::Text, "user"),
            (ValueKind::Text, ""),
            (ValueKind::Path, "/a b"),
            (ValueKind::VariableNames, "A, B_*"),
            (ValueKind::Texts, "python3.13, ~/my envs"),
        ];
        for (kind, text) in cases {
            let value = kind.parse_text(OsStr::new(text)).unwrap();
            assert_eq!(value.to_string(), text);
        }
    }

    #[test]
    fn values_out_of_bounds_are_rejected() {
        let cases = [
            (ValueKind::Number { min: 1, max: 9 }, "0"),
            (ValueKind::Number { min: 1, max: 9 }, "10"),
            (ValueKind::Bytes { max: 9 }, "10"),
            (ValueKind::Seconds, "-1"),
            (ValueKind::Seconds, "nan"),
            (ValueKind::Seconds, "inf"),
            (ValueKind::Seconds, "1e300"),
            (ValueKind::Fraction, "1"),
            (ValueKind::Fraction, "-0.1"),
            (ValueKind::Fraction, "nan"),
            (ValueKind::VariableNames, "A=B"),
            (ValueKind::VariableNames, "A*B"),
            (ValueKind::VariableNames, "STAGE DATABASE_URL"),
            (ValueKind::VariableNames, "STAGE;DATABASE_URL"),
            (ValueKind::VariableNames, "[\"STAGE\"]"),
            (ValueKind::VariableNames, "[\"STAGE\", \"CI\"]"),
            (ValueKind::VariableNames, "'STAGE'"),
            (ValueKind::VariableNames, "{STAGE}"),
            (ValueKind::Flag(&[]), "maybe"),
            (ValueKind::Choice(&["one", "two"]), "three"),
            (ValueKind::Choice(&["one", "two"]), ""),
        ];
        for (kind, text) in cases {
            assert_eq!(kind.parse_text(OsStr::new(text)), None, "{text}");
        }
    }
}
