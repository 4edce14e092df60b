//! The source of parameter cells, evaluated by the language itself.

use std::process::{Command, Stdio};

use cellwright_execution::parameters::{self, Integer, Parameter, Value};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::support::{Oracle, file, python};

/// Text with characters that are difficult to write: quotes, escapes, control characters, other line ends, characters
/// above U+FFFF.
fn text() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        any::<char>().prop_map(String::from),
        proptest::sample::select(vec![
            "\"",
            "'",
            "\\",
            "\\n",
            "\n",
            "\r",
            "\t",
            "\0",
            "\u{7f}",
            "\u{85}",
            "\u{2028}",
            "\u{feff}",
            "{",
            "$x",
            "%d",
            "#",
            "!!",
            "?",
            "\"\"\"",
            "\u{1f600}",
            "\u{202e}",
            "\x1b[0m",
            "0",
            "a",
        ])
        .prop_map(str::to_owned),
    ];
    proptest::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let simple = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        "-?[0-9]{1,60}".prop_map(|digits| Value::Integer(Integer::parse(&digits).unwrap())),
        proptest::num::f64::ANY.prop_map(Value::Float),
        (-1000..1000).prop_map(|number| Value::Float(f64::from(number) / 10.0)),
        text().prop_map(Value::Text),
    ];
    simple.prop_recursive(6, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::List),
            proptest::collection::btree_map(text(), inner, 0..6)
                .prop_map(|entries| Value::Map(entries.into_iter().collect())),
        ]
    })
}

/// The description of a value that the oracle should return.
fn expected_description(value: &Value) -> Json {
    let points = |text: &str| text.chars().map(u32::from).collect::<Vec<u32>>();
    match value {
        Value::Null => json!("null"),
        Value::Bool(truth) => json!(["bool", truth]),
        Value::Integer(integer) => json!(["int", integer.as_str()]),
        Value::Float(number) if number.is_nan() => json!(["float", "nan"]),
        Value::Float(number) => json!(["float", hex(*number)]),
        Value::Text(text) => json!(["text", points(text)]),
        Value::List(items) => json!([
            "list",
            items.iter().map(expected_description).collect::<Vec<_>>()
        ]),
        Value::Map(entries) => {
            let pairs: Vec<Json> = entries
                .iter()
                .map(|(key, value)| json!([points(key), expected_description(value)]))
                .collect();
            json!(["map", pairs])
        }
    }
}

/// All bits of a number, in the format of Python's `float.hex`.
fn hex(number: f64) -> String {
    let sign = if number.is_sign_negative() { "-" } else { "" };
    let bits = number.to_bits();
    let (exponent, fraction) = ((bits >> 52) & 0x7ff, bits & ((1 << 52) - 1));
    match (exponent, fraction) {
        (0x7ff, _) => format!("{sign}inf"),
        (0, 0) => format!("{sign}0x0.0p+0"),
        (0, _) => format!("{sign}0x0.{fraction:013x}p-1022"),
        _ => {
            let exponent = i64::try_from(exponent).unwrap() - 1023;
            format!("{sign}0x1.{fraction:013x}p{exponent:+}")
        }
    }
}

#[test]
fn python_reads_back_the_values() {
    let oracle = Oracle::start(python().arg(file("parameters/oracle.py")));
    proptest!(|(values in proptest::collection::vec(value(), 0..4))| {
        let names: Vec<String> = (0..values.len()).map(|number| format!("p{number}")).collect();
        let given: Vec<Parameter> = names
            .iter()
            .zip(&values)
            .map(|(name, value)| Parameter::new(name.clone(), value.clone()))
            .collect();
        let source = parameters::cell_source("python", &given).unwrap();
        let found = oracle.evaluate(&json!({"source": source, "names": names}));
        let expected: Vec<Json> = values.iter().map(expected_description).collect();
        prop_assert_eq!(found, Json::from(expected), "{}", source);
    });
}

#[test]
fn python_reads_the_deepest_and_largest_values() {
    let oracle = Oracle::start(python().arg(file("parameters/oracle.py")));
    let deep = (0..48).fold(Value::Null, |inner, number| {
        if number % 2 == 0 {
            Value::List(vec![inner])
        } else {
            Value::Map(vec![("k".to_owned(), inner)])
        }
    });
    // Python converts integers of up to this many digits to text and back, so the oracle can use `str`.
    let digits = "9".repeat(Integer::DIGIT_LIMIT);
    assert!(Integer::parse(&format!("{digits}9")).is_none());
    let large = Value::Integer(Integer::parse(&format!("-{digits}")).unwrap());
    for value in [deep, large] {
        let source =
            parameters::cell_source("python", &[Parameter::new("x", value.clone())]).unwrap();
        let found = oracle.evaluate(&json!({"source": source, "names": ["x"]}));
        assert_eq!(found, json!([expected_description(&value)]));
    }
}

