//! Which kernel is meant, and what is said if it cannot be had.

use insta::assert_snapshot;

use super::KernelspecFixture;
use crate::context::{CommandOutput, Context};

#[test]
fn flags_that_contradict_each_other_are_refused() {
    let context = Context::new();
    for (arguments, words) in [
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
            &["--backend", "gateway"],
            "possible values: runner, jupyter",
        ),
    ] {
        let mut all = vec!["eval", "1"];
        all.extend(arguments);
        let ran = context.run(&all).exits(2);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn the_runner_is_a_python3_kernel() {
    let context = Context::new();
    for name in ["python3", "Python"] {
        let ran = context.eval(&["--backend", "runner", "--kernel", name, "6 * 7", "--json"]);
        let answer = ran.exits(0).json();
        assert_eq!(answer["kernel"]["backend"], "runner");
        assert_eq!(answer["kernel"]["language"], "python");
    }
}

#[test]
fn a_kernel_that_is_not_there_is_told_with_what_may_be_meant() {
    let fixture = KernelspecFixture::new();
    fixture.install_starting("mathematical", "m", &["sh", "{connection_file}"]);
    assert_snapshot!(
        fixture
            .run(&["eval", "1", "--kernel", "matematical"])
            .exits(2)
            .output_masked()
    );
    let ran = fixture.run(&["eval", "1", "--kernel", "quite-another", "--session", "s"]);
    assert!(!ran.exits(2).stderr.contains("did you mean"));
}

#[test]
fn a_kernel_whose_program_is_missing_says_which() {
    let fixture = KernelspecFixture::new();
    fixture.install_starting("gone", "g", &["no-such-program", "{connection_file}"]);
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
fn a_connection_file_that_is_not_there_is_told_with_those_that_are() {
    let fixture = KernelspecFixture::new();
    let runtime = fixture.context.path("runtime");
    std::fs::create_dir(&runtime).unwrap();
    let mut attach = fixture.command(&["eval", "1", "--existing", "kernel-1.json"]);
    attach.env("JUPYTER_RUNTIME_DIR", &runtime);
    let nothing = CommandOutput::new(&fixture.context, &attach.output().unwrap()).exits(2);
    assert!(
        nothing
            .stderr
            .contains("neither in the working directory nor in"),
        "{}",
        nothing.stderr
    );
    std::fs::write(runtime.join("kernel-2.json"), "not a connection").unwrap();
    let ran = CommandOutput::new(&fixture.context, &attach.output().unwrap()).exits(2);
    assert_snapshot!("no_connection_file", ran.output_masked());
    let mut attach = fixture.command(&["eval", "1", "--existing", "2"]);
    attach.env("JUPYTER_RUNTIME_DIR", &runtime);
    let ran = CommandOutput::new(&fixture.context, &attach.output().unwrap()).exits(2);
    assert!(
        ran.stderr
            .contains("kernel-2.json is not a connection file"),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_settings_choose_a_kernel_and_flags_another() {
    let fixture = KernelspecFixture::new();
    let with = |arguments: &[&str]| {
        let mut all = vec!["eval", "6 * 7"];
        all.extend(arguments);
        let mut command = fixture.command(&all);
        command.env("CELLWRIGHT_KERNEL_BACKEND", "jupyter");
        command.env("CELLWRIGHT_KERNEL_NAME", "of-the-settings");
        CommandOutput::new(&fixture.context, &command.output().unwrap())
    };
    assert!(with(&[]).exits(2).stderr.contains("`of-the-settings`"));
    assert!(
        with(&["--kernel", "of-the-flag"])
            .exits(2)
            .stderr
            .contains("`of-the-flag`")
    );
    assert_eq!(with(&["--backend", "runner"]).exits(0).stdout, "42\n");
}

#[test]
fn a_project_chooses_a_kernel_only_once_it_is_trusted() {
    let fixture = KernelspecFixture::new();
    std::fs::create_dir(fixture.context.path(".cellwright")).unwrap();
    let settings = "[kernel]\nbackend = \"jupyter\"\nname = \"strange\"\ntransport = \"tcp\"\n";
    fixture.context.file(".cellwright/config.toml", settings);
    let ran = fixture.run(&["eval", "6 * 7"]).exits(0);
    assert_eq!(ran.stdout, "42\n");
    assert!(
        ran.stderr
            .contains("`kernel.backend` (line 2), `kernel.name` (line 3)"),
        "{}",
        ran.stderr
    );
    fixture.run(&["trust"]).exits(0);
    let ran = fixture.run(&["eval", "6 * 7"]).exits(2);
    assert!(
        ran.stderr.contains("There is no kernel named `strange`"),
        "{}",
        ran.stderr
    );
    fixture.context.file(
        ".cellwright/config.toml",
        "[kernel]\nbackend = \"juypter\"\n",
    );
    let ran = fixture.run(&["eval", "6 * 7"]).exits(2);
    assert!(
        ran.stderr.contains(r#"one of "runner", "jupyter""#),
        "{}",
        ran.stderr
    );
}
