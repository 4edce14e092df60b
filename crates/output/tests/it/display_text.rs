//! Selection of the representation that becomes text.

use cellwright_output::{BoundedJson, Bundle, Capture, Captured, Data, Event, Limits, Sink};
use serde_json::{Value, json};

fn captured(bundle: Bundle) -> Captured {
    let mut capture = Capture::new(Limits::default(), None);
    capture.push(Event::Display {
        bundle,
        id: None,
        result: None,
    });
    capture.finish()
}

fn bundle(parts: &[(&str, &str)]) -> Bundle {
    Bundle {
        data: parts
            .iter()
            .map(|(mime, text)| ((*mime).to_owned(), Data::Text((*text).to_owned())))
            .collect(),
        ..Bundle::default()
    }
}

#[test]
fn text_is_selected_by_precedence() {
    let cases: [(&[(&str, &str)], &str); 15] = [
        // A bare object name is the least useful text.
        (
            &[
                ("text/plain", "<IPython.core.display.HTML object>"),
                ("text/html", "<b>h</b>"),
            ],
            "**h**\n",
        ),
        (
            &[
                ("text/plain", "<a.B object at 0x7f00>"),
                ("image/svg+xml", "<svg/>"),
            ],
            "[figure image/svg+xml, 6 B]\n",
        ),
        (
            &[("text/plain", "<a b object>"), ("text/html", "<b>h</b>")],
            "<a b object>\n",
        ),
        (
            &[("text/plain", "p"), ("text/markdown", "**m**")],
            "**m**\n",
        ),
        (&[("text/html", "<b>h</b>"), ("text/plain", "p")], "p\n"),
        (
            &[("text/html", "<b>h</b>"), ("text/latex", "$l$")],
            "**h**\n",
        ),
        (
            &[("text/latex", "$l$"), ("application/x-foo", "f")],
            "$l$\n",
        ),
        (&[("text/plain", ""), ("text/html", "<i>h</i>")], "*h*\n"),
        (
            &[("text/html", "<script>x</script>"), ("text/latex", "l")],
            "l\n",
        ),
        (
            &[("application/x-foo", "12345")],
            "[application/x-foo, 5 B]\n",
        ),
        (
            &[("application/x-foo", "f"), ("image/svg+xml", "<svg/>")],
            "[figure image/svg+xml, 6 B]\n",
        ),
        (
            &[
                ("application/vnd.plotly.v1+json", "{}"),
                ("text/plain", "Figure()"),
            ],
            "Figure()\n",
        ),
        (
            &[("application/vnd.vega.v5+json", "{}")],
            "[application/vnd.vega.v5+json, 2 B]\n",
        ),
        (&[("text/plain", "two\nlines\n")], "two\nlines\n"),
        (&[], ""),
    ];
    for (parts, text) in cases {
        assert_eq!(captured(bundle(parts)).text, text, "{parts:?}");
    }
}

#[test]
fn text_may_come_as_a_list_of_lines() {
    let list = Bundle::default().with("text/plain", Data::Json(json!(["a\n", "b"])));
    assert_eq!(captured(list).text, "a\nb\n");
}

#[test]
fn control_characters_in_mime_types_are_removed() {
    let hostile = bundle(&[("x/\x1b[2Jy\nz", "1")]);
    assert_eq!(captured(hostile).text, "[x/[2Jyz, 1 B]\n");
}

#[test]
fn an_image_is_a_line_that_replaces_the_name_of_its_object() {
    let figure = bundle(&[
        ("image/svg+xml", "<svg/>"),
        ("text/plain", "<Figure size 640x480 with 1 Axes>"),
    ]);
    let captured = captured(figure);
    assert_eq!(captured.text, "[figure image/svg+xml, 6 B]\n");
    assert_eq!(captured.images.len(), 1);
    assert_eq!(captured.images[0].mime, "image/svg+xml");
    assert_eq!(captured.images[0].text_range, Some(0..captured.text.len()));
    let formula = bundle(&[
        ("image/svg+xml", "<svg width='3' height='2'/>"),
        ("text/plain", "x**2\n"),
    ]);
    let formula = self::captured(formula);
    let line = "[figure 3×2, 27 B]\n";
    assert_eq!(formula.text, format!("x**2\n{line}"));
    assert_eq!(formula.images[0].text_range, Some(5..5 + line.len()));
}

#[test]
fn status_events_are_neither_text_nor_output() {
    for mime in [
        "application/x-cellwright-status",
        "application/x-pisces-status",
        "application/x-omp-status",
        "application/x-xcsh-status",
    ] {
        let event = json!({"op": "read", "path": "x"});
        let only = Bundle::default().with(mime, Data::Json(event.clone()));
        let status_only = captured(only.clone());
        assert_eq!(
            (status_only.text.as_str(), status_only.outputs.len()),
            ("", 0)
        );
        assert_eq!(status_only.status, std::slice::from_ref(&event));
        let mixed = captured(only.with("text/plain", Data::Text("t".to_owned())));
        assert_eq!((mixed.text.as_str(), mixed.outputs.len()), ("t\n", 1));
        assert_eq!(mixed.status, [event]);
    }
}

#[test]
fn only_the_latest_status_events_are_kept() {
    let limits = Limits {
        status_events: 3,
        ..Limits::default()
    };
    let mut capture = Capture::new(limits, None);
    for number in 0..10 {
        capture.push(Event::Display {
            bundle: Bundle::default()
                .with("application/x-cellwright-status", Data::Json(json!(number))),
            id: None,
            result: None,
        });
    }
    let captured = capture.finish();
    assert_eq!(captured.status, [json!(7), json!(8), json!(9)]);
    assert_eq!(captured.notices[0].kind(), "status_dropped");
}

#[test]
fn json_is_whole_or_counts_elided_characters() {
    let small = json!({"z": [1, 2.5, null], "a": "é"});
    let json = |value: &Value| {
        let bundle = Bundle::default().with("application/json", Data::Json(value.clone()));
        captured(bundle).json.remove(0)
    };
    assert_eq!(json(&small), BoundedJson::Whole(small));
    let large: Value = (0..10_000).collect();
    let length = large.to_string().len() as u64;
    match json(&large) {
        BoundedJson::Truncated { text, characters } => {
            assert_eq!(characters, length);
            assert!(text.chars().count() <= 8000, "{}", text.chars().count());
            let (shown, note) = text.split_once("\n[… ").unwrap();
            assert!(large.to_string().starts_with(shown));
            let missing: u64 = note.split(' ').next().unwrap().parse().unwrap();
            assert_eq!(shown.len() as u64 + missing, length);
        }
        BoundedJson::Whole(_) => panic!("should be truncated"),
    }
    // One long string of wide characters.
    match json(&json!("é".repeat(100_000))) {
        BoundedJson::Truncated { text, characters } => {
            assert_eq!(characters, 100_002);
            assert!(text.chars().count() <= 8000);
        }
        BoundedJson::Whole(_) => panic!("should be truncated"),
    }
}
