//! Names of sessions: the directory to which a name belongs, and numbers instead of names.

use std::fs;
use std::process::Command;

use super::{RunFixture, code, indexes, notices, python};
use crate::context::CommandOutput;

/// A command in a directory of the fixture.
fn command(fixture: &RunFixture, dir: &str, arguments: &[&str]) -> Command {
    let mut command = fixture.host.context.command(arguments);
    command.current_dir(fixture.path(dir));
    if ["run", "eval"].contains(&arguments[0])
        && let Some(python) = python()
    {
        command.arg("--python").arg(python);
    }
    command
}

fn run(fixture: &RunFixture, dir: &str, arguments: &[&str]) -> CommandOutput {
    let output = command(fixture, dir, arguments).output().unwrap();
    CommandOutput::new(&fixture.host.context, &output)
}

/// A fixture with a notebook in `data` and one in `other`.
fn fixture() -> RunFixture {
    let fixture = RunFixture::new();
    for dir in ["data", "other"] {
        fs::create_dir(fixture.path(dir)).unwrap();
        let source = "import os\nx = os.path.basename(os.getcwd())";
        fixture.notebook(&format!("{dir}/a.ipynb"), &[code(source)]);
    }
    fixture
}

#[test]
fn run_and_eval_in_one_directory_share_a_session() {
    let fixture = fixture();
    let backend = ["--backend", "runner", "--session", "w"];
    run(
        &fixture,
        ".",
        &[&["run", "data/a.ipynb"], &backend[..]].concat(),
    )
    .exits(0);
    let value = run(&fixture, ".", &[&["eval", "x"], &backend[..]].concat()).exits(0);
    assert_eq!(value.stdout, "'data'\n");
    let names = run(&fixture, ".", &["kernels", "variables", "w"]).exits(0);
    assert!(names.stdout.contains("\nx "), "{}", names.stdout);
    // The kernel stays in the directory of the first notebook.
    let again = run(
        &fixture,
        ".",
        &[&["run", "other/a.ipynb", "--json"], &backend[..]].concat(),
    );
    let report = again.exits(0).json();
    assert_eq!(notices(&report), ["kernel_other_cwd"]);
    let text = report["notices"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("data, not in ") && text.ends_with("other"),
        "{text}"
    );
}

#[test]
fn a_session_belongs_to_the_project() {
    let fixture = fixture();
    fs::create_dir(fixture.path(".git")).unwrap();
    run(&fixture, "data", &["eval", "--session", "w", "y = 5"]).exits(0);
    let value = run(&fixture, "other", &["eval", "--session", "w", "y"]).exits(0);
    assert_eq!(value.stdout, "5\n");
    let listed = run(&fixture, "other", &["kernels", "list", "--json"]).exits(0);
    let root = fixture.path(".").canonicalize().unwrap();
    assert!(
        listed.stdout.contains(&format!("\"{}\"", root.display())),
        "{}",
        listed.stdout
    );
}

#[test]
fn a_session_of_another_directory_is_reported_before_the_output() {
    let fixture = fixture();
    run(&fixture, "data", &["eval", "--session", "w", "y = 5"]).exits(0);
    let eval = command(
        &fixture,
        "other",
        &["eval", "--session", "w", "print('output')"],
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$0\" \"$@\" 2>&1"]);
    shell.arg(eval.get_program()).args(eval.get_args());
    shell.env_clear().current_dir(fixture.path("other"));
    shell.envs(
        eval.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let output = String::from_utf8(shell.output().unwrap().stdout).unwrap();
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.len(), 2, "{output}");
    assert!(
        lines[0].starts_with("notice: this is a new session; another session `w` exists in "),
        "{output}"
    );
    assert!(lines[0].contains("(@1)"), "{output}");
    assert_eq!(lines[1], "output");
}

#[test]
fn a_number_names_a_session_from_every_directory() {
    let fixture = fixture();
    let first = &["run", "a.ipynb", "--session", "w", "--backend", "runner"];
    run(&fixture, "data", first).exits(0);
    let report = run(
        &fixture,
        "other",
        &["eval", "--session", "@1", "x", "--json"],
    )
    .exits(0)
    .json();
    assert_eq!(
        (&report["session"], &report["cells"][0]["text"]),
        (&"w".into(), &"'data'\n".into())
    );
    let stale = &[
        "run",
        "data/a.ipynb",
        "--session",
        "@1",
        "--stale",
        "--json",
    ];
    assert!(indexes(&run(&fixture, ".", stale).exits(0).json()).is_empty());
    run(&fixture, "other", &["kernels", "variables", "@1"]).exits(0);
    for arguments in [
        &["eval", "1", "--session", "@7"][..],
        &["run", "data/a.ipynb", "--session", "@7"],
    ] {
        let missing = run(&fixture, ".", arguments).exits(2);
        assert!(
            missing.stderr.contains("There is no session named `@7`"),
            "{}",
            missing.stderr
        );
    }
    let other = run(
        &fixture,
        ".",
        &["eval", "1", "--session", "@1", "--backend", "jupyter"],
    )
    .exits(2);
    assert!(
        other.stderr.contains("The session @1 runs on "),
        "{}",
        other.stderr
    );
    let wrong = run(&fixture, ".", &["eval", "1", "--session", "@x"]).exits(2);
    assert!(
        wrong.stderr.contains("cannot start with `@`"),
        "{}",
        wrong.stderr
    );
}
