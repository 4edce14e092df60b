//! `eval`: code, streams, JSON, input requests, timeouts and interrupts.

use std::io::{Read, Write};
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::json;

use crate::context::Context;

#[test]
fn the_value_of_the_last_expression_is_printed() {
    let result = Context::new().eval(&["x = 20\nx + 1"]).exits(0);
    assert_eq!(
        (result.stdout.as_str(), result.stderr.as_str()),
        ("21\n", "")
    );
}

#[test]
fn stdout_and_stderr_are_separate() {
    let code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\n'value'";
    let result = Context::new().eval(&[code]).exits(0);
    assert_eq!(
        (result.stdout.as_str(), result.stderr.as_str()),
        ("out\n'value'\n", "err\n")
    );
}

#[test]
fn an_exception_exits_with_1_and_prints_a_traceback() {
    let code = "def f(x):\n    return 1 / x\n\nprint('before')\nf(0)\nprint('never')";
    let text = Context::new().eval(&[code]).exits(1).output_masked();
    // From 3.11 on, Python also marks the columns below the line.
    let is_no_mark =
        |line: &&str| line.trim().is_empty() || !line.chars().all(|c| " ~^".contains(c));
    let lines: Vec<&str> = text.lines().filter(is_no_mark).collect();
    assert_snapshot!(lines.join("\n"));
}

#[test]
fn code_is_read_from_an_argument_a_file_or_stdin() {
    let context = Context::new();
    context.file("script.py", "print('from a file')");
    assert_eq!(
        context.eval(&["-f", "script.py"]).exits(0).stdout,
        "from a file\n"
    );
    for arguments in [&["eval"][..], &["eval", "-"]] {
        let result = context
            .run_with_input(arguments, "print('from stdin')")
            .exits(0);
        assert_eq!(result.stdout, "from stdin\n");
    }
    assert_eq!(context.eval(&["-1"]).exits(0).stdout, "-1\n");
    context.eval(&["-f", "missing.py"]).exits(2);
}

