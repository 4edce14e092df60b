//! Settings: origins, precedence, errors and effects.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::context::{CommandOutput, Context};

/// Writes the settings of the user.
fn write_user(context: &Context, text: &str) {
    let dir = context.home().join(".config/cellwright");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("config.toml"), text).unwrap();
}

/// Writes the settings of the project.
fn write_project(context: &Context, text: &str) {
    fs::create_dir_all(context.path(".cellwright")).unwrap();
    context.file(".cellwright/config.toml", text);
}

fn run_with(context: &Context, command: &mut Command, variables: &[(&str, &str)]) -> CommandOutput {
    CommandOutput::new(
        context,
        &command.envs(variables.iter().copied()).output().unwrap(),
    )
}

/// One setting as `config get --json` prints it.
fn setting(context: &Context, name: &str, variables: &[(&str, &str)]) -> Value {
    let mut command = context.command(&["config", "get", name, "--json"]);
    run_with(context, &mut command, variables).exits(0).json()
}

fn origin_kind(setting: &Value) -> &str {
    setting["origin"]["kind"].as_str().unwrap()
}

#[test]
fn a_variable_overrides_the_project_the_user_and_the_default() {
    let context = Context::new();
    let value = |variables: &[(&str, &str)]| {
        let found = setting(&context, "eval.timeout", variables);
        (
            origin_kind(&found).to_owned(),
            found["value"].as_f64().unwrap(),
        )
    };
    assert_eq!(value(&[]), ("default".to_owned(), 30.0));
    write_user(&context, "[eval]\ntimeout = 20");
    assert_eq!(value(&[]), ("user".to_owned(), 20.0));
    write_project(&context, "# ours\n[eval]\ntimeout = 10.5");
    assert_eq!(value(&[]), ("project".to_owned(), 10.5));
    let variables = [("CELLWRIGHT_TIMEOUT", "7")];
    assert_eq!(value(&variables), ("environment".to_owned(), 7.0));
    let empty = [("CELLWRIGHT_TIMEOUT", "")];
    assert_eq!(value(&empty), ("project".to_owned(), 10.5));
}

#[test]
fn the_list_shows_the_origin_of_each_value() {
    let context = Context::new();
    write_user(&context, "\n\nsessions.max = 3\n");
    write_project(&context, "[run]\n\ntiming = true");
    let list = |arguments: &[&str]| {
        let mut command = context.command(arguments);
        run_with(&context, &mut command, &[("CELLWRIGHT_OWNER", "me")]).exits(0)
    };
    let table = list(&["config", "list"]).stdout;
    let line = |name: &str| {
        let line = table.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace()
            .skip(1)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let own = context.home().join(".config/cellwright/config.toml");
    assert_eq!(line("sessions.max"), format!("3 {}:3", own.display()));
    let shared = context.dir().canonicalize().unwrap();
    let shared = shared.join(".cellwright/config.toml");
    assert_eq!(line("run.timing"), format!("true {}:3", shared.display()));
    assert_eq!(line("eval.owner"), "me CELLWRIGHT_OWNER");
    assert_eq!(line("python.interpreter"), "- default");
    let rows = list(&["config", "list", "--json"]).json();
    let rows = rows["settings"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    assert_eq!(
        row("sessions.max")["origin"],
        json!({"kind": "user", "file": own, "line": 3})
    );
    assert_eq!(
        row("eval.owner")["origin"],
        json!({"kind": "environment", "variable": "CELLWRIGHT_OWNER"})
    );
    assert_eq!(row("eval.owner")["default"], "user");
}

#[test]
fn the_list_contains_every_setting_with_its_meaning() {
    let context = Context::new();
    let rows = context.run(&["config", "list", "--json"]).exits(0).json();
    let rows = rows["settings"].as_array().unwrap();
    let names: BTreeSet<&str> = rows
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), rows.len());
    for name in [
        "python.interpreter",
        "kernel.memory_limit",
        "gateway.token",
        "env.set",
    ] {
        assert!(names.contains(name), "{name}");
    }
    let long = context.run(&["config", "list", "--long"]).exits(0).stdout;
    for row in rows {
        assert_eq!(row["value"], row["default"], "{row}");
        assert_eq!(row["origin"], json!({"kind": "default"}), "{row}");
        let meaning = row["meaning"].as_str().unwrap();
        assert!(long.contains(&format!("    {meaning}\n")), "{meaning}");
    }
}

