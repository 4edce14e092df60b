//! The prose rule of STYLE.md: phrases that hide who does what are not used in code, documentation or help.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::{files, root};

/// Phrases that a plain sentence with a concrete subject and an active verb does without. Whole words, any case.
const BANNED: &[&str] = &[
    // Persons instead of a caller, client, host, kernel or file.
    "whoever",
    "whomever",
    "somebody",
    "nobody",
    "anybody",
    "everybody",
    "someone",
    "a stranger",
    "strangers",
    "of ours",
    "of theirs",
    "of others",
    "of its own",
    "of their own",
    "kernels of Jupyter",
    "kernel of Jupyter's",
    // Speech instead of data flow.
    "told",
    "heard",
    "is said",
    "are said",
    "be said",
    "tells of",
    "tell of",
    "has had its say",
    "has its say",
    "last word",
    "last words",
    // Old or literary words.
    "anew",
    "mend",
    "mends",
    "mended",
    "wherewith",
    "farewell",
    "in vain",
    "came to grief",
    "come to grief",
    "comes to grief",
    "come to its end",
    "came to its end",
    "for ever",
    "so long as",
    "at the most",
    "at the least",
    "by turns",
    "in passing",
    "on the side",
    "the how many",
    "trouble",
    "wish",
    "wishes",
    "patience",
    "all the same",
    // Riddles.
    "what comes",
    "what came",
    "is to be",
    "of one's own",
    "goes on",
    "puts out",
    "put out",
    "putting out",
    "look after",
    "looks after",
    "looked after",
    "look over",
    "looks over",
    "make no sense",
    "makes no sense",
    "behind it",
    "behind them",
    "the way back",
    "whatever comes",
    "in whatever way",
];

/// Files that need a banned phrase: the path and the phrase.
const ALLOWED: &[(&str, &str)] = &[
    // The name of an algorithm in the crate `similar`.
    ("crates/notebook/src/diff.rs", "patience"),
];

/// Words that cannot follow a possessive which belongs to a noun.
const AFTER_BARE_POSSESSIVE: [&str; 16] = [
    "and", "are", "as", "at", "by", "for", "from", "in", "is", "on", "or", "that", "to", "which",
    "with", "without",
];

/// A word of a text, in lower case, or a mark that ends a phrase.
#[derive(Debug, PartialEq)]
enum Token {
    Word { text: String, line: usize },
    Break,
}

/// Splits a text into words. Line breaks do not end a phrase, nor do the signs of comments, lists and
/// continued strings around them. Other punctuation and blank lines do.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim().trim_end_matches('\\');
        let content = ["///", "//!", "//", "#", "*", ">"]
            .iter()
            .find_map(|sign| line.strip_prefix(sign))
            .unwrap_or(line);
        if content.trim().is_empty() {
            tokens.push(Token::Break);
        }
        let is_in_word = |c: char| c.is_alphanumeric() || c == '_' || c == '\'' || c == '’';
        let mut rest = content;
        while let Some(first) = rest.chars().next() {
            let end = rest.find(|c| !is_in_word(c)).unwrap_or(rest.len());
            if end > 0 {
                tokens.push(Token::Word {
                    text: rest[..end].to_lowercase().replace('’', "'"),
                    line: index + 1,
                });
                rest = &rest[end..];
            } else {
                if !first.is_whitespace() {
                    tokens.push(Token::Break);
                }
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    tokens
}

/// A phrase and the line where it starts.
#[derive(Debug, PartialEq)]
struct Found {
    line: usize,
    phrase: String,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: `{}`", self.line, self.phrase)
    }
}

/// The banned phrases of a text.
fn banned_phrases(tokens: &[Token]) -> Vec<Found> {
    let mut found = Vec::new();
    for phrase in BANNED {
        let words: Vec<String> = phrase.split(' ').map(str::to_lowercase).collect();
        for window in tokens.windows(words.len()) {
            let is_same = window
                .iter()
                .zip(&words)
                .all(|(token, word)| matches!(token, Token::Word { text, .. } if text == word));
            if let (true, Token::Word { line, .. }) = (is_same, &window[0]) {
                found.push(Found {
                    line: *line,
                    phrase: (*phrase).to_owned(),
                });
            }
        }
    }
    found.sort_by_key(|found| found.line);
    found
}

/// Possessives without a noun, such as "a kernel of Jupyter's".
fn bare_possessives(tokens: &[Token]) -> Vec<Found> {
    let mut found = Vec::new();
    for (index, pair) in tokens.windows(2).enumerate() {
        let [
            Token::Word { text: of, line },
            Token::Word { text: owner, .. },
        ] = pair
        else {
            continue;
        };
        let is_bare = match tokens.get(index + 2) {
            Some(Token::Word { text, .. }) => AFTER_BARE_POSSESSIVE.contains(&text.as_str()),
            Some(Token::Break) | None => true,
        };
        if of == "of" && owner.ends_with("'s") && is_bare {
            found.push(Found {
                line: *line,
                phrase: format!("of {owner}"),
            });
        }
    }
    found
}

