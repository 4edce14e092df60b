//! What a person sees in a window: tables within its width, colours for failures.

use std::process::Command;

use insta::assert_snapshot;
use serde_json::json;

use crate::context::Context;

/// Runs a command in a terminal with some columns, and prints everything that it shows.
const TERMINAL: &str = r"
import fcntl, os, pty, struct, sys, termios
columns, command = int(sys.argv[1]), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
    os.execv(command[0], command)
shown = b''
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:
        break
    if not data:
        break
    shown += data
os.waitpid(pid, 0)
sys.stdout.buffer.write(shown.replace(b'\r\n', b'\n'))
";

/// Runs a command in a window with some columns.
fn run_in_window(context: &Context, columns: usize, arguments: &[&str]) -> String {
    let command = context.command(arguments);
    let mut terminal = Command::new("python3");
    terminal
        .args(["-c", TERMINAL, &columns.to_string()])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(context.dir());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => terminal.env(name, value),
            None => terminal.env_remove(name),
        };
    }
    let output = terminal.output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A notebook with long lines, wide characters and many outputs.
fn with_wide_notebook() -> Context {
    let stream =
        |name: &str, text: &str| json!({"output_type": "stream", "name": name, "text": text});
    let mut outputs = Vec::new();
    for step in 0..4 {
        outputs.push(stream(
            "stderr",
            &format!("step {step} of a long computation\n"),
        ));
        outputs.push(stream("stdout", "東京\n"));
    }
    outputs.push(json!({"output_type": "display_data", "metadata": {}, "data": {"image/png": "AAAA", "text/plain": "<F>"}}));
    let code = |id: &str, count: u32, source: &str, outputs: &serde_json::Value| json!({"cell_type": "code", "execution_count": count, "id": id, "metadata": {}, "outputs": outputs, "source": source});
    let markdown = json!({"cell_type": "markdown", "id": "title", "metadata": {}, "source": "# 東京の気温 🌡️ und vieles mehr, das nicht in eine Zeile passt"});
    let cells = [
        markdown,
        code(
            "imports",
            1,
            "import numpy as np\nimport pandas as pd",
            &json!([]),
        ),
        code(
            "train-the-model",
            12,
            "model.fit(training_data, epochs=epochs, batch_size=128, verbose=True)",
            &json!(outputs),
        ),
        code("d", 13, "x", &json!([stream("stdout", "1\n")])),
    ];
    let context = Context::new();
    let notebook = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    context.file("wide.ipynb", notebook.to_string());
    context
}

#[test]
fn tables_fit_into_the_window() {
    let context = with_wide_notebook();
    let mut shown = String::new();
    for columns in [40, 80, 120] {
        let outline = run_in_window(
            &context,
            columns,
            &["notebook", "outline", "wide.ipynb", "-q"],
        );
        let figures = run_in_window(
            &context,
            columns,
            &["notebook", "figures", "wide.ipynb", "-q"],
        );
        shown.push_str(&format!("{}\n{outline}\n{figures}", "=".repeat(columns)));
    }
    assert_snapshot!(shown);
    // Everything is in a pipe.
    let piped = context
        .run(&["notebook", "outline", "wide.ipynb"])
        .exits(0)
        .stdout;
    let full = "→ stderr ×4 116 B, stdout ×4 28 B, image/png 3 B\n";
    assert!(piped.contains(full), "{piped}");
}

#[test]
fn a_failed_cell_stands_out() {
    let context = Context::new();
    let cell = |source: &str| json!({"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [], "source": source});
    let source = "print('before')\nvalues = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]\n1 / 0";
    let cells = [
        cell("\n# The first line is shown, as far as it fits into the window\nx = 1"),
        cell(source),
    ];
    let notebook = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4});
    context.file("a.ipynb", notebook.to_string());
    let shown = run_in_window(&context, 40, &["run", "a.ipynb"]);
    let first = "\u{1b}[2m[1/2] cell 0 ok · # The first line is s…\u{1b}[0m\n";
    assert!(shown.contains(first), "{shown:?}");
    let heading = "\u{1b}[36m[2/2] cell 1 · print('before')\u{1b}[0m\nbefore\n";
    assert!(shown.contains(heading), "{shown:?}");
    assert!(shown.contains("\u{1b}[31m[2/2] cell 1 failed"), "{shown:?}");
    let exception = "\u{1b}[0;31mZeroDivisionError: division by zero\u{1b}[0m";
    assert!(shown.contains(exception), "{shown:?}");
    // In a pipe the same lines have no colours.
    let piped = context.run(&["run", "a.ipynb"]).exits(1);
    assert!(
        piped
            .stdout
            .starts_with("[2/2] cell 1 · print('before')\nbefore\n"),
        "{}",
        piped.stdout
    );
    assert!(!piped.stderr.contains('\u{1b}'), "{}", piped.stderr);
}

#[test]
fn lists_of_trust_and_git_setup_fit_into_the_window() {
    let context = Context::new();
    let dir = context.dir().join(".cellwright/modules");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("a-module-with-a-long-name.py"), "x = 1\n").unwrap();
    let git = Command::new("git")
        .args(["init", "-q"])
        .current_dir(context.dir())
        .status();
    assert!(git.unwrap().success());
    for arguments in [
        &["trust"][..],
        &["trust", "--list"],
        &["git", "setup", "--clean"],
    ] {
        for columns in [40, 80] {
            let shown = run_in_window(&context, columns, arguments);
            let table = shown
                .lines()
                .take_while(|line| !line.contains('\u{1b}') && !line.starts_with("next"));
            let table: Vec<&str> = table.collect();
            assert!(!table.is_empty(), "{shown}");
            for line in table {
                assert!(line.chars().count() <= columns, "{arguments:?}: {line}");
            }
            if arguments[0] == "trust" {
                assert!(shown.contains("with-a-long-name.py"), "{shown}");
            } else {
                assert!(shown.contains("filter.cellwright.clean"), "{shown}");
                context.run(&["git", "setup", "--undo"]).exits(0);
            }
        }
    }
}

/// The second of two bars is drawn below the first one, where the cursor then is. What follows is below both.
#[test]
fn bars_below_each_other_are_redrawn_in_place() {
    let context = Context::new();
    let code = "\
import sys
for step in range(3):
    sys.stderr.write(f'\\router {step}\\n\\rinner {step}\\x1b[A')
sys.stderr.flush()
1/0";
    let shown = run_in_window(&context, 80, &["eval", code]);
    let bars = "\router 0\n\rinner 0\u{1b}[1A\router 1\n\rinner 1\u{1b}[1A\router 2\n\rinner 2\u{1b}[1A\n\n";
    let after = shown.split_once(bars);
    assert!(
        after.is_some_and(|(_, after)| after.contains("Traceback")),
        "{shown:?}"
    );
}
