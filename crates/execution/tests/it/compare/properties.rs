//! Properties of comparisons of arbitrary outputs.

use cellwright_execution::compare::{Rule, Rules, Tolerance, compare};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::stdout;

fn text() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        "\\PC{0,6}",
        "[0-9.:e-]{1,8}",
        proptest::sample::select(vec![
            "\n",
            "\r",
            "\x1b[31m",
            "\u{8}",
            " ",
            "0x7f",
            " at 0x",
            "2024-01-31",
            "12:13:14",
            "3 ms",
            "took 3 s",
            "/tmp/x",
            "Cell In[3]",
            "[00:01<00:00",
            "]",
            "it/s",
            "é",
            "\u{1f600}",
            "T_0a1b2",
            "\t",
        ])
        .prop_map(str::to_owned),
    ];
    proptest::collection::vec(pieces, 0..10).prop_map(|pieces| pieces.concat())
}

fn multiline_text() -> impl Strategy<Value = Value> {
    let lines = |text: String| {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        json!(lines)
    };
    prop_oneof![text().prop_map(Value::from), text().prop_map(lines)]
}

fn any_value() -> impl Strategy<Value = Value> {
    let simple = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        multiline_text(),
    ];
    simple.prop_recursive(3, 12, 3, |inner| {
        proptest::collection::btree_map("[a-z_]{1,8}", inner, 0..3)
            .prop_map(|members| Value::Object(members.into_iter().collect()))
    })
}

