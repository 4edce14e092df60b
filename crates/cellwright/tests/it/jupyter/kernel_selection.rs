//! Selection of a kernel, and the errors if it is not available.

use insta::assert_snapshot;

use super::KernelspecFixture;
use crate::context::{CommandOutput, Context};

#[test]
fn flags_that_contradict_each_other_are_refused() {
    let context = Context::new();
    for (arguments, message) in [
        (
            &["--backend", "runner", "--kernel", "ir"][..],
            "The runner cannot run the kernel `ir`: it only runs Python",
        ),
        (
            &["--backend", "runner", "--existing", "x"],
            "The runner cannot use a running kernel",
        ),
        (&["--existing", "x", "--kernel", "y"], "cannot be used with"),
        (&["--existing", "x", "--python", "y"], "cannot be used with"),
        (&["--existing", "x", "--reset"], "cannot be used with"),
        (
            &["--backend", "zeromq"],
            "possible values: runner, jupyter, gateway",
        ),
        (
            &["--backend", "runner", "--gateway", "http://127.0.0.1:1/"],
            "The backend `runner` starts kernels on this machine",
        ),
        (
            &["--python", "python3", "--gateway", "http://127.0.0.1:1/"],
            "does not start the interpreters of this machine",
        ),
    ] {
        let mut all = vec!["eval", "1"];
        all.extend(arguments);
        let result = context.run(&all).exits(2);
        assert!(
            result.stderr.contains(message),
            "{arguments:?}: {}",
            result.stderr
        );
        assert_eq!(result.stdout, "");
    }
}

#[test]
fn the_runner_is_a_python3_kernel() {
    let context = Context::new();
    for name in ["python3", "Python"] {
        let result = context.eval(&["--backend", "runner", "--kernel", name, "6 * 7", "--json"]);
        let report = result.exits(0).json();
        assert_eq!(report["kernel"]["backend"], "runner");
        assert_eq!(report["kernel"]["language"], "python");
    }
}

#[test]
fn an_unknown_kernel_is_an_error_with_a_suggestion() {
    let fixture = KernelspecFixture::new();
    fixture.install_with_argv("mathematical", "m", &["sh", "{connection_file}"]);
    assert_snapshot!(
        fixture
            .run(&["eval", "1", "--kernel", "matematical"])
            .exits(2)
            .output_masked()
    );
    let result = fixture.run(&["eval", "1", "--kernel", "quite-another", "--session", "s"]);
    assert!(!result.exits(2).stderr.contains("did you mean"));
}

#[test]
fn a_missing_program_of_a_kernel_is_an_error_that_names_it() {
    let fixture = KernelspecFixture::new();
    fixture.install_with_argv("gone", "g", &["no-such-program", "{connection_file}"]);
    assert_snapshot!(
        "missing_program",
        fixture
            .run(&["eval", "1", "--kernel", "gone"])
            .exits(2)
            .output_masked()
    );
    fixture.install("garbled", "{\"argv\": [1]}");
    assert_snapshot!(
        "garbled",
        fixture
            .run(&["eval", "1", "--kernel", "garbled"])
            .exits(2)
            .output_masked()
    );
}

#[test]
fn a_missing_connection_file_is_an_error_that_lists_the_existing_ones() {
    let fixture = KernelspecFixture::new();
    let runtime = fixture.context.path("runtime");
    std::fs::create_dir(&runtime).unwrap();
    let mut attach = fixture.command(&["eval", "1", "--existing", "kernel-1.json"]);
    attach.env("JUPYTER_RUNTIME_DIR", &runtime);
    let without_files = CommandOutput::new(&fixture.context, &attach.output().unwrap()).exits(2);
    assert!(
        without_files
            .stderr
            .contains("neither in the working directory nor in"),
        "{}",
        without_files.stderr
    );
    std::fs::write(runtime.join("kernel-2.json"), "not a connection").unwrap();
    let result = CommandOutput::new(&fixture.context, &attach.output().unwrap()).exits(2);
    assert_snapshot!("no_connection_file", result.output_masked());
    let mut attach = fixture.command(&["eval", "1", "--existing", "2"]);
    attach.env("JUPYTER_RUNTIME_DIR", &runtime);
    let result = CommandOutput::new(&fixture.context, &attach.output().unwrap()).exits(2);
    assert!(
        result
            .stderr
            .contains("kernel-2.json is not a connection file"),
        "{}",
        result.stderr
    );
}

#[test]
fn flags_override_the_kernel_of_the_settings() {
    let fixture = KernelspecFixture::new();
    let eval = |arguments: &[&str]| {
        let mut all = vec!["eval", "6 * 7"];
        all.extend(arguments);
        let mut command = fixture.command(&all);
        command.env("CELLWRIGHT_KERNEL_BACKEND", "jupyter");
        command.env("CELLWRIGHT_KERNEL_NAME", "of-the-settings");
        CommandOutput::new(&fixture.context, &command.output().unwrap())
    };
    assert!(eval(&[]).exits(2).stderr.contains("`of-the-settings`"));
    assert!(
        eval(&["--kernel", "of-the-flag"])
            .exits(2)
            .stderr
            .contains("`of-the-flag`")
    );
    assert_eq!(eval(&["--backend", "runner"]).exits(0).stdout, "42\n");
}

#[test]
fn a_project_chooses_a_kernel_only_if_it_is_trusted() {
    let fixture = KernelspecFixture::new();
    std::fs::create_dir(fixture.context.path(".cellwright")).unwrap();
    let settings = "[kernel]\nbackend = \"jupyter\"\nname = \"strange\"\ntransport = \"tcp\"\n";
    fixture.context.file(".cellwright/config.toml", settings);
    let result = fixture.run(&["eval", "6 * 7"]).exits(0);
    assert_eq!(result.stdout, "42\n");
    assert!(
        result
            .stderr
            .contains("`kernel.backend` (line 2), `kernel.name` (line 3)"),
        "{}",
        result.stderr
    );
    fixture.run(&["trust"]).exits(0);
    let result = fixture.run(&["eval", "6 * 7"]).exits(2);
    assert!(
        result.stderr.contains("There is no kernel named `strange`"),
        "{}",
        result.stderr
    );
    fixture.context.file(
        ".cellwright/config.toml",
        "[kernel]\nbackend = \"juypter\"\n",
    );
    let result = fixture.run(&["eval", "6 * 7"]).exits(2);
    assert!(
        result.stderr.contains(r#"one of "runner", "jupyter""#),
        "{}",
        result.stderr
    );
}
