//! `eval` with missing or broken interpreters, wrong directories, full disks, forged frames and kernels that die.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use insta::assert_snapshot;

use crate::context::{CommandOutput, Context};

/// Creates a program that replaces the interpreter. Returns its path.
fn fake_python(context: &Context, script: &str) -> String {
    let path = context.file("fake-python", script);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn a_missing_python_is_an_error_that_lists_the_searched_places() {
    let context = Context::new();
    let output = context
        .command(&["eval", "1"])
        .env("PATH", "/nowhere")
        .output()
        .unwrap();
    assert_snapshot!(
        CommandOutput::new(&context, &output)
            .exits(2)
            .output_masked()
    );
}

#[test]
fn the_error_quotes_the_stderr_of_a_python_that_fails_to_start() {
    let context = Context::new();
    let python = fake_python(
        &context,
        "#!/bin/sh\necho 'Fatal Python error: init' >&2\nexit 3\n",
    );
    assert_snapshot!(
        context
            .run(&["eval", "1", "--python", &python])
            .exits(2)
            .output_masked()
    );
}

#[test]
fn a_program_that_is_not_python_is_an_error() {
    let context = Context::new();
    for script in [
        "#!/bin/sh\nexit 0\n",
        "#!/bin/sh\necho '{}' >&$5\n",
        "#!/bin/sh\nkill -9 $$\n",
        "not even a script",
    ] {
        let python = fake_python(&context, script);
        let result = context.run(&["eval", "1", "--python", &python]).exits(2);
        assert!(
            result.stderr.contains("hint:"),
            "{script}: {}",
            result.stderr
        );
    }
    let result = context
        .run(&["eval", "1", "--python", "/no/such/python"])
        .exits(2);
    assert!(
        result.stderr.contains("there is no such file"),
        "{}",
        result.stderr
    );
}

#[test]
fn an_old_python_is_an_error_that_names_the_version() {
    let context = Context::new();
    // The message of `boot.py`. Real old interpreters are used if there are any.
    let mut pythons = vec![fake_python(
        &context,
        "#!/bin/sh\necho 'cellwright: Python 3.8 or newer is needed; this is 2.7.18 (x)' >&2\nexit 86\n",
    )];
    let real = std::env::var("CELLWRIGHT_TEST_OLD_PYTHONS").unwrap_or_default();
    if real.is_empty() {
        cellwright_test_support::skip("old-python", "there is no Python before 3.8");
    }
    pythons.extend(
        real.split(':')
            .filter(|path| !path.is_empty())
            .map(str::to_owned),
    );
    for python in pythons {
        let result = context.run(&["eval", "1", "--python", &python]).exits(2);
        assert!(
            result.stderr.contains("the runner needs 3.8 or newer"),
            "{}",
            result.stderr
        );
        assert!(
            result.stderr.contains("Python 2.7") || result.stderr.contains("Python 3."),
            "{}",
            result.stderr
        );
    }
}

#[test]
fn files_named_like_standard_modules_do_not_affect_the_runner() {
    let pythons = std::env::var("CELLWRIGHT_TEST_PYTHONS").unwrap_or_default();
    let mut pythons: Vec<&str> = pythons.split(':').filter(|path| !path.is_empty()).collect();
    if pythons.is_empty() {
        pythons.push("python3");
    }
    for python in pythons {
        let context = Context::new();
        for name in [
            "linecache",
            "traceback",
            "tokenize",
            "json",
            "select",
            "token",
            "types",
            "re",
        ] {
            context.file(&format!("{name}.py"), "raise SystemExit('imported')");
        }
        let code = "print('printed')\n%time 1 + 1\nimport os\nassert 'PYTHONSAFEPATH' not in os.environ\n1/0";
        let result = context.run(&["eval", code, "--python", python]).exits(1);
        assert!(
            result.stdout.starts_with("printed\n"),
            "{python}: {}",
            result.stdout
        );
        assert!(
            result.stderr.contains("ZeroDivisionError"),
            "{python}: {}",
            result.stderr
        );
    }
}

#[test]
fn a_bad_working_directory_is_an_error() {
    let context = Context::new();
    context.file("file", "");
    for (cwd, reason) in [
        ("missing", "does not exist"),
        ("file", "is not a directory"),
    ] {
        let result = context.eval(&["1", "--cwd", cwd]).exits(2);
        assert!(result.stderr.contains(reason), "{}", result.stderr);
    }
}

#[test]
fn an_unusable_artifact_directory_does_not_fail_the_run() {
    let context = Context::new();
    let blocked = context.file("blocked", "");
    let code = "for i in range(20_000): print('line', i)\n1/0";
    let output = context
        .eval_command(&[code, "--json"])
        .env("CELLWRIGHT_ARTIFACTS_DIR", blocked.join("below"))
        .output()
        .unwrap();
    let result = CommandOutput::new(&context, &output).exits(1);
    let report = result.json();
    assert_eq!(report["cells"][0]["error"]["ename"], "ZeroDivisionError");
    assert!(
        report["cells"][0]["text"]
            .as_str()
            .unwrap()
            .contains("line 19999")
    );
    assert_eq!(
        report["cells"][0]["truncated"]["artifact"],
        serde_json::Value::Null
    );
    let kinds: Vec<&str> = report["notices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|notice| notice["kind"].as_str().unwrap())
        .collect();
    assert!(kinds.contains(&"output_not_stored"), "{kinds:?}");
}

#[test]
fn a_full_disk_for_artifacts_does_not_fail_the_run() {
    let context = Context::new();
    let Some(mounted) = context.small_disk("1m") else {
        return;
    };
    let disk = mounted.path();
    let output = context
        .eval_command(&["for i in range(500_000): print('line', i)", "--json"])
        .env("CELLWRIGHT_ARTIFACTS_DIR", disk.join("artifacts"))
        .output()
        .unwrap();
    drop(mounted);
    let report = CommandOutput::new(&context, &output).exits(0).json();
    assert!(
        report["cells"][0]["text"]
            .as_str()
            .unwrap()
            .ends_with("line 499999\n")
    );
    let notices = report["notices"].to_string();
    assert!(notices.contains("output_not_stored"), "{notices}");
}

#[test]
fn few_descriptors_are_sufficient() {
    let context = Context::new();
    let eval = context.eval_command(&[
        "import subprocess\nprint(subprocess.run(['echo', 'hi'], capture_output=True).stdout)",
    ]);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -n 64 && exec \"$@\"", "sh"])
        .arg(eval.get_program())
        .args(eval.get_args())
        .current_dir(context.dir())
        .env("HOME", context.home());
    let output = limited.output().unwrap();
    assert_eq!(
        CommandOutput::new(&context, &output).exits(0).stdout,
        "b'hi\\n'\n"
    );
    // The error for too few descriptors names the limit.
    let mut too_few = Command::new("sh");
    too_few
        .args(["-c", "ulimit -n 8 && exec \"$@\"", "sh"])
        .arg(eval.get_program())
        .args(eval.get_args())
        .current_dir(context.dir())
        .env("HOME", context.home());
    let result = CommandOutput::new(&context, &too_few.output().unwrap()).exits(2);
    assert!(result.stderr.contains("ulimit -n"), "{}", result.stderr);
    assert!(result.stderr.contains("error: "), "{}", result.stderr);
}

