//! [`Kind`]: what sort of value a setting takes, and how it is read from a file or a variable.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::time::Duration;

use toml::de::{DeInteger, DeValue};

use super::value::Value;

/// The longest time that can be set, in seconds: about thirty years. What is longer is a mistake.
const LONGEST: f64 = 1e9;

/// What sort of value a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Yes or no. The words are those that variables may use besides `1`, `true`, `0`, `false`.
    Flag(&'static [(&'static str, bool)]),
    /// A whole number.
    Number { least: u64, most: u64 },
    /// A time.
    Seconds,
    /// An amount of memory or disk.
    Bytes { most: u64 },
    /// One of these words.
    Word(&'static [&'static str]),
    /// Text; empty means none.
    Text,
    /// A file or a folder; empty means none.
    Path,
    /// Names of environment variables, or their beginnings.
    Names,
    /// Environment variables with their values.
    Variables,
}

impl Kind {
    /// What is expected, for whoever wrote something else.
    pub(crate) fn expected(self) -> String {
        match self {
            Self::Flag(_) => "true or false".to_owned(),
            Self::Number { least, most } => format!("a whole number from {least} to {most}"),
            Self::Seconds => "a number of seconds from 0 up, such as 30 or 0.5".to_owned(),
            Self::Bytes { most: u64::MAX } => {
                "a number of bytes, such as 1000000, \"512 MB\" or \"2 GiB\"".to_owned()
            }
            Self::Bytes { most } => format!(
                "a number of bytes, such as 50000 or \"20 KiB\", up to {}",
                Value::Bytes(most)
            ),
            Self::Word(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                format!("one of {}", words.join(", "))
            }
            Self::Text => "text in quotes".to_owned(),
            Self::Path => "a path in quotes".to_owned(),
            Self::Names => {
                "a list of names of variables, such as [\"EDITOR\", \"AWS_*\"]".to_owned()
            }
            Self::Variables => "a table of variables, such as { LANG = \"C.UTF-8\" }".to_owned(),
        }
    }

    /// Reads what a variable is set to, or what is declared as the default.
    pub(crate) fn read_text(self, given: &OsStr) -> Option<Value> {
        if self == Self::Path && !given.is_empty() {
            return Some(Value::Path(given.into()));
        }
        let text = given.to_str()?.trim();
        match self {
            Self::Flag(words) => flag(text, words).map(Value::Flag),
            Self::Number { least, most } => number(text.parse().ok()?, least, most),
            Self::Seconds => seconds(text.parse().ok()?),
            Self::Bytes { most } => up_to(most, bytes(text)?),
            Self::Word(words) => word(text, words),
            Self::Text | Self::Path if text.is_empty() => Some(Value::Nothing),
            Self::Text => plain(text),
            Self::Path => None,
            Self::Names => {
                let names = text
                    .split(',')
                    .map(str::trim)
                    .filter(|name| !name.is_empty());
                names_of(names.map(str::to_owned).collect())
            }
            // No variable can say this well.
            Self::Variables => text.is_empty().then(|| Value::Table(BTreeMap::new())),
        }
    }

    /// Whether values of this sort are read at all, good or bad.
    pub(crate) fn takes(self, given: &DeValue<'_>) -> bool {
        match self {
            Self::Flag(_) => given.is_bool(),
            Self::Number { .. } => given.is_integer(),
            Self::Seconds => given.is_integer() || given.is_float(),
            Self::Bytes { .. } => given.is_integer() || given.is_str(),
            Self::Word(_) | Self::Text | Self::Path => given.is_str(),
            Self::Names => given.is_array(),
            Self::Variables => given.is_table(),
        }
    }