#[test]
fn cells_share_a_kernel_and_a_failure_skips_the_rest() {
    let context = Context::new();
    let result = context
        .eval(&["--cell", "x = 4", "--cell", "print(x)", "--cell", "x * x"])
        .exits(0);
    assert_eq!(result.stdout, "4\n16\n");
    let arguments = ["1", "--cell", "oops", "--cell", "print('never')", "--json"];
    let report = context.eval(&arguments).exits(1).json();
    assert_eq!(report["status"], "error");
    let statuses: Vec<&str> = report["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["ok", "error", "skipped"]);
    assert_eq!(report["cells"][1]["error"]["ename"], "NameError");
}

#[test]
fn the_json_report_has_the_documented_fields() {
    let code = "import sys\nprint('a')\nprint('b', file=sys.stderr)\ndisplay({'application/json': {'k': [1, None]}, 'text/plain': 'shown'}, raw=True)\n42";
    let report = Context::new().eval(&[code, "--json"]).exits(0).json();
    let kernel = &report["kernel"];
    assert_eq!(
        (&kernel["backend"], &kernel["generation"]),
        (&json!("runner"), &json!(1))
    );
    assert!(kernel["pid"].is_u64() && kernel["interpreter"].is_string());
    assert_eq!(report["died"], json!(null));
    assert_eq!(report["notices"], json!([]));
    let cell = &report["cells"][0];
    assert!(cell["duration_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(cell["text"], "a\nb\nshown\n42\n");
    assert_eq!(cell["json"], json!([{"k": [1, null]}]));
    assert_eq!(cell["truncated"], json!(null));
    assert_eq!(
        cell["outputs"],
        json!([
            {"output_type": "stream", "name": "stdout", "text": ["a\n"]},
            {"output_type": "stream", "name": "stderr", "text": ["b\n"]},
            {"output_type": "display_data", "metadata": {},
             "data": {"application/json": {"k": [1, null]}, "text/plain": ["shown"]}},
            {"output_type": "execute_result", "metadata": {}, "execution_count": 1,
             "data": {"text/plain": ["42"]}},
        ])
    );
    let keys: Vec<&String> = cell.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "index",
            "id",
            "title",
            "status",
            "execution_count",
            "duration_ms",
            "text",
            "truncated",
            "images",
            "json",
            "events",
            "error",
            "outputs"
        ]
    );
}

#[test]
fn an_image_is_stored_as_an_artifact() {
    // A PNG of one pixel.
    let code = "import base64\nclass P:\n    def _repr_png_(self): return base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==')\n    def __repr__(self): return '<P>'\nP()";
    let context = Context::new();
    let report = context.eval(&[code, "--json"]).exits(0).json();
    let image = &report["cells"][0]["images"][0];
    assert_eq!(
        (&image["mime"], &image["width"]),
        (&json!("image/png"), &json!(1))
    );
    let artifact = image["artifact"].as_str().unwrap();
    let path = context.run(&["artifact", "path", artifact]).exits(0).stdout;
    let bytes = std::fs::read(path.trim_end()).unwrap();
    assert_eq!(bytes.len() as u64, image["bytes"].as_u64().unwrap());
    assert!(bytes.starts_with(b"\x89PNG"));
}

#[test]
fn input_is_answered_or_refused() {
    let context = Context::new();
    let code = "print(input('Name? ') + '!')";
    let result = context.eval(&[code, "--answer", "World"]).exits(0);
    assert!(result.stdout.ends_with("World!\n"), "{}", result.stdout);
    // Each input request uses one answer.
    let result = context.eval(&[
        "--cell", "input()", "--cell", "input()", "--answer", "a", "--answer", "b",
    ]);
    assert_eq!(result.exits(0).stdout, "'a'\n'b'\n");
    let result = context.eval(&[code]).exits(1);
    assert!(
        result.stderr.contains("Name? ") && result.stderr.contains("--answer"),
        "{}",
        result.stderr
    );
}

#[test]
fn a_timeout_stops_the_code_and_exits_with_124() {
    let context = Context::new();
    let code = "print('before', flush=True)\nimport time\ntime.sleep(60)";
    let result = context.eval(&[code, "--timeout", "0.8"]).exits(124);
    assert_eq!(result.stdout, "before\n");
    assert!(
        result
            .stderr
            .contains("error: Timed out after 0.8 s; the code was interrupted"),
        "{}",
        result.stderr
    );
    let report = context
        .eval(&[code, "--timeout", "0.8", "--json"])
        .exits(124)
        .json();
    assert_eq!(
        (&report["status"], &report["cells"][0]["status"]),
        (&json!("timeout"), &json!("timeout"))
    );
    assert_eq!(report["notices"][0]["kind"], "interrupted");
    context.eval(&["1", "--timeout", "-1"]).exits(2);
    context.eval(&["1", "--timeout", "soon"]).exits(2);
}

#[test]
fn ctrl_c_cancels_and_exits_with_130() {
    let context = Context::new();
    let mut child = context
        .eval_command(&["print('begun', flush=True)\nimport time\ntime.sleep(60)"])
        .spawn()
        .unwrap();
    expect(&mut child, "begun\n");
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("error: Cancelled; the code was interrupted"),
        "{stderr}"
    );
}

#[test]
fn a_second_ctrl_c_kills_the_kernel() {
    let context = Context::new();
    // Every interrupt arrives inside the `try`, also the first one.
    let code = "import time\nbegun = False\nwhile True:\n    try:\n        if not begun:\n            begun = True\n            print('begun', flush=True)\n        time.sleep(60)\n    except BaseException:\n        print('no!', flush=True)";
    let mut child = context
        .eval_command(&["--timeout", "0", code])
        .spawn()
        .unwrap();
    expect(&mut child, "begun\n");
    interrupt(&child);
    // The code has received the first interrupt.
    let mut no = [0; 4];
    child.stdout.as_mut().unwrap().read_exact(&mut no).unwrap();
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("and was killed"), "{stderr}");
}

