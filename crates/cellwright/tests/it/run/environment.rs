//! Environment variables of kernels: what `run`, `check` and `eval` pass, and what the error says about the rest.

use std::process::Command;

use serde_json::Value;

use super::{BACKENDS, RunFixture, code, notices, python};
use crate::context::CommandOutput;

/// Prints a variable of each sort.
const PRINT_VARIABLES: &str = "import os\nprint(*(os.environ.get(name) for name in ('STAGE', 'DATABASE_URL', 'AWS_PROFILE', 'MY_API_KEY')))";

fn with_variables(mut command: Command) -> Command {
    command
        .env("STAGE", "prod")
        .env("DATABASE_URL", "db")
        .env("AWS_PROFILE", "work")
        .env("MY_API_KEY", "secret");
    command
}

fn output(fixture: &RunFixture, mut command: Command) -> CommandOutput {
    CommandOutput::new(&fixture.host.context, &command.output().unwrap())
}

fn eval(fixture: &RunFixture, arguments: &[&str]) -> Command {
    fixture.host.context.eval_command(arguments)
}

#[test]
fn run_passes_all_variables_except_secrets() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[code(PRINT_VARIABLES)]);
        for (arguments, printed) in [
            (&[][..], "prod db work None"),
            (&["--env", "MY_API_KEY"], "prod db work secret"),
            (&["--env", "STAGE=test"], "test db work None"),
            (&["--env-all"], "prod db work secret"),
            (&["--session", "s"], "prod db work None"),
        ] {
            let command = with_variables(fixture.command(backend, arguments));
            output(&fixture, command).exits(0);
            assert_eq!(fixture.outputs(), [printed], "{backend} {arguments:?}");
        }
    }
}

#[test]
fn check_and_eval_pass_the_same_variables() {
    let fixture = RunFixture::with(&[code(PRINT_VARIABLES)]);
    let run = with_variables(fixture.command("runner", &["--env", "MY_API_KEY"]));
    output(&fixture, run).exits(0);
    for (arguments, exit_code) in [
        (&["check", "a.ipynb"][..], 1),
        (&["check", "a.ipynb", "--env-all"], 0),
    ] {
        let mut check = with_variables(fixture.host.context.command(arguments));
        check.args(["--backend", "runner"]);
        output(&fixture, check).exits(exit_code);
    }
    let printed = output(&fixture, with_variables(eval(&fixture, &[PRINT_VARIABLES])));
    assert_eq!(printed.stdout, "prod db work None\n");
    let pwd = eval(&fixture, &["import os; os.environ['PWD'] == os.getcwd()"]);
    assert_eq!(output(&fixture, pwd).stdout, "True\n");
}

#[test]
fn an_exception_about_a_withheld_variable_names_the_flag() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[code("import os\nos.environ['MY_API_KEY']")]);
        let command = with_variables(fixture.command(backend, &[]));
        let failed = output(&fixture, command).exits(1);
        let hint = "the environment variable `MY_API_KEY` is set, but withheld from the kernel; `--env MY_API_KEY` passes it";
        assert!(
            failed.stderr.contains(&format!("hint: {hint}")),
            "{}",
            failed.stderr
        );
        let report = output(
            &fixture,
            with_variables(fixture.command(backend, &["--json"])),
        );
        assert_eq!(report.json()["cells"][0]["error"]["hints"][0], hint);
        // Nothing is withheld: no hint.
        let unset = fixture.run_on(backend, &[]).exits(1);
        assert!(!unset.stderr.contains("--env"), "{}", unset.stderr);
    }
    let fixture = RunFixture::with(&[code("import os\nos.environ['MY_API_KEY']")]);
    let mut check = with_variables(fixture.host.context.command(&["check", "a.ipynb"]));
    check.args(["--backend", "runner"]);
    let checked = output(&fixture, check).exits(1);
    assert!(
        checked
            .stderr
            .contains("notice: cell 0: the environment variable `MY_API_KEY`"),
        "{}",
        checked.stderr
    );
}

#[test]
fn a_requested_variable_that_does_not_exist_is_reported() {
    let fixture = RunFixture::with(&[code("1")]);
    let result = fixture.run(&["--env", "NO_SUCH_VARIABLE"]).exits(0);
    assert!(
        result
            .stderr
            .contains("notice: the environment variable `NO_SUCH_VARIABLE` is not set"),
        "{}",
        result.stderr
    );
    for wrong in ["=x", "A B"] {
        let refused = fixture.run(&["--env", wrong]).exits(2);
        assert!(
            refused.stderr.contains("expected NAME or NAME=VALUE"),
            "{}",
            refused.stderr
        );
    }
}

#[test]
fn a_session_reports_variables_that_its_kernel_does_not_have() {
    for backend in BACKENDS {
        let fixture = RunFixture::new();
        let stage = "import os; print(os.environ.get('STAGE'))";
        let run = |value: &str, arguments: &[&str]| {
            let mut command =
                fixture
                    .host
                    .context
                    .command(&["eval", "--json", "--session", "s", stage]);
            command.args(["--backend", backend]).args(arguments);
            if let Some(python) = python() {
                command.arg("--python").arg(python);
            }
            // Another terminal is not worth a notice.
            command.env("STAGE", value).env("WINDOWID", value);
            let report: Value = output(&fixture, command).exits(0).json();
            let kinds = notices(&report).into_iter().map(str::to_owned);
            (
                report["cells"][0]["text"].as_str().unwrap().to_owned(),
                kinds.collect::<Vec<_>>(),
            )
        };
        assert_eq!(run("dev", &[]), ("dev\n".to_owned(), vec![]));
        let (text, kinds) = run("prod", &[]);
        assert_eq!(text, "dev\n");
        assert_eq!(kinds, ["environment_differs"], "{backend}");
        // The same value is reported once.
        assert_eq!(run("prod", &[]), ("dev\n".to_owned(), vec![]));
        assert_eq!(
            run("prod", &["--env", "STAGE"]),
            ("prod\n".to_owned(), vec![])
        );
        assert_eq!(run("other", &["--reset"]).0, "other\n");
        assert_eq!(run("other", &[]), ("other\n".to_owned(), vec![]));
    }
}

#[test]
fn a_variable_with_names_in_another_syntax_is_an_error_that_shows_the_syntax() {
    let fixture = RunFixture::new();
    for text in ["STAGE DATABASE_URL", "[\"STAGE\"]"] {
        let mut command = fixture.host.context.command(&["eval", "1"]);
        let output = command.env("CELLWRIGHT_ENV_PASS", text).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(
            stderr.contains("names of variables with commas between them, such as STAGE,AWS_*"),
            "{stderr}"
        );
    }
}
