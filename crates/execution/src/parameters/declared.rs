//! Lists the parameters that a cell with defaults declares, without running it.

use super::language::{Language, Syntax};
use super::statements::{self, Statement};

/// A parameter that a notebook accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredParameter {
    /// Name of the variable.
    pub name: String,
    /// Source text of the default value. `None` if the cell only annotates the variable, or assigns it together with
    /// others from one value.
    pub default: Option<String>,
    /// Source text of the type, from an annotation or a comment `# type: int`.
    pub type_hint: Option<String>,
    /// Text of the comment after the assignment.
    pub help: Option<String>,
}

/// The parameters of a cell in the order of their first assignment. The last assignment of a name counts.
pub(super) fn list(language: &dyn Language, source: &str) -> Vec<DeclaredParameter> {
    let mut found: Vec<DeclaredParameter> = Vec::new();
    for line in statements::logical_lines(source, language.syntax()) {
        let comment = line.comment.map(str::trim).unwrap_or_default();
        let (type_comment, help) = match language.syntax().type_comment {
            Some(start) => split_type_comment(comment, start),
            None => (None, comment),
        };
        for statement in &line.statements {
            for mut parameter in declared_by(statement, language) {
                parameter.help = (!help.is_empty()).then(|| help.to_owned());
                if parameter.type_hint.is_none() {
                    parameter.type_hint = type_comment.map(str::to_owned);
                }
                match found.iter_mut().find(|known| known.name == parameter.name) {
                    Some(known) => *known = parameter,
                    None => found.push(parameter),
                }
            }
        }
    }
    found
}

/// Splits `type: int size of a batch` into the type and the rest.
fn split_type_comment<'a>(comment: &'a str, start: &str) -> (Option<&'a str>, &'a str) {
    let Some(rest) = comment.strip_prefix(start).map(str::trim_start) else {
        return (None, comment);
    };
    let (type_hint, help) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let type_hint = Some(type_hint).filter(|type_hint| !type_hint.is_empty());
    (type_hint, help.trim())
}

fn declared_by(statement: &Statement<'_>, language: &dyn Language) -> Vec<DeclaredParameter> {
    let syntax = language.syntax();
    let text = without_declaration(statement.text, syntax);
    let skipped = statement.text.len() - text.len();
    let operators: Vec<_> = statement
        .operators
        .iter()
        .filter(|operator| operator.start >= skipped)
        .map(|operator| (operator.start - skipped, operator.end - skipped))
        .collect();
    let Some(&(first_start, first_end)) = operators.first() else {
        // An annotation without a value.
        let annotation = syntax.annotation.as_ref();
        let annotated = annotation
            .filter(|annotation| annotation.can_lack_value)
            .and_then(|_| annotated_name(text, language))
            .map(|(name, type_hint)| declared(name, None, Some(type_hint)));
        return Vec::from_iter(annotated);
    };
    if statement.is_rightward {
        let (value, name) = (text[..first_start].trim(), text[first_end..].trim());
        let is_valid = operators.len() == 1 && language.is_valid_name(name) && !value.is_empty();
        return Vec::from_iter(is_valid.then(|| declared(name, Some(value), None)));
    }
    if let Some((name, type_hint)) = annotated_name(&text[..first_start], language) {
        let value = text[first_end..].trim();
        return vec![declared(name, Some(value), Some(type_hint))];
    }
    // `a = b = 1`: each text before an operator is a target until one is not.
    let mut targets: Vec<Targets<'_>> = Vec::new();
    let mut value_start = 0;
    for &(start, end) in &operators {
        let Some(found) = Targets::parse(&text[value_start..start], language) else {
            break;
        };
        targets.push(found);
        value_start = end;
    }
    let value = &text[value_start..];
    let has_blanks =
        || value.starts_with(char::is_whitespace) || text[..first_start].ends_with(' ');
    // In a shell, `a = 1` and `a=1 command` are commands.
    if syntax.blanks_end_value && (has_blanks() || statements::has_blank(value.trim(), syntax)) {
        return Vec::new();
    }
    let value = value.trim();
    let assign = |targets: Targets<'_>| {
        let values = targets.values(value, syntax);
        let pairs = targets.names.into_iter().zip(values);
        pairs
            .map(|(name, value)| declared(name, value, None))
            .collect::<Vec<_>>()
    };
    targets.into_iter().flat_map(assign).collect()
}

fn declared(name: &str, default: Option<&str>, type_hint: Option<&str>) -> DeclaredParameter {
    let non_empty = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    DeclaredParameter {
        name: name.to_owned(),
        default: default.and_then(non_empty),
        type_hint: type_hint.and_then(non_empty),
        help: None,
    }
}