#[test]
fn variables_choose_the_directory_of_settings() {
    let context = Context::new();
    let write = |dir: &str, timeout: u32| {
        let dir = context.path(dir);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("config.toml"), format!("eval.timeout = {timeout}")).unwrap();
        dir.display().to_string()
    };
    let xdg = context.path("xdg").display().to_string();
    write("xdg/cellwright", 1);
    let own = write("own", 2);
    let value =
        |variables: &[(&str, &str)]| setting(&context, "eval.timeout", variables)["value"].clone();
    assert_eq!(value(&[("XDG_CONFIG_HOME", &xdg)]), 1);
    let both = [
        ("XDG_CONFIG_HOME", xdg.as_str()),
        ("CELLWRIGHT_CONFIG_DIR", &own),
    ];
    assert_eq!(value(&both), 2);
}

#[test]
fn the_project_is_found_from_a_subdirectory() {
    let context = Context::new();
    write_project(&context, "eval.timeout = 4");
    fs::create_dir_all(context.path(".git")).unwrap();
    fs::create_dir_all(context.path("a/b")).unwrap();
    for arguments in [
        &["config", "get", "eval.timeout", "--cwd", "a/b"],
        &["config", "get", "eval.timeout", "--cwd", "a/b/../../a"],
    ] {
        assert_eq!(context.run(arguments).exits(0).stdout, "4\n");
    }
    let paths = context.run(&["config", "path", "--cwd", "a/b", "--json"]);
    let paths = paths.exits(0).json();
    assert_eq!(paths["project"]["exists"], true);
    assert_eq!(paths["user"]["exists"], false);
    fs::remove_dir_all(context.path(".git")).unwrap();
    let alone = context.run(&["config", "get", "eval.timeout", "--cwd", "a/b"]);
    assert_eq!(alone.exits(0).stdout, "30\n");
}

#[test]
fn an_unknown_key_is_an_error_with_a_suggestion_and_its_line() {
    let context = Context::new();
    let cases = [
        ("[eval]\ntimeuot = 3", 2, "`eval.timeout`"),
        ("[eval]\nmax-timeout = 3", 2, "`eval.max_timeout`"),
        ("[sesions]\nmax = 3", 1, "`sessions`"),
        ("interpreter = \"python3\"", 1, "`python.interpreter`"),
        ("[host]\ncolour = 3", 2, "host.idle_exit"),
        ("[colours]\nerror = 3", 1, "artifacts"),
    ];
    for (text, line, suggestion) in cases {
        write_user(&context, text);
        let result = context.run(&["config", "list", "--json"]).exits(2);
        let error = &result.json()["error"];
        assert_eq!(error["kind"], "bad_settings");
        assert_eq!(error["line"], line, "{text}");
        let hint = error["hints"][0].as_str().unwrap();
        assert!(hint.contains(suggestion), "{text}: {hint}");
        assert!(result.stderr.contains("config.toml"), "{}", result.stderr);
    }
}

#[test]
fn a_value_of_the_wrong_type_is_an_error_that_names_the_expected_type() {
    let context = Context::new();
    let cases = [
        ("[eval]\ntimeout = \"long\"", (2, 11), "seconds"),
        ("[eval]\n\n  timeout = -1", (3, 13), "seconds"),
        ("sessions.max = 0", (1, 16), "from 1 to"),
        ("[kernel]\nmemory_limit = \"5 apples\"", (2, 16), "bytes"),
        ("eval.enabled = 1", (1, 16), "true or false"),
        ("env.pass = [\"A\", 3]", (1, 12), "list of variable names"),
        ("env.pass = [\"A B\"]", (1, 12), "list of variable names"),
        ("env.set = { A = 1 }", (1, 11), "table of variables"),
        ("eval = 3", (1, 8), "a table"),
        ("output.tail = \"1 TB\"", (1, 15), "16 MiB"),
    ];
    for (text, (line, column), expected) in cases {
        write_user(&context, text);
        let error = context.run(&["eval", "1", "--json"]).exits(2).json();
        let error = &error["error"];
        assert_eq!(
            (&error["line"], &error["column"]),
            (&json!(line), &json!(column)),
            "{text}"
        );
        let cause = error["causes"][0].as_str().unwrap();
        assert!(cause.contains(expected), "{text}: {cause}");
    }
}

