//! `artifact`: lists, reads and searches full outputs.

use std::fs;
use std::process::Command;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::context::{CommandOutput, Context};
use crate::host::TestHost;

/// A context in which a cell has printed 10 000 lines, stored as artifact 1.
fn with_artifact() -> Context {
    let context = Context::new();
    context
        .eval(&[
            "for i in range(1, 10_001): print('line', i, '\\x1b[31mred\\x1b[0m' if i == 7 else '')",
        ])
        .exits(0);
    context
}

#[test]
fn artifacts_are_listed_read_and_searched() {
    let context = with_artifact();
    let listed = context.run(&["artifact", "list", "--json"]).exits(0).json();
    assert_eq!(listed["artifacts"][0]["artifact"], "artifact://1");
    assert_eq!(
        context.run(&["read", "artifact://1:3-4"]).exits(0).stdout,
        "line 3 \nline 4 \n"
    );
    assert_eq!(
        context
            .run(&["artifact", "show", "1:10000-"])
            .exits(0)
            .stdout,
        "line 10000 \n"
    );
    assert_eq!(
        context
            .run(&["read", "artifact://1:2,9998+2"])
            .exits(0)
            .stdout,
        "line 2 \nline 9998 \nline 9999 \n"
    );
    let whole = context.run(&["read", "artifact://1"]).exits(0).stdout;
    assert_eq!(whole.lines().count(), 10_000);
    assert!(
        whole.contains("\u{1b}[31mred"),
        "the artifact stores the output unchanged"
    );
    let found = context.run(&[
        "artifact",
        "show",
        "1",
        "--grep",
        "999",
        "--most",
        "2",
        "--context",
        "1",
    ]);
    assert_snapshot!(found.exits(0).output_masked());
    let found = context
        .run(&["artifact", "show", "1", "--regex", "^line 1?7 ", "--json"])
        .exits(0)
        .json();
    assert_eq!(found["total"], 2);
    assert_eq!(
        found["hits"][0],
        json!({"line": 7, "text": "line 7 red", "before": [], "after": []})
    );
    let part = context
        .run(&["read", "artifact://1:1-2", "--json"])
        .exits(0)
        .json();
    assert_eq!(
        (&part["text"], &part["lines"]),
        (&json!("line 1 \nline 2 \n"), &json!(10_000))
    );
}

#[test]
fn a_missing_artifact_is_an_error_that_lists_the_existing_ones() {
    let context = with_artifact();
    assert_snapshot!(
        context
            .run(&["read", "artifact://7"])
            .exits(2)
            .output_masked()
    );
    context.run(&["read", "artifact://x"]).exits(2);
    context.run(&["read", "artifact://"]).exits(2);
    context.run(&["read", "artifact://1:20000-"]).exits(2);
    context.run(&["read", "artifact://1:cells=3"]).exits(2);
    context
        .run(&["artifact", "show", "1", "--regex", "("])
        .exits(2);
    context.run(&["artifact", "path", "../1"]).exits(2);
    let empty = Context::new();
    empty.run(&["artifact", "list"]).exits(0);
    empty.run(&["artifact", "show", "1"]).exits(2);
}

#[test]
fn a_line_of_several_megabytes_is_read_completely() {
    let context = Context::new();
    context
        .eval(&["print('a')\nprint('b' * 5_000_000)\nprint('c')"])
        .exits(0);
    let line = context.run(&["read", "artifact://1:2"]).exits(0).stdout;
    assert_eq!(line.len(), 5_000_001);
    assert!(
        context
            .run(&["read", "artifact://1:2-3"])
            .exits(0)
            .stdout
            .ends_with("b\nc\n")
    );
}

/// Code whose output is stored as an artifact.
const LONG_OUTPUT: &str = "for i in range(20_000): print('line', i)";

/// Creates the project `first`, a repository with the directory `sub`, and the project `second`, a directory with
/// settings.
fn create_projects(context: &Context) {
    for dir in ["first/.git", "first/sub", "second/.cellwright"] {
        fs::create_dir_all(context.path(dir)).unwrap();
    }
}

/// Runs a command in a directory.
fn run_in(context: &Context, dir: &str, mut command: Command) -> CommandOutput {
    let output = command.current_dir(context.path(dir)).output().unwrap();
    CommandOutput::new(context, &output)
}

