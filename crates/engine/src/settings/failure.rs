//! Failures of settings.

use cellwright_diagnostics::failure::{Failure, Kind, command, hint};

use super::{Origin, SettingsError};

/// The failure of code that the settings forbid to run.
pub fn eval_disabled(origin: &Origin) -> Failure {
    let mut failure = Failure::new(Kind::Refused, "Running code is turned off");
    failure
        .causes
        .push(format!("`eval.enabled` is false: {origin}"));
    failure.hint("the setting can be changed there; reading and editing notebooks still works")
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        let bad = |message: String| Self::new(Kind::BadSettings, message);
        match error {
            SettingsError::Unreadable { file, reason } => {
                let mut failure = bad(format!("Could not read the settings in {}", file.display()));
                failure.causes.push(reason);
                failure.hint(hint![
                    "fix or remove it; ",
                    command("config path"),
                    " lists the files that are read",
                ])
            }
            SettingsError::Syntax { file, at, reason } => {
                let mut failure = bad(format!("{} is not TOML", file.display()));
                failure
                    .causes
                    .push(format!("line {}, column {}: {reason}", at.line, at.column));
                failure.position = Some(at);
                failure.hint("fix that line; an example is `timeout = 30` under `[eval]`")
            }
            SettingsError::Unknown {
                file,
                at,
                key,
                suggestion,
                existing,
            } => {
                let mut failure = bad(format!("Unknown setting `{key}` in {}", file.display()));
                failure
                    .causes
                    .push(format!("line {}, column {}", at.line, at.column));
                failure.position = Some(at);
                match suggestion {
                    Some(suggestion) => failure.hint(format!("did you mean `{suggestion}`?")),
                    None => failure.hint(format!("existing names: {}", existing.join(", "))),
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
                    Some(meaning) => failure.hint(format!("`{key}`: {}", as_hint(meaning))),
                    None => failure.hint(format!(
                        "write it as a table: `[{key}]`, with its keys below"
                    )),
                }
            }
            SettingsError::NotForProjects { file, at, key } => {
                let mut failure = bad(format!("`{key}` is not allowed in {}", file.display()));
                failure.causes.push(format!(
                    "line {}, column {}: a project's file is shared with others, and this setting is only for you",
                    at.line, at.column
                ));
                failure.position = Some(at);
                failure.hint(hint![
                    "put it into your user file (",
                    command("config path"),
                    " lists it) or an environment variable",
                ])
            }
            SettingsError::BadServerName { file, at } => {
                let mut failure = bad(format!("Bad name of a server in {}", file.display()));
                failure
                    .causes
                    .push(format!("line {}, column {}", at.line, at.column));
                failure.position = Some(at);
                failure.hint("use letters, digits, `-`, `_` and `.`, as in `[server.work]`")
            }
            SettingsError::NoServerUrl { file, at, name } => {
                let mut failure = bad(format!(
                    "The server `{name}` in {} has no URL",
                    file.display()
                ));
                failure
                    .causes
                    .push(format!("line {}, column {}", at.line, at.column));
                failure.position = Some(at);
                failure.hint("add its address, as in `url = \"https://jupyter.example/base/\"`")
            }
            SettingsError::BadVariable {
                variable,
                key,
                expected,
            } => {
                let mut failure = bad(format!("Bad value of the environment variable {variable}"));
                failure
                    .causes
                    .push(format!("it sets `{key}`: expected {expected}"));
                failure.hint(format!("change it, or `unset {variable}`"))
            }
        }
    }
}

/// A sentence in the style of hints: a small first letter and no full stop.
fn as_hint(sentence: &str) -> String {
    let sentence = sentence.trim_end_matches('.');
    let mut characters = sentence.chars();
    match characters.next() {
        Some(first) => first.to_ascii_lowercase().to_string() + characters.as_str(),
        None => String::new(),
    }
}
