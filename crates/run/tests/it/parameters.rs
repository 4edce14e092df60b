//! Parameters: what is written means what was given.

mod evaluated;
mod names;

use cellwright_run::parameters::{
    self, Cell, Injection, Parameter, ParameterError, Place, Value, place, settle, unknown,
};
use serde_json::json;

fn cell(index: usize, is_code: bool, tags: &[&str]) -> Cell {
    Cell {
        index,
        is_code,
        tags: tags.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn the_cell_goes_where_papermill_puts_it() {
    let (plain, text) = (cell(0, true, &[]), cell(0, false, &[]));
    let at = |index, cell: &Cell| Cell {
        index,
        ..cell.clone()
    };
    let defaults = cell(0, true, &["x", "parameters"]);
    let injected = cell(0, true, &["injected-parameters"]);
    let explained = cell(0, false, &["parameters"]);
    let cases: [(&[&Cell], Place, Option<usize>); 9] = [
        (&[], Place::Top, None),
        (&[&text, &plain], Place::Top, None),
        (&[&text, &defaults, &plain], Place::After(1), Some(1)),
        (&[&defaults, &defaults], Place::After(0), Some(0)),
        (&[&text, &defaults, &injected], Place::Replace(2), Some(1)),
        (&[&injected, &defaults], Place::Replace(0), Some(1)),
        (&[&text, &injected], Place::Replace(1), None),
        (&[&explained, &plain], Place::After(0), None),
        (&[&explained, &defaults, &plain], Place::After(1), Some(1)),
    ];
    for (cells, wanted, defaults) in cases {
        let cells: Vec<Cell> = cells
            .iter()
            .enumerate()
            .map(|(n, cell)| at(n, cell))
            .collect();
        let found = place(&cells);
        let expected = Injection {
            place: wanted,
            defaults,
        };
        assert_eq!(found, expected, "{cells:?}");
    }
    // Text that a person wrote is not replaced, whatever its tag.
    let note = cell(0, false, &["injected-parameters"]);
    assert_eq!(place(&[note]).place, Place::Top);
}

#[test]
fn every_language_has_its_own_words() {
    let given = [
        Parameter::new("a", json!(null)),
        Parameter::new("b", json!([true, 2, -1.5, "it's $5 \"now\""])),
        Parameter::new("c", json!({"k": [], "l": {}})),
        Parameter::new("d", f64::NEG_INFINITY),
        Parameter::new("e", json!(3_000_000_000_u64)),
        Parameter::new("f", json!(u64::MAX)),
    ];
    let cases = [
        (
            "python",
            5,
            "# Parameters\n\
             a = None\n\
             b = [True, 2, -1.5, \"it's $5 \\\"now\\\"\"]\n\
             c = {\"k\": [], \"l\": {}}\n\
             d = float(\"-inf\")\n\
             e = 3000000000",
        ),
        (
            "R",
            5,
            "# Parameters\n\
             a <- NULL\n\
             b <- list(TRUE, 2L, -1.5, \"it's $5 \\\"now\\\"\")\n\
             c <- list(\"k\" = list(), \"l\" = list())\n\
             d <- -Inf\n\
             e <- 3000000000",
        ),
        (
            "julia",
            6,
            "# Parameters\n\
             a = nothing\n\
             b = Any[true, 2, -1.5, \"it's \\$5 \\\"now\\\"\"]\n\
             c = Dict{String, Any}(\"k\" => Any[], \"l\" => Dict{String, Any}())\n\
             d = -Inf\n\
             e = 3000000000\n\
             f = 18446744073709551615",
        ),
        (
            "TypeScript",
            6,
            "// Parameters\n\
             let a = null;\n\
             let b = [true, 2, -1.5, \"it's $5 \\\"now\\\"\"];\n\
             let c = {\"k\": [], \"l\": {}};\n\
             let d = -Infinity;\n\
             let e = 3000000000;\n\
             let f = 18446744073709551615n;",
        ),
        (
            "bash",
            2,
            "# Parameters\na=''\nb=(true 2 -1.5 $'it\\'s $5 \"now\"')",
        ),
    ];
    for (language, count, expected) in cases {
        assert_eq!(
            parameters::source(language, &given[..count]).unwrap(),
            expected
        );
    }
}

#[test]
fn what_cannot_be_written_is_said() {
    let one = |name: &str, value: Value| [Parameter::new(name, value)];
    let deep = (0..49).fold(Value::Null, |inner, _| Value::List(vec![inner]));
    let cases = [
        (
            "scala",
            one("x", Value::Null),
            "parameters cannot be written in scala, only in Python, R, Julia, Bash, JavaScript and TypeScript",
        ),
        (
            "python",
            one("learning rate", Value::Null),
            "`learning rate` is no name of a variable in Python",
        ),
        (
            "python",
            one("x", deep),
            "`x` cannot be written in Python: it is nested too deeply",
        ),
        (
            "r",
            one("x", json!(1_u64 << 60).into()),
            "`x` cannot be written in R: R has no integers that large",
        ),
        (
            "R",
            one("x", json!({"a": "b\0"}).into()),
            "`x` cannot be written in R: text in R cannot contain the character U+0000",
        ),
        (
            "bash",
            one("x", json!([[1]]).into()),
            "`x` cannot be written in Bash: Bash has no lists in lists",
        ),
    ];
    for (language, given, expected) in cases {
        let error: ParameterError = parameters::source(language, &given).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn the_last_one_counts() {
    let given = ["a", "b", "a", "c", "a", "b"];
    let given = given
        .iter()
        .zip(0..)
        .map(|(name, number)| Parameter::new(*name, json!(number)))
        .collect();
    let (settled, repeated) = settle(given);
    let expected = [("a", 4), ("b", 5), ("c", 3)];
    assert_eq!(
        settled,
        expected.map(|(name, number)| Parameter::new(name, json!(number)))
    );
    assert_eq!(repeated, ["a", "b"]);
}

#[test]
fn names_that_the_defaults_do_not_set_are_unknown() {
    let defaults = [
        ("alpha = 1", true),
        ("  alpha=1", true),
        ("alpha: float = 0.5  # how much", true),
        ("alpha, beta = 1, 2", true),
        ("beta = alpha = 1", true),
        ("alpha: dict[str, int] = {}", true),
        ("alpha <- 1", true),
        ("1 -> alpha", true),
        ("const alpha = 1;", true),
        ("let alpha: number = 1;", true),
        ("x = 1\nalpha = f(\n  beta=2,\n)", true),
        ("", false),
        ("# alpha = 1", false),
        ("print(alpha)", false),
        ("beta = alpha", false),
        ("f(alpha=1)", false),
        ("'alpha = 1'", false),
        ("alpha == 1", false),
        ("alphabet = 1", false),
        ("if alpha >= 1: pass", false),
    ];
    let given = [Parameter::new("alpha", 1.5)];
    for (source, is_known) in defaults {
        let expected: &[&str] = if is_known { &[] } else { &["alpha"] };
        assert_eq!(unknown(&given, source), expected, "{source}");
    }
}
