//! Runs the commands of the README and the guide, and compares their output with the pages.

use std::path::Path;
use std::process::Command;

use crate::context::Context;

/// The commands of the `console` blocks, each with its expected output.
fn commands(text: &str) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    let mut is_console = false;
    for line in text.lines() {
        if line.starts_with("```") {
            is_console = line == "```console";
        } else if let (true, Some(command)) = (is_console, line.strip_prefix("$ ")) {
            commands.push((command.to_owned(), String::new()));
        } else if let (true, Some(more), Some((command, output))) =
            (is_console, line.strip_prefix("> "), commands.last_mut())
            && output.is_empty()
        {
            command.push('\n');
            command.push_str(more);
        } else if let (true, Some((_, output))) = (is_console, commands.last_mut()) {
            output.push_str(line);
            output.push('\n');
        }
    }
    commands
}

/// Runs the commands of a page in a shell, one after the other, in a new directory, and compares their output.
fn check_page(page: &str) {
    check_page_in(page, None);
}

/// The same with an active Python environment.
fn check_page_in(page: &str, environment: Option<&Path>) {
    let shell = |context: &Context, command: &str| shell(context, command, environment);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(page)).unwrap();
    let context = Context::new();
    let _host = HostGuard(&context);
    for name in ["dice.ipynb", "tour.ipynb"] {
        let example = std::fs::read(root.join("examples").join(name)).unwrap();
        context.file(name, example);
    }
    shell(
        &context,
        "git init -q . && git add . && git -c user.name=a -c user.email=b commit -qm x",
    );
    let commands = commands(&text);
    assert!(commands.len() >= 3, "{page} has too few commands");
    for (command, expected) in commands {
        let output = shell(&context, &command);
        assert!(
            matches(&output, &expected),
            "{page}: {command}\n--- expected\n{expected}--- output\n{output}"
        );
    }
}

/// Stops the host that the commands started, also if the test fails.
struct HostGuard<'a>(&'a Context);

impl Drop for HostGuard<'_> {
    fn drop(&mut self) {
        shell(self.0, "cellwright host stop", None);
    }
}

/// Runs a command in a shell and returns its output. The shell variable `run` is kept between commands.
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
        .current_dir(context.dir())
        .env("PATH", format!("{}:{path}", binary.display()))
        .env("HOME", context.home())
        .env("CELLWRIGHT_HOST_DIR", context.home().join("host"))
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_DATA_HOME")
        .env_remove("JUPYTER_DATA_DIR")
        .env_remove("JUPYTER_RUNTIME_DIR")
        .env("NO_COLOR", "1")
        // The author of the commits in the guide.
        .env("GIT_AUTHOR_NAME", "a")
        .env("GIT_AUTHOR_EMAIL", "a@example.org")
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@example.org")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Compares the output of a command with the page by line. A line `…` matches the rest, `…` in a line matches any
/// text, and blank lines at the end are ignored.
fn matches(output: &str, expected: &str) -> bool {
    let mut output = output.trim_end().lines();
    for line in expected.trim_end().lines() {
        if line == "…" {
            return true;
        }
        let Some(line_of_output) = output.next() else {
            return false;
        };
        let same = match line.split_once('…') {
            Some((start, end)) => {
                line_of_output.starts_with(start) && line_of_output.ends_with(end)
            }
            None => line_of_output.trim_end() == line.trim_end(),
        };
        if !same {
            return false;
        }
    }
    output.next().is_none()
}

#[test]
fn the_readme_matches_the_output() {
    check_page("README.md");
}

#[test]
fn the_guide_to_running_notebooks_matches_the_output() {
    check_page("docs/guide/run-notebooks.md");
}

#[test]
fn the_guide_to_running_code_matches_the_output() {
    check_page("docs/guide/run-code.md");
}

#[test]
fn the_guide_to_sessions_matches_the_output() {
    check_page("docs/guide/sessions.md");
}

#[test]
fn the_guide_to_kernels_matches_the_output() {
    // The page needs an interpreter with ipykernel.
    let Some(python) = cellwright_test_support::python() else {
        return;
    };
    let environment = Path::new(&python).parent().unwrap().parent();
    check_page_in("docs/guide/kernels.md", environment);
}

#[test]
fn the_guide_to_settings_matches_the_output() {
    check_page("docs/guide/settings.md");
}

#[test]
fn the_guide_to_helper_functions_matches_the_output() {
    check_page("docs/guide/helpers.md");
}

#[test]
fn the_guide_to_json_matches_the_output() {
    check_page("docs/guide/json.md");
}

#[test]
fn the_guide_to_git_matches_the_output() {
    check_page("docs/guide/git.md");
}

#[test]
fn the_guide_to_notebooks_matches_the_output() {
    check_page("docs/guide/notebooks.md");
}
