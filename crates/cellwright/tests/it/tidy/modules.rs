//! The top-level modules of every crate form a directed graph without a cycle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::{files, root};

/// Which top-level modules each top-level module uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The code of a file: without comments and without its unit tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text
        .split("\n#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default()
        .to_owned();
    let strip = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    text.lines().map(strip).collect::<Vec<_>>().join("\n")
}

/// The names that a list of a `use` declaration brings in at its first level: `a::{b, c}, d` gives `a`, `d`.
fn first_names(list: &str) -> Vec<String> {
    let mut names = Vec::new();
    let (mut depth, mut name, mut complete) = (0, String::new(), false);
    for character in list.chars() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(std::mem::take(&mut name));
                complete = false;
            }
            _ if depth > 0 || complete => {}
            _ if character.is_alphanumeric() || character == '_' => name.push(character),
            ' ' | '\n' => {}
            _ => complete = true,
        }
    }
    names.push(name);
    names.retain(|name| !name.is_empty());
    names
}

/// The text after each occurrence of `prefix` that is not the end of a longer path.
fn after<'a>(code: &'a str, prefix: &str) -> Vec<&'a str> {
    code.match_indices(prefix)
        .filter(|(at, _)| {
            let before = code[..*at].chars().next_back();
            before.is_none_or(|c| !(c.is_alphanumeric() || c == '_' || c == ':'))
        })
        .map(|(at, _)| &code[at + prefix.len()..])
        .collect()
}

/// The names directly below `prefix` (such as `crate::`) that the code mentions.
fn mentioned(code: &str, prefix: &str) -> Vec<String> {
    after(code, prefix)
        .into_iter()
        .flat_map(|rest| {
            if let Some(list) = rest.strip_prefix('{') {
                return first_names(list.split("};").next().unwrap_or_default());
            }
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            vec![rest[..end.unwrap_or(rest.len())].to_owned()]
        })
        .collect()
}

/// The top-level modules of a crate, and the names that its root re-exports with the module of each.
fn top_level(root: &str) -> (BTreeSet<String>, BTreeMap<String, String>) {
    let declaration = |line: &str| {
        let line = line.trim().trim_end_matches(';');
        let (_, name) = line.split_once("mod ")?;
        let visible = line.starts_with("mod ") || line.starts_with("pub");
        visible.then(|| name.to_owned())
    };
    let modules: BTreeSet<String> = root
        .lines()
        .filter(|line| line.ends_with(';') && line.contains("mod "))
        .filter_map(declaration)
        .collect();
    let mut exports = BTreeMap::new();
    for prefix in ["pub use ", "pub(crate) use "] {
        for rest in after(root, prefix) {
            let path = rest.split(';').next().unwrap_or_default();
            let Some((module, names)) = path.split_once("::") else {
                continue;
            };
            for name in names.split(|c: char| !(c.is_alphanumeric() || c == '_')) {
                exports.insert(name.to_owned(), module.to_owned());
            }
        }
    }
    (modules, exports)
}

/// The module graph of the crate in `directory`.
fn graph(dir: &Path) -> Graph {
    let source = dir.join("src");
    let file = ["lib.rs", "main.rs"].map(|name| source.join(name));
    let root = file.iter().find(|path| path.exists()).unwrap();
    let (modules, exports) = top_level(&code(root));
    let mut graph = Graph::new();
    for path in files(&source, "rs") {
        let relative: Vec<String> = path
            .strip_prefix(&source)
            .unwrap()
            .iter()
            .map(|part| part.to_string_lossy().trim_end_matches(".rs").to_owned())
            .collect();
        let is_test = relative.iter().any(|part| part == "tests");
        if is_test || !modules.contains(&relative[0]) {
            continue;
        }
        let uses = graph.entry(relative[0].clone()).or_default();
        let code = code(&path);
        let mut names = mentioned(&code, "crate::");
        names.extend(mentioned(&code, &"super::".repeat(relative.len())));
        for name in names {
            let module = if modules.contains(&name) {
                Some(&name)
            } else {
                exports.get(&name)
            };
            if let Some(module) = module.filter(|module| **module != relative[0]) {
                uses.insert(module.clone());
            }
        }
    }
    graph
}

/// A cycle, if there is one: each module uses the next, the last one uses the first.
fn cycle(graph: &Graph) -> Option<Vec<String>> {
    fn visit(
        module: &str,
        graph: &Graph,
        path: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> Option<Vec<String>> {
        if let Some(start) = path.iter().position(|there| there == module) {
            return Some(path[start..].to_vec());
        }
        if !done.insert(module.to_owned()) {
            return None;
        }
        path.push(module.to_owned());
        let uses = graph.get(module).into_iter().flatten();
        for used in uses {
            if let Some(found) = visit(used, graph, path, done) {
                return Some(found);
            }
        }
        path.pop();
        None
    }
    let mut done = BTreeSet::new();
    graph
        .keys()
        .find_map(|module| visit(module, graph, &mut Vec::new(), &mut done))
}

#[test]
fn top_level_modules_have_no_cycles() {
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let dir: PathBuf = entry.unwrap().path();
        let graph = graph(&dir);
        let is_one_file = files(&dir.join("src"), "rs").len() == 1;
        assert!(
            is_one_file || !graph.is_empty(),
            "{} has no modules",
            dir.display()
        );
        assert_eq!(cycle(&graph), None, "in {}", dir.display());
    }
}

#[test]
fn a_cycle_is_found() {
    let edge = |from: &str, to: &str| (from.to_owned(), BTreeSet::from([to.to_owned()]));
    let line = Graph::from([edge("a", "b"), edge("b", "c")]);
    assert_eq!(cycle(&line), None);
    let ring = Graph::from([edge("a", "b"), edge("b", "c"), edge("c", "b")]);
    assert_eq!(cycle(&ring), Some(vec!["b".to_owned(), "c".to_owned()]));
}

#[test]
fn uses_are_read_from_paths_and_lists() {
    let code = "use crate::{a::B, c, d::{e, f}};\nuse crate::g::H;\nlet x = crate::i::j();";
    assert_eq!(mentioned(code, "crate::"), ["a", "c", "d", "g", "i"]);
    assert!(mentioned("use other_crate::a;", "crate::").is_empty());
    let (modules, exports) = top_level("mod a;\npub mod b;\npub use b::{C, d::E};\n");
    assert_eq!(modules, BTreeSet::from(["a".to_owned(), "b".to_owned()]));
    assert_eq!(exports.get("E").map(String::as_str), Some("b"));
}
