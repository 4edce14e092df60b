//! [`Value`]: the value of a setting, its text and JSON forms, and its conversion to Rust types.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use cellwright_kernel::Backend;
use cellwright_kernel::backend::jupyter::Transport;
use serde_json::{Value as Json, json};

/// The value of a setting.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// No value.
    #[default]
    Unset,
    Flag(bool),
    Number(u64),
    Seconds(Duration),
    Fraction(f64),
    Bytes(u64),
    Text(String),
    Path(PathBuf),
    List(Vec<String>),
    Table(BTreeMap<String, String>),
}

impl Value {
    /// The value in `--json`.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Unset => Json::Null,
            Self::Flag(flag) => json!(flag),
            Self::Number(number) | Self::Bytes(number) => json!(number),
            Self::Seconds(time) if time.subsec_nanos() == 0 => json!(time.as_secs()),
            Self::Seconds(time) => json!(time.as_secs_f64()),
            Self::Fraction(number) => json!(number),
            Self::Text(text) => json!(text),
            Self::Path(path) => json!(path.to_string_lossy()),
            Self::List(items) => json!(items),
            Self::Table(entries) => json!(entries),
        }
    }

    /// The value of a secret as it is shown: whether it is set, and the names in a table.
    #[must_use]
    pub fn redacted(&self) -> Self {
        let placeholder = || "(set)".to_owned();
        match self {
            Self::Unset => Self::Unset,
            Self::Table(entries) => Self::Table(
                entries
                    .keys()
                    .map(|name| (name.clone(), placeholder()))
                    .collect(),
            ),
            _ => Self::Text("set".to_owned()),
        }
    }
}

impl fmt::Display for Value {
    /// The syntax of environment variables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 4] = ["TiB", "GiB", "MiB", "KiB"];
        match self {
            Self::Unset => Ok(()),
            Self::Flag(flag) => flag.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Seconds(time) => time.as_secs_f64().fmt(f),
            Self::Fraction(0.0) => f.write_str("0"),
            Self::Fraction(number) => write!(f, "{number:?}"),
            Self::Bytes(bytes) => {
                for (unit, shift) in UNITS.iter().zip([40, 30, 20, 10]) {
                    if *bytes > 0 && bytes.trailing_zeros() >= shift {
                        return write!(f, "{} {unit}", bytes >> shift);
                    }
                }
                bytes.fmt(f)
            }
            Self::Text(text) => f.write_str(text),
            Self::Path(path) => path.display().fmt(f),
            Self::List(items) => f.write_str(&items.join(", ")),
            Self::Table(entries) => {
                let entries: Vec<String> = entries
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                f.write_str(&entries.join(", "))
            }
        }
    }
}

/// A Rust type of a setting. A value that does not fit becomes the type's default; a test checks that this does not
/// happen with the definitions.
pub(super) trait FromSetting: Sized {
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! typed {
    ($($type:ty, $pattern:pat => $result:expr;)+) => {
        $(impl FromSetting for $type {
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    $pattern => $result,
                    _ => None,
                }
            }
        })+
    };
}

typed! {
    bool, Value::Flag(flag) => Some(*flag);
    u8, Value::Number(number) => u8::try_from(*number).ok();
    u32, Value::Number(number) => u32::try_from(*number).ok();
    usize, Value::Number(number) | Value::Bytes(number) => usize::try_from(*number).ok();
    u64, Value::Bytes(number) => Some(*number);
    Duration, Value::Seconds(time) => Some(*time);
    f64, Value::Fraction(number) => Some(*number);
    String, Value::Text(text) => Some(text.clone());
    Backend, Value::Text(text) => Backend::from_name(text);
    Transport, Value::Text(text) => match text.as_str() {
        "ipc" => Some(Self::Ipc),
        "tcp" => Some(Self::Tcp),
        _ => None,
    };
    Vec<String>, Value::List(items) => Some(items.clone());
    BTreeMap<String, String>, Value::Table(entries) => Some(entries.clone());
}

impl FromSetting for Option<String> {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Unset => Some(None),
            Value::Text(text) => Some(Some(text.clone())),
            _ => None,
        }
    }
}

impl FromSetting for Option<PathBuf> {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Unset => Some(None),
            Value::Path(path) => Some(Some(path.clone())),
            _ => None,
        }
    }
}