/// The text after words such as `const`, and after their options.
fn without_declaration<'a>(text: &'a str, syntax: &Syntax) -> &'a str {
    let mut rest = text;
    loop {
        let Some((word, after)) = rest.split_once(char::is_whitespace) else {
            return rest;
        };
        let is_option = rest.len() < text.len() && word.starts_with('-');
        if !is_option && !syntax.declarations.contains(&word) {
            return rest;
        }
        rest = after.trim_start();
    }
}

/// Splits `name: type`.
fn annotated_name<'a>(text: &'a str, language: &dyn Language) -> Option<(&'a str, &'a str)> {
    let (name, type_hint) = text.split_once(language.syntax().annotation.as_ref()?.sign)?;
    let (name, type_hint) = (name.trim(), unquoted(type_hint.trim()));
    (language.is_valid_name(name) && !type_hint.is_empty()).then_some((name, type_hint))
}

/// The text in the quotes of a type such as `'Model'`, which Python evaluates later.
fn unquoted(text: &str) -> &str {
    let inner = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    inner('\'').or_else(|| inner('"')).unwrap_or(text)
}

/// The variables before an assignment operator.
struct Targets<'a> {
    names: Vec<&'a str>,
    /// Whether the variables are in nested brackets or take a variable number of values.
    is_nested: bool,
}

impl<'a> Targets<'a> {
    /// The targets `a`, `a, b`, `(a, b)`, `a, *b`; `None` if the text is not a list of variables.
    fn parse(text: &'a str, language: &dyn Language) -> Option<Self> {
        let text = text.trim();
        let inner = without_brackets(text);
        let is_nested = inner.contains(['(', '[', '{', '*']);
        let bare =
            |part: &'a str| part.trim_matches(|c: char| c.is_whitespace() || "()[]{}*".contains(c));
        let is_bracketed = inner.len() < text.len();
        let mut names: Vec<&str> = inner.split(',').map(bare).collect();
        // `a, = values`
        if names.len() > 1 && names.last().is_some_and(|name| name.is_empty()) {
            names.pop();
        }
        // `a[0] = 1` and `f(x) = 1` assign no variable.
        let is_item = !is_bracketed && text.contains(['(', '[', '{']) && !text.contains(',');
        let is_list = !is_item && names.iter().all(|name| language.is_valid_name(name));
        is_list.then_some(Self {
            names,
            is_nested: is_nested || (is_bracketed && text.starts_with('{')),
        })
    }

    /// The value of each variable, if each one has its text.
    fn values<'v>(&self, value: &'v str, syntax: &Syntax) -> Vec<Option<&'v str>> {
        if let [_] = self.names[..] {
            return vec![(!self.is_nested).then_some(value)];
        }
        let parts = statements::split_list(without_brackets(value), syntax);
        if self.is_nested || parts.len() != self.names.len() {
            return vec![None; self.names.len()];
        }
        parts.into_iter().map(Some).collect()
    }
}