#[test]
fn the_first_of_several_errors_in_a_file_is_reported() {
    let context = Context::new();
    write_user(&context, "[sessions]\nmax = \"x\"\n[eval]\ntimeout = \"y\"");
    let error = context.run(&["config", "list", "--json"]).exits(2).json();
    assert_eq!(error["error"]["line"], 2);
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let context = Context::new();
    let file = context.home().join(".config/cellwright/config.toml");
    write_user(&context, "");
    fs::write(&file, b"[eval]\n# caf\xe9\n").unwrap();
    let result = context.run(&["config", "list"]).exits(2);
    assert!(
        result.stderr.contains("not UTF-8 on line 2"),
        "{}",
        result.stderr
    );
    fs::write(&file, "[eval").unwrap();
    let result = context.run(&["config", "list"]).exits(2);
    assert!(result.stderr.contains("is not TOML"), "{}", result.stderr);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let result = context.run(&["config", "list"]).exits(2);
    assert!(
        result.stderr.contains("it is a directory"),
        "{}",
        result.stderr
    );
}

#[test]
fn notebooks_can_be_read_with_broken_settings() {
    let context = Context::with_notebook();
    write_user(&context, "[eval");
    context.run(&["read", "a.ipynb"]).exits(0);
    context.run(&["config", "path"]).exits(0);
    let found = context.run(&["doctor", "--json"]).exits(2).json();
    let findings = found["findings"].as_array().unwrap();
    let broken = findings
        .iter()
        .find(|one| one["code"] == "settings-broken")
        .unwrap();
    assert!(
        broken["text"].as_str().unwrap().contains("line 1"),
        "{broken}"
    );
    assert_eq!(findings[0]["code"], "python");
}

#[test]
fn unsafe_settings_of_a_project_are_ignored_with_a_notice() {
    let context = Context::new();
    write_project(
        &context,
        "[python]\ninterpreter = \"/nowhere/python\"\n[env]\nset = { EVIL = \"1\" }\n",
    );
    let code = "import os; print(os.environ.get('EVIL'))";
    let result = context.eval(&[code]).exits(0);
    assert_eq!(result.stdout, "None\n");
    for word in [
        "notice:",
        "`python.interpreter` (line 2)",
        "`env.set` (line 4)",
        "`cellwright trust`",
    ] {
        assert!(result.stderr.contains(word), "{word}: {}", result.stderr);
    }
    let report = context.eval(&[code, "--json"]).exits(0).json();
    assert_eq!(report["notices"][0]["kind"], "settings_ignored");
    let found = setting(&context, "env.set", &[]);
    assert_eq!(
        (&found["value"], &found["ignored"]["line"]),
        (&json!({}), &json!(4))
    );
}

#[test]
fn variables_of_other_tools_are_accepted() {
    let context = Context::new();
    for (word, enabled) in [
        ("0", false),
        ("false", false),
        ("bash", false),
        ("1", true),
        ("true", true),
        ("py", true),
        ("mix", true),
        ("BOTH", true),
    ] {
        let found = setting(&context, "eval.enabled", &[("PI_PY", word)]);
        assert_eq!(found["value"], enabled, "{word}");
    }
    let url =
        |variables: &[(&str, &str)]| setting(&context, "gateway.url", variables)["value"].clone();
    let jupyter = ("JUPYTER_GATEWAY_URL", "http://c");
    let pi = ("PI_PYTHON_GATEWAY_URL", "http://b");
    assert_eq!(url(&[jupyter]), "http://c");
    assert_eq!(url(&[jupyter, pi]), "http://b");
    assert_eq!(
        url(&[jupyter, pi, ("CELLWRIGHT_GATEWAY_URL", "http://a")]),
        "http://a"
    );
    let mut command = context.command(&["config", "list"]);
    let result = run_with(&context, &mut command, &[("PI_PY", "perhaps")]).exits(2);
    assert!(result.stderr.contains("PI_PY"), "{}", result.stderr);
    // Unknown variables are ignored.
    let mut command = context.command(&["config", "list"]);
    run_with(&context, &mut command, &[("CELLWRIGHT_WHATEVER", "x")]).exits(0);
}

#[test]
fn the_check_of_the_interpreter_can_be_skipped() {
    let context = Context::new();
    let mut command = context.command(&["doctor", "--json"]);
    let found = run_with(&context, &mut command, &[("PI_PYTHON_SKIP_CHECK", "1")]);
    let found = found.exits(0).json();
    assert_eq!(found["findings"][0]["code"], "python-unchecked");
}

