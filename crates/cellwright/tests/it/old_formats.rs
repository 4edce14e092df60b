//! Notebooks in nbformat 2 and 3: read as the upgrade would convert them, and never changed on the way.

use serde_json::json;

use crate::context::Context;
use crate::mcp::client::Client;

const OLD: &str = include_str!("../../../notebook/tests/notebooks/v3.ipynb");

/// An old notebook and its upgrade.
fn with_both() -> Context {
    let context = Context::new();
    context.file("old.ipynb", OLD);
    context.file("new.ipynb", OLD);
    context.run(&["notebook", "upgrade", "new.ipynb"]).exits(0);
    context
}

#[test]
fn every_view_is_that_of_the_upgraded_notebook() {
    let context = with_both();
    for view in [
        "",
        ":ids",
        ":outputs",
        ":cells=1,3",
        ":outline",
        ":2-4",
        ":cells=3:outputs:ids",
    ] {
        let read = |name: &str| {
            context
                .run(&["read", &format!("{name}{view}"), "-q"])
                .exits(0)
        };
        let (old, new) = (read("old.ipynb"), read("new.ipynb"));
        assert_eq!(old.stdout, new.stdout, "{view}");
        assert_eq!(new.stderr, "", "{view}");
        assert_eq!(
            old.stderr,
            "notice: the file has nbformat 3.0; its cells are shown in nbformat 4.5; `cellwright notebook upgrade PATH` \
             converts the file; changes require it\n",
            "{view}"
        );
    }
    for verb in ["outline", "figures", "tag", "meta", "parameters"] {
        let shown = |name: &str| context.run(&["notebook", verb, name, "-q"]).exits(0);
        assert_eq!(
            shown("old.ipynb").stdout,
            shown("new.ipynb").stdout,
            "{verb}"
        );
    }
    let outline = context
        .run(&["notebook", "outline", "old.ipynb", "--json"])
        .exits(0)
        .json();
    assert_eq!(outline["nbformat"], "3.0");
    assert_eq!(outline["notices"][0]["kind"], "old_format");
    // The revision is that of the file.
    let raw = context
        .run(&["read", "old.ipynb:raw", "--json"])
        .exits(0)
        .json();
    assert_eq!(raw["revision"], outline["revision"]);
    let compared = context.run(&["diff", "old.ipynb", "new.ipynb"]).exits(0);
    assert_eq!(compared.stdout, "");
    assert_eq!(context.content("old.ipynb"), OLD);
}

#[test]
fn nbformat_2_is_readable_too() {
    let context = Context::new();
    let cell = r#"{"cell_type":"code","input":["x = 1","print(x)"],"language":"python","prompt_number":1,
        "outputs":[{"output_type":"stream","text":["one","two"]}]}"#;
    context.file(
        "old.ipynb",
        format!(r#"{{"metadata":{{}},"nbformat":2,"worksheets":[{{"cells":[{cell}]}}]}}"#),
    );
    let read = context.run(&["read", "old.ipynb:outputs"]).exits(0);
    assert!(
        read.stdout.contains("\nx = 1\nprint(x)\n"),
        "{}",
        read.stdout
    );
    assert!(read.stdout.contains("\none\ntwo\n"), "{}", read.stdout);
    assert!(read.stderr.contains("nbformat 2.0"), "{}", read.stderr);
}

#[test]
fn changes_are_refused_with_the_command_that_upgrades() {
    let context = with_both();
    for arguments in [
        &["edit", "old.ipynb", "--old", "1.0", "--new", "2.0"][..],
        &["notebook", "edit", "old.ipynb", "3", "--source", "x"],
        &["notebook", "tag", "old.ipynb", "3", "x"],
        &["notebook", "meta", "old.ipynb", "k=1"],
        &["notebook", "clear", "old.ipynb"],
        &["run", "old.ipynb"],
    ] {
        let refused = context.run(arguments).exits(2);
        assert!(
            refused.stderr.contains("`cellwright notebook upgrade "),
            "{arguments:?}: {}",
            refused.stderr
        );
        assert_eq!(context.content("old.ipynb"), OLD, "{arguments:?}");
    }
    // A notebook that cannot be converted is an error, not an empty notebook.
    context.file(
        "bad.ipynb",
        r#"{"nbformat":3,"worksheets":[{"cells":[{"cell_type":"weird"}]}]}"#,
    );
    let refused = context.run(&["read", "bad.ipynb"]).exits(2);
    assert!(
        refused.stderr.contains("Invalid notebook cell 0"),
        "{}",
        refused.stderr
    );
}

/// A change on top of what was read before the upgrade is merged.
#[test]
fn the_revision_that_was_read_is_a_base_after_the_upgrade() {
    let context = with_both();
    let revision = context.revision("old.ipynb");
    context.run(&["notebook", "upgrade", "old.ipynb"]).exits(0);
    context
        .run(&[
            "notebook",
            "edit",
            "old.ipynb",
            "1",
            "--source",
            "Other text",
            "--rev",
            &revision,
        ])
        .exits(0);
    let text = context.run(&["read", "old.ipynb:cells=1"]).exits(0).stdout;
    assert!(text.ends_with("Other text\n"), "{text}");
}

#[test]
fn an_upgrade_can_be_undone_and_redone() {
    let context = with_both();
    let upgraded = context.content("new.ipynb");
    context.run(&["notebook", "undo", "new.ipynb"]).exits(0);
    assert_eq!(context.content("new.ipynb"), OLD);
    context.run(&["notebook", "redo", "new.ipynb"]).exits(0);
    assert_eq!(context.content("new.ipynb"), upgraded);
}

#[test]
fn mcp_reads_old_notebooks() {
    let context = with_both();
    let mut client = Client::older(&context);
    let reply = client.call("read", json!({"path": "old.ipynb:cells=3:outputs"}));
    assert!(reply.text().contains("1.0 + 1"), "{}", reply.text());
    assert!(
        reply
            .text()
            .contains("`cellwright notebook upgrade PATH` in a shell"),
        "{}",
        reply.text()
    );
    let refused = client.call(
        "edit",
        json!({"path": "old.ipynb", "old": "1.0", "new": "2.0"}),
    );
    assert!(
        refused
            .text()
            .contains("/old.ipynb` in a shell converts it to nbformat 4.5"),
        "{}",
        refused.text()
    );
    assert_eq!(context.content("old.ipynb"), OLD);
}
