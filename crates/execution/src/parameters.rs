//! Parameters of a notebook: values that the caller sets for a run.
//!
//! As in papermill, a cell tagged [`PARAMETERS_TAG`] holds the defaults. The values of the caller are in a separate
//! cell after it, tagged [`INJECTED_TAG`], which the next run replaces.
//!
//! ```
//! use cellwright_execution::parameters::{self, Parameter};
//! use serde_json::json;
//!
//! let values = [Parameter::new("alpha", json!(0.5)), Parameter::new("names", json!(["a", null]))];
//! assert_eq!(
//!     parameters::cell_source("python", &values)?,
//!     "# Parameters\nalpha = 0.5\nnames = [\"a\", None]"
//! );
//! # Ok::<(), parameters::ParameterError>(())
//! ```

mod assignments;
mod declared;
mod injection;
mod language;
mod statements;
mod text;
mod value;

pub use declared::DeclaredParameter;
pub use injection::{Injection, InjectionPoint, TaggedCell, plan_injection};
pub use value::{Integer, Value};

use std::collections::HashMap;

use language::{Language, UnsupportedValue};

/// The tag of the cell with the default values.
pub const PARAMETERS_TAG: &str = "parameters";

/// The tag of the cell with the values of the caller.
pub const INJECTED_TAG: &str = "injected-parameters";

/// A variable and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Name of the variable.
    pub name: String,
    /// Value of the variable.
    pub value: Value,
}

impl Parameter {
    /// A parameter; `value` may be a JSON value.
    pub fn new(name: impl Into<String>, value: impl Into<Value>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }
}

/// Why parameters cannot be written for a notebook.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// A language without support for parameters.
    #[error(
        "parameters cannot be written in {language}, only in {}",
        language_list()
    )]
    UnsupportedLanguage {
        /// Name of the language in the notebook.
        language: String,
    },
    /// Not a variable name.
    #[error("`{name}` is not a valid variable name in {language}")]
    InvalidName {
        /// The name.
        name: String,
        /// The language.
        language: &'static str,
    },
    /// A value that the language cannot represent.
    #[error("`{name}` cannot be written in {language}: {reason}")]
    UnsupportedValue {
        /// The parameter.
        name: String,
        /// The language.
        language: &'static str,
        /// Why the value cannot be written.
        reason: &'static str,
    },
}

/// The supported languages, separated by commas and "and".
fn language_list() -> String {
    let mut names: Vec<&str> = language::ALL
        .iter()
        .map(|language| language.display_name())
        .collect();
    let last = names.pop().unwrap_or_default();
    format!("{} and {last}", names.join(", "))
}

/// The source of the cell that sets the parameters: a comment, then one assignment for each parameter.
///
/// `language` is the name in the notebook's kernelspec or `language_info`. Python represents all values exactly; a
/// value that another language cannot represent is an error.
pub fn cell_source(language: &str, parameters: &[Parameter]) -> Result<String, ParameterError> {
    let language = find_language(language)?;
    let mut source = language.comment("Parameters");
    for Parameter { name, value } in parameters {
        if !language.is_valid_name(name) {
            return Err(ParameterError::InvalidName {
                name: name.clone(),
                language: language.display_name(),
            });
        }
        let unsupported = |UnsupportedValue(reason)| ParameterError::UnsupportedValue {
            name: name.clone(),
            language: language.display_name(),
            reason,
        };
        if value.depth() > value::NESTING_LIMIT {
            return Err(unsupported(UnsupportedValue("it is nested too deeply")));
        }
        source.push('\n');
        language
            .assign(&mut source, name, value)
            .map_err(unsupported)?;
    }
    Ok(source)
}

fn find_language(name: &str) -> Result<&'static dyn Language, ParameterError> {
    language::find(name).ok_or_else(|| ParameterError::UnsupportedLanguage {
        language: name.to_owned(),
    })
}

/// Removes repeated names: the last value of a name wins, at the position of its first occurrence. Returns the
/// parameters and the repeated names.
pub fn deduplicate(parameters: Vec<Parameter>) -> (Vec<Parameter>, Vec<String>) {
    let mut unique: Vec<Parameter> = Vec::with_capacity(parameters.len());
    let mut repeated: Vec<String> = Vec::new();
    let mut positions = HashMap::new();
    for parameter in parameters {
        if let Some(&position) = positions.get(&parameter.name) {
            let first: &mut Parameter = &mut unique[position];
            first.value = parameter.value;
            if !repeated.contains(&parameter.name) {
                repeated.push(parameter.name);
            }
        } else {
            positions.insert(parameter.name.clone(), unique.len());
            unique.push(parameter);
        }
    }
    (unique, repeated)
}

/// The names of the parameters that a cell assigns at its top level, whatever ran before.
///
/// The cell is not parsed: lines in strings and brackets, indented lines and conditional statements do not count.
pub fn assigned_parameters<'a>(parameters: &'a [Parameter], source: &str) -> Vec<&'a str> {
    let assigned = assignments::top_level_names(source);
    let names = parameters.iter().map(|parameter| parameter.name.as_str());
    names.filter(|name| assigned.contains(name)).collect()
}

/// The names that the cell with the defaults does not assign: they may be misspelt.
///
/// The cell is searched for words and not parsed, so that unusual code is accepted rather than reported.
pub fn unknown_names<'a>(parameters: &'a [Parameter], defaults: &str) -> Vec<&'a str> {
    let assigned = text::assigned_names(defaults);
    parameters
        .iter()
        .map(|parameter| parameter.name.as_str())
        .filter(|name| !assigned.contains(name))
        .collect()
}

/// The parameters that a cell with defaults declares: its assignments at the top level.
///
/// The cell neither runs nor has to be valid: what cannot be read as an assignment declares nothing.
///
/// ```
/// use cellwright_execution::parameters::declared_parameters;
///
/// let found = declared_parameters("python", "lr: float = 0.1  # Learning rate")?;
/// assert_eq!(found[0].name, "lr");
/// assert_eq!(found[0].default.as_deref(), Some("0.1"));
/// assert_eq!(found[0].type_hint.as_deref(), Some("float"));
/// assert_eq!(found[0].help.as_deref(), Some("Learning rate"));
/// # Ok::<(), cellwright_execution::parameters::ParameterError>(())
/// ```
pub fn declared_parameters(
    language: &str,
    source: &str,
) -> Result<Vec<DeclaredParameter>, ParameterError> {
    Ok(declared::list(find_language(language)?, source))
}
