//! Dependencies between the crates, on external libraries, and their licences.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::Value;

use super::root;

/// The crates in layers: a crate may use only crates of earlier entries, and only those listed.
const LAYERS: [(&str, &[&str]); 16] = [
    ("cellwright-stdext", &[]),
    ("cellwright-notebook", &[]),
    ("cellwright-output", &["cellwright-stdext"]),
    ("cellwright-jupyter", &["cellwright-stdext"]),
    ("cellwright-jupyter-server", &["cellwright-stdext"]),
    (
        "cellwright-gateway",
        &["cellwright-stdext", "cellwright-jupyter"],
    ),
    (
        "cellwright-kernel",
        &[
            "cellwright-stdext",
            "cellwright-output",
            "cellwright-gateway",
            "cellwright-jupyter",
        ],
    ),
    (
        "cellwright-local-gateway",
        &[
            "cellwright-stdext",
            "cellwright-jupyter",
            "cellwright-jupyter-server",
            "cellwright-gateway",
            "cellwright-kernel",
        ],
    ),
    (
        "cellwright-diagnostics",
        &[
            "cellwright-stdext",
            "cellwright-notebook",
            "cellwright-output",
            "cellwright-gateway",
            "cellwright-jupyter",
            "cellwright-kernel",
        ],
    ),
    (
        "cellwright-execution",
        &[
            "cellwright-stdext",
            "cellwright-notebook",
            "cellwright-output",
            "cellwright-kernel",
            "cellwright-diagnostics",
        ],
    ),
    (
        "cellwright-engine",
        &[
            "cellwright-stdext",
            "cellwright-notebook",
            "cellwright-output",
            "cellwright-gateway",
            "cellwright-jupyter",
            "cellwright-jupyter-server",
            "cellwright-local-gateway",
            "cellwright-kernel",
            "cellwright-diagnostics",
            "cellwright-execution",
        ],
    ),
    (
        "cellwright-host",
        &[
            "cellwright-stdext",
            "cellwright-output",
            "cellwright-kernel",
            "cellwright-diagnostics",
            "cellwright-execution",
            "cellwright-engine",
        ],
    ),
    (
        "cellwright-operations",
        &[
            "cellwright-stdext",
            "cellwright-notebook",
            "cellwright-output",
            "cellwright-gateway",
            "cellwright-jupyter",
            "cellwright-local-gateway",
            "cellwright-kernel",
            "cellwright-diagnostics",
            "cellwright-execution",
            "cellwright-engine",
            "cellwright-host",
        ],
    ),
    (
        "cellwright-mcp",
        &[
            "cellwright-stdext",
            "cellwright-notebook",
            "cellwright-output",
            "cellwright-kernel",
            "cellwright-diagnostics",
            "cellwright-execution",
            "cellwright-engine",
            "cellwright-host",
            "cellwright-operations",
        ],
    ),
    (
        "cellwright",
        &[
            "cellwright-stdext",
            "cellwright-notebook",
            "cellwright-output",
            "cellwright-kernel",
            "cellwright-diagnostics",
            "cellwright-execution",
            "cellwright-engine",
            "cellwright-host",
            "cellwright-operations",
            "cellwright-mcp",
        ],
    ),
    // Only for tests.
    ("cellwright-test-support", &[]),
];

/// The crates of the application, as opposed to libraries.
const APPLICATION: [&str; 6] = [
    "cellwright",
    "cellwright-diagnostics",
    "cellwright-engine",
    "cellwright-host",
    "cellwright-operations",
    "cellwright-mcp",
];

