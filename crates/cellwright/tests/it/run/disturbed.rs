//! Others change, replace or remove the file while its cells run, or there is no room for it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{BACKENDS, RunFixture, WAITING_CELL, code, markdown, notices, old, statuses};
use crate::context::CommandOutput;

fn five() -> Vec<Value> {
    vec![
        old("print(0)"),
        old(WAITING_CELL),
        old("print(2)"),
        markdown("text"),
        old("print(4)"),
    ]
}

/// What is kept of outputs that are not in the notebook.
fn artifact(fixture: &RunFixture, answer: &Value) -> Value {
    let id = answer["notebook"]["artifact"].as_str().unwrap();
    let path = fixture.other(&["artifact", "path", id]).exits(0).stdout;
    serde_json::from_str(&fs::read_to_string(path.trim_end()).unwrap()).unwrap()
}

#[test]
fn an_edit_of_another_cell_is_kept_and_every_output_is_there() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&five());
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
        let answer = running.end().exits(0).json();
        assert_eq!(answer["notebook"]["merged"], true);
        assert_eq!(notices(&answer), ["merged"]);
        assert_eq!(fixture.outputs(), ["", "0", "went on", "2", "", "4"]);
        let document = fixture.document("a.ipynb");
        assert_eq!(document["cells"][0]["source"], json!(["their = 'cell'"]));
        assert_eq!(document["cells"][4]["source"], json!("their text"));
        assert_eq!(document["metadata"]["theirs"], true);
        fixture.assert_valid(&["a.ipynb"]);
    }
}

#[test]
fn a_cell_that_was_edited_while_it_ran_is_theirs_and_its_output_is_kept_elsewhere() {
    for backend in BACKENDS {
        let fixture = RunFixture::with(&five());
        let running = fixture.spawn_on(backend, &["--json"]);
        fixture.wait_until_started();
        fixture.rewrite(|document| {
            document["cells"][1]["source"] = json!("their source");
            document["cells"][1]["outputs"] = json!([]);
            document["cells"].as_array_mut().unwrap().remove(2);
        });
        let theirs = fixture.document("a.ipynb")["cells"][1].clone();
        fixture.release_cell();
        let answer = running.end().exits(3).json();
        assert_eq!(statuses(&answer), ["ok", "ok", "ok", "ok"]);
        let conflicts = json!([{"index": 1, "id": "c1", "why": "changed"}, {"index": 2, "id": "c2", "why": "gone"}]);
        assert_eq!(answer["notebook"]["conflicts"], conflicts);
        assert_eq!(fixture.document("a.ipynb")["cells"][1], theirs);
        assert_eq!(fixture.outputs(), ["0", "", "", "4"]);
        let kept = artifact(&fixture, &answer);
        let texts: Vec<&Value> = kept["cells"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cell| &cell["outputs"][0]["text"])
            .collect();
        assert_eq!(texts, [&json!(["went on\n"]), &json!(["2\n"])]);
        assert_eq!(kept["cells"][0]["source"], WAITING_CELL);
    }
}

#[test]
fn a_person_is_told_of_a_conflict() {
    let fixture = RunFixture::with(&five());
    let running = fixture.begin(&[]);
    fixture.rewrite(|document| document["cells"][1]["source"] = json!("their source"));
    fixture.release_cell();
    let ran = running.end().exits(3);
    insta::assert_snapshot!("conflict", super::masked_output(&ran));
}

