//! The README's tour and the guide, typed in: what they show is what happens.

use std::path::Path;
use std::process::Command;

use crate::context::Context;

/// Commands of the `console` blocks, each with the output that is shown for it.
fn commands(text: &str) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let (true, Some(command)) = (inside, line.strip_prefix("$ ")) {
            commands.push((command.to_owned(), String::new()));
        } else if let (true, Some(more), Some((command, output))) =
            (inside, line.strip_prefix("> "), commands.last_mut())
            && output.is_empty()
        {
            command.push('\n');
            command.push_str(more);
        } else if let (true, Some((_, output))) = (inside, commands.last_mut()) {
            output.push_str(line);
            output.push('\n');
        }
    }
    commands
}

/// Types the commands of a page into a shell, one after the other, in a folder of their own.
fn follow(page: &str) {
    follow_in(page, None);
}

/// The same in an environment of Python's.
fn follow_in(page: &str, environment: Option<&Path>) {
    let shell = |context: &Context, command: &str| shell(context, command, environment);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(page)).unwrap();
    let context = Context::new();
    let _host = EndOfHost(&context);
    for name in ["dice.ipynb", "tour.ipynb"] {
        let example = std::fs::read(root.join("examples").join(name)).unwrap();
        context.file(name, example);
    }
    shell(
        &context,
        "git init -q . && git add . && git -c user.name=a -c user.email=b commit -qm x",
    );
    let commands = commands(&text);
    assert!(commands.len() >= 3, "{page} shows too little");
    for (command, expected) in commands {
        let seen = shell(&context, &command);
        assert!(
            fits(&seen, &expected),
            "{page}: {command}\n--- shown\n{expected}--- seen\n{seen}"
        );
    }
}

/// Ends the host that the commands started, also when one of them did not do what is shown.
struct EndOfHost<'a>(&'a Context);

impl Drop for EndOfHost<'_> {
    fn drop(&mut self) {
        shell(self.0, "cellwright host stop", None);
    }
}

/// What a command prints. The variable `run` is kept from one to the next, as a terminal would.
fn shell(context: &Context, command: &str, environment: Option<&Path>) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_cellwright"))
        .parent()
        .unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut shell = Command::new("sh");
    if let Some(environment) = environment {
        shell.env("VIRTUAL_ENV", environment);
    }
    let output = shell
        .args([
            "-c",
            &format!(
                "exec 2>&1; run=$(cat \"$HOME/run\" 2>/dev/null)\n{command}\necho \"$run\" > \"$HOME/run\""
            ),
        ])
        .current_dir(context.folder())
        .env("PATH", format!("{}:{path}", binary.display()))
        .env("HOME", context.home())
        .env("CELLWRIGHT_HOST_DIR", context.home().join("host"))
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_DATA_HOME")
        .env_remove("JUPYTER_DATA_DIR")
        .env_remove("JUPYTER_RUNTIME_DIR")
        .env("NO_COLOR", "1")
        // Who commits in the guide.
        .env("GIT_AUTHOR_NAME", "a")
        .env("GIT_AUTHOR_EMAIL", "a@example.org")
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@example.org")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Compares line by line. A line of `…` stands for the rest, `…` in a line for anything in it, and
/// blank lines between commands are only there to be read.
fn fits(seen: &str, shown: &str) -> bool {
    let mut seen = seen.trim_end().lines();
    for line in shown.trim_end().lines() {
        if line == "…" {
            return true;
        }
        let Some(real) = seen.next() else {
            return false;
        };
        let same = match line.split_once('…') {
            Some((start, end)) => real.starts_with(start) && real.ends_with(end),
            None => real.trim_end() == line.trim_end(),
        };
        if !same {
            return false;
        }
    }
    seen.next().is_none()
}

#[test]
fn the_tour_in_the_readme_is_true() {
    follow("README.md");
}

#[test]
fn the_guide_to_running_notebooks_is_true() {
    follow("docs/guide/run-notebooks.md");
}

#[test]
fn the_guide_to_running_code_is_true() {
    follow("docs/guide/run-code.md");
}

#[test]
fn the_guide_to_sessions_is_true() {
    follow("docs/guide/sessions.md");
}

#[test]
fn the_guide_to_kernels_is_true() {
    // It needs one that has ipykernel.
    let Some(python) = cellwright_test_support::python() else {
        return;
    };
    let environment = Path::new(&python).parent().unwrap().parent();
    follow_in("docs/guide/kernels.md", environment);
}

#[test]
fn the_guide_to_settings_is_true() {
    follow("docs/guide/settings.md");
}

#[test]
fn the_guide_to_helper_functions_is_true() {
    follow("docs/guide/helpers.md");
}

#[test]
fn the_guide_to_git_is_true() {
    follow("docs/guide/git.md");
}

#[test]
fn the_guide_to_notebooks_is_true() {
    follow("docs/guide/notebooks.md");
}
