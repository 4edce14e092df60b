//! A kernel that is kept: edit a cell, run it, look, edit again.

use serde_json::{Value, json};

use super::{BACKENDS, Stand, code, markdown, notices, old, statuses};
use crate::host::eventually;

/// What is known of the cells, as `notebook outline` tells it.
fn states(stand: &Stand) -> Vec<String> {
    let outline = stand
        .other(&["notebook", "outline", "a.ipynb", "--json"])
        .exits(0)
        .json();
    let cells = outline["cells"].as_array().unwrap().iter();
    let state = |cell: &Value| {
        cell["freshness"]
            .as_str()
            .or(cell["state"].as_str())
            .unwrap_or("-")
            .to_owned()
    };
    cells.map(state).collect()
}

fn indexes(answer: &Value) -> Vec<u64> {
    let cells = answer["cells"].as_array().unwrap().iter();
    cells.map(|cell| cell["index"].as_u64().unwrap()).collect()
}

#[test]
fn variables_are_kept_between_runs_until_a_restart() {
    for backend in BACKENDS {
        let stand = Stand::with(&[code("x = 1"), code("x += 1\nprint(x)")]);
        let first = stand
            .run_on(backend, &["--session", "s", "--json"])
            .exits(0)
            .json();
        assert_eq!(
            (&first["session"], &first["kernel"]["generation"]),
            (&json!("s"), &json!(1))
        );
        assert_eq!(stand.outputs()[1], "2");
        stand
            .run_on(backend, &["--session", "s", "--cells", "1"])
            .exits(0);
        assert_eq!(stand.outputs()[1], "3");
        let edited = stand.run_on(
            backend,
            &[
                "--session",
                "s",
                "--edit-cell",
                "1",
                "--source",
                "print(x * 100)",
            ],
        );
        edited.exits(0);
        assert_eq!(stand.outputs(), ["", "300"]);
        assert_eq!(stand.counts()[1], json!(4));
        let again = stand
            .run_on(backend, &["--session", "s", "--restart", "--json"])
            .exits(0)
            .json();
        assert_eq!(again["kernel"]["generation"], 2);
        assert_eq!(stand.outputs(), ["", "100"]);
        assert_eq!(stand.counts(), [json!(1), json!(2)]);
        // `eval` sees the same variables.
        let mut eval = stand
            .place
            .context
            .command(&["eval", "--session", "s", "print(x)"]);
        let output = eval.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n");
        stand.other(&["host", "stop"]).exits(0);
    }
}

/// The first run writes down which kernel it was; that must not make the second look for another.
#[test]
fn a_notebook_without_a_kernel_of_its_own_stays_on_the_one_that_it_got() {
    let Some(python) = cellwright_test_support::python() else {
        return;
    };
    // As if the environment with ipykernel were active.
    let environment = python.parent().unwrap().parent().unwrap().to_owned();
    for backend in [&[][..], &["--backend", "jupyter"], &["--backend", "runner"]] {
        let stand = Stand::with(&[code("x = 1"), code("x += 1\nprint(x)")]);
        let run = |arguments: &[&str]| {
            let mut command = stand
                .place
                .context
                .command(&["run", "a.ipynb", "--session", "s"]);
            command.args(backend).args(arguments);
            let output = command.env("VIRTUAL_ENV", &environment).output().unwrap();
            crate::context::Ran::of(&stand.place.context, &output).exits(0)
        };
        run(&[]);
        run(&["--cells", "1"]);
        run(&["--cells", "1"]);
        assert_eq!(stand.outputs()[1], "4", "{backend:?}");
        let kernels = stand.other(&["kernels", "list", "--json"]).exits(0).json();
        assert_eq!(kernels.as_array().unwrap().len(), 1, "{kernels}");
    }
}

