//! `run --session`: variables between runs, freshness of cells, and runs in the background.

use serde_json::{Value, json};

use super::{
    BACKENDS, RunFixture, WAITING_CELL, code, executed, indexes, markdown, notices, statuses,
};
use crate::host::wait_until;

/// The freshness of each cell in `notebook outline`.
fn freshness(fixture: &RunFixture) -> Vec<String> {
    let outline = fixture
        .run_command(&["notebook", "outline", "a.ipynb", "--json"])
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

#[test]
fn variables_are_kept_between_runs_until_a_restart() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&[code("x = 1"), code("x += 1\nprint(x)")]);
        let first = fixture
            .run_on(backend, &["--session", "s", "--json"])
            .exits(0)
            .json();
        assert_eq!(
            (&first["session"], &first["kernel"]["generation"]),
            (&json!("s"), &json!(1))
        );
        assert_eq!(fixture.outputs()[1], "2");
        fixture
            .run_on(backend, &["--session", "s", "--cells", "1"])
            .exits(0);
        assert_eq!(fixture.outputs()[1], "3");
        let edited = fixture.run_on(
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
        assert_eq!(fixture.outputs(), ["", "300"]);
        assert_eq!(fixture.counts()[1], json!(4));
        let again = fixture
            .run_on(backend, &["--session", "s", "--restart", "--json"])
            .exits(0)
            .json();
        assert_eq!(again["kernel"]["generation"], 2);
        assert_eq!(fixture.outputs(), ["", "100"]);
        assert_eq!(fixture.counts(), [json!(1), json!(2)]);
        // `eval` sees the same variables.
        let mut eval = fixture
            .host
            .context
            .command(&["eval", "--session", "s", "print(x)"]);
        let output = eval.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n");
        fixture.run_command(&["host", "stop"]).exits(0);
    }
}

/// The first run saves a kernelspec. The second run must still use the same kernel.
#[test]
fn a_notebook_without_a_kernelspec_keeps_the_kernel_of_its_first_run() {
    let Some(python) = cellwright_test_support::python() else {
        return;
    };
    // As if the environment with ipykernel were active.
    let environment = python.parent().unwrap().parent().unwrap().to_owned();
    for backend in [&[][..], &["--backend", "jupyter"], &["--backend", "runner"]] {
        let fixture = RunFixture::with(&[code("x = 1"), code("x += 1\nprint(x)")]);
        let run = |arguments: &[&str]| {
            let mut command = fixture
                .host
                .context
                .command(&["run", "a.ipynb", "--session", "s"]);
            command.args(backend).args(arguments);
            let output = command.env("VIRTUAL_ENV", &environment).output().unwrap();
            crate::context::CommandOutput::new(&fixture.host.context, &output).exits(0)
        };
        run(&[]);
        run(&["--cells", "1"]);
        run(&["--cells", "1"]);
        assert_eq!(fixture.outputs()[1], "4", "{backend:?}");
        let kernels = fixture
            .run_command(&["kernels", "list", "--json"])
            .exits(0)
            .json();
        assert_eq!(kernels["kernels"].as_array().unwrap().len(), 1, "{kernels}");
    }
}

#[test]
fn only_cells_that_are_not_fresh_run_again() {
    let fixture = RunFixture::with(&[
        code("a = 1"),
        markdown("text"),
        code("b = a + 1\nprint(b)"),
        code("print('c')"),
        code(""),
    ]);
    assert_eq!(freshness(&fixture), ["-", "-", "-", "-", "-"]);
    let stale = ["--session", "s", "--json", "--stale"];
    let changed = ["--session", "s", "--json", "--changed"];
    assert_eq!(indexes(&fixture.run(&stale).exits(0).json()), [0, 2, 3]);
    assert_eq!(freshness(&fixture), ["fresh", "-", "fresh", "fresh", "-"]);
    for choice in [&stale, &changed] {
        let nothing = fixture.run(choice).exits(0).json();
        assert_eq!(
            (indexes(&nothing), notices(&nothing)),
            (vec![], vec!["nothing_to_run"])
        );
    }
    fixture
        .run_command(&[
            "notebook",
            "edit",
            "a.ipynb",
            "2",
            "--source",
            "b = a + 10\nprint(b)",
        ])
        .exits(0);
    assert_eq!(freshness(&fixture), ["fresh", "-", "changed", "stale", "-"]);
    assert_eq!(indexes(&fixture.run(&changed).exits(0).json()), [2]);
    assert_eq!(freshness(&fixture), ["fresh", "-", "fresh", "stale", "-"]);
    assert_eq!(indexes(&fixture.run(&stale).exits(0).json()), [3]);
    assert_eq!(fixture.outputs()[2], "11");
    // A new cell above the others, which raises an exception.
    fixture
        .run_command(&["notebook", "insert", "a.ipynb", "0", "--source", "1 / 0"])
        .exits(0);
    assert_eq!(
        freshness(&fixture),
        ["never_run", "stale", "-", "stale", "stale", "-"]
    );
    fixture.run(&["--session", "s", "--cells", "0"]).exits(1);
    assert_eq!(freshness(&fixture)[0], "failed");
    fixture
        .run_command(&["notebook", "delete", "a.ipynb", "0"])
        .exits(0);
    assert_eq!(freshness(&fixture), ["fresh", "-", "fresh", "fresh", "-"]);
    // No cell is fresh after a reset.
    fixture.run_command(&["kernels", "reset", "s"]).exits(0);
    assert_eq!(
        freshness(&fixture),
        ["other_kernel", "-", "other_kernel", "other_kernel", "-"]
    );
    assert_eq!(indexes(&fixture.run(&stale).exits(0).json()), [0, 2, 3]);
    let all = fixture
        .run(&["--session", "s", "--stale", "--restart", "--json"])
        .exits(0)
        .json();
    assert_eq!(indexes(&all), [0, 2, 3]);
}

