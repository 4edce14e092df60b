//! Hostile text on a terminal: whatever files, arguments and kernels contain, a terminal receives no control sequence but the
//! colours and redrawn lines of the binary.

mod hostile_notebook;
mod sequences;
mod terminal_driver;

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;

use crate::context::Context;
use hostile_notebook::{hostile_notebook, other_notebook};
use sequences::{PAYLOADS, name_payloads, payload};
use terminal_driver::{Allowed, Case, Terminal};

/// The words of a command.
fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(Into::into).collect()
}

#[test]
fn arguments_reach_the_terminal_as_symbols() {
    let context = Context::with_notebook();
    let mut terminal = Terminal::new(&context);
    for payload in PAYLOADS {
        let value = format!("x{payload}");
        let flag = format!("--{payload}");
        for command in [
            vec![value.as_str()],
            vec!["read", "a.ipynb", &value],
            vec!["read", "a.ipynb", &flag],
            vec!["--json", "read", "a.ipynb", &flag],
        ] {
            terminal.add(Case::new(words(&command)).shows_controls());
        }
    }
    let all = payload();
    let value = format!("x{all}");
    let assigned = format!("--most={all}");
    for command in [
        vec!["eval", "--timeout", &value, "1"],
        vec!["eval", "--backend", &value, "1"],
        vec!["artifact", "show", "1", &assigned],
        vec!["completions", &value],
        vec!["mcp", "--print-config", &value],
        vec!["mcp", "--http", &value],
        vec!["mcp", "--root", &value],
        vec!["schema", &value],
        vec!["help", &value],
        vec!["notebook", &value],
        vec!["notebook", "type", "a.ipynb", "0", &value],
        vec!["notebook", "edit", "a.ipynb", &value, "--source", "x"],
        vec!["notebook", "tag", "a.ipynb", "0", &value],
        vec!["notebook", "meta", "a.ipynb", "0", &value],
        vec!["kernels", "variables", &value],
        vec!["kernels", "stop", &value],
        vec!["runs", "tail", &value],
        vec!["artifact", "show", &value],
        vec!["config", "get", &value],
        vec!["helpers", &value],
        vec!["diff", &value, "a.ipynb"],
        vec!["diff", "a.ipynb", "--", &value],
        vec!["edit", "a.ipynb", "--old", &value, "--new", "x"],
        vec!["git", "merge", "a.ipynb", "a.ipynb", &value],
        vec!["eval", "--kernel", &value, "1"],
        vec!["eval", "--python", &value, "1"],
        vec!["eval", "--session", &value, "1"],
        vec!["eval", "--env", &value, "1"],
        vec!["eval", "--cwd", &value, "1"],
        vec!["eval", "--existing", &value, "1"],
        vec!["run", "a.ipynb", "-p", &value],
        vec!["run", "a.ipynb", "--cells", &value],
    ] {
        terminal.add(Case::new(words(&command)));
        let with_json = [&command[..1], &["--json"], &command[1..]].concat();
        terminal.add(Case::new(words(&with_json)));
    }
    // Bytes that are not UTF-8: C1 in other encodings.
    let raw = OsString::from_vec(b"f\x9b2J\x9d0;x\x9c\x1b]0;x\x07.ipynb".to_vec());
    let mut command = words(&["read", "a.ipynb"]);
    command.push(raw);
    terminal.add(Case::new(command).shows_controls());
    terminal.check();
}

#[test]
fn the_name_of_the_program_reaches_the_terminal_as_symbols() {
    let context = Context::new();
    let mut terminal = Terminal::new(&context);
    for name in name_payloads() {
        let link = context.path(&format!("p{name}"));
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_cellwright"), &link).unwrap();
        for command in [vec![], vec!["--help"], vec!["read"], vec!["--version"]] {
            terminal.add(Case::new(words(&command)).program(&link));
        }
    }
    terminal.check();
}

