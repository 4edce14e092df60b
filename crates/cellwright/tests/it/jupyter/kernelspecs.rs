//! `kernels specs` and `doctor`: working kernelspecs, and broken ones with the reason.

use serde_json::Value;

use super::KernelspecFixture;
use crate::context::CommandOutput;

/// A fixture with working and broken kernelspecs.
fn fixture() -> KernelspecFixture {
    let fixture = KernelspecFixture::new();
    let without = fixture.program("without", "#!/bin/sh\nexit 0\n");
    let with = fixture.program("with", "#!/bin/sh\necho 9.8.7\n");
    let failing = fixture.program("hurt", "#!/bin/sh\necho 'no site' >&2\nexit 1\n");
    let launcher = ["-m", "ipykernel_launcher", "-f", "{connection_file}"];
    for (name, python) in [("with", &with), ("without", &without), ("hurt", &failing)] {
        let argv: Vec<&str> = std::iter::once(python.as_str()).chain(launcher).collect();
        fixture.install_with_argv(name, "python", &argv);
    }
    fixture.install_with_argv("plain", "sh", &["sh", "-c", "exit", "{connection_file}"]);
    fixture.install_with_argv(
        "gone",
        "whatever",
        &["no-such-program", "{connection_file}"],
    );
    fixture.install("garbled", "{\"argv\": ");
    fixture
}

#[test]
fn working_kernelspecs_are_listed_and_broken_ones_have_a_reason() {
    let fixture = fixture();
    let specs = fixture.specs();
    let entry = |name: &str| {
        let named = specs
            .iter()
            .find(|spec| spec["name"] == name && spec["backend"] == "jupyter");
        named.unwrap()
    };
    for name in ["plain", "with"] {
        assert_eq!(
            (&entry(name)["ok"], &entry(name)["reason"]),
            (&Value::Bool(true), &Value::Null)
        );
    }
    let plain = entry("plain");
    assert_eq!(plain["language"], "sh");
    assert_eq!(plain["argv"][3], "{connection_file}");
    assert_eq!(plain["interrupt_mode"], "signal");
    let dir = fixture.dir("plain").display().to_string();
    assert_eq!(plain["directory"], *dir);
    let reasons = [
        ("gone", "no-such-program was not found"),
        ("garbled", "kernel.json is not a kernelspec"),
        ("without", "without has no ipykernel"),
        ("hurt", "no site"),
    ];
    for (name, reason) in reasons {
        let spec = entry(name);
        assert_eq!(spec["ok"], false, "{spec}");
        assert!(spec["reason"].as_str().unwrap().contains(reason), "{spec}");
    }
    // The runner is the first entry.
    assert_eq!(
        (&specs[0]["backend"], &specs[0]["ok"]),
        (&"runner".into(), &true.into())
    );
}

