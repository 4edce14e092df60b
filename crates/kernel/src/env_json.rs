//! Environment variables in JSON: text if a value is UTF-8, as nearly all are, else bytes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize)]
#[serde(untagged)]
enum Borrowed<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Owned {
    Text(String),
    Bytes(Vec<u8>),
}

fn borrowed(text: &OsStr) -> Borrowed<'_> {
    match text.to_str() {
        Some(text) => Borrowed::Text(text),
        None => Borrowed::Bytes(text.as_bytes()),
    }
}

pub(crate) fn serialize<S: Serializer>(
    env: &[(OsString, OsString)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let forms = env.iter();
    serializer.collect_seq(forms.map(|(name, value)| (borrowed(name), borrowed(value))))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(OsString, OsString)>, D::Error> {
    let text = |form: Owned| match form {
        Owned::Text(text) => OsString::from(text),
        Owned::Bytes(bytes) => OsString::from_vec(bytes),
    };
    let env: Vec<(Owned, Owned)> = Vec::deserialize(deserializer)?;
    let env = env.into_iter();
    Ok(env.map(|(name, value)| (text(name), text(value))).collect())
}
