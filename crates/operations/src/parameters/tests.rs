//! Parsing of parameters from arguments and files.

use cellwright_diagnostics::failure::Hint;
use cellwright_execution::parameters::Integer;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;

fn parse_argument(value: &str) -> Value {
    from_argument(&format!("x={value}")).unwrap().value
}

fn large(digits: &str) -> Value {
    Value::Integer(Integer::parse(digits).unwrap())
}

#[test]
fn arguments_are_parsed_as_yaml_scalars_or_text() {
    let cases: [(&str, Json); 42] = [
        ("1", json!(1)),
        ("-17", json!(-17)),
        ("+3", json!(3)),
        ("007", json!(7)),
        ("0x1F", json!(31)),
        ("0o17", json!(15)),
        ("1.5", json!(1.5)),
        ("1.", json!(1.0)),
        (".5", json!(0.5)),
        ("1e3", json!(1000.0)),
        ("-2.5E-3", json!(-0.0025)),
        (" 4 ", json!(4)),
        ("true", json!(true)),
        ("True", json!(true)),
        ("FALSE", json!(false)),
        ("null", json!(null)),
        ("None", json!(null)),
        ("\"1\"", json!("1")),
        ("'it''s'", json!("it's")),
        ("\"a\\tb\"", json!("a\tb")),
        ("[1, 2.5, x, [true]]", json!([1, 2.5, "x", [true]])),
        ("{a: 1, b: [x, null]}", json!({"a": 1, "b": ["x", null]})),
        ("{\"a\": \"b\"}", json!({"a": "b"})),
        ("[]", json!([])),
        // Everything else is plain text.
        ("", json!("")),
        (" ", json!(" ")),
        ("~", json!("~")),
        ("abc", json!("abc")),
        ("a: b", json!("a: b")),
        ("http://x/?q=1#y", json!("http://x/?q=1#y")),
        ("2024-01-31", json!("2024-01-31")),
        ("12:30", json!("12:30")),
        ("yes", json!("yes")),
        ("1_000", json!("1_000")),
        ("1.2.3", json!("1.2.3")),
        ("infinity", json!("infinity")),
        ("[draft] title", json!("[draft] title")),
        ("'tis", json!("'tis")),
        ("*x", json!("*x")),
        ("- a", json!("- a")),
        ("# x", json!("# x")),
        ("a=b", json!("a=b")),
    ];
    for (text, expected) in cases {
        assert_eq!(parse_argument(text), Value::from(expected), "{text:?}");
    }
    assert_eq!(parse_argument("-inf"), Value::Float(f64::NEG_INFINITY));
    assert_eq!(parse_argument(".inf"), Value::Float(f64::INFINITY));
    assert!(matches!(parse_argument("nan"), Value::Float(number) if number.is_nan()));
    assert_eq!(
        parse_argument("123456789012345678901234567890"),
        large("123456789012345678901234567890")
    );
}

#[test]
fn bad_arguments_are_reported() {
    let failure = from_argument("alpha").unwrap_err();
    assert_eq!(failure.message, "`-p alpha` has no value");
    assert_eq!(failure.hints, [Hint::from("`-p alpha=VALUE`")]);
    let failure = from_argument("x=[1, }]").unwrap_err();
    assert_eq!(failure.message, "`-p x=[1, }]` is not YAML");
    assert!(
        failure.causes[0].starts_with("line 1, column 1: "),
        "{failure:?}"
    );
    assert_eq!(failure.hints, [Hint::from("`-r x=…` takes plain text")]);
    assert_eq!(from_raw("x=[1, }]").unwrap(), Parameter::new("x", "[1, }]"));
    assert_eq!(from_raw("x=1").unwrap(), Parameter::new("x", "1"));
    assert!(from_raw("x").is_err());
    assert!(from_argument(&format!("x={}", "9".repeat(5000))).is_err());
}

fn read(text: &str) -> Vec<(String, Value)> {
    let (parameters, _) = from_text(text).unwrap();
    let pairs = |parameter: Parameter| (parameter.name, parameter.value);
    parameters.into_iter().map(pairs).collect()
}

fn as_value(json: Json) -> Vec<(String, Value)> {
    match Value::from(json) {
        Value::Map(entries) => entries,
        _ => panic!("not a mapping"),
    }
}

