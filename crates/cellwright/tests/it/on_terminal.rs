//! Commands whose stdin, stdout and stderr are a terminal.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::context::{CommandOutput, Context};

/// Starts a command on a new terminal, types what it reads from stdin, and prints what the terminal shows.
const TERMINAL: &str = r"
import os, pty, sys
typed = sys.stdin.buffer.read()
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
os.write(terminal, typed)
while True:
    try:
        shown = os.read(terminal, 65536)
    except OSError:
        break
    if not shown:
        break
    sys.stdout.buffer.write(shown)
    sys.stdout.buffer.flush()
status = os.waitpid(child, 0)[1]
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 255)
";

/// Runs the binary on a terminal. stdout is what the terminal shows, with plain line ends.
pub(crate) fn run_on_terminal(
    context: &Context,
    arguments: &[&str],
    variables: &[(&str, &str)],
    typed: &str,
) -> CommandOutput {
    let binary = context.command(arguments);
    let mut command = Command::new("python3");
    command
        .args(["-c", TERMINAL])
        .arg(binary.get_program())
        .args(binary.get_args())
        .current_dir(context.dir())
        .env_clear()
        .envs(
            binary
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("NO_COLOR", "1")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(typed.as_bytes()).unwrap();
    drop(stdin);
    let mut output = CommandOutput::new(context, &child.wait_with_output().unwrap());
    output.stdout = output.stdout.replace("\r\n", "\n");
    output
}

#[test]
fn commands_that_wait_for_input_say_so() {
    let context = Context::with_notebook();
    let typed = "# %% [code]\nx = 1\n\u{4}";
    let result = run_on_terminal(&context, &["write", "new.ipynb", "--create"], &[], typed);
    let shown = result.exits(0).stdout;
    assert!(
        shown.contains("reading the text of new.ipynb from the terminal; Ctrl-D ends the input"),
        "{shown}"
    );
    assert!(context.content("new.ipynb").contains("x = 1"));
    let shown = run_on_terminal(&context, &["mcp"], &[], "\u{4}").stdout;
    assert!(
        shown.contains("waiting for the messages of an MCP client on stdin"),
        "{shown}"
    );
    // A client is not a person.
    let result = context.run_with_input(&["mcp"], "");
    assert_eq!(result.stderr, "");
}
