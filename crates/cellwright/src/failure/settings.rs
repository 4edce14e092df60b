//! Words for what is wrong with settings.

use super::{Failure, Kind};
use crate::settings::{Origin, SettingsError};

impl Failure {
    /// Running code is turned off.
    pub(crate) fn disabled(origin: &Origin) -> Self {
        let mut failure = Self::new(Kind::Refused, "Running code is turned off");
        failure
            .causes
            .push(format!("`eval.enabled` is false: {origin}"));
        failure.hint("whoever turned it off can turn it on there; notebooks can be read and edited")
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        let bad = |message: String| Self::new(Kind::BadSettings, message);
        match error {
            SettingsError::Unreadable { file, why } => {
                let mut failure = bad(format!("Could not read the settings in {}", file.display()));
                failure.causes.push(why);
                failure
                    .hint("mend or remove it; `cellwright config path` shows which files are read")
            }
            SettingsError::Syntax { file, at, why } => {
                let mut failure = bad(format!("{} is not TOML", file.display()));
                failure
                    .causes
                    .push(format!("line {}, column {}: {why}", at.line, at.column));
                failure.position = Some(at);
                failure.hint("mend that line, such as `timeout = 30` under `[eval]`")
            }
            SettingsError::Unknown {
                file,
                at,
                key,
                near,
                known,
            } => {
                let mut failure = bad(format!("Unknown setting `{key}` in {}", file.display()));
                failure
                    .causes
                    .push(format!("line {}, column {}", at.line, at.column));
                failure.position = Some(at);
                match near {
                    Some(near) => failure.hint(format!("did you mean `{near}`?")),
                    None => failure.hint(format!("there are {}", known.join(", "))),
                }
            }
            SettingsError::BadValue {
                file,
                at,
                key,
                expected,
                found,
                meaning,
            } => {
                let mut failure = bad(format!("Bad value of `{key}` in {}", file.display()));
                failure.causes.push(format!(
                    "line {}, column {}: expected {expected}, found {found}",
                    at.line, at.column
                ));
                failure.position = Some(at);
                match meaning {
                    Some(meaning) => failure.hint(format!("`{key}`: {}", uncapitalised(meaning))),
                    None => failure.hint(format!("write it as `[{key}]`, with its keys below")),
                }
            }
            SettingsError::NotForProjects { file, at, key } => {
                let mut failure = bad(format!("`{key}` may not stand in {}", file.display()));
                failure.causes.push(format!(
                    "line {}, column {}: a project's file is shared with others, and this is a secret",
                    at.line, at.column
                ));
                failure.position = Some(at);
                failure.hint("put it into your own file (`cellwright config path`) or a variable")
            }
            SettingsError::BadVariable {
                variable,
                key,
                expected,
            } => {
                let mut failure = bad(format!("Bad value of the variable {variable}"));
                failure
                    .causes
                    .push(format!("it sets `{key}`: expected {expected}"));
                failure.hint(format!("change it, or `unset {variable}`"))
            }
        }
    }
}

/// A sentence as STYLE.md wants it in a hint.
fn uncapitalised(sentence: &str) -> String {
    let sentence = sentence.trim_end_matches('.');
    let mut characters = sentence.chars();
    match characters.next() {
        Some(first) => first.to_ascii_lowercase().to_string() + characters.as_str(),
        None => String::new(),
    }
}