/// Finds the channel among the descriptors of a kernel: the only socket.
const FIND_CHANNEL: &str = "import os\nfor fd in os.listdir('/proc/self/fd'):\n    try:\n        if os.readlink('/proc/self/fd/' + fd).startswith('socket'): channel = int(fd)\n    except OSError: pass\n";

#[test]
fn a_cell_that_forges_frames_does_not_block_the_command() {
    let context = Context::new();
    let forged = [
        "os.write(channel, b'garbage\\n')",
        "os.write(channel, b'{\"t\": ')",
        "os.write(channel, b'\\xff' * 100000)",
        "os.write(channel, b'{\"t\":\"display\",\"id\":1,\"bin\":[99999999999]}\\n')",
        "os.write(channel, b'{\"t\":\"done\",\"id\":1,\"status\":\"ok\",\"n\":18446744073709551615}\\n')",
        "os.write(channel, b'{\"t\":\"sync\",\"cell\":99,\"n\":18446744073709551615}\\n')",
        "os.write(channel, b'{\"t\":\"nonsense\",\"id\":1}\\n' * 1000)",
        "os.write(channel, b'[1,2]\\n')",
        "os.close(channel)",
    ];
    for forged in forged {
        let code = format!("print('before')\n{FIND_CHANNEL}{forged}\nprint('after')");
        let result = context.eval(&["--timeout", "20", &code]);
        assert!(
            matches!(result.code, Some(0..=2)),
            "{forged}: {:?} {}",
            result.code,
            result.stderr
        );
        assert!(
            result.stdout.starts_with("before\n"),
            "{forged}: {}",
            result.stdout
        );
    }
}

