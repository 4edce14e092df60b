//! Output that is shown but not stored in the notebook.

use cellwright_output::{Event, Traceback};
use serde_json::json;

use crate::outputs::{captured, out, show, written};

#[test]
fn show_only_output_is_in_the_text_and_not_in_the_notebook() {
    let captured = captured(vec![
        out("a\n"),
        Event::ShowOnly(true),
        out("b\n"),
        show("c", None, None),
        Event::Clear { wait: false },
        Event::Raised(Traceback {
            name: "E".to_owned(),
            ..Traceback::default()
        }),
        Event::ShowOnly(false),
        out("d\n"),
        // No output arrives in between.
        Event::ShowOnly(true),
        Event::ShowOnly(false),
        out("e\n"),
        Event::Clear { wait: true },
        Event::ShowOnly(true),
        out("f\n"),
    ]);
    assert_eq!(captured.text, "a\nb\nc\nE\nd\ne\nf\n");
    // The widget captured it.
    assert_eq!(captured.error, None);
    assert!(!captured.outputs.is_empty());
    assert_eq!(
        written(&captured.outputs),
        json!([
            {"name": "stdout", "output_type": "stream", "text": ["a\n"]},
            {"name": "stdout", "output_type": "stream", "text": ["d\n", "e\n"]},
        ])
    );
}

#[test]
fn cell_with_only_show_only_output_has_no_outputs() {
    let captured = captured(vec![
        Event::ShowOnly(true),
        out("help\n"),
        Event::ShowOnly(false),
    ]);
    assert!(captured.outputs.is_empty());
    assert_eq!(written(&captured.outputs), json!([]));
    assert_eq!(captured.text, "help\n");
}
