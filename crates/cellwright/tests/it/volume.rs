//! Much output: all of it is kept, little of it is shown, and memory stays small.

use std::fs;
use std::process::Stdio;

use crate::context::Context;

/// Megabytes that are printed; `CELLWRIGHT_TEST_FACTOR` multiplies them.
fn megabytes() -> usize {
    let factor = std::env::var("CELLWRIGHT_TEST_FACTOR").ok();
    let factor: usize = factor.and_then(|text| text.parse().ok()).unwrap_or(1);
    64 * factor
}

/// Runs code that also writes what it prints to the file `said`; compares it with the artifact, and
/// returns the answer.
fn printed_and_kept(code: &str) -> serde_json::Value {
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
    let answer: serde_json::Value = serde_json::from_str(&context.content("answer")).unwrap();
    let artifact = answer["cells"][0]["truncated"]["artifact"]
        .as_str()
        .unwrap();
    let path = context.run(&["artifact", "path", artifact]).exits(0).stdout;
    let same = std::process::Command::new("cmp")
        .args([path.trim_end(), "said"])
        .current_dir(context.folder())
        .status()
        .unwrap();
    assert!(same.success(), "the artifact is not what was printed");
    let shown = answer["cells"][0]["text"].as_str().unwrap();
    assert!(shown.len() <= 50 * 1024, "{} bytes shown", shown.len());
    answer
}

#[test]
fn lines() {
    let answer = printed_and_kept(
        "line = b'x' * 99 + b'\\n'\nfor i in range(MB * 10): say(line * 1000 + (b'%d\\n' % i))",
    );
    let cut = &answer["cells"][0]["truncated"];
    assert_eq!(
        cut["total_lines"].as_u64().unwrap(),
        10_010 * megabytes() as u64
    );
    let text = answer["cells"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("xxxxx")
            && text
                .trim_end()
                .ends_with(&(megabytes() * 10 - 1).to_string())
    );
}

#[test]
fn one_long_line() {
    printed_and_kept("for i in range(MB): say(b'y' * 1_000_000)");
}

#[test]
fn binary_noise() {
    printed_and_kept("for i in range(MB): say(os.urandom(1_000_000))");
}

#[test]
fn characters_in_halves() {
    // The pieces end within characters.
    printed_and_kept("text = ('ä€😀' * 111_112).encode()[:500_001]\nfor i in range(MB): say(text)");
}

#[test]
fn memory_stays_small_whatever_is_printed() {
    for what in [
        "for i in range(MB * 1000): print('z' * 999)",
        "for i in range(MB): os.write(1, b'\\n' * 1_000_000)",
        "for i in range(MB): os.write(1, b'abc\\r' * 250_000)",
        "for i in range(MB): os.write(1 + i % 2, b'a\\n' * 500_000)",
        "for i in range(30_000): display(i)",
    ] {
        memory_stays_small(what);
    }
}

/// The most that any process of the command held at any time, until its very end.
fn memory_stays_small(what: &str) {
    const MEASURE: &str = "import resource, subprocess, sys\nran = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\nprint(ran.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)";
    let code = format!("import os\nMB = {}\n{what}", megabytes());
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
            .current_dir(context.folder())
            .env("HOME", context.home());
        let output = measured.output().unwrap();
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        let (code, kilobytes) = answer.trim().split_once(' ').unwrap();
        assert_eq!(code, "0", "{what}");
        let kilobytes: u64 = kilobytes.parse().unwrap();
        assert!(kilobytes < 64 * 1024, "{what} {form:?}: {kilobytes} kB");
    }
}

#[test]
fn a_progress_bar_is_one_line() {
    let code = "import sys\nfor i in range(20_001): sys.stderr.write(f'\\r{i / 200:6.2f} %'); sys.stderr.flush()\nprint(file=sys.stderr)";
    let context = Context::new();
    let answer = context.eval(&[code, "--json"]).exits(0).json();
    assert_eq!(
        answer["cells"][0]["text"].as_str().unwrap().trim_end(),
        "100.00 %"
    );
    let ran = context.eval(&[code]).exits(0);
    assert_eq!(ran.stderr.trim_end(), "100.00 %");
}

#[test]
fn a_pipe_gets_the_beginning_and_the_end() {
    let context = Context::new();
    let code = "for i in range(20_000): print('line', i)";
    let ran = context.eval(&[code]).exits(0);
    assert!(ran.stdout.len() < 52 * 1024, "{}", ran.stdout.len());
    assert!(ran.stdout.starts_with("line 0\nline 1\n"));
    assert!(ran.stdout.ends_with("line 19998\nline 19999\n"));
    assert!(
        ran.stdout.contains("elided …]\nline "),
        "the end begins with a whole line"
    );
    assert!(
        ran.stderr.contains("all of it is in artifact://1"),
        "{}",
        ran.stderr
    );
    let mut whole = String::new();
    for i in 0..20_000 {
        whole.push_str(&format!("line {i}\n"));
    }
    assert!(context.eval(&["--full", code]).exits(0).stdout == whole);
    assert!(context.run(&["read", "artifact://1"]).exits(0).stdout == whole);
}
