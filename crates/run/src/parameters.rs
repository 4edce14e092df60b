//! Parameters of a notebook: values that are given to it when it runs.
//!
//! As papermill has it: a cell tagged [`TAG`] holds what they are by default, and what is given stands
//! in a cell of its own behind it, tagged [`INJECTED_TAG`], which the next run replaces.
//!
//! ```
//! use cellwright_run::parameters::{self, Parameter};
//! use serde_json::json;
//!
//! let given = [Parameter::new("alpha", json!(0.5)), Parameter::new("names", json!(["a", null]))];
//! assert_eq!(
//!     parameters::source("python", &given)?,
//!     "# Parameters\nalpha = 0.5\nnames = [\"a\", None]"
//! );
//! # Ok::<(), parameters::ParameterError>(())
//! ```

mod language;
mod place;
mod text;
mod value;

pub use place::{Cell, Injection, Place, place};
pub use value::{Integer, Value};

use std::collections::HashMap;

use language::{Language, Unsayable};

/// The tag of the cell that holds what parameters are by default.
pub const TAG: &str = "parameters";

/// The tag of the cell that holds what was given.
pub const INJECTED_TAG: &str = "injected-parameters";

/// A value with the name that it gets in the notebook.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The variable.
    pub name: String,
    /// What it is set to.
    pub value: Value,
}

impl Parameter {
    /// A parameter, also from JSON.
    pub fn new(name: impl Into<String>, value: impl Into<Value>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }
}

/// Why parameters cannot be given to a notebook.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// A language that we cannot write.
    #[error("parameters cannot be written in {language}, only in {}", languages())]
    Language {
        /// The language, as the notebook names it.
        language: String,
    },
    /// Not something that can be assigned to.
    #[error("`{name}` is no name of a variable in {language}")]
    Name {
        /// What was given.
        name: String,
        /// The language.
        language: &'static str,
    },
    /// A value that the language has no words for.
    #[error("`{name}` cannot be written in {language}: {what}")]
    Value {
        /// The parameter.
        name: String,
        /// The language.
        language: &'static str,
        /// What it is that cannot be written.
        what: &'static str,
    },
}

/// The languages that parameters can be written in, for a sentence.
fn languages() -> String {
    let mut names: Vec<&str> = language::ALL.iter().map(|one| one.title()).collect();
    let last = names.pop().unwrap_or_default();
    format!("{} and {last}", names.join(", "))
}

/// The source of the cell that sets the parameters: a comment, then one assignment for each.
///
/// The language is what the notebook's kernelspec or `language_info` calls it. Python gets exactly the
/// values that were given; where another language has no such value, that is an error.
pub fn source(language: &str, parameters: &[Parameter]) -> Result<String, ParameterError> {
    let language = find(language)?;
    let mut source = language.comment("Parameters");
    for Parameter { name, value } in parameters {
        if !language.is_name(name) {
            return Err(ParameterError::Name {
                name: name.clone(),
                language: language.title(),
            });
        }
        let refused = |Unsayable(what)| ParameterError::Value {
            name: name.clone(),
            language: language.title(),
            what,
        };
        if value.height() > value::DEEPEST {
            return Err(refused(Unsayable("it is nested too deeply")));
        }
        source.push('\n');
        language.assign(&mut source, name, value).map_err(refused)?;
    }
    Ok(source)
}

fn find(name: &str) -> Result<&'static dyn Language, ParameterError> {
    language::find(name).ok_or_else(|| ParameterError::Language {
        language: name.to_owned(),
    })
}

/// The parameters with each name once, where it was first given, and the names that were given more
/// than once, of which the last one counts.
pub fn settle(given: Vec<Parameter>) -> (Vec<Parameter>, Vec<String>) {
    let mut settled: Vec<Parameter> = Vec::with_capacity(given.len());
    let mut repeated: Vec<String> = Vec::new();
    let mut places = HashMap::new();
    for parameter in given {
        if let Some(&at) = places.get(&parameter.name) {
            let earlier: &mut Parameter = &mut settled[at];
            earlier.value = parameter.value;
            if !repeated.contains(&parameter.name) {
                repeated.push(parameter.name);
            }
        } else {
            places.insert(parameter.name.clone(), settled.len());
            settled.push(parameter);
        }
    }
    (settled, repeated)
}

/// The names that are not assigned in the cell of defaults: perhaps misspelt.
///
/// The cell is looked at as words, not understood, so that something unusual passes rather than being
/// called unknown.
pub fn unknown<'a>(parameters: &'a [Parameter], defaults: &str) -> Vec<&'a str> {
    let assigned = text::assigned(defaults);
    parameters
        .iter()
        .map(|parameter| parameter.name.as_str())
        .filter(|name| !assigned.contains(name))
        .collect()
}
