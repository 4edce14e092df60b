//! What the binary says about itself.

use insta::assert_snapshot;

use crate::context::Context;

#[test]
fn every_verb_has_help_with_examples() {
    let context = Context::new();
    assert_snapshot!("help", context.run(&["--help"]).exits(0).stdout);
    let verbs: [&[&str]; 50] = [
        &["read"],
        &["write"],
        &["edit"],
        &["completions"],
        &["eval"],
        &["artifact"],
        &["diff"],
        &["git"],
        &["git", "setup"],
        &["git", "textconv"],
        &["git", "merge"],
        &["git", "clean"],
        &["doctor"],
        &["run"],
        &["check"],
        &["runs"],
        &["runs", "list"],
        &["runs", "wait"],
        &["runs", "tail"],
        &["runs", "cancel"],
        &["kernels"],
        &["kernels", "list"],
        &["kernels", "specs"],
        &["kernels", "interrupt"],
        &["kernels", "reset"],
        &["kernels", "stop"],
        &["kernels", "variables"],
        &["kernels", "inspect"],
        &["kernels", "complete"],
        &["kernels", "export"],
        &["host"],
        &["host", "status"],
        &["host", "stop"],
        &["host", "start"],
        &["host", "log"],
        &["config"],
        &["config", "list"],
        &["config", "get"],
        &["config", "path"],
        &["helpers"],
        &["trust"],
        &["notebook"],
        &["notebook", "edit"],
        &["notebook", "insert"],
        &["notebook", "delete"],
        &["notebook", "move"],
        &["notebook", "type"],
        &["notebook", "clear"],
        &["notebook", "outline"],
        &["notebook", "upgrade"],
    ];
    for verb in verbs {
        let mut arguments = verb.to_vec();
        arguments.push("--help");
        let help = context.run(&arguments).exits(0).stdout;
        assert!(help.contains("Example"), "{verb:?}");
        assert_snapshot!(format!("help_{}", verb.join("_")), help);
    }
}

#[test]
fn the_version_names_the_commit() {
    let version = Context::new().run(&["--version"]).exits(0).stdout;
    let (number, commit) = version.trim_end().split_once(" (").unwrap();
    assert_eq!(number, concat!("cellwright ", env!("CARGO_PKG_VERSION")));
    assert!(commit.ends_with(')') && commit.len() > 7, "{version}");
}

#[test]
fn completions_know_the_verbs() {
    let context = Context::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = context.run(&["completions", shell]).exits(0).stdout;
        assert!(
            script.contains("notebook") && script.contains("upgrade"),
            "{shell}"
        );
    }
}

#[test]
fn no_arguments_and_wrong_ones_are_usage_errors() {
    let context = Context::new();
    context.run(&[]).exits(2);
    let ran = context.run(&["raed", "a.ipynb"]).exits(2);
    assert!(ran.stderr.contains("read"), "{}", ran.stderr);
    assert_eq!(ran.stdout, "");
}
