//! Python's Jupyter finds the same kernels and starts them in the same way.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cellwright_jupyter::kernelspec::{Fault, Interrupt, Kernelspec, find, list};
use cellwright_jupyter::places::Places;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{ask, folder, is_root};

/// A kernelspec's folder, in one of several places.
fn add(place: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let folder = place.join("kernels").join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("kernel.json"), text).unwrap();
    folder
}

fn good(display: &str) -> String {
    json!({
        "argv": ["run", "{connection_file}"],
        "display_name": display,
        "language": "tongue",
    })
    .to_string()
}

fn places(folders: &[&Path]) -> Places {
    Places {
        data: folders.iter().map(PathBuf::from).collect(),
        runtime: None,
    }
}

/// What a single `kernel.json` is read as.
fn read(text: impl AsRef<[u8]>) -> Result<Kernelspec, Fault> {
    let (_guard, root) = folder();
    add(&root, "one", text);
    find(&places(&[&root]), "one").unwrap().spec
}

#[derive(Deserialize)]
struct Answer {
    found: BTreeMap<String, PathBuf>,
    good: BTreeMap<String, Value>,
}

#[test]
fn jupyter_lists_the_same_kernels() {
    let (_guard, root) = folder();
    let (one, two, three) = (root.join("one"), root.join("two"), root.join("three"));
    add(&one, "plain", good("Plain"));
    add(&one, "Capital", good("Capital"));
    add(&one, "odd name", good("Odd"));
    add(&one, "é-É", good("Accents"));
    add(&one, "a.b_c-d", good("Separators"));
    add(&one, ".hidden", good("Hidden"));
    add(&one, "broken", "{");
    add(&one, "list", "[]");
    add(&one, "wordless", "");
    add(&one, "not-utf8", b"{\"argv\": [\"\xff\"]}");
    add(&one, "shadow", good("First"));
    add(&two, "shadow", good("Second"));
    add(&two, "SHADOW2", good("Upper"));
    add(&three, "shadow2", good("Lower"));
    // A broken one counts too.
    add(&two, "broken", good("Not broken"));
    // These do not, so that the later ones do.
    fs::create_dir_all(one.join("kernels/empty")).unwrap();
    add(&two, "empty", good("Not empty"));
    fs::create_dir_all(one.join("kernels/folder/kernel.json")).unwrap();
    add(&two, "folder", good("No folder"));
    fs::create_dir_all(one.join("kernels/loop")).unwrap();
    std::os::unix::fs::symlink("kernel.json", one.join("kernels/loop/kernel.json")).unwrap();
    add(&two, "loop", good("No loop"));
    fs::create_dir_all(one.join("kernels/pipe")).unwrap();
    let pipe = one.join("kernels/pipe/kernel.json");
    let mode = rustix::fs::Mode::from(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    add(&two, "pipe", good("No pipe"));
    fs::write(one.join("kernels/file"), "{}").unwrap();
    add(&two, "file", good("No file"));
    std::os::unix::fs::symlink("nowhere", one.join("kernels/dangling")).unwrap();
    add(&two, "dangling", good("Not dangling"));
    // Links are followed.
    let elsewhere = add(&root.join("elsewhere"), "linked", good("Linked"));
    std::os::unix::fs::symlink(&elsewhere, one.join("kernels/linked")).unwrap();
    // Whatever is said about a kernel.
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
        add(&three, name, text);
    }
    let folders = [
        root.join("missing"),
        one.clone(),
        two.clone(),
        one.clone(),
        three.clone(),
    ];
    let kernels: Vec<PathBuf> = folders
        .iter()
        .map(|folder| folder.join("kernels"))
        .collect();
    let answer: Answer = ask("specs", &json!({ "folders": kernels }));

    let listed = list(&Places {
        data: folders.to_vec(),
        runtime: None,
    });
    let ours: BTreeMap<String, PathBuf> = listed
        .iter()
        .map(|listed| (listed.name.clone(), listed.folder.clone()))
        .collect();
    assert_eq!(ours, answer.found);
    assert_eq!(ours.len(), listed.len());
    let names: Vec<&String> = ours.keys().collect();
    assert_eq!(
        listed.iter().map(|listed| &listed.name).collect::<Vec<_>>(),
        names
    );

    let readable: Vec<&String> = listed
        .iter()
        .filter(|listed| listed.spec.is_ok())
        .map(|listed| &listed.name)
        .collect();
    assert_eq!(readable, answer.good.keys().collect::<Vec<_>>());
    for listed in &listed {
        let Ok(spec) = &listed.spec else { continue };
        let theirs = &answer.good[&listed.name];
        assert_eq!(json!(spec.argv), theirs["argv"]);
        if theirs["display_name"] == "" {
            assert_eq!(spec.display_name, listed.name);
        } else {
            assert_eq!(json!(spec.display_name), theirs["display_name"]);
        }
        assert_eq!(json!(spec.language), theirs["language"]);
        assert_eq!(json!(spec.metadata), theirs["metadata"]);
        let mode = theirs["interrupt_mode"].as_str().unwrap();
        let message = mode.eq_ignore_ascii_case("message");
        assert_eq!(spec.interrupt == Interrupt::Message, message);
        let env: serde_json::Map<String, Value> = spec
            .env
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        assert_eq!(Value::Object(env), theirs["env"]);
    }
}