#[test]
fn files_are_yaml() {
    let cases = [
        ("a: 1\nb: text\n", json!({"a": 1, "b": "text"})),
        ("# only a comment\n", json!({})),
        ("", json!({})),
        (
            "---\na:\n  - 1\n  - {b: ~}\n...\n",
            json!({"a": [1, {"b": null}]}),
        ),
        ("\u{feff}a: 1\r\nb: 2\r\n", json!({"a": 1, "b": 2})),
        (
            "a: |\n  two\n  lines\nb: >-\n  one\n  line",
            json!({"a": "two\nlines\n", "b": "one line"}),
        ),
        (
            "date: 2024-01-31\nat: 12:30",
            json!({"date": "2024-01-31", "at": "12:30"}),
        ),
        (
            "a: !!str 1\nb: !!float 1\nc: !!int '3'",
            json!({"a": "1", "b": 1.0, "c": 3}),
        ),
        ("1: a\ntrue: b", json!({"1": "a", "true": "b"})),
        (
            "a: &x [1, 2]\nb: *x\n&k key: *x",
            json!({"a": [1, 2], "b": [1, 2], "key": [1, 2]}),
        ),
        (
            "base: &b {x: 1, y: 2}\nmore: {<<: *b, y: 3}\nboth: {<<: [{y: 5}, *b]}",
            json!({"base": {"x": 1, "y": 2}, "more": {"y": 3, "x": 1}, "both": {"y": 5, "x": 1}}),
        ),
        (
            "{\"a\": \"\\ud83d\\ude00 \\/\", \"b\": [1e2]}",
            json!({"a": "\u{1f600} /", "b": [100.0]}),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), as_value(expected), "{text:?}");
    }
    assert_eq!(read("a: .inf\n")[0].1, Value::Float(f64::INFINITY));
    assert_eq!(
        read("a: 36893488147419103232\n")[0].1,
        large("36893488147419103232")
    );
}

#[test]
fn errors_in_files_have_positions() {
    let deep = "[".repeat(100) + &"]".repeat(100);
    let cases = [
        (
            "a: 1\nb: 2\na: 3\n",
            "line 3, column 1: duplicate key `a`, first in line 1",
        ),
        (
            "a: {x: 1, x: 2}",
            "line 1, column 11: duplicate key `x`, first in line 1",
        ),
        ("- 1\n", "the top level is not a mapping of names to values"),
        ("text", "the top level is not a mapping of names to values"),
        (
            "a: 1\n---\nb: 2\n",
            "line 2, column 1: there is a second document",
        ),
        (
            "[a]: 1",
            "line 1, column 1: a list or a mapping cannot be a key",
        ),
        (
            "a: !!binary aGk=",
            "line 1, column 13: `aGk=` is not a valid `!!binary`",
        ),
        ("a: !mine {}", "line 1, column 10: unsupported tag `!mine`"),
        (
            "a: !!int x",
            "line 1, column 10: `x` is not a valid `!!int`",
        ),
        (
            "a: &x [*x]",
            "line 1, column 8: the alias is part of the value that it repeats",
        ),
        (
            "a: {<<: 1}",
            "line 1, column 5: only mappings can be merged by `<<`",
        ),
        (
            "a: b: c",
            "line 1, column 5: mapping values are not allowed in this context",
        ),
        (
            &format!("a: {deep}"),
            "line 1, column 68: recursion limit exceeded",
        ),
        (
            &format!("a: {}", "9".repeat(4301)),
            "line 1, column 4: a number has too many digits",
        ),
        (
            &format!("a: 0x{}", "f".repeat(33)),
            "line 1, column 4: a number has too many digits",
        ),
    ];
    for (text, expected) in cases {
        let error = from_text(text).unwrap_err().to_string();
        assert_eq!(error, expected, "{text:?}");
    }
}

/// The meaning in YAML 1.1 is reported and not used.
#[test]
fn words_with_another_meaning_in_yaml_1_1_are_reported() {
    let text = "a: no\nb: [On, 017, yes]\nno: 1\nc: 'no'\nd: 08\ne: oN\nf: 0\ng: 07\n";
    let (parameters, ambiguities) = from_text(text).unwrap();
    assert_eq!(parameters[0], Parameter::new("a", "no"));
    let reported: Vec<(usize, &str, &str)> = ambiguities
        .iter()
        .map(|scalar| {
            (
                scalar.at.line,
                scalar.word.as_str(),
                scalar.unambiguous.as_str(),
            )
        })
        .collect();
    assert_eq!(
        reported,
        [
            (1, "no", "false"),
            (2, "On", "true"),
            (2, "017", "15"),
            (2, "yes", "true")
        ]
    );
}