fn data() -> impl Strategy<Value = Value> {
    let mime = proptest::sample::select(vec![
        "text/plain",
        "text/html",
        "image/png",
        "image/svg+xml",
        "application/json",
        "application/vnd.jupyter.widget-view+json",
        "application/x-mine",
    ]);
    proptest::collection::btree_map(mime.prop_map(str::to_owned), any_value(), 0..4)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

fn output() -> impl Strategy<Value = Value> {
    let name = proptest::sample::select(vec!["stdout", "stderr", "other"]);
    prop_oneof![
        (name, multiline_text()).prop_map(|(name, text)| json!({"output_type": "stream", "name": name, "text": text})),
        data().prop_map(|data| json!({"output_type": "display_data", "data": data, "metadata": {}})),
        (data(), any::<u16>()).prop_map(|(data, count)| {
            json!({"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": count})
        }),
        (text(), text(), proptest::collection::vec(text(), 0..3)).prop_map(|(name, message, traceback)| {
            json!({"output_type": "error", "ename": name, "evalue": message, "traceback": traceback})
        }),
        any_value(),
    ]
}

fn outputs() -> impl Strategy<Value = Vec<Value>> {
    proptest::collection::vec(output(), 0..6)
}

fn rules() -> impl Strategy<Value = Rules> {
    proptest::collection::vec(any::<bool>(), Rule::ALL.len()).prop_map(|active| {
        let active = Rule::ALL
            .into_iter()
            .zip(active)
            .filter(|(_, active)| *active);
        active.fold(Rules::NONE, |rules, (rule, _)| rules.with(rule))
    })
}

/// Lines with a number `{}` that no rule ignores.
const LINES: [&str; 14] = [
    "{}",
    "x = {}",
    "loss: {} - accuracy: 0.5",
    "[{} 2 3]",
    "array([1, {}])",
    "{} rows × 3 columns",
    "({}, 'a')",
    "a\t{}\tb",
    "2024-01-31 10:11:12 value {}",
    "took 3.2 s, found {}",
    "<a at 0x7f3a5c0d1e80> {}",
    "100%|██| 3/3 [00:01<00:00, 3.1it/s] {}",
    "Cell In[3]: {}",
    "{}%",
];

proptest! {
    #[test]
    fn outputs_equal_themselves(outputs in outputs(), rules in rules()) {
        prop_assert_eq!(compare(&outputs, &outputs, rules), []);
    }

    #[test]
    fn equality_is_symmetric(one in outputs(), other in outputs(), rules in rules()) {
        let there = compare(&one, &other, rules).is_empty();
        prop_assert_eq!(there, compare(&other, &one, rules).is_empty());
    }

    #[test]
    fn outputs_equal_without_rules_are_equal_with_rules(one in outputs(), other in outputs()) {
        if compare(&one, &other, Rules::NONE).is_empty() {
            prop_assert_eq!(compare(&one, &other, Rules::default()), []);
        }
    }

    #[test]
    fn changed_number_is_reported(
        line in proptest::sample::select(LINES.to_vec()),
        number in "-?[0-9]{1,9}(\\.[0-9]{1,6})?",
        other in "-?[0-9]{1,9}(\\.[0-9]{1,6})?",
        before in proptest::collection::vec("[a-z ]{0,10}", 0..4),
        is_result: bool,
    ) {
        prop_assume!(number != other);
        let text = |number: &str| {
            let mut lines = before.clone();
            lines.push(line.replace("{}", number));
            lines.join("\n")
        };
        let output = |number: &str| if is_result {
            let data = json!({"text/plain": text(number), "text/html": "<b>"});
            json!({"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": 1})
        } else {
            stdout(&text(number))
        };
        let found = compare(&[output(&number)], &[output(&other)], Rules::default());
        prop_assert_eq!(found.len(), 1);
        prop_assert_eq!(found[0].line, Some(before.len() + 1));
    }

    #[test]
    fn division_of_text_does_not_matter(text in text(), cuts in proptest::collection::vec(0..200_usize, 0..6)) {
        let characters: Vec<char> = text.chars().collect();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(characters.len())).collect();
        cuts.sort_unstable();
        cuts.push(characters.len());
        let mut from = 0;
        let pieces: Vec<Value> = cuts
            .into_iter()
            .map(|cut| {
                let piece: String = characters[from..cut].iter().collect();
                from = cut;
                stdout(&piece)
            })
            .collect();
        prop_assert_eq!(compare(&[stdout(&text)], &pieces, Rules::default()), []);
    }

    #[test]
    fn numbers_within_the_tolerance_are_equal_and_others_are_not(
        // Without letters of units: a number with a unit of time is a duration, which may differ.
        words in proptest::collection::vec("[e-gj-lo-rv-z:=(\\[]{1,6}", 1..5),
        numbers in proptest::collection::vec(-1e6..1e6_f64, 5),
        exponent in 2..9_i32,
        changed in 0..5_usize,
        digits in 9..17_usize,
    ) {
        let relative = 10_f64.powi(-exponent);
        let rules = Rules::default().with_tolerance(Tolerance::new(relative).unwrap());
        let changed = changed % words.len();
        prop_assume!(numbers[changed].abs() > 1.0);
        let line = |factor: f64, word: &str| {
            let part = |(at, (text, number)): (usize, (&String, &f64))| {
                let (factor, word) = if at == changed { (factor, word) } else { (1.0, "") };
                format!("{text}{word} {:.digits$e}", number * factor)
            };
            words.iter().zip(&numbers).enumerate().map(part).collect::<Vec<_>>().join(" ")
        };
        let compared = |factor: f64, word: &str, rules: Rules| {
            let html = |line: &str| json!({"output_type": "display_data", "metadata": {}, "data": {"text/html": format!("<td>{line}</td>")}});
            let (one, other) = (line(1.0, ""), line(factor, word));
            let in_text = compare(&[stdout(&one)], &[stdout(&other)], rules).len();
            let in_html = compare(&[html(&one)], &[html(&other)], rules).len();
            (in_text, in_html)
        };
        prop_assert_eq!(compared(1.0 + 0.5 * relative, "", rules), (0, 0));
        prop_assert_eq!(compared(1.0 - 0.5 * relative, "", rules), (0, 0));
        prop_assert_eq!(compared(1.0 + 3.0 * relative, "", rules), (1, 1));
        prop_assert_eq!(compared(-1.0, "", rules), (1, 1));
        prop_assert_eq!(compared(1.0, "x", rules), (1, 1));
        prop_assert_eq!(compared(1.0 + 0.5 * relative, "x", rules), (1, 1));
        prop_assert_eq!(compared(1.0 + 0.5 * relative, "", Rules::default()), (1, 1));
    }
}