    /// Reads what stands in a file.
    pub(crate) fn read_toml(self, given: &DeValue<'_>) -> Option<Value> {
        match (self, given) {
            (Self::Flag(_), DeValue::Boolean(flag)) => Some(Value::Flag(*flag)),
            (Self::Number { least, most }, DeValue::Integer(given)) => {
                number(integer(given)?, least, most)
            }
            (Self::Seconds, DeValue::Integer(given)) => {
                let whole = u32::try_from(integer(given)?).ok()?;
                seconds(f64::from(whole))
            }
            (Self::Seconds, DeValue::Float(given)) => seconds(given.as_str().parse().ok()?),
            (Self::Bytes { most }, DeValue::Integer(given)) => up_to(most, integer(given)?),
            (Self::Bytes { most }, DeValue::String(given)) => up_to(most, bytes(given)?),
            (Self::Word(words), DeValue::String(given)) => word(given, words),
            (Self::Text | Self::Path, DeValue::String(given)) if given.is_empty() => {
                Some(Value::Nothing)
            }
            (Self::Text, DeValue::String(given)) => plain(given),
            (Self::Path, DeValue::String(given)) => {
                (!given.contains('\0')).then(|| Value::Path(given.as_ref().into()))
            }
            (Self::Names, DeValue::Array(given)) => {
                let items = given.iter().map(|item| item.get_ref().as_str());
                names_of(
                    items
                        .map(|item| Some(item?.to_owned()))
                        .collect::<Option<_>>()?,
                )
            }
            (Self::Variables, DeValue::Table(given)) => {
                let mut table = BTreeMap::new();
                for (name, value) in given {
                    let (name, value) = (name.get_ref().as_ref(), value.get_ref().as_str()?);
                    if !is_name(name) || value.contains('\0') {
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

fn flag(text: &str, words: &[(&str, bool)]) -> Option<bool> {
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

fn number(number: u64, least: u64, most: u64) -> Option<Value> {
    (least..=most)
        .contains(&number)
        .then_some(Value::Number(number))
}

/// A whole number of a file, in whatever base it is written.
fn integer(given: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(given.as_str(), given.radix()).ok()
}

fn seconds(seconds: f64) -> Option<Value> {
    if !(0.0..=LONGEST).contains(&seconds) {
        return None;
    }
    Duration::try_from_secs_f64(seconds)
        .ok()
        .map(Value::Seconds)
}

fn up_to(most: u64, bytes: u64) -> Option<Value> {
    (bytes <= most).then_some(Value::Bytes(bytes))
}

fn bytes(text: &str) -> Option<u64> {
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
    // Digits after the point that matter; without floating point, which is not exact.
    let digits = u32::try_from(fraction.len())
        .ok()
        .filter(|digits| *digits <= 9)?;
    let fraction: u64 = fraction.parse().ok()?;
    let part = u128::from(fraction) * u128::from(scale) / 10_u128.pow(digits);
    whole
        .checked_mul(scale)?
        .checked_add(u64::try_from(part).ok()?)
}

fn word(text: &str, words: &[&str]) -> Option<Value> {
    let found = words.iter().find(|word| word.eq_ignore_ascii_case(text))?;
    Some(Value::Text((*found).to_owned()))
}

fn plain(text: &str) -> Option<Value> {
    (!text.contains('\0')).then(|| Value::Text(text.to_owned()))
}

fn names_of(names: Vec<String>) -> Option<Value> {
    let good = |name: &String| is_name(name.strip_suffix('*').unwrap_or(name)) || name == "*";
    names.iter().all(good).then_some(Value::List(names))
}

/// Whether an environment can hold a variable of this name.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0', '*'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_understood_in_units_of_both_sorts() {
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
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_shown_can_be_read_again() {
        let number = Kind::Number { least: 0, most: 9 };
        let many = Kind::Bytes { most: u64::MAX };
        let cases = [
            (Kind::Flag(&[]), "true"),
            (number, "7"),
            (Kind::Seconds, "0.5"),
            (Kind::Seconds, "86400"),
            (many, "2 GiB"),
            (many, "1001"),
            (Kind::Word(&["one", "two"]), "two"),
            (Kind::Text, "user"),
            (Kind::Text, ""),
            (Kind::Path, "/a b"),
            (Kind::Names, "A, B_*"),
        ];
        for (kind, text) in cases {
            let value = kind.read_text(OsStr::new(text)).unwrap();
            assert_eq!(value.to_string(), text);
        }
    }

    #[test]
    fn values_out_of_bounds_are_refused() {
        let cases = [
            (Kind::Number { least: 1, most: 9 }, "0"),
            (Kind::Number { least: 1, most: 9 }, "10"),
            (Kind::Bytes { most: 9 }, "10"),
            (Kind::Seconds, "-1"),
            (Kind::Seconds, "nan"),
            (Kind::Seconds, "inf"),
            (Kind::Seconds, "1e300"),
            (Kind::Names, "A=B"),
            (Kind::Names, "A*B"),
            (Kind::Flag(&[]), "maybe"),
            (Kind::Word(&["one", "two"]), "three"),
            (Kind::Word(&["one", "two"]), ""),
        ];
        for (kind, text) in cases {
            assert_eq!(kind.read_text(OsStr::new(text)), None, "{text}");
        }
    }
}
