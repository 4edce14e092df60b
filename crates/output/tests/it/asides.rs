//! What is shown beside a cell: told, and not in its notebook.

use cellwright_output::{Event, Traceback};
use serde_json::json;

use crate::outputs::{captured, out, show, written};

#[test]
fn what_is_shown_beside_a_cell_is_told_and_not_in_its_notebook() {
    let captured = captured(vec![
        out("a\n"),
        Event::Aside(true),
        out("b\n"),
        show("c", None, None),
        Event::Clear { wait: false },
        Event::Raised(Traceback {
            name: "E".to_owned(),
            ..Traceback::default()
        }),
        Event::Aside(false),
        out("d\n"),
        // Nothing comes between.
        Event::Aside(true),
        Event::Aside(false),
        out("e\n"),
        Event::Clear { wait: true },
        Event::Aside(true),
        out("f\n"),
    ]);
    assert_eq!(captured.text, "a\nb\nc\nE\nd\ne\nf\n");
    // It was caught.
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
fn a_cell_that_shows_everything_elsewhere_has_no_outputs() {
    let captured = captured(vec![Event::Aside(true), out("help\n"), Event::Aside(false)]);
    assert!(captured.outputs.is_empty());
    assert_eq!(written(&captured.outputs), json!([]));
    assert_eq!(captured.text, "help\n");
}