/// External libraries, each with the crates that may use it. `APPLICATION` may also use the libraries in `GENERAL`.
const LIBRARY_USERS: [(&str, &[&str]); 32] = [
    // The crates with types that `--json` prints.
    (
        "schemars",
        &[
            "cellwright-diagnostics",
            "cellwright-execution",
            "cellwright-host",
            "cellwright-operations",
            "cellwright",
        ],
    ),
    ("axum", &["cellwright-engine", "cellwright-mcp"]),
    ("futures-util", &["cellwright-gateway", "cellwright-mcp"]),
    ("hyper", &["cellwright-gateway"]),
    ("tokio-tungstenite", &["cellwright-gateway"]),
    (
        "tokio-rustls",
        &["cellwright-gateway", "cellwright-test-support"],
    ),
    ("tracing-subscriber", &["cellwright-engine"]),
    ("rmcp", &["cellwright-mcp"]),
    ("tokio-util", &["cellwright-mcp"]),
    ("png", &["cellwright-output"]),
    (
        "bytes",
        &[
            "cellwright-gateway",
            "cellwright-jupyter",
            "cellwright-kernel",
        ],
    ),
    (
        "getrandom",
        &[
            "cellwright-engine",
            "cellwright-local-gateway",
            "cellwright-jupyter",
            "cellwright-mcp",
        ],
    ),
    ("hmac", &["cellwright-jupyter"]),
    (
        "sha2",
        &[
            "cellwright-engine",
            "cellwright-jupyter",
            "cellwright-jupyter-server",
        ],
    ),
    (
        "httparse",
        &["cellwright-jupyter-server", "cellwright-test-support"],
    ),
    ("clap", &["cellwright"]),
    ("etcetera", &["cellwright-engine", "cellwright-operations"]),
    ("strsim", &["cellwright-diagnostics"]),
    ("toml", &["cellwright-engine"]),
    ("granit-parser", &["cellwright-operations"]),
    (
        "tempfile",
        &[
            "cellwright",
            "cellwright-engine",
            "cellwright-host",
            "cellwright-operations",
            "cellwright-jupyter",
            "cellwright-stdext",
            "cellwright-test-support",
        ],
    ),
    ("terminal_size", &["cellwright"]),
    ("unicode-ident", &["cellwright-execution"]),
    ("unicode-width", &["cellwright-operations"]),
    (
        "serde_json",
        &[
            "cellwright-gateway",
            "cellwright-output",
            "cellwright-local-gateway",
            "cellwright-jupyter",
            "cellwright-jupyter-server",
            "cellwright-kernel",
            "cellwright-execution",
            "cellwright-test-support",
        ],
    ),
    (
        "rustix",
        &[
            "cellwright-gateway",
            "cellwright-jupyter-server",
            "cellwright-local-gateway",
            "cellwright-mcp",
            "cellwright-notebook",
            "cellwright-jupyter",
            "cellwright-kernel",
            "cellwright-output",
            "cellwright-stdext",
            "cellwright-test-support",
        ],
    ),
    (
        "tokio",
        &[
            "cellwright-gateway",
            "cellwright-local-gateway",
            "cellwright-jupyter",
            "cellwright-kernel",
            "cellwright-execution",
            "cellwright-test-support",
        ],
    ),
    // Certificates are made only in tests.
    ("rcgen", &["cellwright-test-support"]),
    ("image", &["cellwright-output"]),
    ("htmd", &["cellwright-output"]),
    ("nix", &["cellwright-kernel"]),
    ("similar", &["cellwright-notebook"]),
];

/// Libraries that every crate of the application may use.
const GENERAL: [&str; 2] = ["serde_json", "tokio"];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn packages(metadata: &Value) -> &Vec<Value> {
    metadata["packages"].as_array().unwrap()
}

/// The dependencies of each crate of the workspace, without those of its tests.
fn direct_dependencies(metadata: &Value) -> BTreeMap<String, Vec<String>> {
    packages(metadata)
        .iter()
        .filter(|package| package["source"].is_null())
        .map(|package| {
            let dependencies = package["dependencies"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|dependency| dependency["kind"].is_null())
                .map(|dependency| dependency["name"].as_str().unwrap().to_owned())
                .collect();
            (package["name"].as_str().unwrap().to_owned(), dependencies)
        })
        .collect()
}

