//! Rules for the content of source files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{files, root};

/// Maximum number of lines of a file, without unit tests.
const LINES_MAX: usize = 600;

/// The module that chooses the directory for temporary files.
const TEMPORARY: &str = "crates/stdext/src/private/temporary.rs";

/// Source files of all crates.
fn sources() -> Vec<std::path::PathBuf> {
    files(&root().join("crates"), "rs")
}

/// The part of a file before its unit tests.
fn without_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or(text)
}

#[test]
fn no_file_is_too_long() {
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        let lines = without_tests(&text).lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines", path.display());
    }
}

#[test]
fn python_files_are_short_and_have_documentation() {
    let runner = files(&root().join("crates/kernel/python"), "py");
    assert!(runner.len() > 20, "the files of the runner are missing");
    for path in runner {
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines", path.display());
        assert!(
            text.starts_with("\"\"\"") || text.starts_with("# "),
            "{} has no documentation",
            path.display()
        );
    }
}

/// The crates of the application. They may use the environment and print; libraries receive all values.
const APPLICATION: [&str; 5] = [
    "crates/cellwright",
    "crates/engine",
    "crates/host",
    "crates/operations",
    "crates/mcp",
];

#[test]
fn libraries_neither_print_nor_read_the_environment() {
    let forbidden = [
        "println!(",
        "print!(",
        "eprintln!(",
        "eprint!(",
        "dbg!(",
        "std::env::",
        "use std::env",
        "home_dir(",
        "stdout()",
        "stderr()",
        "stdin()",
    ];
    for path in sources() {
        let relative = path.strip_prefix(root()).unwrap().to_owned();
        let is_library = relative.components().any(|part| part.as_os_str() == "src")
            && !APPLICATION.iter().any(|path| relative.starts_with(path))
            && !relative.starts_with("crates/test-support")
            // A program, not a library.
            && !relative.starts_with("crates/kernel/src/bin")
            // Chooses the directory for temporary files.
            && relative != Path::new(TEMPORARY);
        if !is_library {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in without_tests(&text).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for word in forbidden {
                assert!(
                    !code.contains(word),
                    "{}:{}: {word}",
                    relative.display(),
                    number + 1
                );
            }
        }
    }
}

#[test]
fn the_application_prints_in_one_place_and_reads_variables_in_one_place() {
    for source in APPLICATION.map(|path| root().join(path).join("src")) {
        for path in files(&source, "rs") {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            let text = fs::read_to_string(&path).unwrap();
            let code = without_tests(&text);
            if name != "crates/cellwright/src/console.rs" {
                let prints = ["println!(", "print!(", "io::stdout()", "io::stderr()"];
                assert!(
                    !prints.iter().any(|word| code.contains(word)),
                    "{name} prints"
                );
            }
            if name != "crates/engine/src/env.rs" {
                assert!(!code.contains("env::var"), "{name} reads a variable");
            }
        }
    }
}

#[test]
fn one_module_chooses_the_directory_for_temporary_files() {
    // Each of them uses `TMPDIR` without a check of who can change the directory, or names a shared directory.
    let forbidden = [
        "temp_dir()",
        "tempfile::tempfile()",
        "tempfile::tempdir",
        "tempfile::spooled",
        ".tempdir()",
        ".tempfile()",
        ".tempdir_in(",
        "TempDir::new",
        "TempFile::new()",
        "\"/tmp\"",
        "\"/var/tmp\"",
        "\"/dev/shm\"",
    ];
    for path in sources() {
        let relative = path.strip_prefix(root()).unwrap();
        let is_source = relative.components().any(|part| part.as_os_str() == "src");
        // Modules of unit tests, and what they share.
        let is_test = path.file_stem().is_some_and(|name| name == "tests")
            || relative.starts_with("crates/test-support");
        if !is_source || is_test || relative == Path::new(TEMPORARY) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in without_tests(&text).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for word in forbidden {
                let place = format!("{}:{}", relative.display(), number + 1);
                assert!(!code.contains(word), "{place}: {word}; use {TEMPORARY}");
            }
        }
    }
    for path in files(&root().join("crates/kernel/python/cellwright_runner"), "py") {
        let text = fs::read_to_string(&path).unwrap();
        let chooses = text.contains("tempfile") || text.contains("/tmp");
        let name = path.file_name().unwrap();
        assert_eq!(chooses, name == "temporary.py", "{}", path.display());
    }
}

