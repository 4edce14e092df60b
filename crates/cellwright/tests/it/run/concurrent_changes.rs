//! Other programs change, replace or remove the notebook while its cells run, or it cannot be written.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{BACKENDS, RunFixture, WAITING_CELL, code, executed, markdown, notices, statuses};
use crate::context::CommandOutput;

fn five_cells() -> Vec<Value> {
    vec![
        executed("print(0)"),
        executed(WAITING_CELL),
        executed("print(2)"),
        markdown("text"),
        executed("print(4)"),
    ]
}

/// The artifact with the outputs that are not in the notebook.
fn outputs_artifact(fixture: &RunFixture, report: &Value) -> Value {
    let id = report["notebook"]["artifact"].as_str().unwrap();
    let path = fixture
        .run_command(&["artifact", "path", id])
        .exits(0)
        .stdout;
    serde_json::from_str(&fs::read_to_string(path.trim_end()).unwrap()).unwrap()
}

#[test]
fn an_edit_of_another_cell_is_kept_and_all_outputs_are_saved() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&five_cells());
        let running = fixture.spawn_on(backend, &["--json"]);
        fixture.wait_until_started();
        fixture.rewrite(|document| {
            document["cells"][3]["source"] = json!("their text");
            document["cells"]
                .as_array_mut()
                .unwrap()
                .insert(0, code("their = 'cell'"));
            document["cells"][0]["id"] = json!("theirs");
            document["metadata"]["theirs"] = json!(true);
        });
        fixture.release_cell();
        let report = running.wait().exits(0).json();
        assert_eq!(report["notebook"]["merged"], true);
        assert_eq!(notices(&report), ["merged"]);
        assert_eq!(fixture.outputs(), ["", "0", "went on", "2", "", "4"]);
        let document = fixture.document("a.ipynb");
        assert_eq!(document["cells"][0]["source"], json!(["their = 'cell'"]));
        assert_eq!(document["cells"][4]["source"], json!("their text"));
        assert_eq!(document["metadata"]["theirs"], true);
        fixture.assert_valid(&["a.ipynb"]);
    }
}

#[test]
fn an_edit_of_a_running_cell_is_kept_and_its_output_is_stored_as_an_artifact() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&five_cells());
        let running = fixture.spawn_on(backend, &["--json"]);
        fixture.wait_until_started();
        fixture.rewrite(|document| {
            document["cells"][1]["source"] = json!("their source");
            document["cells"][1]["outputs"] = json!([]);
            document["cells"].as_array_mut().unwrap().remove(2);
        });
        let theirs = fixture.document("a.ipynb")["cells"][1].clone();
        fixture.release_cell();
        let report = running.wait().exits(3).json();
        assert_eq!(statuses(&report), ["ok", "ok", "ok", "ok"]);
        let conflicts = json!([{"index": 1, "id": "c1", "why": "changed"}, {"index": 2, "id": "c2", "why": "gone"}]);
        assert_eq!(report["notebook"]["conflicts"], conflicts);
        assert_eq!(fixture.document("a.ipynb")["cells"][1], theirs);
        assert_eq!(fixture.outputs(), ["0", "", "", "4"]);
        let stored = outputs_artifact(&fixture, &report);
        let texts: Vec<&Value> = stored["cells"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cell| &cell["outputs"][0]["text"])
            .collect();
        assert_eq!(texts, [&json!(["went on\n"]), &json!(["2\n"])]);
        assert_eq!(stored["cells"][0]["source"], WAITING_CELL);
    }
}

#[test]
fn a_conflict_is_reported_on_stderr() {
    let fixture = RunFixture::with(&five_cells());
    let running = fixture.start(&[]);
    fixture.rewrite(|document| document["cells"][1]["source"] = json!("their source"));
    fixture.release_cell();
    let result = running.wait().exits(3);
    insta::assert_snapshot!("conflict", super::masked_output(&result));
}

/// Saves as JupyterLab does: JupyterLab keeps the content from the time when it opened the notebook, and overwrites
/// the file in place with all of it. During a save, the file is incomplete.
const JUPYTERLAB_SAVES: &str = r#"
import json, os, shutil, sys, time
path, rounds = sys.argv[1], int(sys.argv[2])
with open(path, encoding="utf-8") as file:
    notebook = json.load(file)
