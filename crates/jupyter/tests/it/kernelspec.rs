//! Kernelspecs: Python's Jupyter finds the same kernels and starts them with the same commands.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cellwright_jupyter::kernelspec::{InterruptMode, Kernelspec, KernelspecError, find, list};
use cellwright_jupyter::paths::JupyterPaths;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{is_root, run_oracle, temp_dir};

/// Adds a kernelspec to a data directory. Returns its own directory.
fn add_kernelspec(data_dir: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let dir = data_dir.join("kernels").join(name);
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("kernel.json"), text).unwrap();
    dir
}

fn valid_json(display: &str) -> String {
    json!({
        "argv": ["run", "{connection_file}"],
        "display_name": display,
        "language": "lang",
    })
    .to_string()
}

fn paths(dirs: &[&Path]) -> JupyterPaths {
    JupyterPaths {
        data_dirs: dirs.iter().map(PathBuf::from).collect(),
        runtime_dir: None,
    }
}

/// Reads a single `kernel.json`.
fn read_kernelspec(text: impl AsRef<[u8]>) -> Result<Kernelspec, KernelspecError> {
    let (_guard, root) = temp_dir();
    add_kernelspec(&root, "one", text);
    find(&paths(&[&root]), "one").unwrap().spec
}

#[derive(Deserialize)]
struct Answer {
    found: BTreeMap<String, PathBuf>,
    valid: BTreeMap<String, Value>,
}

#[test]
fn jupyter_lists_the_same_kernels() {
    let (_guard, root) = temp_dir();
    let (one, two, three) = (root.join("one"), root.join("two"), root.join("three"));
    add_kernelspec(&one, "plain", valid_json("Plain"));
    add_kernelspec(&one, "Capital", valid_json("Capital"));
    add_kernelspec(&one, "odd name", valid_json("Odd"));
    add_kernelspec(&one, "é-É", valid_json("Accents"));
    add_kernelspec(&one, "a.b_c-d", valid_json("Separators"));
    add_kernelspec(&one, ".hidden", valid_json("Hidden"));
    add_kernelspec(&one, "broken", "{");
    add_kernelspec(&one, "list", "[]");
    add_kernelspec(&one, "wordless", "");
    add_kernelspec(&one, "not-utf8", b"{\"argv\": [\"\xff\"]}");
    add_kernelspec(&one, "shadow", valid_json("First"));
    add_kernelspec(&two, "shadow", valid_json("Second"));
    add_kernelspec(&two, "SHADOW2", valid_json("Upper"));
    add_kernelspec(&three, "shadow2", valid_json("Lower"));
    // A broken kernelspec hides later ones.
    add_kernelspec(&two, "broken", valid_json("Not broken"));
    // These are no kernelspecs and do not hide later ones.
    fs::create_dir_all(one.join("kernels/empty")).unwrap();
    add_kernelspec(&two, "empty", valid_json("Not empty"));
    fs::create_dir_all(one.join("kernels/directory/kernel.json")).unwrap();
    add_kernelspec(&two, "directory", valid_json("No directory"));
    fs::create_dir_all(one.join("kernels/loop")).unwrap();
    std::os::unix::fs::symlink("kernel.json", one.join("kernels/loop/kernel.json")).unwrap();
    add_kernelspec(&two, "loop", valid_json("No loop"));
    fs::create_dir_all(one.join("kernels/pipe")).unwrap();
    let pipe = one.join("kernels/pipe/kernel.json");
    let mode = rustix::fs::Mode::from(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    add_kernelspec(&two, "pipe", valid_json("No pipe"));
    fs::write(one.join("kernels/file"), "{}").unwrap();
    add_kernelspec(&two, "file", valid_json("No file"));
    std::os::unix::fs::symlink("nowhere", one.join("kernels/dangling")).unwrap();
    add_kernelspec(&two, "dangling", valid_json("Not dangling"));
    // Links are followed.
    let elsewhere = add_kernelspec(&root.join("elsewhere"), "linked", valid_json("Linked"));
    std::os::unix::fs::symlink(&elsewhere, one.join("kernels/linked")).unwrap();
    // Optional members.
    for (name, text) in [
        (
            "modes",
            r#"{"argv": ["a"], "interrupt_mode": "MESSAGE", "metadata": {"debugger": true}}"#,
        ),
        (
            "env",
            r#"{"argv": ["a"], "env": {"B": "$A", "A": "x"}, "unknown": [1, null]}"#,
        ),
        (
            "twice",
            r#"{"argv": ["a"], "argv": ["b"], "display_name": "d", "language": "l"}"#,
        ),
    ] {
        add_kernelspec(&three, name, text);
    }
    let dirs = [
        root.join("missing"),
        one.clone(),
        two.clone(),
        one.clone(),
        three.clone(),
    ];
    let kernels: Vec<PathBuf> = dirs.iter().map(|dir| dir.join("kernels")).collect();
    let answer: Answer = run_oracle("specs", &json!({ "directories": kernels }));

    let entries = list(&JupyterPaths {
        data_dirs: dirs.to_vec(),
        runtime_dir: None,
    });
    let dirs_by_name: BTreeMap<String, PathBuf> = entries
        .iter()
        .map(|entry| (entry.name.clone(), entry.dir.clone()))
        .collect();
    assert_eq!(dirs_by_name, answer.found);
    assert_eq!(dirs_by_name.len(), entries.len());
    let names: Vec<&String> = dirs_by_name.keys().collect();
    assert_eq!(
        entries.iter().map(|entry| &entry.name).collect::<Vec<_>>(),
        names
    );

    let readable: Vec<&String> = entries
        .iter()
        .filter(|entry| entry.spec.is_ok())
        .map(|entry| &entry.name)
        .collect();
    assert_eq!(readable, answer.valid.keys().collect::<Vec<_>>());
    for entry in &entries {
        let Ok(spec) = &entry.spec else { continue };
        let expected = &answer.valid[&entry.name];
        assert_eq!(json!(spec.argv), expected["argv"]);
        if expected["display_name"] == "" {
            assert_eq!(spec.display_name, entry.name);
        } else {
            assert_eq!(json!(spec.display_name), expected["display_name"]);
        }
        assert_eq!(json!(spec.language), expected["language"]);
        assert_eq!(json!(spec.metadata), expected["metadata"]);
        let mode = expected["interrupt_mode"].as_str().unwrap();
        let message = mode.eq_ignore_ascii_case("message");
        assert_eq!(spec.interrupt == InterruptMode::Message, message);
        let env: serde_json::Map<String, Value> = spec
            .env
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        assert_eq!(Value::Object(env), expected["env"]);
    }
}

#[test]
fn of_names_that_differ_in_case_the_lowercase_one_counts() {
    let (_guard, root) = temp_dir();
    for name in ["Rust", "RUST", "rust", "rusT"] {
        add_kernelspec(&root, name, valid_json(name));
    }
    let entries = list(&paths(&[&root]));
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].spec.as_ref().unwrap().display_name, "rust");
}