#[test]
fn crates_use_only_crates_of_lower_layers() {
    let direct = direct_dependencies(&metadata());
    let ours: Vec<&str> = LAYERS.iter().map(|(name, _)| *name).collect();
    let found: Vec<&str> = direct.keys().map(String::as_str).collect();
    assert_eq!(
        found.len(),
        ours.len(),
        "a crate is missing in LAYERS: {found:?}"
    );
    for (index, (name, allowed)) in LAYERS.into_iter().enumerate() {
        for lower in allowed {
            assert!(ours[..index].contains(lower), "{name} is below {lower}");
        }
        for dependency in &direct[name] {
            let is_ours = ours.contains(&dependency.as_str());
            assert!(
                !is_ours || allowed.contains(&dependency.as_str()),
                "{name} must not use {dependency}"
            );
        }
    }
}

#[test]
fn external_libraries_are_used_only_by_permitted_crates() {
    let direct = direct_dependencies(&metadata());
    for (library, owners) in LIBRARY_USERS {
        for (name, dependencies) in &direct {
            let uses = dependencies.iter().any(|dependency| dependency == library);
            let is_general = GENERAL.contains(&library) && APPLICATION.contains(&name.as_str());
            assert!(
                !uses || is_general || owners.contains(&name.as_str()),
                "{name} must not use {library}"
            );
        }
    }
}

#[test]
fn versions_are_in_the_root_manifest_only() {
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let manifest = entry.unwrap().path().join("Cargo.toml");
        let text = fs::read_to_string(&manifest).unwrap();
        let mut section = "";
        for line in text.lines() {
            if line.starts_with('[') {
                section = line;
            }
            if section.contains("dependencies") && line.contains('=') {
                assert!(
                    line.contains("workspace = true"),
                    "{}: {line}",
                    manifest.display()
                );
            }
        }
    }
}

/// The strings of the list that begins with `start` in deny.toml.
fn denied_list(start: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("deny.toml")).unwrap();
    let (_, after) = text.split_once(start).unwrap();
    let (list, _) = after.split_once("\n]").unwrap();
    list.lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .filter_map(|line| line.split('"').nth(1).map(str::to_owned))
        .collect()
}

/// The crates that may use a banned one.
fn permitted_users(banned: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("deny.toml")).unwrap();
    let entry = format!("name = \"{banned}\", wrappers = [");
    let Some((_, after)) = text.split_once(&entry) else {
        return Vec::new();
    };
    let (list, _) = after.split_once(']').unwrap();
    list.split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[test]
fn licences_are_on_the_list() {
    let allowed = denied_list("allow = [");
    assert!(allowed.contains(&"MIT".to_owned()));
    for package in packages(&metadata()) {
        let name = package["name"].as_str().unwrap();
        let licence = package["license"].as_str().unwrap_or_default();
        // Old manifests separate alternatives by a slash.
        let expression = licence.replace('/', " OR ").replace(['(', ')'], "");
        let is_allowed = expression.split(" OR ").any(|alternative| {
            alternative
                .split(" AND ")
                .all(|name| allowed.contains(&name.trim().to_owned()))
        });
        assert!(is_allowed, "{name} is under `{licence}`");
    }
}

#[test]
fn banned_crates_and_features_stay_out() {
    let metadata = metadata();
    let banned = denied_list("\ndeny = [");
    assert!(banned.contains(&"openssl-sys".to_owned()));
    for package in packages(&metadata) {
        let name = package["name"].as_str().unwrap();
        let uses = package["dependencies"].as_array().unwrap();
        let is_ours = package["source"].is_null();
        for banned in &banned {
            // An external crate may use it if the list permits that.
            let permitted = permitted_users(banned);
            if permitted.is_empty() {
                assert_ne!(name, banned, "banned in deny.toml");
            } else if is_ours {
                let uses = uses.iter().any(|used| used["name"] == banned.as_str());
                assert!(!uses, "{name} must not use {banned}");
            }
        }
    }
    // The feature changes how numbers are read in every crate of the build.
    for node in metadata["resolve"]["nodes"].as_array().unwrap() {
        if node["id"].as_str().unwrap().contains("serde_json") {
            let features = node["features"].to_string();
            assert!(!features.contains("arbitrary_precision"), "{features}");
        }
    }
}
