//! Repositories of other people: comparing runs no program that their configuration names, and does not leave the roots of an
//! MCP client.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::Repository;
use crate::context::{Context, THREE_CELLS};
use crate::mcp::client::Client;

/// A shell command that records its start.
fn record(context: &Context) -> String {
    format!("touch '{}'; false", context.path("started").display())
}

fn assert_nothing_started(repository: &Repository, name: &str) {
    let started = repository.context.path("started");
    assert!(!started.exists(), "{name}");
}

/// Compares on the command line and over MCP, and checks the drivers.
fn compare(repository: &Repository) {
    repository.cellwright(&["diff", "a.ipynb"]);
    repository.cellwright(&["diff", "HEAD:a.ipynb", "a.ipynb"]);
    repository.cellwright(&["git", "setup", "--check"]);
    let root = repository.root.to_str().unwrap();
    let mut client = Client::with(&repository.context, &["mcp", "--root", root], &json!({}));
    client.call("read", json!({"path": "a.ipynb", "diff": "HEAD"}));
}

#[test]
fn no_program_of_the_configuration_is_started() {
    let repository = Repository::with_notebook(THREE_CELLS);
    repository.write(
        "script",
        format!("#!/bin/sh\n{}\n", record(&repository.context)),
    );
    repository.git(&["update-index", "--chmod=+x", "--add", "script"]);
    let script = repository.root.join("script");
    crate::shared_locations::set_mode(&script, 0o755);
    let script = script.to_str().unwrap();
    for name in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "diff.external",
    ] {
        repository.git(&["config", name, script]);
    }
    repository.write("a.ipynb", THREE_CELLS.replace("42", "43"));
    compare(&repository);
    assert_nothing_started(&repository, "fsmonitor");
}

#[test]
fn missing_objects_are_not_fetched() {
    let repository = Repository::with_notebook(THREE_CELLS);
    let blob = repository.git(&["rev-parse", "HEAD:a.ipynb"]);
    let (dir, rest) = blob.trim().split_at(2);
    fs::remove_file(repository.root.join(".git/objects").join(dir).join(rest)).unwrap();
    let url = repository.root.to_str().unwrap();
    let program = format!("{};git-upload-pack", record(&repository.context));
    for (name, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", url),
        ("remote.origin.uploadpack", &program),
    ] {
        repository.git(&["config", name, value]);
    }
    compare(&repository);
    assert_nothing_started(&repository, "uploadpack");
    // Git itself would start it.
    repository.try_git(&["cat-file", "blob", blob.trim()]);
    assert!(repository.context.path("started").exists());
}

/// The text of a comparison in `root` over MCP.
fn compare_in(context: &Context, root: &Path) -> (bool, String) {
    let root = root.to_str().unwrap();
    let mut client = Client::with(context, &["mcp", "--root", root], &json!({}));
    let reply = client.call("read", json!({"path": "a.ipynb", "diff": "HEAD"}));
    (reply.is_error(), reply.text())
}

#[test]
fn an_mcp_client_compares_with_repositories_in_its_roots() {
    let secret = THREE_CELLS.replace("42", "'secret'");
    let repository = Repository::with_notebook(&secret);
    let context = &repository.context;
    let outside = repository.root.join(".git");
    let root = context.dir().canonicalize().unwrap().join("root");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.ipynb"), THREE_CELLS).unwrap();
    let marker = root.join(".git");
    let refused = |name: &str| {
        let (is_error, text) = compare_in(context, &root);
        assert!(
            is_error && text.contains("leads out of the roots"),
            "{name}: {text}"
        );
        assert!(!text.contains("secret"), "{name}: {text}");
    };
    fs::write(&marker, format!("gitdir: {}\n", outside.display())).unwrap();
    refused("a file");
    fs::remove_file(&marker).unwrap();
    std::os::unix::fs::symlink(&outside, &marker).unwrap();
    refused("a link");
    fs::remove_file(&marker).unwrap();
    let head = repository.git(&["rev-parse", "HEAD"]);
    for dir in ["objects/info", "refs"] {
        fs::create_dir_all(marker.join(dir)).unwrap();
    }
    fs::write(marker.join("HEAD"), head).unwrap();
    let alternate = format!("{}\n", outside.join("objects").display());
    fs::write(marker.join("objects/info/alternates"), alternate).unwrap();
    refused("alternates");
    fs::remove_dir_all(&root).unwrap();
    // A linked working tree, which its main repository names.
    repository.git(&[
        "worktree",
        "add",
        "-q",
        root.to_str().unwrap(),
        "-b",
        "linked",
    ]);
    fs::write(root.join("a.ipynb"), THREE_CELLS).unwrap();
    let (is_error, text) = compare_in(context, &root);
    assert!(!is_error && text.contains("secret"), "{text}");
    // A root in a larger repository.
    let sub = repository.root.join("sub");
    fs::create_dir(&sub).unwrap();
    fs::write(sub.join("a.ipynb"), THREE_CELLS).unwrap();
    repository.commit("two");
    let (is_error, text) = compare_in(context, &sub);
    assert!(!is_error && text.contains("no difference"), "{text}");
}