#[test]
fn kernel_names_ignore_case() {
    let (_guard, root) = temp_dir();
    add_kernelspec(&root, "Julia-1.10", valid_json("Julia"));
    for name in ["julia-1.10", "Julia-1.10", "JULIA-1.10"] {
        let found = find(&paths(&[&root]), name).unwrap();
        assert_eq!(found.name, "julia-1.10");
        assert_eq!(found.dir, root.join("kernels/Julia-1.10"));
        assert_eq!(found.spec.unwrap().name, "julia-1.10");
    }
}

#[test]
fn the_error_for_a_missing_kernel_lists_the_available_ones() {
    let (_guard, root) = temp_dir();
    let (one, two) = (root.join("one"), root.join("two"));
    add_kernelspec(&two, "b", valid_json("B"));
    add_kernelspec(&one, "a", valid_json("A"));
    add_kernelspec(&one, "broken", "?");
    for name in ["c", "", ".", "..", "../kernels/a", "a/", "/"] {
        let error = find(&paths(&[&one, &two]), name).unwrap_err();
        assert_eq!(error.name, name);
        assert_eq!(error.available, ["a", "b"]);
        assert_eq!(error.searched, [one.join("kernels"), two.join("kernels")]);
    }
}

#[test]
fn only_argv_is_required() {
    let spec = read_kernelspec("\u{feff}{\"argv\": [\"a\"]}").unwrap();
    assert_eq!((&*spec.display_name, &*spec.language), ("one", ""));
    assert_eq!(spec.interrupt, InterruptMode::Signal);

    let spec = read_kernelspec(
        r#" {"argv": ["a", ""], "display_name": null, "language": 3, "interrupt_mode": "pray",
            "env": null, "metadata": "none", "more": {"deep": [[]]}}"#,
    )
    .unwrap();
    assert_eq!(spec.argv, ["a", ""]);
    assert_eq!((&*spec.display_name, &*spec.language), ("one", ""));
    assert_eq!(spec.interrupt, InterruptMode::Signal);
    assert_eq!(spec.env, []);
    assert!(spec.metadata.is_empty());

    let spec = read_kernelspec(
        r#"{"argv": ["a"], "env": {"N": 1, "T": true, "Z": null, "L": [], "S": "s", "": "x",
            "A=B": "x", "C": "\u0000"}}"#,
    )
    .unwrap();
    let env = [("N", "1"), ("T", "true"), ("S", "s")];
    assert_eq!(
        spec.env,
        env.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
}