#[test]
fn the_host_opens_its_files_in_one_way() {
    // These wait for the other end of a pipe and follow links.
    let forbidden = [
        "File::open(",
        "File::create(",
        ".open(&",
        "fs::read(",
        "fs::read_to_string(",
        "fs::write(",
    ];
    for path in files(&root().join("crates/host/src"), "rs") {
        let text = fs::read_to_string(&path).unwrap();
        for word in forbidden {
            let found = without_tests(&text).contains(word);
            assert!(!found, "{}: {word}", path.display());
        }
    }
}

#[test]
fn no_crate_is_too_large() {
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let lines = |path: &std::path::PathBuf| {
            let text = fs::read_to_string(path).unwrap();
            without_tests(&text).lines().count()
        };
        let lines: usize = files(&path.join("src"), "rs").iter().map(lines).sum();
        let max = if path.ends_with("cellwright") {
            10_000
        } else {
            16_500
        };
        assert!(lines <= max, "{} has {lines} lines", path.display());
    }
}

#[test]
fn every_variable_has_documentation() {
    let text = fs::read_to_string(root().join("crates/engine/src/env.rs")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let constants: Vec<usize> = (0..lines.len())
        .filter(|&n| lines[n].starts_with("pub const"))
        .collect();
    assert!(!constants.is_empty());
    for constant in constants {
        assert!(
            lines[constant - 1].starts_with("///"),
            "{}",
            lines[constant]
        );
    }
}

#[test]
fn every_module_has_documentation() {
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("//! "),
            "{} has no first line of documentation",
            path.display()
        );
    }
}

#[test]
fn every_test_file_is_a_module() {
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let tests = entry.unwrap().path().join("tests");
        if !tests.exists() {
            continue;
        }
        let files_outside: Vec<_> = fs::read_dir(&tests)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
            .collect();
        assert!(
            files_outside.is_empty(),
            "each would be a separate test program: {files_outside:?}"
        );
        check_modules(&tests.join("it"), &tests.join("it/main.rs"));
    }
}

/// Every file in `directory` is a module of `parent`, and so on below.
fn check_modules(dir: &Path, parent: &Path) {
    let declared: BTreeSet<String> = fs::read_to_string(parent)
        .unwrap()
        .lines()
        .filter_map(|line| {
            let name = line
                .trim_start_matches("pub(crate) ")
                .strip_prefix("mod ")?;
            Some(name.strip_suffix(';')?.to_owned())
        })
        .collect();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if is_source && path != *parent {
            assert!(
                declared.contains(&name),
                "{} is not in {}",
                path.display(),
                parent.display()
            );
            if path.with_extension("").is_dir() {
                check_modules(&path.with_extension(""), &path);
            }
        }
    }
}

#[test]
fn no_file_contains_a_path_of_a_development_machine() {
    let mut paths = sources();
    for extension in ["md", "toml", "py", "txt"] {
        paths.extend(files(&root().join("crates"), extension));
        paths.extend(files(&root().join("docs"), extension));
    }
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        for path_prefix in ["/ho\u{6d}e/", "/ro\u{6f}t/", "/w\u{6f}rk/"] {
            assert!(
                !text.contains(path_prefix),
                "{} names {path_prefix}",
                path.display()
            );
        }
    }
}

#[test]
fn the_root_contains_only_known_files() {
    let known = [
        ".ci",
        ".config",
        ".gitignore",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "Cargo.lock",
        "Cargo.toml",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "README.md",
        "STYLE.md",
        "clippy.toml",
        "crates",
        "deny.toml",
        "docs",
        "examples",
        "fuzz",
        "rustfmt.toml",
        "scripts",
    ];
    let output = std::process::Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root())
        .output()
        .unwrap();
    // Without git, as in a package, the list is empty.
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    for path in listed.split('\0').filter(|path| !path.is_empty()) {
        let first = path.split('/').next().unwrap_or(path);
        assert!(known.contains(&first), "{path} is in the repository");
    }
}
