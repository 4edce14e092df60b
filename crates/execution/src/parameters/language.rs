//! Languages in which parameters can be written.

mod bash;
mod javascript;
mod julia;
mod python;
mod r;

use unicode_ident::{is_xid_continue, is_xid_start};

use super::Value;
use super::text::needs_escape;

/// Why a language cannot represent a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnsupportedValue(pub(super) &'static str);

/// Names and literals of a language.
pub(super) trait Language: Sync {
    /// Name of the language, for messages.
    fn display_name(&self) -> &'static str;

    /// Names of the language in kernelspecs and `language_info`, in lower case.
    fn kernel_names(&self) -> &'static [&'static str];

    /// A comment line.
    fn comment(&self, text: &str) -> String {
        format!("# {text}")
    }

    /// Whether `name` is a variable name.
    fn is_valid_name(&self, name: &str) -> bool;

    /// Writes an assignment on one line.
    fn assign(&self, out: &mut String, name: &str, value: &Value) -> Result<(), UnsupportedValue>;
}

pub(super) const ALL: [&dyn Language; 6] = [
    &python::Python,
    &r::R,
    &julia::Julia,
    &bash::Bash,
    &javascript::JavaScript,
    &javascript::TypeScript,
];

pub(super) fn find(name: &str) -> Option<&'static dyn Language> {
    let name = name.to_ascii_lowercase();
    ALL.into_iter()
        .find(|language| language.kernel_names().contains(&name.as_str()))
}

/// Whether a name consists of letters, digits and `others`, does not begin with a digit, and is not a reserved word.
fn is_identifier(name: &str, others: &[char], reserved: &[&str]) -> bool {
    let mut characters = name.chars();
    characters
        .next()
        .is_some_and(|first| is_xid_start(first) || others.contains(&first))
        && characters.all(|character| is_xid_continue(character) || others.contains(&character))
        && !reserved.contains(&name)
        // Some invisible characters are allowed in identifiers, but a reader would not see them.
        && !name.contains(needs_escape)
}