/// The reasons in the outline, as text and in JSON, and in the notice of a run.
#[test]
fn the_reason_of_each_stale_cell_is_reported() {
    let fixture = RunFixture::with(&[
        code("a = 1"),
        code("# a comment"),
        code("print(a)"),
        code("print('c')"),
    ]);
    fixture
        .run(&["--session", "s", "--cells", "0,2-3"])
        .exits(0);
    // A cell without code has no effect.
    assert_eq!(
        freshness(&fixture),
        ["fresh", "never_run", "fresh", "fresh"]
    );
    fixture.run(&["--session", "s", "--cells", "1"]).exits(0);
    let edit = ["notebook", "edit", "a.ipynb", "0", "--source", "a = 2"];
    fixture.run_command(&edit).exits(0);
    let outline = ["notebook", "outline", "a.ipynb"];
    let table = fixture.run_command(&outline).exits(0).stdout;
    assert!(
        table.contains("stale (cell 0 changed)  print(a)"),
        "{table}"
    );
    let cells = &fixture
        .run_command(&[&outline[..], &["--json"]].concat())
        .exits(0)
        .json()["cells"];
    assert_eq!(
        cells[2]["stale_causes"],
        json!([{"index": 0, "id": "c0", "reason": "changed"}])
    );
    fixture.run(&["--session", "s", "--cells", "0"]).exits(0);
    let stale = ["--session", "s", "--stale"];
    let result = fixture.run(&stale).exits(0);
    let reasons = "notice: not fresh: cell 1 stale (cell 0 ran later); cell 2 stale (cell 0 ran later); cell 3 stale (cell 0 ran later)\n";
    assert!(result.stderr.starts_with(reasons), "{}", result.stderr);
    // An edit in the same call makes the cells after it stale.
    let edited = [
        &stale[..],
        &["--json", "--edit-cell", "0", "--source", "a = 3"],
    ]
    .concat();
    let report = fixture.run(&edited).exits(0).json();
    assert_eq!(indexes(&report), [0, 1, 2, 3]);
    assert_eq!(notices(&report), ["stale_cells"]);
    assert_eq!(fixture.outputs()[2], "3");
    assert_eq!(freshness(&fixture), ["fresh"; 4]);
}

#[test]
fn an_interrupted_cell_is_not_a_cell_that_has_never_run() {
    let fixture = RunFixture::with(&[code("a = 1"), code(WAITING_CELL), code("b = 1")]);
    fixture.run(&["--session", "s", "--cells", "0,2"]).exits(0);
    let running = fixture.start(&["--session", "s", "--cells", "1"]);
    running.signal("-INT");
    running.wait().exits(130);
    assert_eq!(freshness(&fixture), ["fresh", "interrupted", "stale"]);
    let outline = fixture
        .run_command(&["notebook", "outline", "a.ipynb"])
        .exits(0);
    assert!(
        outline.stdout.contains("stale (cell 1 was interrupted)"),
        "{}",
        outline.stdout
    );
}

/// The memory limit replaces the kernel in the middle of the run.
#[test]
fn cells_of_a_replaced_kernel_are_not_fresh() {
    let large_allocation = "x = bytearray(300 * 1000 * 1000)\nx[::4096] = b'x' * len(x[::4096])";
    let fixture = RunFixture::with(&[
        code("a = 1"),
        code(large_allocation),
        code("print('a' in globals())"),
    ]);
    let mut command = fixture.command("runner", &["--session", "s", "--json"]);
    command.env("CELLWRIGHT_KERNEL_MEMORY_LIMIT", "200 MB");
    let output = command.output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(statuses(&report), ["ok", "ok", "ok"]);
    assert_eq!(fixture.outputs()[2], "False");
    assert_eq!(freshness(&fixture)[..2], ["other_kernel", "other_kernel"]);
}

