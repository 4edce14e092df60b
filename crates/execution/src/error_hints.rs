//! Hints on exceptions that have their cause outside of the code: a variable that the kernel does not receive, a package
//! that its interpreter does not have.

use std::path::Path;

use cellwright_diagnostics::failure::{Hint, flag, flag_value, hint};
use cellwright_diagnostics::install::{install_command, package_of};
use cellwright_output::Traceback;
use serde::{Deserialize, Serialize};

/// What hints on exceptions depend on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HintContext {
    /// Names of the caller's environment variables that the kernel does not receive.
    pub withheld: Vec<String>,
    /// Whether the caller passes a variable with a flag; otherwise a setting passes it.
    pub has_env_flag: bool,
    /// Whether the program `uv` exists.
    pub has_uv: bool,
}

/// The hints on an exception of a kernel with this interpreter.
pub(super) fn describe(
    error: &Traceback,
    interpreter: Option<&str>,
    context: &HintContext,
) -> Vec<Hint> {
    let missing = context
        .withheld
        .iter()
        .filter(|name| is_about_variable(error, name));
    let mut hints: Vec<Hint> = missing
        .map(|name| withheld_variable(name, context))
        .collect();
    hints.extend(import_hint(error, interpreter, context));
    hints
}

/// Whether an exception reports that an environment variable is missing. A `KeyError` has only the name, which can be the
/// key of any mapping: its traceback shows the environment.
fn is_about_variable(error: &Traceback, name: &str) -> bool {
    if error.name == "KeyError" {
        let of_environment = |line: &String| {
            ["environ", "<frozen os>", "/os.py"]
                .iter()
                .any(|word| line.contains(word))
        };
        let key = error.value.trim_matches(['\'', '"']);
        return key == name && error.lines.iter().any(of_environment);
    }
    let is_distinctive = name.contains('_') || error.value.to_lowercase().contains("environ");
    is_distinctive && contains_word(&error.value, name)
}

fn contains_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

fn withheld_variable(name: &str, context: &HintContext) -> Hint {
    let fact = format!("the environment variable `{name}` is set, but withheld from the kernel; ");
    if context.has_env_flag {
        hint![fact, flag_value("env", name), " passes it"]
    } else {
        hint![
            fact,
            "the setting `env.pass` (CELLWRIGHT_ENV_PASS) passes it"
        ]
    }
}

/// The interpreter of a failed import, and how a missing package is installed for it.
fn import_hint(
    error: &Traceback,
    interpreter: Option<&str>,
    context: &HintContext,
) -> Option<Hint> {
    if !["ModuleNotFoundError", "ImportError"].contains(&error.name.as_str()) {
        return None;
    }
    let quoted = |text: &str| {
        let name = text.split('\'').nth(1)?;
        let is_name = |c: char| c.is_alphanumeric() || "_.-".contains(c);
        (!name.is_empty() && name.chars().all(is_name)).then(|| name.to_owned())
    };
    let missing = ["No module named ", "Missing optional dependency "];
    let missing = missing.iter().find_map(|text| error.value.split_once(text));
    let Some(module) = missing.and_then(|(_, rest)| quoted(rest)) else {
        // Of another version than the code expects, or a module of the user.
        return interpreter.map(|python| hint![format!("the interpreter is {python}")]);
    };
    let module = module.split('.').next().unwrap_or_default();
    let package = package_of(module);
    Some(match interpreter {
        Some(python) => {
            let command = install_command(Path::new(python), package, context.has_uv);
            // An agent may have no shell.
            let magic = if context.has_env_flag {
                String::new()
            } else {
                format!(", or `%pip install {package}` in a cell,")
            };
            hint![
                format!(
                    "`{module}` is not installed for {python}: `{command}`{magic} installs it; "
                ),
                flag("python"),
                " selects another interpreter",
            ]
        }
        None => hint![format!(
            "the kernel has no `{module}`: `%pip install {package}` in a cell installs it"
        )],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(name: &str, value: &str, lines: &[&str], has_env_flag: bool) -> Vec<String> {
        let error = Traceback {
            name: name.to_owned(),
            value: value.to_owned(),
            lines: lines.iter().map(ToString::to_string).collect(),
        };
        let context = HintContext {
            withheld: vec!["API_TOKEN".to_owned(), "STAGE".to_owned()],
            has_env_flag,
            has_uv: false,
        };
        let hints = describe(&error, None, &context);
        hints.iter().map(Hint::for_command_line).collect()
    }

    #[test]
    fn an_exception_about_a_withheld_variable_names_the_flag_or_the_setting() {
        let lookup = ["    os.environ['API_TOKEN']"];
        let expected =
            "the environment variable `API_TOKEN` is set, but withheld from the kernel; ";
        assert_eq!(
            hints("KeyError", "'API_TOKEN'", &lookup, true),
            [format!("{expected}`--env API_TOKEN` passes it")]
        );
        assert_eq!(
            hints("KeyError", "'API_TOKEN'", &lookup, false),
            [format!(
                "{expected}the setting `env.pass` (CELLWRIGHT_ENV_PASS) passes it"
            )]
        );
        let message = "set the environment variable API_TOKEN, or pass a token";
        assert_eq!(hints("ClientError", message, &[], true).len(), 1);
        assert_eq!(
            hints("ValueError", "no environment STAGE", &[], true).len(),
            1
        );
    }

    #[test]
    fn other_exceptions_with_the_same_words_have_no_hint() {
        let column = ["    df['STAGE']"];
        assert!(hints("KeyError", "'STAGE'", &column, true).is_empty());
        assert!(hints("KeyError", "'OTHER'", &["os.environ['OTHER']"], true).is_empty());
        assert!(hints("ValueError", "STAGE is unknown", &[], true).is_empty());
        assert!(hints("ValueError", "MY_API_TOKEN2 is unknown", &[], true).is_empty());
    }
}
