//! Bad input: a clear error, the right exit code, nothing changed.

use std::fs;

use insta::assert_snapshot;

use crate::context::{Context, THREE_CELLS};

fn code_cell(source: &str) -> String {
    format!(
        r#"{{"cell_type":"code","metadata":{{}},"outputs":[],"execution_count":null,"source":{source}}}"#
    )
}

fn notebook(cells: &str) -> String {
    format!(r#"{{"cells":{cells},"metadata":{{}},"nbformat":4,"nbformat_minor":4}}"#)
}

#[test]
fn broken_notebooks_are_refused_by_every_verb_and_not_changed() {
    let deep = format!(
        r#"{{"cells":[],"metadata":{}1{},"nbformat":4}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let noise: Vec<u8> = (0..5000u32)
        .map(|n| ((n * 7919) >> 3).to_le_bytes()[0])
        .collect();
    let broken: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("blank", b" \n\t\n".to_vec()),
        ("noise", noise),
        ("truncated", THREE_CELLS.as_bytes()[..400].to_vec()),
        (
            "two_documents",
            format!("{THREE_CELLS}{THREE_CELLS}").into_bytes(),
        ),
        ("deep", deep.into_bytes()),
        ("huge_number", br#"{"cells":[],"nbformat":1e999}"#.to_vec()),
        (
            "huge_major",
            br#"{"cells":[],"nbformat":99999999999999999999}"#.to_vec(),
        ),
        (
            "not_utf8",
            THREE_CELLS
                .replace("tour", "t#ur")
                .into_bytes()
                .iter()
                .map(|&b| if b == b'#' { 0xe9 } else { b })
                .collect(),
        ),
        ("cells_object", notebook("{}").into_bytes()),
        ("cells_null", notebook("null").into_bytes()),
        ("cell_number", notebook("[7]").into_bytes()),
        (
            "cell_kind",
            notebook(r#"[{"cell_type":"sql","source":""}]"#).into_bytes(),
        ),
        (
            "cell_without_kind",
            notebook(r#"[{"source":""}]"#).into_bytes(),
        ),
        (
            "source_number",
            notebook(&format!("[{}]", code_cell("7"))).into_bytes(),
        ),
        (
            "source_of_numbers",
            notebook(&format!("[{}]", code_cell("[7]"))).into_bytes(),
        ),
        ("no_format", br#"{"cells":[]}"#.to_vec()),
        ("future", br#"{"cells":[],"nbformat":5}"#.to_vec()),
        ("array", b"[]".to_vec()),
        ("string", br#""notebook""#.to_vec()),
        ("trailing_comma", br#"{"cells":[],}"#.to_vec()),
    ];
    let context = Context::new();
    let mut errors = String::new();
    for (name, content) in broken {
        let file = format!("{name}.ipynb");
        let path = context.file(&file, &content);
        let read = context.run(&["read", &file]).exits(2);
        assert_eq!(read.stdout, "", "{name}");
        errors.push_str(&format!("== {name}\n{}", read.stderr));
        context
            .run_with_input(&["write", &file], "# %% [code]\n")
            .exits(2);
        context
            .run_with_input(&["write", &file, "--create"], "# %% [code]\n")
            .exits(2);
        context
            .run(&["edit", &file, "--old", "a", "--new", "b"])
            .exits(2);
        context
            .run(&["notebook", "insert", &file, "--source", "x", "--create"])
            .exits(2);
        context.run(&["notebook", "outline", &file]).exits(2);
        assert_eq!(fs::read(&path).unwrap(), content, "{name}");
    }
    assert_snapshot!(errors);
}

#[test]
fn a_path_that_is_no_regular_file_is_refused() {
    let context = Context::new();
    fs::create_dir(context.path("directory.ipynb")).unwrap();
    let pipe = context.path("pipe.ipynb");
    let made = std::process::Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .unwrap();
    assert!(made.success());
    assert_snapshot!(
        "a_directory",
        context
            .run(&["read", "directory.ipynb"])
            .exits(2)
            .output_masked()
    );
    assert_snapshot!(
        "a_pipe",
        context
            .run(&["read", "pipe.ipynb"])
            .exits(2)
            .output_masked()
    );
    assert_snapshot!(
        "missing",
        context
            .run(&["read", "missing.ipynb"])
            .exits(2)
            .output_masked()
    );
    for file in ["directory.ipynb", "pipe.ipynb"] {
        context
            .run_with_input(&["write", file, "--create"], "# %% [code]\n")
            .exits(2);
    }
    let missing = context.run_with_input(&["write", "no/such/a.ipynb", "--create"], "\n");
    assert_snapshot!("missing_directory", missing.exits(2).output_masked());
}

#[test]
fn a_file_that_is_not_a_notebook_is_refused() {
    let context = Context::new();
    context.file("data.csv", "a,b\n1,2\n");
    let mut errors = String::new();
    for arguments in [
        &["edit", "data.csv", "--old", "a", "--new", "b"][..],
        &["notebook", "upgrade", "data.csv"],
        &["write", "data.csv"],
        &["write", "new.py"],
        &["write", "new.py", "--create"],
    ] {
        let result = context.run_with_input(arguments, "# %% [code]\n").exits(2);
        errors.push_str(&format!("== {}\n{}", arguments.join(" "), result.stderr));
    }
    assert_snapshot!(errors);
    assert_eq!(context.content("data.csv"), "a,b\n1,2\n");
    assert!(!context.path("new.py").exists());
    let raw = context.run(&["read", "data.csv:raw"]).exits(0);
    assert_eq!(raw.stdout, "a,b\n1,2\n");
    // The content counts, not the name.
    context.file("notebook.json", THREE_CELLS);
    context.run(&["read", "notebook.json"]).exits(0);
}

#[test]
fn valid_numbers_and_deep_nesting_are_kept() {
    let context = Context::new();
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    let content = format!(
        r#"{{"cells":[{}],"metadata":{{"x":[1e400,-0.0,1.10,NaN,-Infinity,123456789012345678901234567890],"deep":{deep}}},"nbformat":4,"nbformat_minor":4}}"#,
        code_cell(r#""a""#)
    );
    context.file("legal.ipynb", &content);
    context
        .run(&["notebook", "edit", "legal.ipynb", "0", "--source", "b"])
        .exits(0);
    let expected = content.replace(r#""source":"a""#, r#""source":"b""#);
    assert_eq!(context.content("legal.ipynb"), expected);
}

#[test]
fn read_waits_for_a_file_that_is_being_written() {
    let context = Context::new();
    let path = context.path("slow.ipynb");
    fs::write(&path, "").unwrap();
    let writer = std::thread::spawn(move || {
        for length in [100, 300, THREE_CELLS.len()] {
            std::thread::sleep(std::time::Duration::from_millis(100));
            fs::write(&path, &THREE_CELLS[..length]).unwrap();
        }
    });
    let result = context.run(&["read", "slow.ipynb"]).exits(0);
    writer.join().unwrap();
    assert!(
        result
            .stdout
            .starts_with("# %% [markdown] cell:0\n# A tour\n")
    );
    assert!(result.stdout.ends_with("answer + 1.0\n"));
}
