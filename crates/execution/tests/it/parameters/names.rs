//! Valid names of parameters.

use cellwright_execution::parameters::{self, Parameter, Value};

use crate::support::python;

fn is_name(language: &str, name: &str) -> bool {
    parameters::cell_source(language, &[Parameter::new(name, Value::Null)]).is_ok()
}

#[test]
fn names_follow_the_rules_of_each_language() {
    let cases = [
        (
            "python",
            "x _x x1 größe naïve 变量 नमस्ते match type",
            "1x x-y x.y for None __debug__ x² $x x\u{200d}y",
        ),
        (
            "r",
            "x .x x.y x_1 .x1 größe",
            "_x .1x ..1 ... if TRUE NA x-y",
        ),
        ("julia", "x _x push! größe x1", "!x 1x end if x-y x.y"),
        ("bash", "x _x X1 if", "größe 1x x-y UID x.y"),
        (
            "javascript",
            "x $x _x größe async",
            "1x x-y let class NaN x.y",
        ),
    ];
    for (language, good, bad) in cases {
        for name in good.split(' ') {
            assert!(is_name(language, name), "{language}: {name}");
        }
        for name in bad.split(' ').chain([""]) {
            assert!(!is_name(language, name), "{language}: {name:?}");
        }
    }
}

/// Below this code point all versions of Unicode classify characters the same way.
const SHARED_CODE_POINTS: u32 = 0x530;

#[test]
fn python_accepts_the_same_names() {
    let script = format!(
        "import keyword\n\
         for point in range({SHARED_CODE_POINTS}):\n\
         \x20   print(int(('q' + chr(point)).isidentifier()), int(chr(point).isidentifier()))\n\
         print(*keyword.kwlist)\n"
    );
    let output = python().args(["-c", &script]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    for point in (0..SHARED_CODE_POINTS).filter_map(char::from_u32) {
        let expected = lines.next().unwrap();
        let second = is_name("python", &format!("q{point}"));
        let first = is_name("python", &point.to_string());
        let actual = format!("{} {}", u8::from(second), u8::from(first));
        assert_eq!(actual, expected, "{point:?}");
    }
    for word in lines.next().unwrap().split(' ') {
        assert!(!is_name("python", word), "{word}");
    }
}
