//! Finds assignments at the top level of a source in Python, R, Julia, Bash or JavaScript.

use std::collections::HashSet;

/// Words before the target of an assignment.
const DECLARATIONS: [&str; 8] = [
    "const", "let", "var", "global", "local", "export", "declare", "readonly",
];

/// The variables that lines of the source assign: `x = 1`, `a, b = f()`, `x: int = 1`, `x <- 1`, `1 -> x`. Lines that are
/// indented, in a string of several lines or in brackets do not count, nor do `x += 1` and `x[0] = 1`.
pub(super) fn top_level_names(source: &str) -> HashSet<&str> {
    let mut found = HashSet::new();
    let mut state = LineState::default();
    for line in source.lines() {
        let is_start = state.is_outside() && !line.starts_with([' ', '\t']);
        let operators = state.scan(line);
        if is_start {
            add_targets(line, &operators, &mut found);
        }
    }
    found
}

fn add_targets<'a>(line: &'a str, operators: &[Operator], found: &mut HashSet<&'a str>) {
    let mut from = 0;
    for operator in operators {
        if operator.is_rightward {
            let after = &line[operator.end..];
            found.extend(after.split(';').next().and_then(target));
        } else {
            let targets = &line[from..operator.start];
            // Of several statements on a line, the last one is before the operator.
            let targets = targets.rsplit(';').next().unwrap_or(targets);
            found.extend(targets.split(',').filter_map(target));
        }
        from = operator.end;
    }
}

/// The variable that a target names, without a declaration, a type or brackets.
fn target(text: &str) -> Option<&str> {
    let mut text = text.trim();
    for word in DECLARATIONS {
        if let Some(rest) = text.strip_prefix(word)
            && rest.starts_with([' ', '\t'])
        {
            text = rest.trim_start();
        }
    }
    // The type: `x: int` in Python, `x::Int` in Julia.
    let text = text.split(':').next().unwrap_or(text);
    let text = text.trim_matches(|c: char| c.is_whitespace() || "()[]{}*".contains(c));
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$' | '!');
    (!text.is_empty() && text.chars().all(is_name)).then_some(text)
}

/// An assignment operator, as a range of bytes of its line.
struct Operator {
    start: usize,
    end: usize,
    /// Whether the target is after the operator.
    is_rightward: bool,
}

/// What a line starts in.
#[derive(Default)]
struct LineState {
    /// The quotes that end the current string.
    quote: Option<&'static str>,
    /// Number of open brackets.
    depth: usize,
}

const QUOTES: [&str; 5] = ["\"\"\"", "'''", "\"", "'", "`"];

impl LineState {
    fn is_outside(&self) -> bool {
        self.quote.is_none() && self.depth == 0
    }

    /// Reads a line. Returns its assignment operators outside of strings and brackets.
    fn scan(&mut self, line: &str) -> Vec<Operator> {
        let bytes = line.as_bytes();
        let mut operators = Vec::new();
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if let Some(quote) = self.quote {
                at += match rest[0] {
                    b'\\' => 2,
                    _ if rest.starts_with(quote.as_bytes()) => {
                        self.quote = None;
                        quote.len()
                    }
                    _ => 1,
                };
                continue;
            }
            if let Some(quote) = QUOTES
                .iter()
                .find(|quote| rest.starts_with(quote.as_bytes()))
            {
                self.quote = Some(quote);
                at += quote.len();
                continue;
            }
            let (length, assigns) = match rest {
                [b'#', ..] | [b'/', b'/', ..] => break,
                [b'(' | b'[' | b'{', ..] => {
                    self.depth += 1;
                    (1, false)
                }
                [b')' | b']' | b'}', ..] => {
                    self.depth = self.depth.saturating_sub(1);
                    (1, false)
                }
                [b'<', b'<', b'-', ..] => (3, true),
                [b'<', b'-', ..] | [b'-', b'>', ..] => (2, true),
                [b'=', b'=' | b'>' | b'~', ..] | [b'!' | b'<' | b'>' | b'~' | b':', b'=', ..] => {
                    (2, false)
                }
                [b'=', ..] => (1, true),
                _ => (1, false),
            };
            if assigns && self.depth == 0 {
                operators.push(Operator {
                    start: at,
                    end: at + length,
                    is_rightward: rest[0] == b'-',
                });
            }
            at += length;
        }
        // Only triple quotes and backquotes enclose several lines.
        if self.quote.is_some_and(|quote| ["\"", "'"].contains(&quote)) {
            self.quote = None;
        }
        operators
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str) -> Vec<&str> {
        let mut names: Vec<&str> = top_level_names(source).into_iter().collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn plain_assignments_are_found_in_each_language() {
        assert_eq!(
            names("epochs = 20\nlr: float = 0.1  # x = 3"),
            ["epochs", "lr"]
        );
        assert_eq!(names("a, (b, *c) = f(d=1)"), ["a", "b", "c"]);
        assert_eq!(names("a = b = 1; c = 2"), ["a", "b", "c"]);
        assert_eq!(
            names("n <- 1000\nf(2) -> m\nk <<- 3\nmy.name = 4"),
            ["k", "m", "my.name", "n"]
        );
        assert_eq!(names("const n = 3\nx::Int = 4\nlet y = 5"), ["n", "x", "y"]);
    }

    #[test]
    fn other_lines_are_not_assignments() {
        let source = r#"f(
epochs=3
)
"""
epochs = 3
"""
if x:
    epochs = 3
epochs += 1
epochs == 3
epochs[0] = 1
d.epochs = 2
print(epochs)
x = 'a\'; epochs = 1'
# epochs = 3
if 'epochs' not in y: epochs = 3
def f(epochs=3): pass
"#;
        assert_eq!(names(source), ["d.epochs", "x"]);
    }
}