#[test]
fn an_invalid_argv_is_reported_with_its_position() {
    for (text, expected) in [
        ("{\n  \"argv\": [1]}", "line 2 column 12"),
        (
            "{\n \"argv\": []}",
            "`argv` names no program at line 2 column 12",
        ),
        (r#"{"argv": [""]}"#, "`argv` names no program"),
        (r#"{"argv": ["a", "b\u0000"]}"#, "`argv` has a NUL in it"),
        (r#"{"argv": "run"}"#, "line 1 column 14"),
        (r#"{"argv": null}"#, "line 1 column 13"),
        (
            r#"{"display_name": "x"}"#,
            "missing field `argv` at line 1 column 21",
        ),
        (r#"{"argv": ["a"]} x"#, "line 1 column 17"),
        (r#"[["a"]]"#, "it does not hold a JSON object"),
        ("", "it does not hold a JSON object"),
        ("{\"argv\": [\"a\"],\n\"x\": ", "line 2 column 5"),
    ] {
        match read_kernelspec(text).unwrap_err() {
            KernelspecError::Malformed { reason } => {
                assert!(reason.contains(expected), "{text}: {reason}");
            }
            error => panic!("{text}: {error}"),
        }
    }
}

#[test]
fn a_file_beyond_the_size_limit_is_not_read() {
    let mut text = valid_json("Long");
    text.push_str(&" ".repeat(1 << 20));
    let error = read_kernelspec(text).unwrap_err();
    assert!(
        matches!(error, KernelspecError::Unreadable { .. }),
        "{error}"
    );
}

#[test]
fn deep_nesting_is_an_error() {
    let text = format!("{{\"argv\": {}", "[".repeat(500_000));
    assert!(matches!(
        read_kernelspec(text).unwrap_err(),
        KernelspecError::Malformed { .. }
    ));
}

#[test]
fn an_unreadable_file_is_an_error_of_its_kernel_only() {
    let (_guard, root) = temp_dir();
    let one = add_kernelspec(&root, "one", valid_json("One"));
    add_kernelspec(&root, "two", valid_json("Two"));
    let three = add_kernelspec(&root, "three", valid_json("Three"));
    // A regular file whose first byte no user can read.
    fs::remove_file(three.join("kernel.json")).unwrap();
    std::os::unix::fs::symlink("/proc/self/mem", three.join("kernel.json")).unwrap();
    fs::set_permissions(one.join("kernel.json"), fs::Permissions::from_mode(0o000)).unwrap();
    let entries = list(&paths(&[&root]));
    assert_eq!(entries.len(), 3);
    let is_unreadable =
        |index: usize| matches!(entries[index].spec, Err(KernelspecError::Unreadable { .. }));
    // Root can read the file without permissions.
    assert!(is_unreadable(0) || is_root());
    assert!(is_unreadable(1));
    assert!(entries[2].spec.is_ok());
}

fn strings(command: Vec<OsString>) -> Vec<String> {
    command
        .into_iter()
        .map(|part| part.into_string().unwrap())
        .collect()
}

#[test]
fn jupyter_uses_the_same_commands() {
    let (_guard, root) = temp_dir();
    let prefix = root.join("env");
    fs::create_dir_all(prefix.join("bin")).unwrap();
    let python = prefix.join("bin/python");
    std::os::unix::fs::symlink("/nowhere/python3.11", &python).unwrap();
    let file = root.join("kernel.json");
    fs::write(&file, "{}").unwrap();
    let link = root.join("link.json");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let commands = [
        json!(["python", "-m", "x", "-f", "{connection_file}"]),
        json!([
            "python3",
            "--f={connection_file}",
            "{connection_file}{connection_file}"
        ]),
        json!(["/usr/bin/python3", "{resource_dir}/x", "{prefix}/lib"]),
        json!([
            "./python",
            "{unknown}",
            "{}",
            "{ connection_file }",
            "{{connection_file}}"
        ]),
        json!([
            "python2",
            "{connection_file",
            "connection_file}",
            "{a{resource_dir}}"
        ]),
        json!([
            "Python",
            "{Connection_File}",
            "${prefix}",
            "{connection-file}",
            "é{prefix}é"
        ]),
        json!(["{resource_dir}/bin/run", "python", "{resource_dir"]),
        json!(["python3x"]),
        json!(["python3."]),
        json!(["pythons", "a b", "", "\\{prefix\\}"]),
    ];
    let specs: Vec<Kernelspec> = commands
        .iter()
        .enumerate()
        .map(|(number, argv)| {
            let name = format!("{{prefix}}-{number}");
            add_kernelspec(&root, &name, json!({ "argv": argv }).to_string());
            find(&paths(&[&root]), &name).unwrap().spec.unwrap()
        })
        .collect();
    let dirs: Vec<&PathBuf> = specs.iter().map(|spec| &spec.dir).collect();
    for connection_file in [&file, &link] {
        let answers: Vec<Vec<String>> = run_oracle(
            "command",
            &json!({
                "directories": dirs,
                "python": python,
                "prefix": prefix,
                "connection_file": connection_file,
            }),
        );
        assert_eq!(answers.len(), commands.len());
        for (spec, answer) in specs.iter().zip(answers) {
            let command = strings(spec.command(connection_file, Some(&python)));
            assert_eq!(command, answer, "{:?}", spec.argv);
        }
    }
}

fn with_argv(argv: &[&str]) -> Kernelspec {
    Kernelspec {
        argv: argv.iter().map(ToString::to_string).collect(),
        dir: "/spec".into(),
        ..Kernelspec::ipykernel(Path::new("/usr/bin/python3"))
    }
}

#[test]
fn a_program_of_another_version_is_not_replaced() {
    let (_guard, root) = temp_dir();
    let real = root.join("python3.11");
    fs::write(&real, "").unwrap();
    let python = root.join("python");
    std::os::unix::fs::symlink(&real, &python).unwrap();
    let program = |name: &str, python: &Path| {
        let command = with_argv(&[name]).command(Path::new("/c"), Some(python));
        PathBuf::from(&command[0])
    };
    assert_eq!(program("python3.11", &python), python);
    assert_eq!(program("python3.9", &python), PathBuf::from("python3.9"));
    // An interpreter of unknown version.
    let unknown = root.join("interpreter");
    assert_eq!(program("python3.9", &unknown), unknown);
}

#[test]
fn without_an_interpreter_the_program_is_not_replaced() {
    let spec = with_argv(&[
        "python3",
        "{prefix}",
        "{resource_dir}",
        "-f={connection_file}",
    ]);
    let command = strings(spec.command(Path::new("/no/such"), None));
    assert_eq!(command, ["python3", "{prefix}", "/spec", "-f=/no/such"]);
}

#[test]
fn commands_may_contain_paths_that_are_not_utf8() {
    let odd = Path::new(std::ffi::OsStr::from_bytes(b"/tmp/\xff"));
    let command = with_argv(&["a", "-f={connection_file}"]).command(odd, None);
    assert_eq!(command[1].as_bytes(), b"-f=/tmp/\xff");
}

#[test]
fn variables_are_replaced_as_in_python() {
    let env = [
        ("A", "one"),
        ("_b2", "two"),
        ("PATH", "/bin:$A"),
        ("a", "small"),
    ];
    let texts = [
        "",
        "$",
        "$$",
        "$$A",
        "$$$A",
        "$A",
        "${A}",
        "$AB",
        "${A}B",
        "$A.B",
        "${ A}",
        "${A",
        "$A}",
        "${}",
        "${A$A}",
        "$a$A",
        "$_b2",
        "$_b2x",
        "$1",
        "${1}",
        "$PATH:more",
        "100%$",
        "$é",
        "$Aé",
        "${Aé}",
        "$${A}",
        "${$A}",
        "$-A",
        "a$ A",
        "${UNKNOWN} $UNKNOWN ${A}",
        "$$$",
        "$A$",
    ];
    let env_map: BTreeMap<&str, &str> = env.into();
    let answers: Vec<String> = run_oracle("templates", &json!({ "env": env_map, "texts": texts }));
    let env = env.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    for (text, answer) in texts.into_iter().zip(answers) {
        let mut spec = with_argv(&["a"]);
        spec.env = vec![("X".to_owned(), text.to_owned())];
        let variables = spec.environment(&env);
        assert_eq!(variables, [("X".into(), answer.into())], "{text}");
    }
}

#[test]
fn programs_are_found_as_the_system_finds_them() {
    let (_guard, root) = temp_dir();
    let (one, two) = (root.join("one"), root.join("two"));
    for dir in [&one, &two] {
        fs::create_dir(dir).unwrap();
    }
    let create = |dir: &Path, name: &str, mode: u32| {
        let path = dir.join(name);
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    create(&one, "run", 0o644);
    let run = create(&two, "run", 0o755);
    fs::create_dir(one.join("directory")).unwrap();
    let path = [
        PathBuf::from("relative"),
        PathBuf::new(),
        one.clone(),
        two.clone(),
    ];

    let check = |program: &str, python| with_argv(&[program]).find_program(&path, python);
    let missing = |program: &str| {
        Err(KernelspecError::NoProgram {
            program: program.into(),
        })
    };
    assert_eq!(check("run", None), Ok(run.clone()));
    assert_eq!(check("nothing", None), missing("nothing"));
    assert_eq!(check("directory", None), missing("directory"));
    assert_eq!(check("python3", None), missing("python3"));
    assert_eq!(check("python3", Some(&run)), Ok(run.clone()));
    assert_eq!(check(run.to_str().unwrap(), None), Ok(run.clone()));
    assert_eq!(check("/no/such", None), missing("/no/such"));
    assert_eq!(check("./bin/run", None), Ok("./bin/run".into()));
    for name in ["run", "directory"] {
        let program = one.join(name);
        let error = check(program.to_str().unwrap(), None).unwrap_err();
        assert_eq!(error, KernelspecError::NotExecutable { program });
    }

    // Relative directories of the search path are ignored.
    let relative = [PathBuf::from("../../scripts")];
    assert!(relative[0].join("test").is_file());
    assert_eq!(
        with_argv(&["test"]).find_program(&relative, None),
        missing("test")
    );

    let mut spec = with_argv(&["{resource_dir}/run"]);
    spec.dir = two.clone();
    assert_eq!(spec.find_program(&[], None), Ok(two.join("run")));
    spec.argv.clear();
    assert_eq!(spec.find_program(&path, None), missing(""));
    assert_eq!(spec.command(Path::new("/c"), None), Vec::<OsString>::new());
}

proptest! {
    #[test]
    fn arbitrary_files_do_not_panic(bytes in prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        r#"\{"argv": ?\[("[a-z$\{\}\\u0]{0,5}",?){0,3}\],? ?("env": ?[\{\["]{0,2})?.{0,20}"#
            .prop_map(String::into_bytes),
    ]) {
        if let Ok(spec) = read_kernelspec(&bytes) {
            prop_assert!(!spec.argv[0].is_empty());
            spec.command(Path::new("/c"), Some(Path::new("/usr/bin/python3")));
            spec.environment(&[]);
        }
    }

    #[test]
    fn arbitrary_placeholders_do_not_panic(argument in ".{0,30}|[{}$a_é]{0,20}", value in "[{}$a_é]{0,20}") {
        let mut spec = with_argv(&["a", &argument]);
        spec.env = vec![("X".to_owned(), value.clone())];
        let command = strings(spec.command(Path::new("/c"), None));
        if !argument.contains("connection_file") && !argument.contains("resource_dir") {
            prop_assert_eq!(&command[1], &argument);
        }
        if !value.contains('$') {
            prop_assert_eq!(&spec.environment(&[])[0].1, &OsString::from(value));
        }
    }
}
