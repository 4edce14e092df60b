//! Diagnostic events that `CELLWRIGHT_LOG` selects.

use crate::context::{CommandOutput, Context};

#[test]
fn events_are_printed_on_request_only() {
    let context = Context::new();
    let run_with_filter = |filter: &str| {
        let mut command = context.eval_command(&["print('s3cret')"]);
        let output = command.env("CELLWRIGHT_LOG", filter).output().unwrap();
        CommandOutput::new(&context, &output)
    };
    assert_eq!(run_with_filter("").exits(0).stderr, "");
    assert_eq!(run_with_filter("off").exits(0).stderr, "");
    assert_eq!(
        run_with_filter("cellwright_notebook=trace").exits(0).stderr,
        ""
    );
    let result = run_with_filter("debug").exits(0);
    assert_eq!(result.stdout, "s3cret\n");
    assert!(
        result.stderr.contains("process started pid="),
        "{}",
        result.stderr
    );
    for line in result.stderr.lines() {
        let mut words = line.split_whitespace();
        assert!(words.next().unwrap().ends_with('Z'), "{line}");
        assert_eq!(words.next(), Some("debug"), "{line}");
        assert!(words.next().unwrap().starts_with("cellwright"), "{line}");
    }
    // The log contains neither code nor output.
    assert!(!result.stderr.contains("s3cret"), "{}", result.stderr);
    let error = run_with_filter("cellwright=loud").exits(2).stderr;
    assert!(
        error.starts_with("error: CELLWRIGHT_LOG is not a valid list of filters"),
        "{error}"
    );
}
