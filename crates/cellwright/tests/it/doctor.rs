//! `doctor`: findings and next steps.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::context::Context;

#[test]
fn a_working_installation_has_no_errors() {
    let context = Context::new();
    let found = context.run(&["doctor", "--json"]).exits(0).json();
    assert_eq!(found["healthy"], true);
    let codes: Vec<&str> = found["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["code"].as_str().unwrap())
        .collect();
    assert!(codes.starts_with(&["python", "runner"]), "{codes:?}");
    assert!(codes.contains(&"artifacts"), "{codes:?}");
}

#[test]
fn a_broken_interpreter_is_reported_with_the_next_step() {
    let context = Context::new();
    fs::create_dir(context.path("bin")).unwrap();
    let broken = context.file(
        "bin/python3",
        "#!/bin/sh\necho 'no module named site' >&2\nexit 1\n",
    );
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    let output = context
        .command(&["doctor", "--json"])
        .env("PATH", context.path("bin"))
        .env("VIRTUAL_ENV", "/nowhere")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let finding = &found["findings"][0];
    assert_eq!(
        (finding["code"].as_str(), finding["level"].as_str()),
        (Some("python-fails"), Some("error"))
    );
    assert!(
        finding["text"]
            .as_str()
            .unwrap()
            .contains("no module named site"),
        "{finding}"
    );
    assert!(
        finding["next"].as_str().unwrap().contains("--python"),
        "{finding}"
    );
    let rejected = &found["findings"][1];
    assert_eq!(rejected["text"], "/nowhere: there is no such directory");
}

#[test]
fn the_rules_for_environment_variables_are_reported_with_names_and_without_values() {
    let context = Context::new();
    let output = context
        .command(&["doctor"])
        .env("STAGE", "prod-value")
        .env("MY_API_KEY", "secret-value")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |code: &str| {
        let is_line = |line: &&str| line.contains(&format!(" {code}: "));
        text.lines().find(is_line).unwrap_or_default().to_owned()
    };
    assert!(
        line("environment").ends_with("`env.deny`, now: MY_API_KEY"),
        "{text}"
    );
    assert!(
        line("environment-mcp").ends_with("MY_API_KEY, STAGE"),
        "{text}"
    );
    assert!(text.contains("`--env NAME` passes one of them"), "{text}");
    assert!(!text.contains("-value"), "{text}");
}