#[test]
fn a_run_in_the_background_saves_its_outputs() {
    let fixture = RunFixture::with(&[
        executed("print('early', flush=True)"),
        executed(super::WAITING_CELL),
        executed("print('last')"),
    ]);
    for session in [&["--session", "s"][..], &[]] {
        std::fs::remove_file(fixture.path("begun")).ok();
        std::fs::remove_file(fixture.path("go")).ok();
        let mut arguments = vec!["--background"];
        arguments.extend(session);
        let run = fixture
            .run(&arguments)
            .exits(0)
            .stdout
            .trim_end()
            .to_owned();
        fixture.wait_until_started();
        let timed_out = fixture
            .run_command(&["runs", "wait", &run, "--wait", "0.1"])
            .exits(124);
        assert!(
            timed_out.stderr.contains("is still running"),
            "{}",
            timed_out.stderr
        );
        let tail = fixture
            .run_command(&["runs", "tail", &run, "--json"])
            .exits(0)
            .json();
        assert_eq!(
            (&tail["number"], &tail["total"], &tail["status"]),
            (&json!(2), &json!(3), &json!("running"))
        );
        let list = fixture
            .run_command(&["runs", "list", "--json"])
            .exits(0)
            .json();
        let entry = list["runs"]
            .as_array()
            .unwrap()
            .iter()
            .find(|entry| entry["run"] == *run)
            .unwrap();
        assert_eq!(
            (&entry["label"], &entry["status"]),
            (&json!("a.ipynb"), &json!("running"))
        );
        // The output of the first cell is saved before the end of the run.
        wait_until("nothing is saved", || fixture.outputs()[0] == "early");
        assert_eq!(fixture.outputs()[1..], ["", "old"]);
        assert_eq!(fixture.counts()[1], json!(null));
        fixture.release_cell();
        let ended = fixture
            .run_command(&["runs", "wait", &run, "--json"])
            .exits(0)
            .json();
        assert_eq!(statuses(&ended), ["ok", "ok", "ok"]);
        assert_eq!(
            ended["notebook"]["revision"],
            fixture.host.context.revision("a.ipynb")
        );
        assert_eq!(fixture.outputs(), ["early", "went on", "last"]);
        let result = fixture.run_command(&["runs", "wait", &run]).exits(0);
        assert_eq!(result.stdout, "early\nwent on\nlast\n");
        fixture.notebook(
            "a.ipynb",
            &[
                executed("print('early', flush=True)"),
                executed(super::WAITING_CELL),
                executed("print('last')"),
            ],
        );
    }
}

#[test]
fn a_run_in_the_background_can_be_cancelled() {
    let fixture = RunFixture::with(&[
        executed("print(0)"),
        executed(super::WAITING_CELL),
        executed("print(2)"),
    ]);
    let run = fixture
        .run(&["--background", "--session", "s"])
        .exits(0)
        .stdout
        .trim_end()
        .to_owned();
    fixture.wait_until_started();
    fixture.run_command(&["runs", "cancel", &run]).exits(0);
    let ended = fixture
        .run_command(&["runs", "wait", &run, "--json"])
        .exits(130)
        .json();
    assert_eq!(ended["status"], "cancelled");
    assert_eq!(statuses(&ended), ["ok", "cancelled", "skipped"]);
    let outputs = fixture.outputs();
    assert_eq!((outputs[0].as_str(), outputs[2].as_str()), ("0", "old"));
    assert!(outputs[1].ends_with("!Cancelled"), "{outputs:?}");
    fixture.assert_valid(&["a.ipynb"]);
}

#[test]
fn a_command_returns_after_its_wait_and_the_run_continues() {
    let fixture = RunFixture::with(&[executed(super::WAITING_CELL)]);
    let continued = fixture
        .run(&["--session", "s", "--wait", "1", "--json"])
        .exits(0)
        .json();
    assert_eq!(continued["status"], "running");
    fixture.wait_until_started();
    fixture.release_cell();
    let run = continued["run"].as_str().unwrap();
    fixture.run_command(&["runs", "wait", run]).exits(0);
    assert_eq!(fixture.outputs(), ["went on"]);
}

/// The run waits for the session when it is cancelled.
#[test]
fn a_run_that_was_cancelled_before_its_start_leaves_the_notebook() {
    let fixture = RunFixture::with(&[executed(super::WAITING_CELL)]);
    fixture.notebook(
        "b.ipynb",
        &[
            executed("open('wrong', 'w')"),
            executed("open('wrong', 'w')"),
        ],
    );
    let running = fixture.start(&["--session", "s"]);
    let before = fixture.content("b.ipynb");
    let arguments = [
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
    let run = fixture
        .run_command(&arguments)
        .exits(0)
        .stdout
        .trim_end()
        .to_owned();
    fixture.run_command(&["runs", "cancel", &run]).exits(0);
    let ended = fixture
        .run_command(&["runs", "wait", &run, "--json"])
        .exits(130)
        .json();
    assert_eq!(statuses(&ended), ["skipped"]);
    assert_eq!(fixture.content("b.ipynb"), before);
    fixture.release_cell();
    running.wait().exits(0);
    assert_eq!(fixture.outputs(), ["went on"]);
    assert!(!fixture.path("wrong").exists());
}
