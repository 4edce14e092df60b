//! Diagnostic events that `CELLWRIGHT_LOG` selects.

use crate::context::{CommandOutput, Context};

#[test]
fn events_are_printed_on_request_only() {
    let context = Context::new();
    let logged = |filter: &str| {
        let mut command = context.eval_command(&["print('s3cret')"]);
        let output = command.env("CELLWRIGHT_LOG", filter).output().unwrap();
        CommandOutput::new(&context, &output)
    };
    assert_eq!(logged("").exits(0).stderr, "");
    assert_eq!(logged("off").exits(0).stderr, "");
    assert_eq!(logged("cellwright_notebook=trace").exits(0).stderr, "");
    let ran = logged("debug").exits(0);
    assert_eq!(ran.stdout, "s3cret\n");
    assert!(
        ran.stderr.contains("process started pid="),
        "{}",
        ran.stderr
    );
    for line in ran.stderr.lines() {
        let mut words = line.split_whitespace();
        assert!(words.next().unwrap().ends_with('Z'), "{line}");
        assert_eq!(words.next(), Some("debug"), "{line}");
        assert!(words.next().unwrap().starts_with("cellwright"), "{line}");
    }
    // Neither code nor output.
    assert!(!ran.stderr.contains("s3cret"), "{}", ran.stderr);
    let wrong = logged("cellwright=loud").exits(2).stderr;
    assert!(
        wrong.starts_with("error: CELLWRIGHT_LOG is not a valid list of filters"),
        "{wrong}"
    );
}