#[test]
fn of_two_names_that_differ_in_case_the_small_one_counts() {
    let (_guard, root) = folder();
    for name in ["Rust", "RUST", "rust", "rusT"] {
        add(&root, name, good(name));
    }
    let listed = list(&places(&[&root]));
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].spec.as_ref().unwrap().display_name, "rust");
}

#[test]
fn a_kernel_is_found_in_any_case() {
    let (_guard, root) = folder();
    add(&root, "Julia-1.10", good("Julia"));
    for name in ["julia-1.10", "Julia-1.10", "JULIA-1.10"] {
        let found = find(&places(&[&root]), name).unwrap();
        assert_eq!(found.name, "julia-1.10");
        assert_eq!(found.folder, root.join("kernels/Julia-1.10"));
        assert_eq!(found.spec.unwrap().name, "julia-1.10");
    }
}

#[test]
fn a_kernel_that_is_not_there_is_said_with_those_that_are() {
    let (_guard, root) = folder();
    let (one, two) = (root.join("one"), root.join("two"));
    add(&two, "b", good("B"));
    add(&one, "a", good("A"));
    add(&one, "broken", "?");
    for name in ["c", "", ".", "..", "../kernels/a", "a/", "/"] {
        let error = find(&places(&[&one, &two]), name).unwrap_err();
        assert_eq!(error.name, name);
        assert_eq!(error.available, ["a", "b"]);
        assert_eq!(error.searched, [one.join("kernels"), two.join("kernels")]);
    }
}

#[test]
fn what_is_missing_or_odd_does_not_matter_beside_a_command() {
    let spec = read("\u{feff}{\"argv\": [\"a\"]}").unwrap();
    assert_eq!((&*spec.display_name, &*spec.language), ("one", ""));
    assert_eq!(spec.interrupt, Interrupt::Signal);

    let spec = read(
        r#" {"argv": ["a", ""], "display_name": null, "language": 3, "interrupt_mode": "pray",
            "env": null, "metadata": "none", "more": {"deep": [[]]}}"#,
    )
    .unwrap();
    assert_eq!(spec.argv, ["a", ""]);
    assert_eq!((&*spec.display_name, &*spec.language), ("one", ""));
    assert_eq!(spec.interrupt, Interrupt::Signal);
    assert_eq!(spec.env, []);
    assert!(spec.metadata.is_empty());

    let spec = read(
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
fn what_cannot_be_a_command_is_said_with_its_place() {
    for (text, words) in [
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
        match read(text).unwrap_err() {
            Fault::Malformed { why } => assert!(why.contains(words), "{text}: {why}"),
            fault => panic!("{text}: {fault}"),
        }
    }
}

#[test]
fn a_file_that_is_much_too_long_is_not_read() {
    let mut text = good("Long");
    text.push_str(&" ".repeat(1 << 20));
    let fault = read(text).unwrap_err();
    assert!(matches!(fault, Fault::Unreadable { .. }), "{fault}");
}

#[test]
fn deep_nesting_is_a_fault_and_nothing_worse() {
    let text = format!("{{\"argv\": {}", "[".repeat(500_000));
    assert!(matches!(read(text).unwrap_err(), Fault::Malformed { .. }));
}

#[test]
fn a_file_that_is_kept_from_us_is_a_fault_of_its_kernel() {
    let (_guard, root) = folder();
    let one = add(&root, "one", good("One"));
    add(&root, "two", good("Two"));
    fs::set_permissions(one.join("kernel.json"), fs::Permissions::from_mode(0o000)).unwrap();
    let listed = list(&places(&[&root]));
    assert_eq!(listed.len(), 2);
    assert!(listed[1].spec.is_ok());
    // Nothing is kept from root.
    if !is_root() {
        let fault = listed[0].spec.as_ref().unwrap_err();
        assert!(matches!(fault, Fault::Unreadable { .. }), "{fault}");
    }
}

fn strings(command: Vec<OsString>) -> Vec<String> {
    command
        .into_iter()
        .map(|part| part.into_string().unwrap())
        .collect()
}

#[test]
fn jupyter_starts_the_same_command() {
    let (_guard, root) = folder();
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
            add(&root, &name, json!({ "argv": argv }).to_string());
            find(&places(&[&root]), &name).unwrap().spec.unwrap()
        })
        .collect();
    let folders: Vec<&PathBuf> = specs.iter().map(|spec| &spec.folder).collect();
    for connection_file in [&file, &link] {
        let answers: Vec<Vec<String>> = ask(
            "command",
            &json!({
                "folders": folders,
                "python": python,
                "prefix": prefix,
                "connection_file": connection_file,
            }),
        );
        assert_eq!(answers.len(), commands.len());
        for (spec, answer) in specs.iter().zip(answers) {
            let ours = strings(spec.command(connection_file, Some(&python)));
            assert_eq!(ours, answer, "{:?}", spec.argv);
        }
    }
}