#[test]
fn what_is_not_fresh_runs_again_and_nothing_else() {
    let stand = Stand::with(&[
        code("a = 1"),
        markdown("text"),
        code("b = a + 1\nprint(b)"),
        code("print('c')"),
        code(""),
    ]);
    assert_eq!(states(&stand), ["-", "-", "-", "-", "-"]);
    let stale = ["--session", "s", "--json", "--stale"];
    let changed = ["--session", "s", "--json", "--changed"];
    assert_eq!(indexes(&stand.run(&stale).exits(0).json()), [0, 2, 3]);
    assert_eq!(states(&stand), ["fresh", "-", "fresh", "fresh", "-"]);
    for choice in [&stale, &changed] {
        let nothing = stand.run(choice).exits(0).json();
        assert_eq!(
            (indexes(&nothing), notices(&nothing)),
            (vec![], vec!["nothing_to_run"])
        );
    }
    stand
        .other(&[
            "notebook",
            "edit",
            "a.ipynb",
            "2",
            "--source",
            "b = a + 10\nprint(b)",
        ])
        .exits(0);
    assert_eq!(states(&stand), ["fresh", "-", "changed", "stale", "-"]);
    assert_eq!(indexes(&stand.run(&changed).exits(0).json()), [2]);
    assert_eq!(states(&stand), ["fresh", "-", "fresh", "stale", "-"]);
    assert_eq!(indexes(&stand.run(&stale).exits(0).json()), [3]);
    assert_eq!(stand.outputs()[2], "11");
    // A cell before those that ran, and one that fails.
    stand
        .other(&["notebook", "insert", "a.ipynb", "0", "--source", "1 / 0"])
        .exits(0);
    assert_eq!(
        states(&stand),
        ["never_run", "stale", "-", "stale", "stale", "-"]
    );
    stand.run(&["--session", "s", "--cells", "0"]).exits(1);
    assert_eq!(states(&stand)[0], "never_run");
    stand
        .other(&["notebook", "delete", "a.ipynb", "0"])
        .exits(0);
    assert_eq!(states(&stand), ["fresh", "-", "fresh", "fresh", "-"]);
    // Another kernel knows nothing.
    stand.other(&["kernels", "reset", "s"]).exits(0);
    assert_eq!(
        states(&stand),
        ["other_kernel", "-", "other_kernel", "other_kernel", "-"]
    );
    assert_eq!(indexes(&stand.run(&stale).exits(0).json()), [0, 2, 3]);
    let all = stand
        .run(&["--session", "s", "--stale", "--restart", "--json"])
        .exits(0)
        .json();
    assert_eq!(indexes(&all), [0, 2, 3]);
}

/// What was run by a kernel that was replaced in the middle of a run is not fresh.
#[test]
fn a_kernel_that_was_replaced_meanwhile_takes_the_freshness_with_it() {
    let much = "x = bytearray(300 * 1000 * 1000)\nx[::4096] = b'x' * len(x[::4096])";
    let stand = Stand::with(&[code("a = 1"), code(much), code("print('a' in globals())")]);
    let mut command = stand.command("runner", &["--session", "s", "--json"]);
    command.env("CELLWRIGHT_KERNEL_MEMORY_LIMIT", "200 MB");
    let output = command.output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(statuses(&answer), ["ok", "ok", "ok"]);
    assert_eq!(stand.outputs()[2], "False");
    assert_eq!(states(&stand)[..2], ["other_kernel", "other_kernel"]);
}