/// The listed artifacts, with their projects, and the number of the others.
fn listed_in(context: &Context, dir: &str, flags: &[&str]) -> Value {
    let arguments = [&["artifact", "list", "--json"], flags].concat();
    let list = run_in(context, dir, context.command(&arguments))
        .exits(0)
        .json();
    let entries = list["artifacts"].as_array().unwrap().iter();
    let entries: Vec<Value> = entries
        .map(|entry| json!([entry["artifact"], entry["project"]]))
        .collect();
    json!([entries, list["hidden"]])
}

#[test]
fn only_artifacts_of_the_project_are_listed_and_suggested() {
    let context = Context::new();
    create_projects(&context);
    for dir in ["first", "second", "first/sub"] {
        run_in(&context, dir, context.eval_command(&[LONG_OUTPUT])).exits(0);
    }
    // An artifact of an older version belongs to no project.
    let path = run_in(
        &context,
        "first",
        context.command(&["artifact", "path", "1"]),
    )
    .exits(0);
    let dir = std::path::Path::new(path.stdout.trim()).parent().unwrap();
    fs::write(dir.join("4.log"), "old\n").unwrap();
    let first = json!([[["artifact://1", "this"], ["artifact://3", "this"]], 2]);
    assert_eq!(listed_in(&context, "first", &[]), first);
    assert_eq!(listed_in(&context, "first/sub", &[]), first);
    assert_eq!(
        listed_in(&context, "second", &[]),
        json!([[["artifact://2", "this"]], 3])
    );
    assert_eq!(listed_in(&context, ".", &[]), json!([[], 4]));
    assert_eq!(
        listed_in(&context, "second", &["--all"]),
        json!([
            [
                ["artifact://1", "other"],
                ["artifact://2", "this"],
                ["artifact://3", "other"],
                ["artifact://4", null],
            ],
            0
        ])
    );
    let run = |arguments: &[&str]| run_in(&context, "second", context.command(arguments));
    let list = run(&["artifact", "list"]).exits(0);
    assert_eq!(list.stdout.lines().count(), 2, "{}", list.stdout);
    let remark = "artifacts outside of this project: 3 (list them with `--all`)";
    assert!(list.stderr.contains(remark), "{}", list.stderr);
    let all = run(&["artifact", "list", "--all"]).exits(0);
    assert_eq!(
        all.stdout.matches("  another\n").count(),
        2,
        "{}",
        all.stdout
    );
    assert_eq!(all.stdout.matches("  none\n").count(), 1);
    assert!(!all.stderr.contains("outside"), "{}", all.stderr);
    // An explicit id opens any artifact of the user.
    assert_eq!(run(&["read", "artifact://1:1"]).exits(0).stdout, "line 0\n");
    assert_eq!(
        run(&["artifact", "show", "3:2"]).exits(0).stdout,
        "line 1\n"
    );
    assert_eq!(run(&["artifact", "show", "4"]).exits(0).stdout, "old\n");
    run(&["artifact", "path", "artifact://1"]).exits(0);
    let missing = run(&["read", "artifact://77"]).exits(2).stderr;
    assert!(missing.contains("available: artifact://2\n"), "{missing}");
    let missing = run_in(&context, ".", context.command(&["artifact", "path", "77"])).exits(2);
    assert!(
        missing.stderr.contains("this project has no artifacts"),
        "{}",
        missing.stderr
    );
}

#[test]
fn cells_read_artifacts_of_all_projects() {
    let context = Context::new();
    create_projects(&context);
    run_in(&context, "first", context.eval_command(&[LONG_OUTPUT])).exits(0);
    let code = "print(output(1, offset=3, limit=1), tool.artifact('list')['hidden'])";
    let result = run_in(&context, "second", context.eval_command(&[code])).exits(0);
    assert_eq!(result.stdout, "line 2\n 1\n");
}

#[test]
fn outputs_of_a_session_belong_to_the_project_of_each_client() {
    let host = TestHost::new();
    let context = &host.context;
    create_projects(context);
    let shared = context.dir().to_str().unwrap();
    let arguments = ["--session", "s", "--cwd", shared, LONG_OUTPUT];
    for dir in ["first", "second"] {
        run_in(context, dir, context.eval_command(&arguments)).exits(0);
    }
    assert_eq!(
        listed_in(context, "first", &[]),
        json!([[["artifact://1", "this"]], 1])
    );
    assert_eq!(
        listed_in(context, "second", &[]),
        json!([[["artifact://2", "this"]], 1])
    );
}