#[test]
fn secrets_are_never_printed() {
    let context = Context::new();
    write_user(
        &context,
        "[gateway]\ntoken = \"sesame\"\n[env]\nset = { MY_KEY = \"sesame\" }",
    );
    for arguments in [
        &["config", "list"][..],
        &["config", "list", "--json"],
        &["config", "get", "gateway.token"],
        &["config", "get", "env.set", "--json"],
        &["doctor"],
    ] {
        let result = context.run(arguments).exits(0);
        assert!(!result.output_masked().contains("sesame"), "{arguments:?}");
    }
    assert_eq!(setting(&context, "gateway.token", &[])["value"], "set");
    assert_eq!(
        setting(&context, "env.set", &[])["value"],
        json!({"MY_KEY": "(set)"})
    );
    write_project(&context, "[gateway]\ntoken = \"sesame\"");
    let result = context.run(&["config", "list"]).exits(2);
    assert!(
        result.stderr.contains("`gateway.token` is not allowed"),
        "{}",
        result.stderr
    );
    assert!(!result.stderr.contains("sesame"), "{}", result.stderr);
}

#[test]
fn the_timeout_is_a_setting() {
    let context = Context::new();
    write_user(&context, "[eval]\ntimeout = 0.5");
    let result = context.eval(&["while True: pass"]).exits(124);
    assert!(
        result.stderr.contains("Timed out after 0.5 s"),
        "{}",
        result.stderr
    );
    // The flag overrides the setting.
    context.eval(&["1", "--timeout", "60"]).exits(0);
}

#[test]
fn start_timeout_and_interrupt_grace_are_settings() {
    let context = Context::new();
    write_user(&context, "kernel.start_timeout = 0.001");
    let result = context.eval(&["1"]).exits(2);
    assert!(
        result.stderr.contains("not ready after 0.001 s"),
        "{}",
        result.stderr
    );
    write_user(&context, "kernel.interrupt_grace = 0\neval.timeout = 3");
    // The code would end three seconds after the interrupt, which exceeds the grace.
    let code = "
import time
end = time.monotonic() + 6
while time.monotonic() < end:
    try:
        while time.monotonic() < end: pass
    except KeyboardInterrupt: pass";
    let result = context.eval(&[code]).exits(124);
    assert!(result.stderr.contains("was killed"), "{}", result.stderr);
}

#[test]
fn the_maximum_timeout_applies_to_every_call() {
    let context = Context::new();
    write_user(&context, "[eval]\nmax_timeout = 0.5");
    for requested in ["0", "3600"] {
        let arguments = ["while True: pass", "--timeout", requested, "--json"];
        let report = context.eval(&arguments).exits(124).json();
        assert_eq!(report["notices"][0]["kind"], "timeout_capped", "{report}");
    }
    // Without `--timeout`, the limit causes no notice.
    let result = context.eval(&["while True: pass"]).exits(124);
    assert!(!result.stderr.contains("notice"), "{}", result.stderr);
}

#[test]
fn the_variables_of_a_kernel_can_be_chosen() {
    let context = Context::new();
    write_user(
        &context,
        "[env]\npass = [\"MINE\"]\ndeny = [\"LC_*\"]\nset = { MADE = \"here\" }",
    );
    let code = "import os; print(*(os.environ.get(n) for n in ('MINE', 'LC_TIME', 'MADE')))";
    let variables = [("MINE", "mine"), ("LC_TIME", "C")];
    let result = run_with(&context, &mut context.eval_command(&[code]), &variables).exits(0);
    assert_eq!(result.stdout, "mine None here\n");
}

#[test]
fn the_interpreter_is_a_setting_and_its_origin_is_reported() {
    let context = Context::new();
    write_user(&context, "python.interpreter = \"/nowhere/python\"");
    let result = context.run(&["eval", "1"]).exits(2);
    assert!(result.stderr.contains("config.toml:1"), "{}", result.stderr);
    let mut command = context.command(&["doctor", "--json"]);
    let found = run_with(&context, &mut command, &[("CELLWRIGHT_PYTHON", "python3")]);
    let found = found.exits(0).json();
    let text = found["findings"][0]["text"].as_str().unwrap();
    assert!(text.contains("CELLWRIGHT_PYTHON is set"), "{text}");
}

#[test]
fn running_code_can_be_disabled() {
    let context = Context::with_notebook();
    write_user(&context, "eval.enabled = false");
    let result = context.run(&["eval", "1", "--json"]).exits(2);
    let error = &result.json()["error"];
    assert_eq!(error["kind"], "refused");
    let cause = error["causes"][0].as_str().unwrap();
    assert!(cause.contains("config.toml:1"), "{cause}");
    context.run(&["read", "a.ipynb"]).exits(0);
}