/// The text in a pair of brackets that encloses all of it.
fn without_brackets(text: &str) -> &str {
    let pairs = [('(', ')'), ('[', ']'), ('{', '}')];
    for (open, close) in pairs {
        let inner = text
            .strip_prefix(open)
            .and_then(|text| text.strip_suffix(close));
        if let Some(inner) = inner.filter(|inner| !inner.contains([open, close])) {
            return inner;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::parameters::{DeclaredParameter, declared_parameters};

    /// The parameters as `name|default|type|help`.
    fn list(language: &str, source: &str) -> Vec<String> {
        let row = |parameter: DeclaredParameter| {
            let text = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            let DeclaredParameter {
                name,
                default,
                type_hint,
                help,
            } = parameter;
            let (default, type_hint, help) = (text(default), text(type_hint), text(help));
            format!("{name}|{default}|{type_hint}|{help}")
        };
        let found = declared_parameters(language, source).unwrap();
        found.into_iter().map(row).collect()
    }

    #[test]
    fn python_defaults_have_types_and_help() {
        let source = "\
# Settings of the training
epochs = 20
lr: float = 0.1  # Learning rate
name = 'a # b'# Label
layers: Dict[str, int] = {'a': 1}
seed = 3 # type: int  Seed of the generator
path: str
ratio = None  #
model: 'Model' = None
";
        assert_eq!(
            list("python", source),
            [
                "epochs|20|-|-",
                "lr|0.1|float|Learning rate",
                "name|'a # b'|-|Label",
                "layers|{'a': 1}|Dict[str, int]|-",
                "seed|3|int|Seed of the generator",
                "path|-|str|-",
                "ratio|None|-|-",
                "model|None|Model|-",
            ]
        );
    }

    #[test]
    fn values_of_several_lines_are_whole() {
        let source = "\
names = [
    'a',  # first
    'b=c',
]  # All names
query = \"\"\"select *
from t -- x = 1
\"\"\"
total = 1 + \\
    2
last = 4";
        assert_eq!(
            list("python", source),
            [
                "names|[\n    'a',  # first\n    'b=c',\n]|-|All names",
                "query|\"\"\"select *\nfrom t -- x = 1\n\"\"\"|-|-",
                "total|1 + \\\n    2|-|-",
                "last|4|-|-",
            ]
        );
    }

    #[test]
    fn assignments_of_several_names_have_their_values_if_each_has_its_text() {
        let source = "\
a, b = 1, (2, 3)
(c, d) = [4, 5]
e, *f = 1, 2
g, h = load()
i = j = 6
k = 7; l = 8  # both
m, = values
k = 9";
        assert_eq!(
            list("python", source),
            [
                "a|1|-|-",
                "b|(2, 3)|-|-",
                "c|4|-|-",
                "d|5|-|-",
                "e|-|-|-",
                "f|-|-|-",
                "g|-|-|-",
                "h|-|-|-",
                "i|6|-|-",
                "j|6|-|-",
                "k|9|-|-",
                "l|8|-|both",
                "m|values|-|-",
            ]
        );
    }

    #[test]
    fn other_statements_declare_nothing() {
        let source = "\
import os
%matplotlib inline
!ls x=1
if os.environ: debug = 1
else: debug = 2
for i in range(3):
    total = i
x += 1
x == 1
d['a'] = 1
d.a = 2
f(x=1)
def f(x=1): pass
print(f'{x=}')
(y := 3)
scale = lambda x=1: x";
        assert_eq!(list("python", source), ["scale|lambda x=1: x|-|-"]);
    }

    #[test]
    fn sources_with_syntax_errors_are_listed_as_far_as_possible() {
        assert_eq!(
            list("python", "a = 1\nb = 'x\nc = 2"),
            ["a|1|-|-", "b|'x|-|-", "c|2|-|-"]
        );
        assert_eq!(
            list("python", "a = 1\nb = [2,\nc = 3"),
            ["a|1|-|-", "b|[2,\nc = 3|-|-"]
        );
        assert_eq!(
            list("python", "= 3\na = \nb =: 2\n, = 1"),
            ["a|-|-|-", "b|: 2|-|-"]
        );
        assert!(list("python", ")]}'\"\"\"\\").is_empty());
        assert!(list("python", "").is_empty());
    }

    #[test]
    fn other_languages_have_their_own_assignments() {
        assert_eq!(
            list(
                "R",
                "n <- 1000  # rows\nmy.name = \"a#b\"\n3 -> m\nx <-\n  c(1, 2)\nf(2) == 3"
            ),
            [
                "n|1000|-|rows",
                "my.name|\"a#b\"|-|-",
                "m|3|-|-",
                "x|c(1, 2)|-|-",
            ]
        );
        assert_eq!(
            list(
                "julia",
                "const n = 3 # count\nx::Int = 4\nt = a'\ny = 'c'\n#= z = 1 =#\nk = v -> v"
            ),
            [
                "n|3|-|count",
                "x|4|Int|-",
                "t|a'|-|-",
                "y|'c'|-|-",
                "k|v -> v|-|-",
            ]
        );
        assert_eq!(
            list(
                "bash",
                "n=3 # count\nexport dir=/tmp/a#b\ndeclare -i k=2\nx = 1\ny=1 ls\nz='a b'\ne="
            ),
            [
                "n|3|-|count",
                "dir|/tmp/a#b|-|-",
                "k|2|-|-",
                "z|'a b'|-|-",
                "e|-|-|-",
            ]
        );
        assert_eq!(
            list(
                "javascript",
                "const n = 3; // count\nlet s = `a\n// b`\n/* var q = 1 */ var t = x => x;"
            ),
            ["n|3|-|count", "s|`a\n// b`|-|-", "t|x => x|-|-"]
        );
        assert_eq!(
            list("typescript", "const n: number = 3;\nlet {a, b} = o"),
            ["n|3|number|-", "a|-|-|-", "b|-|-|-"]
        );
        assert!(declared_parameters("cobol", "x = 1").is_err());
    }

    #[test]
    fn any_text_is_listed_without_a_panic() {
        let pieces = [
            "a", "=", " ", "\n", "'", "\"\"\"", "#", "(", ")", "\\", ":", ",", "é", "->", "<-",
            ";", "/*", "`", "*", "=#",
        ];
        // Every text of three pieces, around an assignment.
        for first in pieces {
            for second in pieces {
                for third in pieces {
                    let source = format!("{first}{second}x = 1{third}");
                    for language in ["python", "r", "julia", "bash", "javascript"] {
                        declared_parameters(language, &source).unwrap();
                    }
                }
            }
        }
    }
}
