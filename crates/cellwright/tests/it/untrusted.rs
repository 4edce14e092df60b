//! What a project that the user does not trust cannot do, and what code in a kernel cannot read.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::context::{CommandOutput, Context, THREE_CELLS};
use crate::mcp::client::Client;

/// A program that records its starts in `runs`, next to the project, and is a Python interpreter otherwise.
fn write_interpreter(context: &Context, path: &Path) {
    let python = std::env::var("CELLWRIGHT_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let record = context.path("runs");
    let script = format!(
        "#!/bin/sh\necho run >> {}\nexec {python} \"$@\"\n",
        record.display()
    );
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A project with an environment whose interpreter records its starts, and a notebook.
fn hostile_project(is_environment: bool) -> Context {
    let context = Context::new();
    fs::create_dir_all(context.path("project/.git")).unwrap();
    write_interpreter(&context, &context.path("project/.venv/bin/python"));
    if is_environment {
        fs::write(context.path("project/.venv/pyvenv.cfg"), "").unwrap();
    }
    let kernel = context.path("project/.venv/share/jupyter/kernels/own");
    fs::create_dir_all(&kernel).unwrap();
    let spec = json!({
        "argv": ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Own", "language": "python",
    });
    fs::write(kernel.join("kernel.json"), spec.to_string()).unwrap();
    context.file("project/a.ipynb", THREE_CELLS);
    context
}

/// Runs the binary in the project.
fn in_project(context: &Context, arguments: &[&str]) -> CommandOutput {
    let mut command = context.command(arguments);
    let output = command.current_dir(context.path("project")).output();
    CommandOutput::new(context, &output.unwrap())
}

/// How often the interpreter was started.
fn starts(context: &Context) -> usize {
    let record = fs::read_to_string(context.path("runs"));
    record.unwrap_or_default().lines().count()
}

#[test]
fn verbs_that_only_inspect_do_not_start_the_interpreter_of_a_project() {
    for is_environment in [true, false] {
        let context = hostile_project(is_environment);
        let verbs: [&[&str]; 10] = [
            &["doctor"],
            &["kernels", "specs"],
            &["kernels", "list"],
            &["config", "list"],
            &["trust", "--list"],
            &["read", "a.ipynb"],
            &["notebook", "outline", "a.ipynb"],
            &["__complete", "--", "eval", "--kernel", ""],
            &["git", "textconv", "a.ipynb"],
            &["host", "status"],
        ];
        for verb in verbs {
            in_project(&context, verb).exits(0);
            assert_eq!(starts(&context), 0, "{verb:?}");
        }
        let doctor = in_project(&context, &["doctor", "--json"]).exits(0).json();
        let finding = &doctor["findings"][0];
        assert_eq!(finding["code"], "python-untrusted");
        let next = finding["next"].as_str().unwrap();
        assert!(next.contains("`cellwright trust`"), "{next}");
        assert!(next.contains("--python"), "{next}");
        let specs = in_project(&context, &["kernels", "specs", "--json"]).json();
        assert_eq!(specs["notices"][0]["kind"], "interpreter_not_started");
        let refused = in_project(&context, &["helpers"]).exits(2);
        assert!(
            refused.stderr.contains("do not trust"),
            "{}",
            refused.stderr
        );
        assert!(
            refused.stderr.contains("`cellwright trust`"),
            "{}",
            refused.stderr
        );
        let mut command = context.command(&["mcp"]);
        command.current_dir(context.path("project"));
        let mut client = Client::without_python(command);
        for action in ["doctor", "specs"] {
            let reply = client.call("kernels", json!({"action": action})).ok();
            assert!(reply.text().contains("do not trust"), "{}", reply.text());
        }
        assert_eq!(starts(&context), 0);
    }
}

#[test]
fn the_first_code_on_the_interpreter_of_a_project_gives_a_notice() {
    let context = hostile_project(true);
    let kinds = |result: &CommandOutput| {
        let document = result.json();
        let notices = document["notices"].as_array().unwrap();
        let kind = |notice: &Value| notice["kind"].as_str().unwrap().to_owned();
        notices.iter().map(kind).collect::<Vec<_>>()
    };
    let first = in_project(&context, &["eval", "--json", "6 * 7"]).exits(0);
    assert_eq!(kinds(&first), ["project_interpreter"]);
    assert_eq!(starts(&context), 1);
    // Once, whatever runs code.
    let second = in_project(&context, &["eval", "--json", "6 * 7"]).exits(0);
    assert!(kinds(&second).is_empty(), "{}", second.stdout);
    // The user has run code with it: verbs that inspect may start it, too.
    let doctor = in_project(&context, &["doctor", "--json"]).json();
    assert_eq!(doctor["findings"][0]["code"], "python");
    let listed = in_project(&context, &["trust", "--list", "--json"]).json();
    assert_eq!(listed["files"][0]["state"], "used");
}

#[test]
fn a_trusted_or_named_interpreter_is_no_surprise() {
    let context = hostile_project(true);
    let named = in_project(&context, &["eval", "--python", ".venv", "1"]).exits(0);
    assert_eq!(named.stderr, "");
    assert_eq!(
        in_project(&context, &["doctor", "--json"]).json()["findings"][0]["code"],
        "python-untrusted"
    );
    let trusted = in_project(&context, &["trust", "--json"]).exits(0).json();
    assert!(
        trusted["files"][0]["path"]
            .as_str()
            .unwrap()
            .ends_with("project/.venv")
    );
    assert_eq!(in_project(&context, &["eval", "1"]).exits(0).stderr, "");
    assert_eq!(
        in_project(&context, &["doctor", "--json"]).json()["findings"][0]["code"],
        "python"
    );
    in_project(&context, &["trust", "--remove"]).exits(0);
    let again = in_project(&context, &["eval", "1"]).exits(0);
    assert!(
        again.stderr.contains("this notice appears once"),
        "{}",
        again.stderr
    );
}

#[test]
fn an_environment_in_the_home_directory_is_no_project() {
    let context = Context::new();
    write_interpreter(&context, &context.home().join(".venv/bin/python"));
    fs::write(context.home().join(".venv/pyvenv.cfg"), "").unwrap();
    let mut command = context.command(&["eval", "1"]);
    let output = command.current_dir(context.home()).output().unwrap();
    let result = CommandOutput::new(&context, &output).exits(0);
    assert_eq!((result.stderr.as_str(), starts(&context)), ("", 1));
}

#[test]
fn ignored_settings_of_a_project_are_reported_by_every_verb_that_runs_code() {
    let context = Context::with_notebook();
    fs::create_dir(context.path(".cellwright")).unwrap();
    context.file(
        ".cellwright/config.toml",
        "[kernel]\ntransport = \"tcp\"\n[eval]\ntimeout = 0\nsession = \"@1\"\n[mcp]\ntool_prefix = \"x\"\n",
    );
    for arguments in [
        &["eval", "--json", "1"][..],
        &["check", "--json", "a.ipynb"],
        &["run", "--json", "a.ipynb"],
        &["kernels", "specs", "--json"],
        &["helpers", "--json"],
        &["config", "list", "--json"],
    ] {
        let document = context.run(arguments).json();
        let notices = document["notices"].as_array().unwrap();
        let ignored: Vec<&str> = notices
            .iter()
            .filter(|notice| notice["kind"] == "settings_ignored")
            .map(|notice| notice["text"].as_str().unwrap())
            .collect();
        assert_eq!(ignored.len(), 1, "{arguments:?}");
        for name in [
            "kernel.transport",
            "eval.timeout",
            "eval.session",
            "mcp.tool_prefix",
        ] {
            assert!(ignored[0].contains(name), "{arguments:?}: {}", ignored[0]);
        }
    }
}

/// Code that lists the processes in whose environment a value is. The value is in two parts, because the code itself may be
/// in an argument.
const SEARCH: &str = r"
import os
def search(first, second):
    value, found = (first + second).encode(), []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/environ', 'rb') as file:
                environ = file.read()
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                command = file.read()
        except OSError:
            continue
        if value in environ:
            found.append(command)
    return found
";

#[cfg(target_os = "linux")]
#[test]
fn code_cannot_read_withheld_values_in_the_environment_of_any_process() {
    let context = Context::new();
    let value = |test: &str| format!("w1thheld-{test}");
    let code = |test: &str| format!("{SEARCH}\nprint(search('w1thheld', '-{test}'))");
    for (test, arguments) in [("eval", &[][..]), ("session", &["--session", "s"])] {
        let mut command = context.eval_command(arguments);
        let output = command
            .arg(code(test))
            .env("MY_TOKEN", value(test))
            .env("DATABASE_URL", format!("db://me:{}@h/x", value(test)))
            .output()
            .unwrap();
        let result = CommandOutput::new(&context, &output).exits(0);
        assert_eq!(result.stdout, "[]\n", "{test}");
    }
    context.run(&["host", "stop"]);
    // Over MCP, kernels receive only listed variables.
    let mut command = context.command(&["mcp"]);
    command.env("ANY_VARIABLE", value("mcp"));
    let mut client = Client::started(command);
    let reply = client.call("eval", json!({"code": code("mcp")})).ok();
    assert_eq!(reply.printed(), "[]\n");
    // A variable that is requested still reaches the kernel.
    let mut command = context.eval_command(&["--env", "MY_TOKEN"]);
    command.arg("import os; print(os.environ['MY_TOKEN'])");
    let output = command.env("MY_TOKEN", "passed").output().unwrap();
    assert_eq!(
        CommandOutput::new(&context, &output).exits(0).stdout,
        "passed\n"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn code_of_an_ordinary_user_cannot_read_the_memory_of_its_command() {
    let python = Path::new("/usr/bin/python3");
    if !python.exists() {
        cellwright_test_support::skip("python3", "there is no /usr/bin/python3");
        return;
    }
    let context = Context::new();
    let binary = context.path("cellwright");
    fs::copy(env!("CARGO_BIN_EXE_cellwright"), &binary).unwrap();
    for dir in [context.dir(), context.home()] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let mut command = if is_root {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&binary);
        command
    } else {
        Command::new(&binary)
    };
    // Above the kernel are its supervisor and the watcher, whose parent is the command.
    let code = r"
import os, re
def parent(pid):
    return int(re.search(r'PPid:\s*(\d+)', open(f'/proc/{pid}/status').read()).group(1))
command = parent(parent(os.getppid()))
print(open(f'/proc/{command}/comm').read().strip())
for name in ('environ', 'mem', 'auxv', 'maps'):
    try:
        open(f'/proc/{command}/{name}', 'rb').read(1)
        print(name, 'was read')
    except OSError as error:
        print(name, error.strerror)
";
    let output = command
        .args(["eval", "--python"])
        .arg(python)
        .arg(code)
        .current_dir(context.dir())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", context.home())
        .env("MY_TOKEN", "w1thheld-memory")
        .output()
        .unwrap();
    let printed = CommandOutput::new(&context, &output).exits(0).stdout;
    let denied = "Permission denied\n";
    let expected = format!("cellwright\nenviron {denied}mem {denied}auxv {denied}maps {denied}");
    assert_eq!(printed, expected);
}

#[test]
fn credentials_in_urls_are_never_printed() {
    let context = Context::new();
    let url = "https://me:sesame@gateway.test/x?token=sesame";
    for arguments in [
        &["config", "list"][..],
        &["config", "list", "--json"],
        &["config", "get", "gateway.url"],
        &["config", "get", "gateway.url", "--json"],
        &["doctor"],
        &["doctor", "--json"],
    ] {
        let mut command = context.command(arguments);
        let output = command.env("CELLWRIGHT_GATEWAY_URL", url).output().unwrap();
        let result = CommandOutput::new(&context, &output).exits(0);
        assert!(!result.output_masked().contains("sesame"), "{arguments:?}");
    }
    let mut command = context.command(&["config", "get", "gateway.url"]);
    let output = command.env("CELLWRIGHT_GATEWAY_URL", url).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(shown, "https://***@gateway.test/x?token=***\n");
    // Errors quote arguments.
    for arguments in [
        &["read", url][..],
        &["eval", "--cwd", url, "1"],
        // A path with a URL has one slash less.
        &["eval", "--python", url, "1"],
        &["run", url],
        &["edit", url, "--old", "a", "--new", "b"],
        &["eval", "--timeout", url, "1"],
        &["mcp", "--http", url],
        &["mcp", "--allow-origin", url],
        &[url],
    ] {
        for json in [false, true] {
            let mut command = context.command(arguments);
            let output = command.args(json.then_some("--json")).output().unwrap();
            let result = CommandOutput::new(&context, &output).exits(2);
            assert!(!result.output_masked().contains("sesame"), "{arguments:?}");
        }
    }
}

#[test]
fn the_log_of_frames_has_no_tokens() {
    let context = Context::new();
    let code = "import os\nwith open('token', 'w') as file: print(os.environ['CELLWRIGHT_BRIDGE_TOKEN'], end='', file=file)";
    let mut command = context.eval_command(&[code]);
    let output = command.env("PI_PYTHON_IPC_TRACE", "1").output().unwrap();
    CommandOutput::new(&context, &output).exits(0);
    let token = context.content("token");
    assert!(token.len() >= 32, "{token}");
    let log = context.home().join(".local/state/cellwright/frames.log");
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("TOKEN"), "{log}");
    assert!(!log.contains(&token), "{log}");
}

#[test]
fn the_python_of_an_mcp_call_is_in_the_roots_on_path_or_allowed() {
    let context = hostile_project(true);
    let root = context.path("project");
    let programs = context.path("programs");
    for program in [programs.join("evilprog"), programs.join("bin/python3")] {
        write_interpreter(&context, &program);
    }
    let command = |allowed: &str| {
        let mut command = context.command(&["mcp", "--root", root.to_str().unwrap()]);
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env("PATH", format!("{}:{path}", programs.display()))
            .env("CELLWRIGHT_MCP_ALLOW_PYTHON", allowed);
        command
    };
    let outside = programs.join("evilprog").display().to_string();
    let mut client = Client::without_python(command(""));
    let calls = |python: &str| {
        [
            (
                "eval",
                json!({"code": "1", "per_call": true, "python": python}),
            ),
            (
                "run",
                json!({"path": "a.ipynb", "reset": true, "python": python}),
            ),
            (
                "run",
                json!({"path": "a.ipynb", "check": true, "python": python}),
            ),
        ]
    };
    for python in [
        "evilprog",
        "../programs/evilprog",
        "../programs",
        &outside,
        "~/x",
        "sh",
    ] {
        for (tool, arguments) in calls(python) {
            let text = client.call(tool, arguments).error_text();
            assert!(text.contains("is not allowed"), "{text}");
            assert!(text.contains("mcp.allow_python"), "{text}");
        }
    }
    assert_eq!(starts(&context), 0);
    for python in [".venv", ".venv/bin/python"] {
        client
            .call(
                "eval",
                json!({"code": "1", "per_call": true, "python": python}),
            )
            .ok();
    }
    assert_eq!(starts(&context), 2);
    client
        .call(
            "eval",
            json!({"code": "1", "per_call": true, "python": "python3"}),
        )
        .ok();
    drop(client);
    let mut client = Client::without_python(command(&format!("evilprog,{}", programs.display())));
    for python in ["evilprog", &outside, programs.to_str().unwrap()] {
        client
            .call(
                "eval",
                json!({"code": "1", "per_call": true, "python": python}),
            )
            .ok();
    }
    assert_eq!(starts(&context), 5);
}