/// Texts for the languages that evaluate all values at once.
fn texts() -> Vec<String> {
    let mut all: Vec<String> = (1..=0xff_u32)
        .chain([0x2028, 0x202e, 0xfeff, 0x1_f600, 0xe_0001])
        .filter_map(char::from_u32)
        .map(|character| format!("a{character}1"))
        .collect();
    all.push("it's \"5\" $HOME `x` ${y} \\n \\ !! #{z} %d".to_owned());
    all.push("it's !! \u{7}7".to_owned());
    all.push(String::new());
    all
}

fn text_parameters() -> Vec<Parameter> {
    texts()
        .into_iter()
        .enumerate()
        .map(|(number, text)| Parameter::new(format!("p{number}"), text))
        .collect()
}

/// Whether a program is installed.
fn is_installed(program: &str) -> bool {
    let status = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

fn stdout_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C.UTF-8")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn bash_reads_back_the_values() {
    if !is_installed("bash") {
        return;
    }
    let mut source = parameters::cell_source("bash", &text_parameters()).unwrap();
    let list = Parameter::new("list", json!(["a b", "it's", "", null, 1.5, true]));
    let map = Parameter::new("map", json!({"a b": "x'y", "]": 2}));
    source += &parameters::cell_source("bash", &[list, map])
        .unwrap()
        .replacen("# Parameters", "", 1);
    source.push('\n');
    for number in 0..texts().len() {
        source += &format!("printf '%s\\0' \"$p{number}\"\n");
    }
    source += "printf '<%s>' \"${list[@]}\" \"${map[a b]}\" \"${map[']']}\"";
    let mut expected = texts().join("\0") + "\0";
    expected += "<a b><it's><><><1.5><true><x'y><2>";
    assert_eq!(stdout_of("bash", &["-c", &source]), expected);
    // With history expansion, as in an interactive shell.
    let interactive = "set -H; set -o history\n".to_owned() + &source;
    assert_eq!(stdout_of("bash", &["-c", &interactive]), expected);
}

#[test]
fn javascript_reads_back_the_values() {
    if !is_installed("node") {
        return;
    }
    let mut given = text_parameters();
    given.push(Parameter::new(
        "map",
        json!({"__proto__": 1, "it's": [null, -0.5, 1e300]}),
    ));
    given.push(Parameter::new(
        "large",
        Value::Integer(Integer::parse("-12345678901234567890").unwrap()),
    ));
    given.push(Parameter::new("none", f64::NAN));
    let source = parameters::cell_source("javascript", &given).unwrap();
    let names: Vec<String> = (0..texts().len())
        .map(|number| format!("p{number}"))
        .collect();
    let ask = format!(
        "{source}\nif (!Number.isNaN(none)) throw 1;\n\
         console.log(JSON.stringify([[{}], map, String(large), Object.keys(map)]))",
        names.join(", ")
    );
    let found: Json = serde_json::from_str(&stdout_of("node", &["-e", &ask])).unwrap();
    assert_eq!(
        found,
        json!([
            texts(),
            {"__proto__": 1, "it's": [null, -0.5, 1e300]},
            "-12345678901234567890",
            ["__proto__", "it's"]
        ])
    );
}

#[test]
fn r_reads_back_the_values() {
    if !is_installed("Rscript") {
        return;
    }
    let mut source = parameters::cell_source("R", &text_parameters()).unwrap();
    let others = [
        Parameter::new("whole", json!(-2_147_483_647)),
        Parameter::new("large", json!(9_007_199_254_740_992_u64)),
        Parameter::new("map", json!({"it's": [null, true, 0.1], "b": 1e300})),
        Parameter::new(
            "deep",
            (0..48).fold(Value::Null, |inner, _| Value::List(vec![inner])),
        ),
    ];
    source += &parameters::cell_source("R", &others)
        .unwrap()
        .replacen("# Parameters", "", 1);
    source.push('\n');
    for (number, text) in texts().iter().enumerate() {
        let points: Vec<String> = text
            .chars()
            .map(|point| format!("{}L", u32::from(point)))
            .collect();
        source += &format!(
            "stopifnot(identical(utf8ToInt(p{number}), c({})))\n",
            points.join(", ").replace("c()", "")
        );
    }
    source = source.replace(", c())", ", integer(0))");
    source += "stopifnot(is.numeric(whole), whole == -2147483647, large == 2^53, is.null(map[[\"it's\"]][[1]]),\n\
               length(map[[\"it's\"]]) == 3, map[[\"it's\"]][[3]] == 0.1, map$b == 1e300)\ncat('fine')";
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("cell.R");
    std::fs::write(&script, source).unwrap();
    assert_eq!(
        stdout_of(
            "Rscript",
            &["--vanilla", "--encoding=UTF-8", script.to_str().unwrap()]
        ),
        "fine"
    );
}
