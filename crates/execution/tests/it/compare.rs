//! Comparison of outputs: equal ones, different ones, and the description of differences.

mod execution_order;
mod normalize;
mod properties;

use cellwright_execution::compare::{Rule, Rules, compare};
use serde_json::{Value, json};

pub(crate) fn stream(name: &str, text: &str) -> Value {
    json!({"output_type": "stream", "name": name, "text": text})
}

pub(crate) fn stdout(text: &str) -> Value {
    stream("stdout", text)
}

#[expect(clippy::needless_pass_by_value, reason = "cases read better")]
fn result(count: u64, data: Value) -> Value {
    json!({"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": data})
}

#[expect(clippy::needless_pass_by_value, reason = "cases read better")]
fn display(data: Value) -> Value {
    json!({"output_type": "display_data", "metadata": {}, "data": data})
}

fn error(name: &str, message: &str, traceback: &[&str]) -> Value {
    json!({"output_type": "error", "ename": name, "evalue": message, "traceback": traceback})
}

pub(crate) fn descriptions(stored: &[Value], fresh: &[Value], rules: Rules) -> Vec<String> {
    compare(stored, fresh, rules)
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// Only the named rule makes each pair equal.
#[test]
fn each_rule_makes_its_outputs_equal() {
    let plot = |png: &str| display(json!({"image/png": png, "text/plain": ["<Figure>"]}));
    let table = |html: &str| display(json!({"text/html": [html], "text/plain": ["a\n", "1"]}));
    let widget = |id: &str| {
        let view = json!({"model_id": id, "version_major": 2, "version_minor": 0});
        display(json!({"application/vnd.jupyter.widget-view+json": view, "text/plain": "x"}))
    };
    let cases = [
        (
            Rule::Streams,
            vec![stdout("a\nb\n")],
            vec![stdout("a\n"), stdout("b\n")],
        ),
        (
            Rule::Streams,
            vec![stdout("a\n"), stream("other", "x\n"), stdout("b\n")],
            vec![stream("other", "x\n"), stdout("a\nb\n")],
        ),
        (Rule::Streams, vec![], vec![stdout("")]),
        (
            Rule::Stderr,
            vec![stream("stderr", "/x.py:1: UserWarning: y\n")],
            vec![],
        ),
        (
            Rule::Stderr,
            vec![stdout("a\n"), stream("stderr", "w"), stdout("b\n")],
            vec![stdout("a\nb\n")],
        ),
        (
            Rule::Counts,
            vec![result(3, json!({"text/plain": "1"}))],
            vec![result(7, json!({"text/plain": "1"}))],
        ),
        (
            Rule::Images,
            vec![plot("iVBORw0KGgo=")],
            vec![plot("iVBORw0KGgoAAA==")],
        ),
        (Rule::Html, vec![table("<b>1</b>")], vec![table("<i>1</i>")]),
        (
            Rule::Html,
            vec![table("<b>1</b>")],
            vec![display(json!({"text/plain": "a\n1"}))],
        ),
        (Rule::Ids, vec![widget("0f")], vec![widget("1e")]),
        (
            Rule::Tracebacks,
            vec![error("E", "bad", &["File \"/a.py\", line 1", "E: bad"])],
            vec![error("E", "bad", &["File \"/b.py\", line 2", "E: bad"])],
        ),
    ];
    for (rule, stored, fresh) in cases {
        assert_eq!(
            descriptions(&stored, &fresh, Rules::default()),
            [""; 0],
            "{}",
            rule.name()
        );
        let found = descriptions(&stored, &fresh, Rules::default().without(rule));
        assert_ne!(found, [""; 0], "{} {stored:?}", rule.name());
    }
}

#[test]
fn representation_never_makes_a_difference() {
    let cases = [
        // A string or a list of lines.
        (
            result(1, json!({"text/plain": "a\nb"})),
            result(1, json!({"text/plain": ["a\n", "b"]})),
        ),
        (
            stdout("a\nb\n"),
            json!({"output_type": "stream", "name": "stdout", "text": ["a\n", "b\n"]}),
        ),
        // Metadata.
        (
            display(json!({"text/plain": "a"})),
            json!({"output_type": "display_data", "metadata": {"x": 1}, "data": {"text/plain": "a"}}),
        ),
        // Line breaks in base64, and the order of MIME types.
        (
            display(json!({"image/png": "AAAA\nBBBB\n", "text/plain": "x"})),
            display(json!({"text/plain": "x", "image/png": "AAAABBBB"})),
        ),
    ];
    for (stored, fresh) in cases {
        assert_eq!(descriptions(&[stored], &[fresh], Rules::NONE), [""; 0]);
    }
}

#[test]
fn differences_are_described() {
    let plain = |text: &str| display(json!({"text/plain": text}));
    let cases: [(Vec<Value>, Vec<Value>, &[&str]); 15] = [
        (
            vec![stdout("a\nb\nc\n")],
            vec![stdout("a\nB\nc\n")],
            &["output 0, stdout, line 2: was `b`, is `B`"],
        ),
        (
            vec![stdout("a\n")],
            vec![stdout("a\nb\n")],
            &["output 0, stdout, line 2: was nothing, is `b`"],
        ),
        (
            vec![stdout("a\n\n\nb\n")],
            vec![stdout("a\n")],
            &["output 0, stdout, line 2: was ``, is nothing"],
        ),
        (
            vec![stdout("x\n"), plain("1")],
            vec![plain("1")],
            &["output 0, stdout, is gone: `x`"],
        ),
        (
            vec![plain("1")],
            vec![plain("0"), plain("1")],
            &["output 0, text/plain, is new: `0`"],
        ),
        (
            vec![plain("1"), plain("2"), plain("3")],
            vec![plain("1"), plain("x"), plain("3")],
            &["output 1, text/plain, line 1: was `2`, is `x`"],
        ),
        (
            vec![plain("1"), plain("2"), stdout("x\n")],
            vec![plain("1"), stdout("y\n")],
            &[
                "output 1, text/plain, is gone: `2`",
                "output 1, stdout, line 1: was `x`, is `y`",
            ],
        ),
        (
            vec![result(1, json!({"text/plain": "1"}))],
            vec![plain("1")],
            &["output 0, output_type: was `execute_result`, is `display_data`"],
        ),
        (
            vec![display(json!({"image/png": "AA==", "text/plain": "p"}))],
            vec![display(json!({"image/jpeg": "AA==", "text/plain": "p"}))],
            &[
                "output 0, image/png, is gone: `AA==`",
                "output 0, image/jpeg, is new: `AA==`",
            ],
        ),
        (
            vec![display(json!({"text/html": "<b>1</b>"}))],
            vec![display(json!({"text/html": "<b>2</b>"}))],
            &["output 0, text/html, line 1: was `<b>1</b>`, is `<b>2</b>`"],
        ),
        (
            vec![display(json!({"application/json": {"a": 1}}))],
            vec![display(json!({"application/json": {"a": 2}}))],
            &["output 0, application/json: was `{\"a\":1}`, is `{\"a\":2}`"],
        ),
        (
            vec![error("ValueError", "bad 1", &[])],
            vec![error("KeyError", "bad 2", &[])],
            &[
                "output 0, the name of the error, line 1: was `ValueError`, is `KeyError`",
                "output 0, the message of the error, line 1: was `bad 1`, is `bad 2`",
            ],
        ),
        (
            vec![],
            vec![error("ValueError", "bad", &[])],
            &["output 0, error, is new: `ValueError: bad`"],
        ),
        (
            vec![json!({"output_type": "odd", "x": 1})],
            vec![json!({"output_type": "odd", "x": 2})],
            &[
                "output 0, output: was `output: {\"output_type\":\"odd\",\"x\":1}`, \
                 is `output: {\"output_type\":\"odd\",\"x\":2}`",
            ],
        ),
        (
            vec![display(json!({"application/x-mine": "0x7f0011223344"}))],
            vec![display(json!({"application/x-mine": "0x7f0011223355"}))],
            &["output 0, application/x-mine, line 1: was `0x7f0011223344`, is `0x7f0011223355`"],
        ),
    ];
    for (stored, fresh, expected) in cases {
        assert_eq!(descriptions(&stored, &fresh, Rules::default()), expected);
    }
}

#[test]
fn images_can_be_compared_exactly() {
    let image = |data: &str| display(json!({"image/png": data}));
    let exactly = Rules::default().without(Rule::Images);
    assert_eq!(
        descriptions(&[image("AAAA")], &[image("AA\nAA")], exactly),
        [""; 0]
    );
    assert_eq!(
        descriptions(&[image("AAAA")], &[image("AAAABBBB")], exactly),
        ["output 0, image/png: was `an image of 3 bytes`, is `an image of 6 bytes`"]
    );
}

#[test]
fn excerpts_are_bounded() {
    let long = "x".repeat(1000);
    let stored = stdout(&format!("{long}1{long}\n"));
    let fresh = stdout(&format!("{long}2{long}\n"));
    let found = compare(&[stored], &[fresh], Rules::default());
    let [difference] = &found[..] else {
        panic!("{found:?}")
    };
    let excerpt =
        |side: &Option<cellwright_execution::compare::Side>| side.clone().unwrap().text.unwrap();
    let expected = |digit: char| format!("…{}{digit}{}…", "x".repeat(40), "x".repeat(79));
    assert_eq!(excerpt(&difference.stored), expected('1'));
    assert_eq!(excerpt(&difference.fresh), expected('2'));
    // Excerpts contain no escape sequences.
    let found = descriptions(&[stdout("\u{1b}[31ma")], &[stdout("b")], Rules::NONE);
    assert_eq!(
        found,
        ["output 0, stdout, line 1: was `\\u{1b}[31ma`, is `b`"]
    );
}

#[test]
fn every_rule_has_a_name_and_a_description() {
    for rule in Rule::ALL {
        assert_eq!(Rule::from_name(rule.name()), Some(rule));
        assert!(rule.description().len() > 10);
        assert!(Rules::default().has(rule));
        assert!(!Rules::default().without(rule).has(rule));
        assert_eq!(Rules::default().without(rule).with(rule), Rules::default());
    }
    assert_eq!(Rule::from_name("colors"), None);
}

/// The time to compare many outputs is linear in their number.
#[test]
fn many_outputs_are_compared_by_position() {
    let many = |from: usize| -> Vec<Value> {
        (from..from + 3000)
            .map(|number| display(json!({"text/plain": number.to_string()})))
            .collect()
    };
    assert_eq!(
        compare(&many(0), &many(5000)[..2999], Rules::default()).len(),
        3000
    );
    assert_eq!(
        compare(&many(0), &many(0)[..2999], Rules::default()).len(),
        1
    );
    // Equal outputs at the end are paired, whatever their number.
    let found = descriptions(&many(0), &many(1)[..2999], Rules::default());
    assert_eq!(found, ["output 0, text/plain, is gone: `0`"]);
}
