//! Tests of the sources of settings, and of what an untrusted project may set.

use super::*;

fn load(user: &str, project: &str, trusted: bool) -> Result<Settings, SettingsError> {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    std::fs::create_dir_all(root.join("p/.cellwright")).unwrap();
    std::fs::create_dir_all(root.join("p/tools")).unwrap();
    let (user_file, project_file) = (
        root.join("config.toml"),
        root.join("p/.cellwright/config.toml"),
    );
    std::fs::write(&user_file, user).unwrap();
    std::fs::write(&project_file, project).unwrap();
    let settings = Settings::load(&SettingsSources {
        user_file: Some(user_file),
        project_file: Some(project_file.clone()),
        read_variable: &|_| None,
        is_trusted: &|file, content| {
            assert_eq!(
                (file, content),
                (project_file.as_path(), project.as_bytes())
            );
            trusted
        },
    });
    // Relative to the project, whose directory is a temporary one.
    settings.map(|mut settings| {
        let path = settings.values.python.interpreter.as_ref();
        let relative =
            path.map(|path| path.strip_prefix(root.join("p")).unwrap_or(path).to_owned());
        settings.values.python.interpreter = relative;
        settings
    })
}

#[test]
fn only_a_trusted_project_names_programs() {
    let project = "[python]\ninterpreter = \"tools/python\"\n[eval]\ntimeout = 5";
    let untrusted = load("", project, false).unwrap();
    assert_eq!(untrusted.python.interpreter, None);
    assert_eq!(untrusted.eval.timeout.as_secs(), 5);
    let ignored: Vec<_> = untrusted
        .entries()
        .iter()
        .filter(|e| e.ignored_at.is_some())
        .collect();
    assert_eq!(ignored.len(), 1);
    assert_eq!(ignored[0].ignored_at.as_ref().unwrap().line, 2);
    let trusted = load("", project, true).unwrap();
    assert_eq!(trusted.python.interpreter, Some("tools/python".into()));
    assert!(matches!(
        trusted.origin("python.interpreter"),
        Origin::Project(_)
    ));
}

#[test]
fn a_bare_name_in_a_project_is_a_command_unless_the_file_exists() {
    let interpreter = |name: &str| {
        let project = format!("python.interpreter = {name:?}");
        load("", &project, true).unwrap().python.interpreter.clone()
    };
    assert_eq!(interpreter("python3"), Some("python3".into()));
    assert_eq!(interpreter("tools"), Some("tools".into()));
    assert_eq!(
        interpreter("/usr/bin/python3"),
        Some("/usr/bin/python3".into())
    );
    assert_eq!(interpreter("~/python"), Some("~/python".into()));
    assert_eq!(interpreter(""), None);
}

#[test]
fn an_untrusted_project_cannot_loosen_user_limits() {
    let user = "[eval]\nenabled = false\nmax_timeout = 10\n[kernel]\nmemory_limit = \"1 GB\"";
    let project = "[eval]\nenabled = true\nmax_timeout = 0\n[kernel]\nmemory_limit = 0";
    let settings = load(user, project, false).unwrap();
    assert!(!settings.eval.enabled);
    assert_eq!(settings.eval.max_timeout.as_secs(), 10);
    assert_eq!(settings.kernel.memory_limit, 1_000_000_000);
}

/// What an untrusted project may set, and why no value of it loosens anything. Every other setting needs trust: a new
/// setting is either listed here or [`ProjectPolicy::Trusted`].
const UNTRUSTED: &[(&str, ProjectPolicy, &str)] = &[
    (
        "eval.timeout",
        ProjectPolicy::LowerLimit,
        "cells end earlier",
    ),
    (
        "run.timeout",
        ProjectPolicy::LowerLimit,
        "cells end earlier",
    ),
    (
        "run.timing",
        ProjectPolicy::Allowed,
        "times of cells, in the project's notebook",
    ),
    (
        "check.tolerance",
        ProjectPolicy::Lower,
        "the comparison is stricter",
    ),
    (
        "kernel.start_timeout",
        ProjectPolicy::LowerLimit,
        "a start fails earlier",
    ),
    (
        "kernel.prelude",
        ProjectPolicy::Lower,
        "cells get no functions of Cellwright",
    ),
    (
        "output.head",
        ProjectPolicy::Lower,
        "less is shown, artifacts have all",
    ),
    (
        "output.tail",
        ProjectPolicy::Lower,
        "less is shown, artifacts have all",
    ),
    (
        "output.line",
        ProjectPolicy::LowerLimit,
        "less is shown, artifacts have all",
    ),
    (
        "mcp.text",
        ProjectPolicy::Lower,
        "replies are shorter, artifacts have all",
    ),
    (
        "mcp.wait",
        ProjectPolicy::LowerLimit,
        "calls return earlier, runs continue",
    ),
    (
        "mcp.structured",
        ProjectPolicy::Allowed,
        "replies repeat the same content",
    ),
];