#[test]
fn notebooks_and_names_of_files_reach_the_terminal_as_symbols() {
    let context = Context::new();
    context.file("a.ipynb", hostile_notebook());
    context.file("b.ipynb", other_notebook());
    context.file("broken.ipynb", format!("{{\"cells\": [ {} ", payload()));
    context.file("note.txt", payload());
    let mut names = vec!["a.ipynb".to_owned(), "broken.ipynb".to_owned()];
    for name in name_payloads() {
        let name = format!("n{name}.ipynb");
        context.file(&name, hostile_notebook());
        names.push(name);
    }
    let mut terminal = Terminal::new(&context);
    for name in &names {
        let selected = |selector: &str| format!("{name}:{selector}");
        let (outline, raw, outputs) = (selected("outline"), selected("raw"), selected("outputs"));
        let (ids, missing) = (selected("ids"), selected("id=missing"));
        let is_read = name != "broken.ipynb";
        for (command, shows) in [
            (vec!["read", name.as_str()], is_read),
            (vec!["read", &ids], is_read),
            (vec!["read", &outline], is_read),
            (vec!["read", &raw], is_read),
            (vec!["read", &outputs], is_read),
            (vec!["read", &missing], false),
            (vec!["read", name, "--json"], false),
            (vec!["notebook", "outline", name], is_read),
            (vec!["notebook", "figures", name], false),
            (vec!["notebook", "tag", name, "0"], is_read),
            (vec!["notebook", "meta", name, "0"], is_read),
            (vec!["notebook", "meta", name], is_read),
            (vec!["notebook", "where", name], false),
            (vec!["notebook", "undo", name], false),
            (vec!["diff", name, "b.ipynb"], is_read),
            (vec!["diff", name, "b.ipynb", "--outputs"], is_read),
            (vec!["diff", name, "b.ipynb", "--json"], false),
            (vec!["diff", name], false),
            (vec!["git", "textconv", name], true),
            (vec!["run", name, "--cells", "99"], false),
            (vec!["run", name, "--kernel", "missing"], false),
            (vec!["check", name, "--kernel", "missing"], false),
            (vec!["notebook", "upgrade", name], false),
        ] {
            let case = Case::new(words(&command));
            terminal.add(if shows { case.shows_controls() } else { case });
        }
        // Commands that change the file, on copies.
        let copy = format!(
            "copy {}",
            names.iter().position(|other| other == name).unwrap()
        );
        fs::copy(context.path(name), context.path(&copy)).unwrap();
        for command in [
            vec!["notebook", "delete", &copy, "0"],
            vec!["notebook", "move", &copy, "1", "--to", "0"],
            vec!["notebook", "insert", &copy, "--source", payload().as_str()],
            vec![
                "notebook",
                "edit",
                &copy,
                "0",
                "--source",
                payload().as_str(),
            ],
            vec![
                "edit",
                &copy,
                "--old",
                "needle",
                "--new",
                payload().as_str(),
            ],
            vec!["notebook", "clear", &copy],
        ] {
            terminal.add(Case::new(words(&command)));
        }
    }
    terminal.add(Case::new(words(&["read", "note.txt"])).shows_controls());
    terminal.add(Case::new(words(&["git", "clean"])).typed("{}\n\u{4}"));
    terminal.add(Case::new(words(&["mcp"])).typed("{\"id\": 1, \"x\": \"\u{9b}\u{202e}\"\n\u{4}"));
    terminal.check();
}

#[test]
fn projects_reach_the_terminal_as_symbols() {
    let context = Context::with_notebook();
    let modules = context.path(".cellwright/modules");
    fs::create_dir_all(&modules).unwrap();
    for name in name_payloads() {
        fs::write(modules.join(format!("m{name}.py")), "x = 1").unwrap();
        let kernel = context.home().join(".local/share/jupyter/kernels");
        let kernel = kernel.join(format!("k{name}"));
        fs::create_dir_all(&kernel).unwrap();
        let text = serde_json::json!({"argv": [payload()], "display_name": payload(), "language": payload()});
        fs::write(kernel.join("kernel.json"), text.to_string()).unwrap();
    }
    let value = serde_json::to_string(&payload().replace('\u{7f}', "")).unwrap();
    let settings = format!("[kernel]\nname = {value}\n[python]\ninterpreter = {value}\n");
    let unknown = format!("[eval]\n{value} = 1\n");
    let mut terminal = Terminal::new(&context);
    for command in [
        &["trust"][..],
        &["trust", "--list"],
        &["helpers"],
        &["kernels", "specs"],
        &["kernels", "specs", "--json"],
        &["doctor"],
        &["config", "list", "--long"],
        &["config", "get", "kernel.name"],
        &["config", "path"],
        &["eval", "1"],
        &["run", "a.ipynb", "--cells", "2"],
        &["host", "status"],
        &["host", "log"],
        &["kernels", "list"],
    ] {
        for (number, text) in ["", &settings, &unknown].into_iter().enumerate() {
            let config = context.file(&format!("config {number}"), text);
            terminal.add(
                Case::new(words(command))
                    .output_of_code()
                    .with_link(&config, &context.path(".cellwright/config.toml"))
                    .with_variable("CELLWRIGHT_LOG", "debug"),
            );
        }
    }
    for variable in [
        "CELLWRIGHT_KERNEL_NAME",
        "CELLWRIGHT_PYTHON",
        "CELLWRIGHT_EVAL_TIMEOUT",
        "CELLWRIGHT_LOG",
    ] {
        for command in [&["config", "list", "--long"][..], &["eval", "1"]] {
            let value = payload().replace('\0', "");
            terminal.add(Case::new(words(command)).with_variable(variable, &value));
        }
    }
    terminal.check();
}