/// Waits until the code has printed this.
fn expect(child: &mut std::process::Child, text: &str) {
    let mut bytes = vec![0; text.len()];
    let stdout = child.stdout.as_mut().unwrap();
    stdout.read_exact(&mut bytes).unwrap();
    assert_eq!(String::from_utf8_lossy(&bytes), text);
}

fn interrupt(child: &std::process::Child) {
    let killed = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
}

#[test]
fn the_working_directory_can_be_chosen_and_is_on_the_import_path() {
    let context = Context::new();
    std::fs::create_dir(context.path("sub")).unwrap();
    context.file("sub/neighbour.py", "value = 7");
    let code = "import os, neighbour\nprint(os.path.basename(os.getcwd()), neighbour.value)";
    assert_eq!(
        context.eval(&[code, "--cwd", "sub"]).exits(0).stdout,
        "sub 7\n"
    );
}

#[test]
fn secrets_of_the_environment_are_not_passed_to_the_kernel() {
    let context = Context::new();
    let output = context
        .eval_command(&["import os\nprint(os.environ.get('OPENAI_API_KEY'), os.environ.get('LC_X'), os.environ['CELLWRIGHT_ARTIFACTS_DIR'] != '')"])
        .env("OPENAI_API_KEY", "secret")
        .env("LC_X", "locale")
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "None locale True\n"
    );
}

#[test]
fn a_closed_pipe_does_not_end_the_code() {
    let context = Context::new();
    let code = "import sys\nfor i in range(2000): print('x' * 1000, flush=True)\nopen('mark', 'w').close()\nsys.exit(3)";
    let mut child = context.eval_command(&["--full", code]).spawn().unwrap();
    let mut some = [0; 100];
    child.stdout.take().unwrap().read_exact(&mut some).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(context.path("mark").exists());
}