#[test]
fn the_table_shows_the_command_line_of_each_kernelspec() {
    let fixture = fixture();
    let result = fixture.run(&["kernels", "specs"]).exits(0);
    let line = |name: &str| {
        let mut lines = result.stdout.lines();
        let line = lines.find(|line| line.starts_with(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("{}", result.stdout))
            .to_owned()
    };
    assert!(line("NAME").contains("STARTS"), "{}", result.stdout);
    assert!(
        line("with").contains("with -m ipykernel_launcher  "),
        "{}",
        result.stdout
    );
    assert!(line("plain").contains("/sh -c exit  "), "{}", result.stdout);
    assert!(
        line("gone").contains("broken: its program"),
        "{}",
        result.stdout
    );
    assert!(
        result
            .stderr
            .contains("cannot be started; `cellwright doctor`"),
        "{}",
        result.stderr
    );
}

#[test]
fn kernelspecs_are_listed_without_python() {
    let fixture = KernelspecFixture::new();
    fixture.install_with_argv("plain", "sh", &["/bin/sh", "{connection_file}"]);
    fixture.install_with_argv(
        "bare",
        "python",
        &["python", "-m", "thing", "{connection_file}"],
    );
    let mut command = fixture.command(&["kernels", "specs", "--json"]);
    let output = command.env("PATH", "/nowhere").output().unwrap();
    let specs = CommandOutput::new(&fixture.context, &output)
        .exits(0)
        .json();
    let ok = |name: &str, backend: &str| {
        let specs = specs["specs"].as_array().unwrap();
        let one = specs
            .iter()
            .find(|spec| spec["name"] == name && spec["backend"] == backend);
        one.unwrap()["ok"].as_bool().unwrap()
    };
    assert!(!ok("python3", "runner"));
    assert!(ok("plain", "jupyter"));
    assert!(!ok("bare", "jupyter"));
}

#[test]
fn python_without_a_path_is_the_chosen_interpreter() {
    let fixture = KernelspecFixture::new();
    fixture.install_with_argv(
        "bare",
        "python",
        &["python", "-m", "thing", "{connection_file}"],
    );
    let python = fixture.program("mine", "#!/bin/sh\n");
    let result = fixture.run(&["kernels", "specs", "--python", &python, "--json"]);
    let specs = result.exits(0).json();
    let mut specs = specs["specs"].as_array().unwrap().iter();
    let bare = specs.find(|spec| spec["name"] == "bare").unwrap();
    assert_eq!(bare["interpreter"], *python);
}

#[test]
fn the_first_of_several_kernelspecs_with_a_name_is_used() {
    let fixture = KernelspecFixture::new();
    fixture.install_with_argv("twice", "near", &["sh"]);
    let data = fixture.context.path("data");
    let far = data.join("kernels/twice");
    std::fs::create_dir_all(&far).unwrap();
    std::fs::write(
        far.join("kernel.json"),
        r#"{"argv": ["sh"], "language": "far"}"#,
    )
    .unwrap();
    let mut command = fixture.command(&["kernels", "specs", "--json"]);
    let output = command.env("JUPYTER_DATA_DIR", data).output().unwrap();
    let specs = CommandOutput::new(&fixture.context, &output)
        .exits(0)
        .json();
    let twice = specs["specs"].as_array().unwrap().iter();
    let languages: Vec<&Value> = twice
        .filter(|spec| spec["name"] == "twice")
        .map(|spec| &spec["language"])
        .collect();
    assert_eq!(languages, ["near"]);
    assert_eq!(fixture.spec("twice")["language"], "near");
}

/// The findings of `doctor` with this code.
fn findings(fixture: &KernelspecFixture, arguments: &[&str], code: &str) -> Vec<Value> {
    let mut all = vec!["doctor", "--json"];
    all.extend(arguments);
    let found = fixture.run(&all).exits(0).json();
    let mut findings = found["findings"].as_array().unwrap().clone();
    findings.retain(|finding| finding["code"] == code);
    findings
}

#[test]
fn the_doctor_reports_broken_kernelspecs_with_the_next_step() {
    let fixture = fixture();
    let broken = findings(&fixture, &[], "kernelspec-broken");
    let entry = |name: &str| {
        let mut named = broken.iter();
        let name = format!("`{name}`");
        named.find(|finding| finding["text"].as_str().unwrap().contains(&name))
    };
    assert!(
        entry("plain").is_none() && entry("with").is_none(),
        "{broken:?}"
    );
    for (name, next) in [
        ("gone", "remove "),
        ("garbled", "kernel.json"),
        ("without", "without -m pip install ipykernel"),
        ("hurt", "repair this Python"),
    ] {
        let finding = entry(name).unwrap();
        assert_eq!(finding["level"], "warning");
        assert!(
            finding["next"].as_str().unwrap().contains(next),
            "{finding}"
        );
    }
    let count = &findings(&fixture, &[], "jupyter")[0];
    let text = count["text"].as_str().unwrap();
    assert!(text.contains("plain") && !text.contains("gone"), "{count}");
}

#[test]
fn the_doctor_reports_how_to_install_ipykernel() {
    let fixture = KernelspecFixture::new();
    let venv = fixture.context.path("bare");
    let made = std::process::Command::new("python3")
        .args(["-m", "venv", "--without-pip"])
        .arg(&venv)
        .status();
    assert!(made.unwrap().success());
    let python = venv.join("bin/python").display().to_string();
    let missing = findings(&fixture, &["--python", &python], "no-ipykernel");
    assert_eq!(
        missing[0]["level"], "note",
        "no error: the runner needs none"
    );
    let next = missing[0]["next"].as_str().unwrap();
    assert!(
        next.contains("ipykernel") && next.contains(&python),
        "{next}"
    );
    assert_eq!(
        findings(&fixture, &["--python", &python], "ipykernel").len(),
        0
    );
}

#[test]
fn the_doctor_checks_the_directories_that_kernels_need() {
    let fixture = KernelspecFixture::new();
    let level = |code: &str| findings(&fixture, &[], code)[0]["level"].clone();
    assert_eq!(
        (level("jupyter-runtime"), level("jupyter-sockets")),
        ("ok".into(), "ok".into())
    );
    let file = fixture.context.file("file", "");
    let mut command = fixture.command(&["doctor", "--json"]);
    command.env("JUPYTER_RUNTIME_DIR", file.join("below"));
    // The path of the host directory is too long for a socket.
    let long = fixture.context.path(&"x".repeat(120));
    command.env("CELLWRIGHT_HOST_DIR", &long);
    let output = command.output().unwrap();
    let found = CommandOutput::new(&fixture.context, &output)
        .exits(0)
        .json();
    let runtime = found["findings"].as_array().unwrap().iter();
    let mut runtime = runtime.filter(|finding| finding["code"] == "jupyter-runtime");
    assert_eq!(runtime.next().unwrap()["level"], "warning");
    let sockets = found["findings"].as_array().unwrap().iter();
    let mut sockets = sockets.filter(|finding| finding["code"] == "jupyter-sockets");
    let text = sockets.next().unwrap()["text"].to_string();
    assert!(!text.contains("xxx"), "{text}");
    assert!(!long.exists(), "the doctor created a directory");
}
