//! Large output: an artifact stores all of it, the command prints a part, and memory use is limited.

use std::fs;
use std::process::Stdio;

use crate::context::Context;

/// Megabytes that a test prints; `CELLWRIGHT_TEST_FACTOR` multiplies them.
fn megabytes() -> usize {
    let factor = std::env::var("CELLWRIGHT_TEST_FACTOR").ok();
    let factor: usize = factor.and_then(|text| text.parse().ok()).unwrap_or(1);
    64 * factor
}

/// Runs code that also writes its output to the file `said`, and compares the file with the artifact.
/// Returns the report.
fn run_and_compare_artifact(code: &str) -> serde_json::Value {
    let context = Context::new();
    let prefix = format!(
        "import os\ncopy = open('said', 'wb')\nMB = {}\ndef say(b):\n    copy.write(b)\n    while b: b = b[os.write(1, b):]\n",
        megabytes()
    );
    let mut child = context
        .eval_command(&[
            "--json",
            "--timeout",
            "0",
            &format!("{prefix}{code}\ncopy.close()"),
        ])
        .stdout(Stdio::from(
            fs::File::create(context.path("answer")).unwrap(),
        ))
        .spawn()
        .unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{}", context.content("answer"));
    let report: serde_json::Value = serde_json::from_str(&context.content("answer")).unwrap();
    let artifact = report["cells"][0]["truncated"]["artifact"]
        .as_str()
        .unwrap();
    let path = context.run(&["artifact", "path", artifact]).exits(0).stdout;
    let same = std::process::Command::new("cmp")
        .args([path.trim_end(), "said"])
        .current_dir(context.dir())
        .status()
        .unwrap();
    assert!(same.success(), "the artifact differs from the output");
    let text = report["cells"][0]["text"].as_str().unwrap();
    assert!(text.len() <= 50 * 1024, "{} bytes shown", text.len());
    report
}

#[test]
fn many_lines() {
    let report = run_and_compare_artifact(
        "line = b'x' * 99 + b'\\n'\nfor i in range(MB * 10): say(line * 1000 + (b'%d\\n' % i))",
    );
    let truncated = &report["cells"][0]["truncated"];
    assert_eq!(
        truncated["total_lines"].as_u64().unwrap(),
        10_010 * megabytes() as u64
    );
    let text = report["cells"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("xxxxx")
            && text
                .trim_end()
                .ends_with(&(megabytes() * 10 - 1).to_string())
    );
}

#[test]
fn one_long_line() {
    run_and_compare_artifact("for i in range(MB): say(b'y' * 1_000_000)");
}

#[test]
fn random_bytes() {
    run_and_compare_artifact("for i in range(MB): say(os.urandom(1_000_000))");
}

#[test]
fn writes_that_split_characters() {
    // Each write ends within a character.
    run_and_compare_artifact(
        "text = ('ä€😀' * 111_112).encode()[:500_001]\nfor i in range(MB): say(text)",
    );
}

#[test]
fn memory_use_is_limited() {
    for statements in [
        "for i in range(MB * 1000): print('z' * 999)",
        "for i in range(MB): os.write(1, b'\\n' * 1_000_000)",
        "for i in range(MB): os.write(1, b'abc\\r' * 250_000)",
        "for i in range(MB): os.write(1 + i % 2, b'a\\n' * 500_000)",
        "for i in range(30_000): display(i)",
    ] {
        check_memory(statements);
    }
}

/// Fails if a process of the command uses more than 64 MiB at any time.
fn check_memory(statements: &str) {
    const MEASURE: &str = "import resource, subprocess, sys\nran = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\nprint(ran.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)";
    let code = format!("import os\nMB = {}\n{statements}", megabytes());
    for form in [&[][..], &["--json"]] {
        let context = Context::new();
        let mut arguments = vec!["--timeout", "0", &code];
        arguments.extend(form);
        let eval = context.eval_command(&arguments);
        let mut measured = std::process::Command::new("python3");
        measured
            .args(["-c", MEASURE])
            .arg(eval.get_program())
            .args(eval.get_args())
            .current_dir(context.dir())
            .env("HOME", context.home());
        let output = measured.output().unwrap();
        let report = String::from_utf8_lossy(&output.stdout).into_owned();
        let (code, kilobytes) = report.trim().split_once(' ').unwrap();
        assert_eq!(code, "0", "{statements}");
        let kilobytes: u64 = kilobytes.parse().unwrap();
        assert!(
            kilobytes < 64 * 1024,
            "{statements} {form:?}: {kilobytes} kB"
        );
    }
}

#[test]
fn a_progress_bar_is_one_line() {
    let code = "import sys\nfor i in range(20_001): sys.stderr.write(f'\\r{i / 200:6.2f} %'); sys.stderr.flush()\nprint(file=sys.stderr)";
    let context = Context::new();
    let report = context.eval(&[code, "--json"]).exits(0).json();
    assert_eq!(
        report["cells"][0]["text"].as_str().unwrap().trim_end(),
        "100.00 %"
    );
    let result = context.eval(&[code]).exits(0);
    assert_eq!(result.stderr.trim_end(), "100.00 %");
}

#[test]
fn a_pipe_receives_the_beginning_and_the_end() {
    let context = Context::new();
    let code = "for i in range(20_000): print('line', i)";
    let result = context.eval(&[code]).exits(0);
    assert!(result.stdout.len() < 52 * 1024, "{}", result.stdout.len());
    assert!(result.stdout.starts_with("line 0\nline 1\n"));
    assert!(result.stdout.ends_with("line 19998\nline 19999\n"));
    assert!(
        result.stdout.contains("shows all …]\nline "),
        "the end begins with a whole line"
    );
    assert!(
        result.stderr.contains("all of it is in artifact://1"),
        "{}",
        result.stderr
    );
    let mut whole = String::new();
    for i in 0..20_000 {
        whole.push_str(&format!("line {i}\n"));
    }
    assert!(context.eval(&["--full", code]).exits(0).stdout == whole);
    assert!(context.run(&["read", "artifact://1"]).exits(0).stdout == whole);
}