#[test]
fn aliases_cannot_expand_small_files() {
    let mut wide = "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for (name, before) in ('b'..='z').zip('a'..) {
        let items = vec![format!("*{before}"); 9].join(", ");
        wide += &format!("{name}: &{name} [{items}]\n");
    }
    let error = from_text(&wide).unwrap_err().to_string();
    assert!(error.ends_with("aliases repeat too much"), "{error}");

    let mut deep = "k0: &k0 [x]\n".to_owned();
    for number in 1..1000 {
        deep += &format!("k{number}: &k{number} [*k{}]\n", number - 1);
    }
    let error = from_text(&deep).unwrap_err().to_string();
    assert!(error.ends_with("it is nested too deeply"), "{error}");
}

#[test]
fn arguments_override_files() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let files = [
        file("a.yaml", "a: 1\nb: 1\nc: 1\n"),
        file("b.json", "{\"b\": 2, \"c\": 2}"),
    ];
    let strings = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    let set = collect_parameters(
        &files,
        &strings(&["c=3", "d=3", "e=3", "e=4"]),
        &strings(&["d=5"]),
    )
    .unwrap();
    let expected = [
        ("a", json!(1)),
        ("b", json!(2)),
        ("c", json!(3)),
        ("d", json!("5")),
        ("e", json!(4)),
    ];
    let expected = expected.map(|(name, value)| Parameter::new(name, value));
    assert_eq!(set.parameters, expected);
    let texts: Vec<&str> = set
        .notices
        .iter()
        .map(|notice| notice.text.as_str())
        .collect();
    assert_eq!(
        texts,
        [
            "`e` is given more than once; the last value is used",
            "`d` is given more than once; the last value is used",
        ]
    );

    let bad = collect_parameters(&[file("c.yaml", "a: 1\n  b: 2\n")], &[], &[]).unwrap_err();
    assert!(
        bad.message.starts_with("Could not read parameters from "),
        "{bad:?}"
    );
    assert!(bad.causes[0].starts_with("line 2, column "), "{bad:?}");
    let missing = collect_parameters(&[dir.path().join("none")], &[], &[]).unwrap_err();
    assert!(missing.causes[0].contains("No such file"), "{missing:?}");
    let ambiguous = collect_parameters(&[file("d.yaml", "a: no\nb: 010\n")], &[], &[]).unwrap();
    let path = dir.path().join("d.yaml");
    let texts: Vec<&str> = ambiguous
        .notices
        .iter()
        .map(|notice| notice.text.as_str())
        .collect();
    assert_eq!(
        texts,
        [
            format!(
                "{}, line 1: this is the text `no` in YAML 1.2; write `false` for the meaning in YAML 1.1",
                path.display()
            ),
            format!(
                "{}, line 2: this is the number `10` in YAML 1.2; write `8` for the meaning in YAML 1.1",
                path.display()
            ),
        ]
    );
}

fn any_json() -> impl Strategy<Value = Json> {
    let simple = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        "\\PC{0,8}".prop_map(Json::from),
        any::<String>().prop_map(Json::from),
    ];
    simple.prop_recursive(4, 30, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Json::from),
            proptest::collection::btree_map("\\PC{0,8}", inner, 0..5)
                .prop_map(|entries| Json::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn json_is_yaml(json in proptest::collection::btree_map("[a-z]{1,8}", any_json(), 0..4), pretty: bool) {
        let json = Json::Object(json.into_iter().collect());
        let text = if pretty { format!("{json:#}") } else { json.to_string() };
        prop_assert_eq!(read(&text), as_value(json), "{}", text);
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in "[-a1:,\\[\\]{}&*!#|>'\"%@`? \n\t<~.]{0,40}", other: String) {
        from_text(&text).ok();
        from_text(&other).ok();
        from_argument(&format!("x={text}")).ok();
        from_argument(&other).ok();
    }
}
