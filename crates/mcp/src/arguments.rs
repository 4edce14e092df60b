//! Arguments of tools as typed values.

use cellwright_diagnostics::failure::{Failure, Kind};
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Parses the arguments of a tool. An argument that is `null` counts as missing.
pub(super) fn parse<T: DeserializeOwned>(tool: &str, arguments: JsonObject) -> Result<T, Failure> {
    let arguments: JsonObject = arguments
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .collect();
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        let failure = Failure::new(
            Kind::BadArguments,
            format!("Invalid arguments for `{tool}`: {error}"),
        );
        failure.hint("nothing was done")
    })
}

/// A number of seconds from 0 up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seconds(pub(super) std::time::Duration);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = LenientString::deserialize(deserializer)?.0;
        let time = cellwright_operations::seconds::parse_seconds(&text);
        time.map(Self).map_err(serde::de::Error::custom)
    }
}

/// A string. Accepts a number too: models omit the quotes.
#[derive(Clone, Debug)]
pub(super) struct LenientString(pub(super) String);

impl<'de> Deserialize<'de> for LenientString {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(text)),
            Value::Number(number) => Ok(Self(number.to_string())),
            other => Err(serde::de::Error::custom(format!(
                "expected text or a number, not `{other}`"
            ))),
        }
    }
}

/// A list of strings. Accepts a single string too.
#[derive(Clone, Debug, Default)]
pub(super) struct LenientStrings(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for LenientStrings {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum OneOrMany {
            Many(Vec<LenientString>),
            One(LenientString),
        }
        Ok(match OneOrMany::deserialize(deserializer)? {
            OneOrMany::Many(strings) => Self(strings.into_iter().map(|string| string.0).collect()),
            OneOrMany::One(string) => Self(vec![string.0]),
        })
    }
}