#[test]
fn kernels_reach_the_terminal_without_other_sequences() {
    let Some(python) = cellwright_test_support::python() else {
        return;
    };
    let python = python.display().to_string();
    let context = Context::new();
    let all = serde_json::to_string(&payload()).unwrap();
    let code = format!(
        r"
import sys
p = {all}
class Shown:
    def __repr__(self): return p
    def _repr_html_(self): return '<b>' + p + '</b>'
    def _repr_mimebundle_(self, **_): return {{'text/plain': p, 'text/markdown': p, p: p}}
print(p); print(p, file=sys.stderr); sys.stdout.buffer.write(b'\x9b2J\x9d0;x\x9c\x85'); print()
globals()['v' + p] = p
w = Shown(); n = {{p: p}}; h = type('T' + p, (), {{'__doc__': p}})
display(w) if 'display' in globals() else None
w
"
    );
    let raised = format!("{code}\nraise type('E' + p, (Exception,), {{}})(p)");
    let asked = format!("p = {all}\ninput(p)");
    let notebook = |source: &str| {
        serde_json::json!({"cells": [{"cell_type": "code", "execution_count": null, "id": "a", "metadata": {}, "outputs": [],
            "source": source}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        .to_string()
    };
    context.file("ok.ipynb", notebook(&code));
    context.file("raised.ipynb", notebook(&raised));
    let mut terminal = Terminal::new(&context);
    for source in [&code, &raised, &asked] {
        for flags in [
            &[][..],
            &["--json"],
            &["--events"],
            &["--full"],
            &["--answer", payload().as_str()],
        ] {
            let command = [&["eval", "--python", &python], flags, &[source.as_str()]].concat();
            let case = Case::new(words(&command)).output_of_code();
            terminal.add(match flags {
                ["--answer", _] => case,
                ["--json" | "--events"] => case.shows("\\u202e"),
                _ => case.shows("<U+202E>"),
            });
        }
    }
    for name in ["ok.ipynb", "raised.ipynb"] {
        for flags in [&[][..], &["--json"], &["--events"], &["--quiet"]] {
            let command = [&["run", "--python", &python, name], flags].concat();
            terminal.add(Case::new(words(&command)).output_of_code());
        }
        terminal.add(Case::new(words(&["check", "--python", &python, name])).output_of_code());
        let outputs = format!("{name}:outputs");
        terminal.add(Case::new(words(&["read", &outputs])).shows_controls());
        terminal.add(Case::new(words(&["notebook", "outline", name])));
    }
    for command in [
        vec!["eval", "--python", &python, "--session", "s", &raised],
        vec!["kernels", "list"],
        vec!["kernels", "variables", "s"],
        vec!["kernels", "variables", "s", "--json"],
        vec!["kernels", "inspect", "s", "h"],
        vec!["kernels", "complete", "s", "v"],
        vec!["kernels", "history", "s"],
        vec!["kernels", "export", "s", "-"],
        vec!["__complete", "--", "kernels", "stop", ""],
        vec!["runs", "list"],
        vec!["artifact", "list"],
        vec!["artifact", "show", "1"],
        vec!["host", "log"],
        vec!["host", "stop"],
    ] {
        terminal.add(Case::new(words(&command)).output_of_code());
    }
    terminal.check();
}

/// The part of a shell that runs git with the drivers, which write to the terminal through git.
#[test]
fn git_shows_notebooks_without_control_characters() {
    let context = Context::new();
    let bin = context.path("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_cellwright"), bin.join("cellwright")).unwrap();
    let script = context.file(
        "script",
        r#"
set -e
export NO_COLOR=1 PATH="$PWD/bin:$PATH" GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
cd "$(mktemp -d -p .)"
git init -q -b main .
cellwright git setup >&3 2>&3
cp ../one.ipynb a.ipynb; cp ../broken.ipynb .; git add -A; git commit -qm one
git switch -qc "$(printf 't\302\233\342\200\256')"
cp ../two.ipynb a.ipynb
cp ../note.txt broken.ipynb
git --no-pager -c color.ui=false diff
git --no-pager -c color.ui=false diff --stat
git commit -qam two
git --no-pager -c color.ui=false log -p --no-decorate
git --no-pager -c color.ui=false blame a.ipynb
cellwright diff HEAD~1 a.ipynb || true
git switch -q main
cp ../three.ipynb a.ipynb
git commit -qam three
git merge -q "$(printf 't\302\233\342\200\256')" || true
git --no-pager -c color.ui=false diff
git checkout -q --ours a.ipynb; git add -A; git commit -qm merged
cellwright git setup --clean
cp ../broken.ipynb "$(printf 'x\033]0;PWN\007.ipynb')"
git add -A || true
"#,
    );
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    context.file("one.ipynb", hostile_notebook());
    context.file("two.ipynb", hostile_notebook().replace("needle", "two"));
    context.file("three.ipynb", hostile_notebook().replace("needle", "three"));
    context.file("broken.ipynb", format!("{{\"cells\": [ {} ", payload()));
    context.file("note.txt", format!("{} changed\n", payload()));
    let mut terminal = Terminal::new(&context);
    let shell = std::path::Path::new("/bin/sh");
    let command = words(&["-c", ". ./script 3>/dev/null"]);
    let case = Case::new(command).program(shell).allow(Allowed::Git);
    terminal.add(
        case.shows("+two ␛")
            .shows("<U+202E>")
            .shows("could not be removed"),
    );
    terminal.check();
}