/// JupyterLab holds the notebook as it was when it was opened, and writes all of that over what is there, in
/// place: for a moment the file is empty. It does so again and again while cells run.
const LAB: &str = r#"
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
    let busy: Vec<Value> = {
        let mut cells = five();
        // Many small cells, so that there is much to save meanwhile.
        cells.extend(
            (5..40).map(|number| old(&format!("import time\ntime.sleep(0.1)\nprint({number})"))),
        );
        let last = cells.len();
        cells.push(old(&format!(
            "while not os.path.exists('go{last}'): time.sleep(0.01)\nprint('end')"
        )));
        cells
    };
    let fixture = RunFixture::with(&busy);
    let running = fixture.begin(&["--json"]);
    fixture.release_cell();
    let rounds = 300;
    let saver = Command::new("python3")
        .args(["-c", LAB])
        .arg(fixture.path("a.ipynb"))
        .arg(rounds.to_string())
        .output()
        .unwrap();
    assert!(
        saver.status.success(),
        "{}",
        String::from_utf8_lossy(&saver.stderr)
    );
    fs::write(fixture.path(&format!("go{}", busy.len() - 1)), "").unwrap();
    let answer = running.end().exits(0).json();
    assert_eq!(answer["notebook"]["merged"], true);
    let document = fixture.document("a.ipynb");
    assert_eq!(
        document["cells"][3]["source"],
        json!([format!("saved {}", rounds - 1)])
    );
    let outputs = fixture.outputs();
    assert_eq!(outputs[..3], ["0", "went on", "2"]);
    for (number, said) in outputs.iter().enumerate().take(40).skip(5) {
        assert_eq!(*said, number.to_string());
    }
    assert_eq!(outputs[40], "end");
    fixture.assert_valid(&["a.ipynb"]);
    assert_eq!(fixture.left_over(), [""; 0]);
}

#[test]
fn a_file_that_another_tool_replaced_or_reformatted_gets_the_outputs() {
    let scripts = [
        "import json, os, sys\nnotebook = json.load(open(sys.argv[1]))\njson.dump(notebook, open('new', 'w'), indent=4, sort_keys=True)\nos.replace('new', sys.argv[1])",
        "import json, sys\nnotebook = json.load(open(sys.argv[1]))\nfor cell in notebook['cells']: del cell['id']\nnotebook['nbformat_minor'] = 4\njson.dump(notebook, open(sys.argv[1], 'w'))",
    ];
    for script in scripts {
        let fixture = RunFixture::with(&five());
        let running = fixture.begin(&["--json"]);
        let status = Command::new("python3")
            .args(["-c", script, "a.ipynb"])
            .current_dir(fixture.host.context.folder())
            .status()
            .unwrap();
        assert!(status.success());
        fixture.release_cell();
        running.end().exits(0);
        assert_eq!(fixture.outputs(), ["0", "went on", "2", "", "4"]);
        fixture.assert_valid(&["a.ipynb"]);
    }
}

#[test]
fn a_file_that_was_deleted_stays_so_and_the_outputs_are_kept() {
    let fixture = RunFixture::with(&five());
    let running = fixture.begin(&["--json"]);
    fs::remove_file(fixture.path("a.ipynb")).unwrap();
    fixture.release_cell();
    let ran = running.end().exits(2);
    let answer = ran.json();
    assert_eq!(statuses(&answer), ["ok", "ok", "ok", "ok"]);
    assert!(!fixture.path("a.ipynb").exists());
    let kept = artifact(&fixture, &answer);
    assert_eq!(kept["cells"].as_array().unwrap().len(), 4);
    assert_eq!(kept["cells"][3]["outputs"][0]["text"], json!(["4\n"]));

    let fixture = RunFixture::with(&five());
    let running = fixture.begin(&[]);
    fs::remove_file(fixture.path("a.ipynb")).unwrap();
    fixture.release_cell();
    insta::assert_snapshot!("deleted", super::masked_output(&running.end().exits(2)));
}

