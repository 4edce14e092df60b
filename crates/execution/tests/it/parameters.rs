//! Parameters: position, source and errors of the injected cell.

mod evaluated;
mod names;

use cellwright_execution::parameters::{
    self, Injection, InjectionPoint, Parameter, ParameterError, TaggedCell, Value, deduplicate,
    plan_injection, unknown_names,
};
use serde_json::json;

fn cell(index: usize, is_code: bool, tags: &[&str]) -> TaggedCell {
    TaggedCell {
        index,
        is_code,
        tags: tags.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn cell_is_injected_where_papermill_injects_it() {
    let (plain, text) = (cell(0, true, &[]), cell(0, false, &[]));
    let at = |index, cell: &TaggedCell| TaggedCell {
        index,
        ..cell.clone()
    };
    let defaults = cell(0, true, &["x", "parameters"]);
    let injected = cell(0, true, &["injected-parameters"]);
    let explained = cell(0, false, &["parameters"]);
    let cases: [(&[&TaggedCell], InjectionPoint, Option<usize>); 9] = [
        (&[], InjectionPoint::Top, None),
        (&[&text, &plain], InjectionPoint::Top, None),
        (
            &[&text, &defaults, &plain],
            InjectionPoint::After(1),
            Some(1),
        ),
        (&[&defaults, &defaults], InjectionPoint::After(0), Some(0)),
        (
            &[&text, &defaults, &injected],
            InjectionPoint::Replace(2),
            Some(1),
        ),
        (&[&injected, &defaults], InjectionPoint::Replace(0), Some(1)),
        (&[&text, &injected], InjectionPoint::Replace(1), None),
        (&[&explained, &plain], InjectionPoint::After(0), None),
        (
            &[&explained, &defaults, &plain],
            InjectionPoint::After(1),
            Some(1),
        ),
    ];
    for (cells, point, defaults) in cases {
        let cells: Vec<TaggedCell> = cells
            .iter()
            .enumerate()
            .map(|(n, cell)| at(n, cell))
            .collect();
        let found = plan_injection(&cells);
        let expected = Injection { point, defaults };
        assert_eq!(found, expected, "{cells:?}");
    }
    // A Markdown cell is never replaced, whatever its tag.
    let note = cell(0, false, &["injected-parameters"]);
    assert_eq!(plan_injection(&[note]).point, InjectionPoint::Top);
}

#[test]
fn values_are_written_in_every_language() {
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
             b <- list(TRUE, 2, -1.5, \"it's $5 \\\"now\\\"\")\n\
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
            parameters::cell_source(language, &given[..count]).unwrap(),
            expected
        );
    }
}

#[test]
fn unsupported_parameters_are_rejected() {
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
            "`learning rate` is not a valid variable name in Python",
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
            "`x` cannot be written in Bash: Bash has no nested lists",
        ),
    ];
    for (language, given, expected) in cases {
        let error: ParameterError = parameters::cell_source(language, &given).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn last_value_of_a_repeated_name_wins() {
    let given = ["a", "b", "a", "c", "a", "b"];
    let given = given
        .iter()
        .zip(0..)
        .map(|(name, number)| Parameter::new(*name, json!(number)))
        .collect();
    let (unique, repeated) = deduplicate(given);
    let expected = [("a", 4), ("b", 5), ("c", 3)];
    assert_eq!(
        unique,
        expected.map(|(name, number)| Parameter::new(name, json!(number)))
    );
    assert_eq!(repeated, ["a", "b"]);
}

#[test]
fn names_not_assigned_in_the_defaults_are_unknown() {
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
        assert_eq!(unknown_names(&given, source), expected, "{source}");
    }
}