fn with_argv(argv: &[&str]) -> Kernelspec {
    Kernelspec {
        argv: argv.iter().map(ToString::to_string).collect(),
        folder: "/spec".into(),
        ..Kernelspec::ipykernel(Path::new("/usr/bin/python3"))
    }
}

#[test]
fn a_version_that_the_interpreter_does_not_have_is_not_taken_for_it() {
    let (_guard, root) = folder();
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
    // It may be any version.
    let unknown = root.join("interpreter");
    assert_eq!(program("python3.9", &unknown), unknown);
}

#[test]
fn without_an_interpreter_the_command_stays_as_it_is() {
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
fn paths_that_are_not_text_get_into_the_command() {
    let odd = Path::new(std::ffi::OsStr::from_bytes(b"/tmp/\xff"));
    let command = with_argv(&["a", "-f={connection_file}"]).command(odd, None);
    assert_eq!(command[1].as_bytes(), b"-f=/tmp/\xff");
}

#[test]
fn variables_are_replaced_as_python_does() {
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
    let given: BTreeMap<&str, &str> = env.into();
    let answers: Vec<String> = ask("templates", &json!({ "env": given, "texts": texts }));
    let env = env.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    for (text, answer) in texts.into_iter().zip(answers) {
        let mut spec = with_argv(&["a"]);
        spec.env = vec![("X".to_owned(), text.to_owned())];
        let ours = spec.environment(&env);
        assert_eq!(ours, [("X".into(), answer.into())], "{text}");
    }
}

#[test]
fn programs_are_looked_for_as_they_will_be() {
    let (_guard, root) = folder();
    let (one, two) = (root.join("one"), root.join("two"));
    for folder in [&one, &two] {
        fs::create_dir(folder).unwrap();
    }
    let put = |folder: &Path, name: &str, mode: u32| {
        let path = folder.join(name);
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    put(&one, "run", 0o644);
    let run = put(&two, "run", 0o755);
    fs::create_dir(one.join("folder")).unwrap();
    let path = [
        PathBuf::from("relative"),
        PathBuf::new(),
        one.clone(),
        two.clone(),
    ];

    let check = |program: &str, python| with_argv(&[program]).check(&path, python);
    let missing = |program: &str| {
        Err(Fault::NoProgram {
            program: program.into(),
        })
    };
    assert_eq!(check("run", None), Ok(run.clone()));
    assert_eq!(check("nothing", None), missing("nothing"));
    assert_eq!(check("folder", None), missing("folder"));
    assert_eq!(check("python3", None), missing("python3"));
    assert_eq!(check("python3", Some(&run)), Ok(run.clone()));
    assert_eq!(check(run.to_str().unwrap(), None), Ok(run.clone()));
    assert_eq!(check("/no/such", None), missing("/no/such"));
    assert_eq!(check("./bin/run", None), Ok("./bin/run".into()));
    for name in ["run", "folder"] {
        let program = one.join(name);
        let fault = check(program.to_str().unwrap(), None).unwrap_err();
        assert_eq!(fault, Fault::NotExecutable { program });
    }

    // What is there depends on where somebody stands.
    let relative = [PathBuf::from("../../scripts")];
    assert!(relative[0].join("test").is_file());
    assert_eq!(with_argv(&["test"]).check(&relative, None), missing("test"));

    let mut spec = with_argv(&["{resource_dir}/run"]);
    spec.folder = two.clone();
    assert_eq!(spec.check(&[], None), Ok(two.join("run")));
    spec.argv.clear();
    assert_eq!(spec.check(&path, None), missing(""));
    assert_eq!(spec.command(Path::new("/c"), None), Vec::<OsString>::new());
}

proptest! {
    #[test]
    fn no_file_makes_us_panic(bytes in prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        r#"\{"argv": ?\[("[a-z$\{\}\\u0]{0,5}",?){0,3}\],? ?("env": ?[\{\["]{0,2})?.{0,20}"#
            .prop_map(String::into_bytes),
    ]) {
        if let Ok(spec) = read(&bytes) {
            prop_assert!(!spec.argv[0].is_empty());
            spec.command(Path::new("/c"), Some(Path::new("/usr/bin/python3")));
            spec.environment(&[]);
        }
    }

    #[test]
    fn placeholders_never_make_us_panic(argument in ".{0,30}|[{}$a_é]{0,20}", value in "[{}$a_é]{0,20}") {
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
