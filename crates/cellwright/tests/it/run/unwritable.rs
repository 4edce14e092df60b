//! A notebook that cannot be written is reported before its cells run.

use std::fs;
use std::process::Command;

use crate::context::Context;

fn run(context: &Context) -> crate::context::CommandOutput {
    let mut command = context.command(&["run", "disk/a.ipynb", "--backend", "runner"]);
    if let Some(python) = super::python() {
        command.arg("--python").arg(python);
    }
    let output = command.output().unwrap();
    crate::context::CommandOutput::new(context, &output)
}

fn notebook(context: &Context, padding: usize) -> String {
    let ran = context.path("ran");
    let code = format!("open({:?}, 'w').close()", ran.display().to_string());
    let mut document: serde_json::Value =
        serde_json::from_str(&super::notebook_json(&[super::code(&code)])).unwrap();
    document["metadata"]["padding"] = "x".repeat(padding).into();
    document.to_string()
}

#[test]
fn a_read_only_file_system_is_reported_before_cells_run() {
    let context = Context::new();
    let Some(_disk) = context.small_disk("1m") else {
        return;
    };
    context.file("disk/a.ipynb", notebook(&context, 0));
    let remounted = Command::new("mount")
        .args(["-o", "remount,ro"])
        .arg(context.path("disk"))
        .status();
    assert!(remounted.unwrap().success());
    let result = run(&context).exits(2);
    assert!(
        result.stderr.contains("Read-only file system"),
        "{}",
        result.stderr
    );
    assert!(!context.path("ran").exists(), "the cell ran");
}

#[test]
fn a_missing_output_directory_is_reported_before_cells_run() {
    let context = Context::new();
    context.file("a.ipynb", notebook(&context, 0));
    let mut command = context.command(&["run", "a.ipynb", "-o", "results/b.ipynb"]);
    // No interpreter is needed to find out.
    command.args(["--python", "/no/such/python"]);
    let output = command.output().unwrap();
    let result = crate::context::CommandOutput::new(&context, &output).exits(2);
    for part in ["results", "nothing was written", "`mkdir -p results`"] {
        assert!(result.stderr.contains(part), "{}", result.stderr);
    }
    assert!(!context.path("ran").exists(), "the cell ran");
}

#[test]
fn a_full_disk_is_reported_before_cells_run() {
    let context = Context::new();
    let Some(_disk) = context.small_disk("256k") else {
        return;
    };
    context.file("disk/a.ipynb", notebook(&context, 200_000));
    let result = run(&context).exits(2);
    assert!(
        result.stderr.contains("no storage space"),
        "{}",
        result.stderr
    );
    assert!(!context.path("ran").exists(), "the cell ran");
    let left: Vec<_> = fs::read_dir(context.path("disk")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