/// The path below the root of the workspace, with slashes.
fn relative(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap()
        .to_string_lossy()
        .replace('\\', "/")
}

/// The help texts that the snapshot tests compare.
fn help() -> Vec<PathBuf> {
    let mut help = files(&root().join("crates/cellwright/tests/it/snapshots"), "snap");
    help.retain(|path| relative(path).contains("it__help__"));
    assert!(help.len() > 40, "where is the help?");
    help
}

/// The documents in the root of the workspace.
fn root_documents() -> Vec<PathBuf> {
    [
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "README.md",
        "STYLE.md",
    ]
    .map(|name| root().join(name))
    .to_vec()
}

/// This file, which contains the banned phrases.
const PHRASE_LIST: &str = "crates/cellwright/tests/it/tidy/wording.rs";

/// All texts whose wording is checked.
fn texts() -> Vec<PathBuf> {
    let mut paths = root_documents();
    paths.extend(help());
    paths.extend(files(&root().join("docs"), "md"));
    paths.extend(all_files(&root().join("scripts")));
    for name in ["src", "targets"] {
        paths.extend(files(&root().join("fuzz").join(name), "rs"));
    }
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let dir = entry.unwrap().path();
        for (name, extensions) in [
            ("src", &["rs"][..]),
            ("tests", &["rs", "py"]),
            ("python", &["py", "txt", "md"]),
        ] {
            let sources = dir.join(name);
            if !sources.exists() {
                continue;
            }
            for extension in extensions {
                paths.extend(files(&sources, extension));
            }
        }
    }
    paths.retain(|path| relative(path) != PHRASE_LIST);
    paths.sort();
    paths
}

/// All files below `dir`, except compiled Python.
fn all_files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("__pycache__") {
            continue;
        }
        if path.is_dir() {
            found.extend(all_files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// Fails with one `file:line: phrase` for each entry that `find` returns.
fn check(paths: &[PathBuf], find: fn(&[Token]) -> Vec<Found>) {
    let mut problems = Vec::new();
    for path in paths {
        let name = relative(path);
        for found in find(&tokens(&fs::read_to_string(path).unwrap())) {
            let is_allowed = ALLOWED
                .iter()
                .any(|(path, phrase)| name == *path && found.phrase == *phrase);
            if !is_allowed {
                problems.push(format!("{name}:{found}"));
            }
        }
    }
    assert!(
        problems.is_empty(),
        "{} phrases to replace (see Prose in STYLE.md):\n{}",
        problems.len(),
        problems.join("\n")
    );
}

#[test]
fn no_banned_phrase_is_used() {
    check(&texts(), banned_phrases);
}

#[test]
fn possessives_in_the_documentation_have_a_noun() {
    let mut paths = help();
    paths.push(root().join("README.md"));
    paths.extend(files(&root().join("docs/guide"), "md"));
    check(&paths, bare_possessives);
}

#[test]
fn every_exception_is_needed() {
    for (path, phrase) in ALLOWED {
        let text = fs::read_to_string(root().join(path)).unwrap();
        let found = banned_phrases(&tokens(&text));
        assert!(
            found.iter().any(|found| found.phrase == *phrase),
            "{path} does not need `{phrase}`"
        );
    }
}

#[test]
fn phrases_are_found_across_lines_and_in_strings() {
    let lines = |text: &str| -> Vec<(usize, String)> {
        banned_phrases(&tokens(text))
            .into_iter()
            .map(|found| (found.line, found.phrase))
            .collect()
    };
    let comment =
        "/// Nobody reads it. The run goes\n    /// on.\nlet x = \"Mended, at the \\\n most\";";
    assert_eq!(
        lines(comment),
        [
            (1, "nobody".to_owned()),
            (1, "goes on".to_owned()),
            (3, "mended".to_owned()),
            (3, "at the most".to_owned()),
        ]
    );
    let other = "goes_on amend mendable the run goes. On it goes\n\non nobody_knows at the `most`";
    assert_eq!(lines(other), []);
}

#[test]
fn possessives_without_a_noun_are_found() {
    let found = |text: &str| bare_possessives(&tokens(text)).len();
    assert_eq!(
        found("Kernels of Jupyter's, and one of\nPython's that runs"),
        2
    );
    assert_eq!(
        found("The list of Jupyter's kernels and of a cell's outputs"),
        0
    );
}
