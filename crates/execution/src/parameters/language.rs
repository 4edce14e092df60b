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

/// Lexical rules of a language, as far as assignments need them.
pub(super) struct Syntax {
    /// Sign that starts a comment up to the end of the line.
    pub(super) line_comment: &'static str,
    /// Signs around a comment of several lines.
    pub(super) block_comment: Option<(&'static str, &'static str)>,
    /// Signs around strings; a longer one is before its prefix.
    pub(super) quotes: &'static [Quote],
    /// Words before the variable of an assignment.
    pub(super) declarations: &'static [&'static str],
    /// How a variable has a type.
    pub(super) annotation: Option<Annotation>,
    /// The start of a comment that names a type.
    pub(super) type_comment: Option<&'static str>,
    /// Whether `x <- 1` and `1 -> x` are assignments.
    pub(super) has_arrows: bool,
    /// Whether a value can begin on the line after its operator.
    pub(super) continues_after_operator: bool,
    /// Whether a blank ends a value, and a comment starts only after a blank.
    pub(super) blanks_end_value: bool,
}

impl Syntax {
    /// Number signs before comments, and nothing else.
    const fn with_quotes(quotes: &'static [Quote]) -> Self {
        Self {
            line_comment: "#",
            block_comment: None,
            quotes,
            declarations: &[],
            annotation: None,
            type_comment: None,
            has_arrows: false,
            continues_after_operator: false,
            blanks_end_value: false,
        }
    }
}

/// How a variable has a type.
pub(super) struct Annotation {
    /// Sign between a variable and its type.
    pub(super) sign: &'static str,
    /// Whether a variable with a type and without a value is a whole statement.
    pub(super) can_lack_value: bool,
}

/// A sign around strings.
pub(super) struct Quote {
    pub(super) sign: &'static str,
    /// Whether the string can have several lines.
    pub(super) is_multiline: bool,
    /// Whether a backslash escapes the next character.
    pub(super) has_escapes: bool,
    /// Whether the sign is an operator after an operand.
    pub(super) can_follow_operand: bool,
}

impl Quote {
    /// A string on one line, with escapes.
    const fn new(sign: &'static str) -> Self {
        Self {
            sign,
            is_multiline: false,
            has_escapes: true,
            can_follow_operand: false,
        }
    }

    /// A string of any number of lines, with escapes.
    const fn multiline(sign: &'static str) -> Self {
        Self {
            is_multiline: true,
            ..Self::new(sign)
        }
    }
}

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

    /// Lexical rules.
    fn syntax(&self) -> &'static Syntax;

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
