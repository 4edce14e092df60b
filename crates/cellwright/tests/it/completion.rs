//! Completion of command lines: by the hidden command, and in real shells.

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
    let script = context.run(&["completions", "powershell"]).exits(0).stdout;
    assert!(script.contains("upgrade"));
}

/// A shell that has the completion script and finds the binary as `cellwright`. Reports a skip if the shell is missing.
fn shell_command(context: &Context, shell: &str) -> Option<Command> {
    let is_installed = Command::new(shell).arg("--version").output();
    if !is_installed.is_ok_and(|output| output.status.success()) {
        cellwright_test_support::skip(shell, "the shell is not installed");
        return None;
    }
    let binary = context.command(&[]);
    let script = context.run(&["completions", shell]).exits(0).stdout;
    context.file(&format!("completion.{shell}"), script);
    let bin = context.home().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let link = bin.join("cellwright");
    if !link.exists() {
        std::os::unix::fs::symlink(binary.get_program(), link).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    // A shell that waits for something else than the test ends.
    let mut command = Command::new("timeout");
    command
        .args(["60", shell])
        .current_dir(context.dir())
        .env_clear()
        .envs(
            binary
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("TERM", "dumb");
    Some(command)
}

#[test]
fn fish_shows_the_candidates() {
    let context = Context::with_notebook();
    std::fs::copy(context.path("a.ipynb"), context.path("two words.ipynb")).unwrap();
    for (line, expected) in [
        ("cellwright noteb", &["notebook"][..]),
        (
            "cellwright notebook edit two\\ words.ipynb ",
            &["0", "1", "2"],
        ),
        ("cellwright run a.ipynb --from l", &["last"]),
        ("cellwright read tw", &["two words.ipynb"]),
        ("cellwright notebook parameters tw", &["two words.ipynb"]),
        ("cellwright eval a", &[]),
    ] {
        let Some(mut fish) = shell_command(&context, "fish") else {
            return;
        };
        let program = "source completion.fish; complete -C $argv[1]";
        let output = fish
            .args(["--no-config", "-c", program, line])
            .output()
            .unwrap();
        let output = String::from_utf8(output.stdout).unwrap();
        let values: Vec<&str> = output
            .lines()
            .map(|line| line.split('\t').next().unwrap_or_default())
            .collect();
        assert_eq!(values, expected, "{line}");
    }
}

/// Types a line in an interactive zsh, presses the tab key, and returns the words of the completed line.
const ZSH_SESSION: &str = r#"
zmodload zsh/zpty
zpty session zsh -f -i
zpty -w session 'autoload -Uz compinit; compinit -u -D; source completion.zsh'
zpty -w session 'cellwright() { if [[ $1 == __complete ]]; then command cellwright "$@"; else print -r -- "words:${(j:|:)@}:end"; fi }; print -r -- set"-"up'
zpty -r session line '*set-up*'
zpty -w -n session "$1"$'\t\r'
zpty -r session line '*words:*:end*'
print -r -- "$line"
zpty -d session
"#;

#[test]
fn zsh_completes_the_line() {
    let context = Context::with_notebook();
    std::fs::copy(context.path("a.ipynb"), context.path("two words.ipynb")).unwrap();
    for (line, expected) in [
        ("cellwright noteb", "notebook"),
        (
            "cellwright notebook edit two\\ words.ipynb f",
            "notebook|edit|two words.ipynb|first-code",
        ),
        ("cellwright run a.ipynb --from l", "run|a.ipynb|--from|last"),
        ("cellwright read tw", "read|two words.ipynb"),
        (
            "cellwright notebook parameters tw",
            "notebook|parameters|two words.ipynb",
        ),
    ] {
        let Some(mut zsh) = shell_command(&context, "zsh") else {
            return;
        };
        let output = zsh
            .args(["-f", "-c", ZSH_SESSION, "zsh", line])
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        let words = output.rsplit_once("words:").map_or("", |(_, words)| words);
        let words = words.split(":end").next().unwrap_or_default();
        assert_eq!(words, expected, "{line}: {output:?}");
    }
}
