//! Unsafe code is only in the modules listed here.

use std::fs;

use super::{files, root};

/// Modules that call the operating system directly, because no safe library offers the call.
const MODULES: [&str; 2] = [
    "crates/kernel/src/process/fork.rs",
    "crates/notebook/src/file/lease.rs",
];

#[test]
fn unsafe_code_is_only_in_listed_modules() {
    let root = root();
    let uses_unsafe = |text: &str| {
        let mut lines = text.lines().map(str::trim_start);
        lines.any(|line| !line.starts_with("//") && line.contains("unsafe_code"))
    };
    let found: Vec<String> = files(&root.join("crates"), "rs")
        .into_iter()
        .filter(|path| !path.ends_with(file!().rsplit('/').next().unwrap_or_default()))
        .filter(|path| uses_unsafe(&fs::read_to_string(path).unwrap()))
        .map(|path| path.strip_prefix(&root).unwrap().display().to_string())
        .filter(|path| !path.ends_with("tidy.rs"))
        .collect();
    assert_eq!(found, MODULES);
}