#[test]
fn the_length_of_printed_output_is_a_setting() {
    let context = Context::new();
    write_user(&context, "[output]\nhead = 20\ntail = 20");
    let code = "for i in range(100): print('line', i)";
    let shown = context.eval(&[code]).exits(0).stdout;
    assert!(
        shown.starts_with("line 0\n") && shown.ends_with("line 99\n"),
        "{shown}"
    );
    assert!(shown.contains("elided") && shown.len() < 100, "{shown}");
}

#[test]
fn the_total_size_of_artifacts_is_a_setting() {
    let context = Context::new();
    write_user(&context, "[artifacts]\nmax_bytes = \"300 KB\"");
    let code = "print('x' * 200_000)";
    for _ in 0..3 {
        context.eval(&[code]).exits(0);
    }
    let list = context.run(&["artifact", "list", "--json"]).exits(0).json();
    let count = list["artifacts"].as_array().unwrap().len();
    assert!(count < 3, "{list}");
}

#[test]
fn an_unknown_name_is_an_error_with_a_suggestion() {
    let context = Context::new();
    let result = context.run(&["config", "get", "eval.timout"]).exits(2);
    assert!(
        result.stderr.contains("did you mean `eval.timeout`?"),
        "{}",
        result.stderr
    );
    let result = context.run(&["config", "get", "interpreter"]).exits(2);
    assert!(
        result.stderr.contains("`python.interpreter`"),
        "{}",
        result.stderr
    );
}

/// The rows that the table in the guide must have.
fn expected_rows(context: &Context) -> Vec<String> {
    let list = context.run(&["config", "list"]).exits(0).stdout;
    let rows = context.run(&["config", "list", "--json"]).exits(0).json();
    let default = |name: &str| {
        let line = list
            .lines()
            .find(|line| line.split_whitespace().next() == Some(name));
        let words: Vec<&str> = line.unwrap().split_whitespace().collect();
        words[1..words.len() - 1].join(" ")
    };
    let row = |row: &Value| {
        let name = row["name"].as_str().unwrap();
        let variables: Vec<String> = row["variables"]
            .as_array()
            .unwrap()
            .iter()
            .map(|variable| format!("`{}`", variable.as_str().unwrap()))
            .collect();
        format!(
            "| `{name}` | {} | {} | {} | {} |",
            default(name),
            row["meaning"].as_str().unwrap(),
            variables.join(", "),
            row["project"].as_str().unwrap(),
        )
    };
    let rows = rows["settings"].as_array().unwrap();
    rows.iter().map(row).collect()
}

#[test]
fn the_guide_lists_every_setting() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/settings.md");
    let guide = fs::read_to_string(guide).unwrap();
    let shown: Vec<&str> = guide
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    assert_eq!(
        shown,
        expected_rows(&Context::new()),
        "in docs/guide/settings.md"
    );
}

#[test]
fn startup_and_frames_can_be_traced() {
    let context = Context::new();
    let traced = |variables: &[(&str, &str)]| {
        let mut command = context.eval_command(&["1 + 1"]);
        run_with(&context, &mut command, variables).exits(0)
    };
    assert_eq!(traced(&[]).stderr, "");
    let startup = traced(&[("PI_DEBUG_STARTUP", "1")]).stderr;
    assert!(startup.starts_with("startup: settings "), "{startup}");
    assert!(startup.contains("kernel "), "{startup}");
    traced(&[("PI_PYTHON_IPC_TRACE", "1")]);
    let file = context.home().join(".local/state/cellwright/frames.log");
    let frames = fs::read_to_string(&file).unwrap();
    assert!(frames.contains(" > {"), "{frames}");
    assert!(frames.contains(" < {\"t\":\"hello\""), "{frames}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn trust_applies_to_the_project_of_the_working_directory() {
    let context = Context::new();
    let below = context.home().join("project/deep");
    fs::create_dir_all(&below).unwrap();
    let settings = context.home().join("project/.cellwright");
    fs::create_dir(&settings).unwrap();
    fs::write(
        settings.join("config.toml"),
        "[env]\nset = { MINE = \"yes\" }\n",
    )
    .unwrap();
    let value = || {
        let mut command = context.eval_command(&["import os; print(os.environ.get('MINE'))"]);
        run_with(&context, command.current_dir(&below), &[])
            .exits(0)
            .stdout
    };
    assert_eq!(value(), "None\n");
    let mut trust = context.command(&["trust"]);
    run_with(&context, trust.current_dir(&below), &[]).exits(0);
    assert_eq!(value(), "yes\n");
}
