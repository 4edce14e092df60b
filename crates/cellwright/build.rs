//! Puts the commit into the binary, for `--version`.

use std::process::Command;

#[expect(
    clippy::disallowed_methods,
    reason = "a build script has no other way to be told"
)]
fn main() {
    println!("cargo::rerun-if-env-changed=CELLWRIGHT_COMMIT");
    // Moves with every commit and checkout; absent when built from a package.
    let log = "../../.git/logs/HEAD";
    if std::path::Path::new(log).exists() {
        println!("cargo::rerun-if-changed={log}");
    } else {
        println!("cargo::rerun-if-changed=build.rs");
    }
    let commit = std::env::var("CELLWRIGHT_COMMIT")
        .ok()
        .or_else(from_git)
        .unwrap_or_else(|| "unknown commit".to_owned());
    println!("cargo::rustc-env=CELLWRIGHT_COMMIT={commit}");
}

fn from_git() -> Option<String> {
    let output = Command::new("git")
        .args(["rev-parse", "--short=10", "HEAD"])
        .output()
        .ok()?;
    let commit = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !commit.is_empty()).then_some(commit)
}
