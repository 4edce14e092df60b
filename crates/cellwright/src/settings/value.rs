//! [`Value`]: what a setting is set to, as it is shown and as the code gets it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use cellwright_kernel::backend::jupyter::Transport;
use serde_json::{Value as Json, json};

use crate::kernels::Backend;

/// What a setting is set to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Value {
    /// It is not set to anything.
    #[default]
    Nothing,
    Flag(bool),
    Number(u64),
    Seconds(Duration),
    Bytes(u64),
    Text(String),
    Path(PathBuf),
    List(Vec<String>),
    Table(BTreeMap<String, String>),
}

impl Value {
    /// The value for programs.
    pub(crate) fn json(&self) -> Json {
        match self {
            Self::Nothing => Json::Null,
            Self::Flag(flag) => json!(flag),
            Self::Number(number) | Self::Bytes(number) => json!(number),
            Self::Seconds(time) if time.subsec_nanos() == 0 => json!(time.as_secs()),
            Self::Seconds(time) => json!(time.as_secs_f64()),
            Self::Text(text) => json!(text),
            Self::Path(path) => json!(path.to_string_lossy()),
            Self::List(items) => json!(items),
            Self::Table(entries) => json!(entries),
        }
    }

    /// The value when it is nobody's business: only that there is one.
    pub(crate) fn veiled(&self) -> Self {
        let veil = || "(set)".to_owned();
        match self {
            Self::Nothing => Self::Nothing,
            Self::Table(entries) => {
                Self::Table(entries.keys().map(|name| (name.clone(), veil())).collect())
            }
            _ => Self::Text("set".to_owned()),
        }
    }
}

impl fmt::Display for Value {
    /// As it can be written into a variable.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 4] = ["TiB", "GiB", "MiB", "KiB"];
        match self {
            Self::Nothing => Ok(()),
            Self::Flag(flag) => flag.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Seconds(time) => time.as_secs_f64().fmt(f),
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

/// A type that a setting can have in the code. What does not fit gives the type's own default, which a
/// test shows not to happen with what is declared.
pub(crate) trait Typed: Sized {
    fn of(value: &Value) -> Option<Self>;
}

macro_rules! typed {
    ($($type:ty, $pattern:pat => $result:expr;)+) => {
        $(impl Typed for $type {
            fn of(value: &Value) -> Option<Self> {
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
    String, Value::Text(text) => Some(text.clone());
    Backend, Value::Text(text) => Backend::named(text);
    Transport, Value::Text(text) => match text.as_str() {
        "auto" => Some(Self::Auto),
        "ipc" => Some(Self::Ipc),
        "tcp" => Some(Self::Tcp),
        _ => None,
    };
    Vec<String>, Value::List(items) => Some(items.clone());
    BTreeMap<String, String>, Value::Table(entries) => Some(entries.clone());
}

impl Typed for Option<String> {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Nothing => Some(None),
            Value::Text(text) => Some(Some(text.clone())),
            _ => None,
        }
    }
}

impl Typed for Option<PathBuf> {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Nothing => Some(None),
            Value::Path(path) => Some(Some(path.clone())),
            _ => None,
        }
    }
}