#[test]
fn an_output_error_does_not_hide_an_exception() {
    let context = Context::new();
    let full = || {
        Stdio::from(
            std::fs::File::options()
                .write(true)
                .open("/dev/full")
                .unwrap(),
        )
    };
    let code_of = |mut command: std::process::Command| command.output().unwrap().status.code();
    let mut raised = context.eval_command(&["print('x')\n1/0"]);
    raised.stdout(full()).stderr(full());
    assert_eq!(code_of(raised), Some(1));
    let mut raised = context.eval_command(&["1/0"]);
    raised.stderr(full());
    assert_eq!(code_of(raised), Some(1));
    // The code runs to its end, and the missing output is an error.
    let mut succeeds = context.eval_command(&["print('x', flush=True)\nopen('mark', 'w').close()"]);
    succeeds.stdout(full());
    assert_eq!(code_of(succeeds), Some(2));
    assert!(context.path("mark").exists());
    // A closed pipe does not hide an exception.
    let mut child = context
        .eval_command(&["import time\ntime.sleep(0.3)\n1/0", "--json"])
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_script_has_a_file_name_and_imports_from_its_directory() {
    let context = Context::new();
    std::fs::create_dir(context.path("sub")).unwrap();
    context.file("sub/neighbour.py", "value = 7");
    context.file(
        "sub/main.py",
        "import multiprocessing, os, sys, neighbour\ndef double(x): return 2 * x\nif __name__ == '__main__':\n    print(os.path.basename(__file__), os.path.basename(sys.argv[0]), neighbour.value)\n    with multiprocessing.get_context('spawn').Pool(2) as pool: print(pool.map(double, [1, 2]))",
    );
    let result = context.eval(&["-f", "sub/main.py"]).exits(0);
    assert_eq!(result.stdout, "main.py main.py 7\n[2, 4]\n");
}

#[test]
fn threads_are_joined_after_the_last_cell() {
    let context = Context::new();
    let code = "import threading, time\ndef work():\n    time.sleep(2); open('saved', 'w').close(); print('saved')\nthreading.Thread(target=work).start()";
    assert_eq!(context.eval(&[code]).exits(0).stdout, "saved\n");
    assert!(context.path("saved").exists());
    let endless = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()";
    let result = context.eval(&[endless, "--timeout", "1"]).exits(0);
    assert!(
        result
            .stderr
            .contains("did not exit after the last cell and was killed"),
        "{}",
        result.stderr
    );
}

#[test]
fn a_replaced_stdout_is_flushed_at_the_end_of_each_cell() {
    let code = "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')\nprint('one')\n5";
    let result = Context::new()
        .eval(&[code, "--cell", "print('two')\n1/0", "--json"])
        .exits(1);
    let report = result.json();
    assert_eq!(report["cells"][0]["text"], "one\n5\n");
    assert!(
        report["cells"][1]["text"]
            .as_str()
            .unwrap()
            .starts_with("two\nTraceback")
    );
}

#[test]
fn output_before_the_start_of_the_kernel_is_printed_first() {
    let context = Context::new();
    let script = "#!/bin/sh\necho noise\nexec python3 \"$@\"\n";
    let python = context.file("python", script);
    std::fs::set_permissions(&python, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let result = context.run(&["eval", "1", "--python", "./python"]).exits(0);
    assert_eq!(result.stdout, "noise\n1\n");
}

#[test]
fn output_is_printed_while_the_code_runs() {
    let context = Context::new();
    let mut child = context
        .eval_command(&[
            "--timeout",
            "0",
            "print('first')\nimport time\nwhile True:\n    time.sleep(0.01)",
        ])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut first = [0; 6];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    assert_eq!(&first, b"first\n");
    interrupt(&child);
    child.wait().unwrap();
}

#[test]
fn late_output_of_a_thread_belongs_to_its_cell() {
    let code = "import threading, subprocess\nthreading.Timer(0.1, print, ['late']).start()\n";
    let report = Context::new()
        .eval(&["--cell", code, "--cell", "1", "--json"])
        .exits(0)
        .json();
    assert_eq!(report["cells"][0]["text"], "late\n");
    assert_eq!(report["cells"][1]["text"], "1\n");
}

#[test]
fn control_sequences_in_output_are_removed() {
    // Escape sequences are removed. JSON in the output of a cell stays text.
    let code = "print('\\x1b]0;title\\x07\\x1b[2Jplain\\r\\n{\"status\": \"ok\"}')";
    let context = Context::new();
    let result = context.eval(&[code]).exits(0);
    assert_eq!(result.stdout, "plain\n{\"status\": \"ok\"}\n");
    let report = context.eval(&[code, "--json"]).exits(0).json();
    assert_eq!(report["cells"][0]["text"], "plain\n{\"status\": \"ok\"}\n");
}

#[test]
fn a_pipe_receives_long_lines_unchanged() {
    let code = "import json\nprint(json.dumps({'k': 'v' * 20_000}))";
    let result = Context::new().eval(&[code]).exits(0);
    let value: serde_json::Value = serde_json::from_str(&result.stdout).unwrap();
    assert_eq!(value["k"].as_str().unwrap().len(), 20_000);
    std::io::stdout().flush().unwrap();
}

/// As a notebook does, the cells stop at `sys.exit()`. A file that ends with code 0 has succeeded.
#[test]
fn cells_after_an_exit_do_not_run() {
    let host = crate::host::TestHost::new();
    let context = &host.context;
    context.file("main.py", "import sys\nprint('main')\nsys.exit(0)\n");
    for session in [&[][..], &["--session", "s"]] {
        let exits = [
            "eval",
            "--cell",
            "import sys; sys.exit()",
            "--cell",
            "print('no')",
        ];
        let result = context.run(&[&exits[..], session].concat()).exits(1);
        assert_eq!(result.stdout, "");
        assert!(
            result.stderr.contains("raised SystemExit"),
            "{}",
            result.stderr
        );
        let result = context.run(&[&["eval", "-f", "main.py"][..], session].concat());
        assert_eq!(result.exits(0).stdout, "main\n");
    }
}