#[test]
fn a_file_that_is_no_notebook_any_more_is_left_alone() {
    let fixture = RunFixture::with(&five());
    let running = fixture.begin(&["--json"]);
    fs::write(fixture.path("a.ipynb"), "<<<<<<< ours\n").unwrap();
    fixture.release_cell();
    let answer = running.end().exits(2).json();
    assert_eq!(fixture.content("a.ipynb"), "<<<<<<< ours\n");
    assert_eq!(
        artifact(&fixture, &answer)["cells"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
}

#[test]
fn two_runs_of_one_notebook_at_once_leave_a_valid_one_with_all_outputs() {
    let cells: Vec<Value> = (0..12)
        .map(|number| old(&format!("import time\ntime.sleep(0.15)\nprint({number})")))
        .collect();
    let fixture = RunFixture::with(&cells);
    let runs = [0, 1, 2].map(|_| fixture.spawn_on("runner", &["--json"]));
    for run in runs {
        let answer = run.end().exits(0).json();
        assert_eq!(answer["notebook"]["conflicts"], json!([]));
        assert_eq!(statuses(&answer), vec!["ok"; 12]);
    }
    let expected: Vec<String> = (0..12).map(|number| number.to_string()).collect();
    assert_eq!(fixture.outputs(), expected);
    fixture.assert_valid(&["a.ipynb"]);
    assert_eq!(fixture.left_over(), [""; 0]);
}

/// One edits what the other runs: it is a conflict for one of them, or they did not meet.
#[test]
fn a_run_that_edits_what_another_one_runs_is_no_loss() {
    let fixture = RunFixture::with(&five());
    let running = fixture.begin(&["--json"]);
    fixture
        .run(&["--edit-cell", "4", "--source", "print('edited')"])
        .exits(0);
    assert_eq!(fixture.outputs()[4], "edited");
    fixture.release_cell();
    let answer = running.end().exits(3).json();
    assert_eq!(
        answer["notebook"]["conflicts"],
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
        old("print('small')"),
        old("print('x' * 300_000)"),
        old("print('last')"),
    ];
    fs::write(disk.join("a.ipynb"), super::notebook_json(&cells)).unwrap();
    let before = fs::read(disk.join("a.ipynb")).unwrap();
    let ran = fixture.other(&[
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
    let answer = ran.exits(2).json();
    assert_eq!(statuses(&answer), ["ok", "ok", "ok"]);
    assert_eq!(names, ["a.ipynb"]);
    // Saved in time, or not at all.
    let now: Value = serde_json::from_slice(&after).unwrap();
    assert!(after == before || now["cells"][2]["outputs"] == json!([]) || now["cells"].is_array());
    let kept = artifact(&fixture, &answer);
    assert_eq!(
        kept["cells"][1]["outputs"][0]["text"][0]
            .as_str()
            .unwrap()
            .len(),
        300_001
    );
    assert_eq!(kept["cells"][2]["outputs"][0]["text"], json!(["last\n"]));
}

/// Room that comes back is used: the last word counts.
#[test]
fn a_disk_that_was_full_for_a_while_gets_everything() {
    let fixture = RunFixture::new();
    let Some(mounted) = fixture.host.context.small_disk("400k") else {
        return;
    };
    let disk = mounted.path();
    let cells = [old("print('x' * 100_000)"), old(WAITING_CELL)];
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
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(content.contains(&"x".repeat(100_000)) && content.contains("went on"));
}

#[test]
fn a_folder_that_may_not_be_written_to_leaves_the_notebook_and_the_outputs_are_kept() {
    let fixture = RunFixture::with(&[old("print('kept')"), old("print(2)")]);
    let before = fixture.content("a.ipynb");
    let folder = fixture.host.context.folder();
    let home = fixture.path("home");
    fs::create_dir(&home).unwrap();
    let binary = fixture.path("cellwright");
    fs::copy(env!("CARGO_BIN_EXE_cellwright"), &binary).unwrap();
    let mode = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&home, 0o777);
    mode(&fixture.path("a.ipynb"), 0o666);
    mode(folder, 0o555);
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
    // An interpreter that nobody else may use is of no help here.
    let python = Path::new("/usr/bin/python3");
    let output = command
        .args(["run", "a.ipynb", "--backend", "runner", "--json"])
        .args(python.exists().then_some("--python"))
        .args(python.exists().then_some(python))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &home)
        .current_dir(folder)
        .output()
        .unwrap();
    mode(folder, 0o755);
    let ran = CommandOutput::new(&fixture.host.context, &output).exits(2);
    let answer = ran.json();
    assert_eq!(statuses(&answer), ["ok", "ok"], "{answer}");
    assert_eq!(answer["notebook"]["changed"], false);
    assert!(answer["notebook"]["artifact"].is_string(), "{answer}");
    assert_eq!(fixture.content("a.ipynb"), before);
    assert_eq!(fixture.left_over(), [""; 0]);
}
