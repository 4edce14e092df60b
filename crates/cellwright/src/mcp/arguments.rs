//! What a tool is called with, as typed values.

use rmcp::model::JsonObject;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::{Failure, Kind};

/// Reads the arguments of a tool. What is `null` was not given.
pub(super) fn parse<T: DeserializeOwned>(tool: &str, given: JsonObject) -> Result<T, Failure> {
    let given: JsonObject = given
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .collect();
    serde_json::from_value(Value::Object(given)).map_err(|error| {
        let failure = Failure::new(
            Kind::BadArguments,
            format!("The arguments of `{tool}` make no sense: {error}"),
        );
        failure.hint("nothing was done")
    })
}

/// Seconds, 0 or more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seconds(pub(super) std::time::Duration);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = LenientString::deserialize(deserializer)?.0;
        let time = crate::operations::seconds::parse_seconds(&text);
        time.map(Self).map_err(serde::de::Error::custom)
    }
}

/// One word: text, or a number that a model wrote without quotes.
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

/// Several words, or one.
#[derive(Clone, Debug, Default)]
pub(super) struct LenientStrings(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for LenientStrings {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Several(Vec<LenientString>),
            One(LenientString),
        }
        Ok(match Either::deserialize(deserializer)? {
            Either::Several(words) => Self(words.into_iter().map(|word| word.0).collect()),
            Either::One(word) => Self(vec![word.0]),
        })
    }
}
