//! Completion of command lines: by the hidden command, and in a real bash.

use std::process::Command;

use crate::context::Context;

/// The candidates for the word to complete, without descriptions.
fn candidates(context: &Context, words: &[&str]) -> Vec<String> {
    let output = context.run(&[&["__complete", "--"], words].concat());
    let output = output.exits(0).stdout;
    let value = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
    output.lines().map(value).collect()
}

#[test]
fn verbs_flags_and_fixed_values_are_candidates() {
    let context = Context::with_notebook();
    let complete = |words: &[&str]| candidates(&context, words);
    assert_eq!(complete(&["noteb"]), ["notebook"]);
    assert_eq!(complete(&["notebook", "un"]), ["undo"]);
    assert_eq!(complete(&["edit", "a.ipynb", "--wo"]), ["--word"]);
    assert_eq!(complete(&["eval", "--per"]), ["--per-call"]);
    assert_eq!(
        complete(&["notebook", "type", "a.ipynb", "0", "m"]),
        ["markdown"]
    );
    assert_eq!(complete(&["mcp", "--print-config", "clau"]), ["claude"]);
    assert_eq!(complete(&["read", "a"]), [":files"]);
    assert_eq!(complete(&["eval", "--file", ""]), [":files"]);
    // The code of `eval` is not a file.
    assert_eq!(complete(&["eval", "a"]), [""; 0]);
    let described = context.run(&["__complete", "--", "noteb"]).stdout;
    assert!(
        described.contains("\tChange, add, delete or list cells"),
        "{described}"
    );
}

#[test]
fn cells_of_the_notebook_on_the_line_are_candidates() {
    let context = Context::with_notebook();
    let complete = |words: &[&str]| candidates(&context, words);
    assert_eq!(
        complete(&["notebook", "edit", "a.ipynb", ""]),
        ["0", "1", "2"]
    );
    assert_eq!(
        complete(&["notebook", "edit", "a.ipynb", "f"]),
        ["first-code"]
    );
    assert_eq!(complete(&["run", "a.ipynb", "--from", "l"]), ["last"]);
    assert_eq!(complete(&["notebook", "edit", "no.ipynb", ""]), [""; 0]);
    let described = context
        .run(&["__complete", "--", "notebook", "delete", "a.ipynb", "1"])
        .stdout;
    assert_eq!(described, "1\tcode answer = 42\n");
}

#[test]
fn sessions_and_kernels_are_candidates_and_no_host_is_started() {
    let context = Context::with_notebook();
    let dir = context.home().join(".local/share/jupyter/kernels/echo");
    std::fs::create_dir_all(&dir).unwrap();
    let spec = r#"{"argv": ["echo"], "display_name": "Echo", "language": "echo"}"#;
    std::fs::write(dir.join("kernel.json"), spec).unwrap();
    assert_eq!(candidates(&context, &["eval", "--kernel", "ec"]), ["echo"]);
    assert_eq!(candidates(&context, &["eval", "--session", ""]), [""; 0]);
    assert!(!context.home().join("host").exists());
    context.eval(&["--session", "work", "x = 1"]).exits(0);
    for words in [
        ["eval", "--session", "w"].as_slice(),
        &["eval", "-s", "w"],
        &["run", "a.ipynb", "--session", "w"],
        &["kernels", "variables", "w"],
        &["kernels", "stop", "w"],
    ] {
        assert_eq!(candidates(&context, words), ["work"], "{words:?}");
    }
    context.run(&["host", "stop"]).exits(0);
}

/// Completes a line in bash with the script.
fn complete_in_bash(context: &Context, words: &[&str]) -> Vec<String> {
    let binary = context.command(&[]);
    let script = context.run(&["completions", "bash"]).exits(0).stdout;
    context.file("completion.bash", script);
    let program = r#"
        source completion.bash
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _cellwright "$1"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let output = Command::new("bash")
        .args(["--norc", "-c", program, "bash"])
        .arg(binary.get_program())
        .args(words)
        .current_dir(context.dir())
        .env_clear()
        .envs(
            binary
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    output.lines().map(str::to_owned).collect()
}

#[test]
fn bash_shows_the_candidates() {
    let context = Context::with_notebook();
    std::fs::copy(context.path("a.ipynb"), context.path("two words.ipynb")).unwrap();
    assert_eq!(complete_in_bash(&context, &["noteb"]), ["notebook"]);
    assert_eq!(
        complete_in_bash(&context, &["notebook", "edit", "two words.ipynb", ""]),
        ["0", "1", "2"]
    );
    // Names of files are left to bash.
    assert_eq!(complete_in_bash(&context, &["read", "a"]), [""]);
    for shell in ["zsh", "fish"] {
        let script = context.run(&["completions", shell]).exits(0).stdout;
        assert!(script.contains("__complete --"), "{shell}");
    }
    let script = context.run(&["completions", "powershell"]).exits(0).stdout;
    assert!(script.contains("upgrade"));
}