#[test]
fn every_setting_that_an_untrusted_project_may_set_is_listed() {
    for definition in SETTINGS {
        let listed = UNTRUSTED.iter().find(|(name, ..)| *name == definition.name);
        let is_trusted_only = matches!(
            definition.project_policy,
            ProjectPolicy::Trusted
                | ProjectPolicy::TrustedSecret
                | ProjectPolicy::User
                | ProjectPolicy::Secret
        );
        match listed {
            Some((_, policy, _)) => assert_eq!(definition.project_policy, *policy),
            None => assert!(is_trusted_only, "{}", definition.name),
        }
    }
}

/// Two values of each setting in TOML that no default equals, the second one higher or without a limit.
fn other_values(kind: value_kind::ValueKind) -> [&'static str; 2] {
    use value_kind::ValueKind;
    match kind {
        ValueKind::Flag(_) => ["false", "true"],
        ValueKind::Number { min: 500, .. } => ["501", "999999"],
        ValueKind::Number { max: 100, .. } => ["2", "99"],
        ValueKind::Number { .. } => ["3", "99999"],
        ValueKind::Seconds => ["0.5", "99999"],
        ValueKind::Fraction => ["0.01", "0.99"],
        ValueKind::Bytes { .. } => ["11", "\"15 MiB\""],
        ValueKind::Choice(words) if words.contains(&"tcp") => ["\"ipc\"", "\"tcp\""],
        ValueKind::Choice(_) => ["\"jupyter\"", "\"jupyter\""],
        ValueKind::Text | ValueKind::Path => ["\"a\"", "\"@1\""],
        ValueKind::Texts => ["[\"a\"]", "[\"/\"]"],
        ValueKind::VariableNames => ["[\"A\"]", "[\"*\"]"],
        ValueKind::Variables => ["{ A = \"1\" }", "{ LD_PRELOAD = \"x\" }"],
        ValueKind::Command => ["[\"a\"]", "\"b c\""],
    }
}

#[test]
fn no_setting_of_an_untrusted_project_loosens_a_setting_of_the_user() {
    for definition in SETTINGS {
        if matches!(
            definition.project_policy,
            ProjectPolicy::Secret | ProjectPolicy::User
        ) {
            continue;
        }
        let [low, high] = other_values(definition.kind);
        let line = |value: &str| format!("{} = {value}", definition.name);
        let entry = |settings: &Settings| {
            let mut entries = settings.entries().iter();
            let entry = entries.find(|entry| entry.definition.name == definition.name);
            entry.unwrap().clone()
        };
        let raised = entry(&load(&line(low), &line(high), false).unwrap());
        let lowered = entry(&load(&line(high), &line(low), false).unwrap());
        let (is_raised, is_lowered) = match definition.project_policy {
            ProjectPolicy::Allowed => (true, true),
            ProjectPolicy::Lower | ProjectPolicy::LowerLimit => (false, true),
            _ => (false, false),
        };
        let name = definition.name;
        for (entry, is_used) in [(raised, is_raised), (lowered, is_lowered)] {
            assert_eq!(
                matches!(entry.origin, Origin::Project(_)),
                is_used,
                "{name}"
            );
            // Whatever is ignored is reported.
            assert_eq!(entry.ignored_at.is_some(), !is_used, "{name}");
        }
        if definition.project_policy == ProjectPolicy::LowerLimit {
            let unlimited = entry(&load(&line(high), &line("0"), false).unwrap());
            assert!(matches!(unlimited.origin, Origin::User(_)), "{name}");
            let limited = entry(&load(&line("0"), &line(high), false).unwrap());
            assert!(matches!(limited.origin, Origin::Project(_)), "{name}");
        }
        // A trusted project sets everything.
        let trusted = entry(&load(&line(low), &line(high), true).unwrap());
        assert!(matches!(trusted.origin, Origin::Project(_)), "{name}");
    }
}

#[test]
fn a_secret_in_a_project_is_rejected_even_when_trusted() {
    let found = load("", "[gateway]\ntoken = \"x\"", true);
    assert!(matches!(
        found,
        Err(SettingsError::NotForProjects {
            key, ..
        }) if key == "gateway.token"
    ));
}

#[test]
fn malformed_files_are_errors_and_no_panics() {
    let deep = format!("a = {}", "[".repeat(10_000));
    let texts = [
        "= 1",
        "[eval",
        "eval = 1",
        "\u{feff}x=1",
        "eval.timeout = nan",
        &deep,
    ];
    for text in texts {
        assert!(load(text, "", false).is_err(), "{text:.20}");
    }
}