#[test]
fn invalid_code_is_an_error_and_a_byte_order_mark_is_accepted() {
    let context = Context::new();
    context.file("nul.py", b"print(1)\0\n");
    let result = context.eval(&["-f", "nul.py"]).exits(1);
    assert!(
        result.stderr.to_lowercase().contains("null byte"),
        "{}",
        result.stderr
    );
    context.file("latin.py", b"print('\xe9')");
    let result = context.eval(&["-f", "latin.py"]).exits(2);
    assert!(
        result.stderr.contains("is not UTF-8 text"),
        "{}",
        result.stderr
    );
    let result = context.eval(&["a = 1\nif a\n    print(a)"]).exits(1);
    assert!(
        result.stderr.contains("line 2") && result.stderr.contains("SyntaxError"),
        "{}",
        result.stderr
    );
    context.file("bom.py", "\u{feff}print('bom')\r\nprint('crlf')\r\n");
    assert_eq!(
        context.eval(&["-f", "bom.py"]).exits(0).stdout,
        "bom\ncrlf\n"
    );
}

#[test]
fn a_hundred_megabytes_of_code_run() {
    let context = Context::new();
    let line = format!("x = {:?}\n", "a".repeat(993));
    context.file("long.py", line.repeat(100_000) + "len(x)\n");
    assert_eq!(
        context
            .eval(&["-f", "long.py", "--timeout", "0"])
            .exits(0)
            .stdout,
        "993\n"
    );
}

#[test]
fn the_death_of_a_kernel_is_reported_with_signal_or_exit_code() {
    let context = Context::new();
    for (code, signal, exit_code) in [
        ("os.kill(os.getpid(), 9)", Some(9), None),
        ("os.kill(os.getpid(), 11)", Some(11), None),
        ("import ctypes; ctypes.string_at(0)", Some(11), None),
        ("os._exit(7)", None, Some(7)),
    ] {
        let code = format!("import os\nprint('before')\nopen('once', 'a').write('x')\n{code}");
        let arguments = [&code, "--cell", "print('never')", "--json"];
        let report = context.eval(&arguments).exits(2).json();
        assert_eq!(report["status"], "died", "{code}");
        assert_eq!(report["died"]["signal"].as_i64(), signal, "{code}");
        assert_eq!(report["died"]["exit_code"].as_i64(), exit_code, "{code}");
        assert_eq!(report["cells"][0]["text"], "before\n", "{code}");
        assert_eq!(report["cells"][1]["status"], "skipped");
        assert_eq!(context.content("once"), "x", "side effects happen once");
        fs::remove_file(context.path("once")).unwrap();
    }
    assert_snapshot!(
        context
            .eval(&["import os; os.kill(os.getpid(), 9)"])
            .exits(2)
            .output_masked()
    );
}

/// The message of an exception can be data of any size.
#[test]
fn a_long_message_of_an_exception_is_shortened() {
    let context = Context::new();
    let code = "raise Exception('x' * 20_000_000)";
    let result = context.eval(&["--json", code]).exits(1);
    assert!(result.stdout.len() < 10_000_000, "{}", result.stdout.len());
    let report: serde_json::Value = serde_json::from_str(&result.stdout).unwrap();
    let message = report["error"]["evalue"].as_str().unwrap();
    assert!(message.starts_with("xxx") && message.ends_with('…'));
}

/// The JSON of a notebook is also a Python expression.
#[test]
fn a_notebook_is_not_a_script() {
    let context = Context::with_notebook();
    context.file("renamed.txt", crate::context::THREE_CELLS);
    context.file("broken.ipynb", "not JSON");
    for name in ["a.ipynb", "renamed.txt", "broken.ipynb"] {
        let result = context.eval(&["-f", name]).exits(2);
        assert!(
            result
                .stderr
                .contains(&format!("{name} is a notebook, not a script")),
            "{}",
            result.stderr
        );
        assert!(
            result.stderr.contains(&format!("`cellwright run {name}`")),
            "{}",
            result.stderr
        );
        assert_eq!(result.stdout, "");
    }
    context.file("object.py", "{'cells': []}");
    context.eval(&["-f", "object.py"]).exits(0);
}