#[test]
fn a_run_continues_in_the_background_and_writes_when_it_is_done() {
    let stand = Stand::with(&[
        old("print('early', flush=True)"),
        old(super::WAITS),
        old("print('last')"),
    ]);
    for session in [&["--session", "s"][..], &[]] {
        std::fs::remove_file(stand.path("begun")).ok();
        std::fs::remove_file(stand.path("go")).ok();
        let mut arguments = vec!["--background"];
        arguments.extend(session);
        let run = stand.run(&arguments).exits(0).stdout.trim_end().to_owned();
        stand.begun();
        let vain = stand
            .other(&["runs", "wait", &run, "--wait", "0.1"])
            .exits(124);
        assert!(vain.stderr.contains("goes on"), "{}", vain.stderr);
        let tail = stand
            .other(&["runs", "tail", &run, "--json"])
            .exits(0)
            .json();
        assert_eq!(
            (&tail["cell"], &tail["cells"], &tail["status"]),
            (&json!(1), &json!(3), &json!("running"))
        );
        let list = stand.other(&["runs", "list", "--json"]).exits(0).json();
        let mine = list
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["run"] == *run)
            .unwrap();
        assert_eq!(
            (&mine["label"], &mine["status"]),
            (&json!("a.ipynb"), &json!("running"))
        );
        // What has ended is in the file before all has.
        eventually("nothing is saved", || stand.outputs()[0] == "early");
        assert_eq!(stand.outputs()[1..], ["", "old"]);
        assert_eq!(stand.counts()[1], json!(null));
        stand.go();
        let ended = stand
            .other(&["runs", "wait", &run, "--json"])
            .exits(0)
            .json();
        assert_eq!(statuses(&ended), ["ok", "ok", "ok"]);
        assert_eq!(
            ended["notebook"]["revision"],
            stand.place.context.revision("a.ipynb")
        );
        assert_eq!(stand.outputs(), ["early", "went on", "last"]);
        let said = stand.other(&["runs", "wait", &run]).exits(0);
        assert_eq!(said.stdout, "early\nwent on\nlast\n");
        stand.notebook(
            "a.ipynb",
            &[
                old("print('early', flush=True)"),
                old(super::WAITS),
                old("print('last')"),
            ],
        );
    }
}

#[test]
fn a_run_in_the_background_can_be_cancelled() {
    let stand = Stand::with(&[old("print(0)"), old(super::WAITS), old("print(2)")]);
    let run = stand
        .run(&["--background", "--session", "s"])
        .exits(0)
        .stdout
        .trim_end()
        .to_owned();
    stand.begun();
    stand.other(&["runs", "cancel", &run]).exits(0);
    let ended = stand
        .other(&["runs", "wait", &run, "--json"])
        .exits(130)
        .json();
    assert_eq!(ended["status"], "cancelled");
    assert_eq!(statuses(&ended), ["ok", "cancelled", "skipped"]);
    let outputs = stand.outputs();
    assert_eq!((outputs[0].as_str(), outputs[2].as_str()), ("0", "old"));
    assert!(outputs[1].ends_with("!Cancelled"), "{outputs:?}");
    stand.are_valid(&["a.ipynb"]);
}

#[test]
fn a_command_hands_over_when_its_time_is_up() {
    let stand = Stand::with(&[old(super::WAITS)]);
    let handed = stand
        .run(&["--session", "s", "--wait", "1", "--json"])
        .exits(0)
        .json();
    assert_eq!(handed["status"], "running");
    stand.begun();
    stand.go();
    let run = handed["run"].as_str().unwrap();
    stand.other(&["runs", "wait", run]).exits(0);
    assert_eq!(stand.outputs(), ["went on"]);
}

/// A run that waits for the session, and is cancelled before its turn.
#[test]
fn a_run_that_never_had_its_turn_leaves_the_file() {
    let stand = Stand::with(&[old(super::WAITS)]);
    stand.notebook(
        "b.ipynb",
        &[old("open('wrong', 'w')"), old("open('wrong', 'w')")],
    );
    let running = stand.begin(&["--session", "s"]);
    let before = stand.content("b.ipynb");
    let waits = [
        "run",
        "b.ipynb",
        "--backend",
        "runner",
        "--session",
        "s",
        "--background",
        "--edit-cell",
        "0",
        "--source",
        "x",
    ];
    let run = stand.other(&waits).exits(0).stdout.trim_end().to_owned();
    stand.other(&["runs", "cancel", &run]).exits(0);
    let ended = stand
        .other(&["runs", "wait", &run, "--json"])
        .exits(130)
        .json();
    assert_eq!(statuses(&ended), ["skipped"]);
    assert_eq!(stand.content("b.ipynb"), before);
    stand.go();
    running.end().exits(0);
    assert_eq!(stand.outputs(), ["went on"]);
    assert!(!stand.path("wrong").exists());
}