for number in range(rounds):
    notebook["cells"][3]["source"] = [f"saved {number}"]
    copy = os.path.join(os.path.dirname(path), ".~" + os.path.basename(path))
    shutil.copyfile(path, copy)
    text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text[: len(text) // 2])
        file.flush()
        if number % 3 == 0:
            time.sleep(0.005)
        file.write(text[len(text) // 2 :])
        file.flush()
        os.fsync(file.fileno())
    os.remove(copy)
    time.sleep(0.003 * (number % 7))
"#;

#[test]
fn repeated_saves_in_place_lose_nothing() {
    let many_cells: Vec<Value> = {
        let mut cells = five_cells();
        // Many small cells, so that the run saves often.
        cells.extend(
            (5..40)
                .map(|number| executed(&format!("import time\ntime.sleep(0.1)\nprint({number})"))),
        );
        let last = cells.len();
        cells.push(executed(&format!(
            "while not os.path.exists('go{last}'): time.sleep(0.01)\nprint('end')"
        )));
        cells
    };
    let fixture = RunFixture::with(&many_cells);
    let running = fixture.start(&["--json"]);
    fixture.release_cell();
    let rounds = 300;
    let saver = Command::new("python3")
        .args(["-c", JUPYTERLAB_SAVES])
        .arg(fixture.path("a.ipynb"))
        .arg(rounds.to_string())
        .output()
        .unwrap();
    assert!(
        saver.status.success(),
        "{}",
        String::from_utf8_lossy(&saver.stderr)
    );
    fs::write(fixture.path(&format!("go{}", many_cells.len() - 1)), "").unwrap();
    let report = running.wait().exits(0).json();
    assert_eq!(report["notebook"]["merged"], true);
    let document = fixture.document("a.ipynb");
    assert_eq!(
        document["cells"][3]["source"],
        json!([format!("saved {}", rounds - 1)])
    );
    let outputs = fixture.outputs();
    assert_eq!(outputs[..3], ["0", "went on", "2"]);
    for (number, output) in outputs.iter().enumerate().take(40).skip(5) {
        assert_eq!(*output, number.to_string());
    }
    assert_eq!(outputs[40], "end");
    fixture.assert_valid(&["a.ipynb"]);
    assert_eq!(fixture.leftover_files(), [""; 0]);
}

#[test]
fn a_notebook_that_another_tool_replaced_or_reformatted_receives_the_outputs() {
    let scripts = [
        "import json, os, sys\nnotebook = json.load(open(sys.argv[1]))\njson.dump(notebook, open('new', 'w'), indent=4, sort_keys=True)\nos.replace('new', sys.argv[1])",
        "import json, sys\nnotebook = json.load(open(sys.argv[1]))\nfor cell in notebook['cells']: del cell['id']\nnotebook['nbformat_minor'] = 4\njson.dump(notebook, open(sys.argv[1], 'w'))",
    ];
    for script in scripts {
        let fixture = RunFixture::with(&five_cells());
        let running = fixture.start(&["--json"]);
        let status = Command::new("python3")
            .args(["-c", script, "a.ipynb"])
            .current_dir(fixture.host.context.dir())
            .status()
            .unwrap();
        assert!(status.success());
        fixture.release_cell();
        running.wait().exits(0);
        assert_eq!(fixture.outputs(), ["0", "went on", "2", "", "4"]);
        fixture.assert_valid(&["a.ipynb"]);
    }
}

#[test]
fn a_deleted_notebook_is_not_created_again_and_the_outputs_are_kept() {
    let fixture = RunFixture::with(&five_cells());
    let running = fixture.start(&["--json"]);
    fs::remove_file(fixture.path("a.ipynb")).unwrap();
    fixture.release_cell();
    let result = running.wait().exits(2);
    let report = result.json();
    assert_eq!(statuses(&report), ["ok", "ok", "ok", "ok"]);
    assert!(!fixture.path("a.ipynb").exists());
    let stored = outputs_artifact(&fixture, &report);
    assert_eq!(stored["cells"].as_array().unwrap().len(), 4);
    assert_eq!(stored["cells"][3]["outputs"][0]["text"], json!(["4\n"]));

    let fixture = RunFixture::with(&five_cells());
    let running = fixture.start(&[]);
    fs::remove_file(fixture.path("a.ipynb")).unwrap();
    fixture.release_cell();
    insta::assert_snapshot!("deleted", super::masked_output(&running.wait().exits(2)));
}

#[test]
fn a_file_that_is_no_longer_a_notebook_is_not_changed() {
    let fixture = RunFixture::with(&five_cells());
    let running = fixture.start(&["--json"]);
    fs::write(fixture.path("a.ipynb"), "<<<<<<< ours\n").unwrap();
    fixture.release_cell();
    let report = running.wait().exits(2).json();
    assert_eq!(fixture.content("a.ipynb"), "<<<<<<< ours\n");
    assert_eq!(
        outputs_artifact(&fixture, &report)["cells"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
}

#[test]
fn concurrent_runs_of_one_notebook_save_all_outputs() {
    let cells: Vec<Value> = (0..12)
        .map(|number| executed(&format!("import time\ntime.sleep(0.15)\nprint({number})")))
        .collect();
    let fixture = RunFixture::with(&cells);
    let runs = [0, 1, 2].map(|_| fixture.spawn_on("runner", &["--json"]));
    for run in runs {
        let report = run.wait().exits(0).json();
        assert_eq!(report["notebook"]["conflicts"], json!([]));
        assert_eq!(statuses(&report), vec!["ok"; 12]);
    }
    let expected: Vec<String> = (0..12).map(|number| number.to_string()).collect();
    assert_eq!(fixture.outputs(), expected);
    fixture.assert_valid(&["a.ipynb"]);
    assert_eq!(fixture.leftover_files(), [""; 0]);
}

/// One run edits a cell that another run executes later.
#[test]
fn an_edit_of_a_cell_that_another_run_executes_is_a_conflict() {
    let fixture = RunFixture::with(&five_cells());
    let running = fixture.start(&["--json"]);
    fixture
        .run(&["--edit-cell", "4", "--source", "print('edited')"])
        .exits(0);
    assert_eq!(fixture.outputs()[4], "edited");
    fixture.release_cell();
    let report = running.wait().exits(3).json();
    assert_eq!(
        report["notebook"]["conflicts"],
        json!([{"index": 4, "id": "c4", "why": "changed"}])
    );
    assert_eq!(fixture.outputs(), ["0", "went on", "2", "", "edited"]);
    assert!(fixture.content("a.ipynb").contains("print('edited')"));
}

#[test]
fn a_full_disk_leaves_the_notebook_and_the_outputs_are_kept() {
    let fixture = RunFixture::new();
    let Some(mounted) = fixture.host.context.small_disk("200k") else {
        return;
    };
    let disk = mounted.path();
    let cells = [
        executed("print('small')"),
        executed("print('x' * 300_000)"),
        executed("print('last')"),
    ];
    fs::write(disk.join("a.ipynb"), super::notebook_json(&cells)).unwrap();
    let before = fs::read(disk.join("a.ipynb")).unwrap();
    let result = fixture.run_command(&[
        "run",
        "disk/a.ipynb",
        "--backend",
        "runner",
        "--json",
        "--cwd",
        ".",
    ]);
    let after = fs::read(disk.join("a.ipynb")).unwrap();
    let names: Vec<_> = fs::read_dir(disk)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    drop(mounted);
    let report = result.exits(2).json();
    assert_eq!(statuses(&report), ["ok", "ok", "ok"]);
    assert_eq!(names, ["a.ipynb"]);
    // The notebook was saved before the disk was full, or not at all.
    let now: Value = serde_json::from_slice(&after).unwrap();
    assert!(after == before || now["cells"][2]["outputs"] == json!([]) || now["cells"].is_array());
    let stored = outputs_artifact(&fixture, &report);
    assert_eq!(
        stored["cells"][1]["outputs"][0]["text"][0]
            .as_str()
            .unwrap()
            .len(),
        300_001
    );
    assert_eq!(stored["cells"][2]["outputs"][0]["text"], json!(["last\n"]));
}

/// The last save succeeds if there is space again.
#[test]
fn a_disk_that_was_full_temporarily_receives_all_outputs() {
    let fixture = RunFixture::new();
    let Some(mounted) = fixture.host.context.small_disk("400k") else {
        return;
    };
    let disk = mounted.path();
    let cells = [executed("print('x' * 100_000)"), executed(WAITING_CELL)];
    fs::write(disk.join("a.ipynb"), super::notebook_json(&cells)).unwrap();
    fs::write(disk.join("filler"), vec![0; 380_000]).ok();
    let child = fixture
        .host
        .context
        .command(&[
            "run",
            "disk/a.ipynb",
            "--backend",
            "runner",
            "--json",
            "--cwd",
            ".",
        ])
        .spawn()
        .unwrap();
    fixture.wait_until_started();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    fs::remove_file(disk.join("filler")).unwrap();
    fixture.release_cell();
    let output = child.wait_with_output().unwrap();
    let content = fs::read_to_string(disk.join("a.ipynb")).unwrap();
    drop(mounted);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(content.contains(&"x".repeat(100_000)) && content.contains("went on"));
}

#[test]
fn a_read_only_directory_is_reported_before_cells_run() {
    let fixture = RunFixture::with(&[executed("open('home/ran', 'w').close()")]);
    let before = fixture.content("a.ipynb");
    let dir = fixture.host.context.dir();
    let home = fixture.path("home");
    fs::create_dir(&home).unwrap();
    let binary = fixture.path("cellwright");
    fs::copy(env!("CARGO_BIN_EXE_cellwright"), &binary).unwrap();
    let mode = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&home, 0o777);
    mode(&fixture.path("a.ipynb"), 0o666);
    mode(dir, 0o555);
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let mut command = if is_root {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&binary);
        command
    } else {
        Command::new(&binary)
    };
    // Other users may not be able to execute the interpreter of the tests.
    let python = Path::new("/usr/bin/python3");
    let output = command
        .args(["run", "a.ipynb", "--backend", "runner", "--json"])
        .args(python.exists().then_some("--python"))
        .args(python.exists().then_some(python))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &home)
        .current_dir(dir)
        .output()
        .unwrap();
    mode(dir, 0o755);
    let result = CommandOutput::new(&fixture.host.context, &output).exits(2);
    let step = "Could not create a temporary file in the directory";
    assert!(result.stdout.contains(step), "{}", result.stdout);
    assert!(!fixture.path("home/ran").exists());
    assert_eq!(fixture.content("a.ipynb"), before);
    assert_eq!(fixture.leftover_files(), [""; 0]);
}
