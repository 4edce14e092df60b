//! Help, version and completions.

use insta::assert_snapshot;

use crate::context::{CommandOutput, Context};

/// Returns the verbs and their actions, as arguments before `--help`. The first page is that of the program.
fn pages(context: &Context) -> Vec<Vec<String>> {
    let mut pages: Vec<Vec<String>> = vec![Vec::new()];
    let mut next = 0;
    while let Some(page) = pages.get(next).cloned() {
        let help = help(context, &page, 100);
        let listed = help.split_once("\nCommands:\n");
        let listed = listed.map_or("", |(_, rest)| rest.split("\n\n").next().unwrap_or(rest));
        for line in listed.lines() {
            let name = line.trim_start().split(' ').next().unwrap_or_default();
            let is_name = line.starts_with("  ") && !line.starts_with("   ");
            if is_name && name != "help" {
                let mut page = page.clone();
                page.push(name.to_owned());
                pages.push(page);
            }
        }
        next += 1;
    }
    pages
}

/// The verbs that do something, with their actions, such as `kernels list`.
pub(crate) fn verbs(context: &Context) -> Vec<String> {
    let names: Vec<String> = pages(context).iter().map(|page| page.join(" ")).collect();
    let has_actions = |name: &str| names.iter().any(|one| one.starts_with(&format!("{name} ")));
    let mut verbs = names.clone();
    verbs.retain(|name| !name.is_empty() && !has_actions(name));
    verbs
}

fn help(context: &Context, page: &[String], width: usize) -> String {
    let mut arguments: Vec<&str> = page.iter().map(String::as_str).collect();
    arguments.push("--help");
    let mut command = context.command(&arguments);
    let output = command.env("COLUMNS", width.to_string()).output().unwrap();
    CommandOutput::new(context, &output).exits(0).stdout
}

#[test]
fn every_verb_has_help_with_examples() {
    let context = Context::new();
    let pages = pages(&context);
    assert!(pages.len() > 50, "{pages:?}");
    for page in pages {
        let help = help(&context, &page, 100);
        assert!(
            page.is_empty() || help.contains("\nExample"),
            "no example: {page:?}"
        );
        let mut name = vec!["help"];
        name.extend(page.iter().map(String::as_str));
        assert_snapshot!(name.join("_"), help);
    }
}

/// Help is wrapped once, to the width of the terminal: no line is longer, and each line has as many words as fit.
#[test]
fn help_fills_the_width_of_the_terminal() {
    let context = Context::new();
    let mut problems = Vec::new();
    for page in pages(&context) {
        for width in [80, 100] {
            let help = help(&context, &page, width);
            let is_example = |line: &str| line.starts_with("  ") && !line.starts_with("    ");
            for line in help.lines() {
                // Users copy examples, so they are not wrapped.
                if line.chars().count() > width && !is_example(line) {
                    problems.push(format!("{page:?} at {width}, too long: {line}"));
                }
            }
            for (line, next) in help.lines().zip(help.lines().skip(1)) {
                if !is_continuation(line, next) {
                    continue;
                }
                let word = next.trim_start().split(' ').next().unwrap_or_default();
                if line.chars().count() + 1 + word.chars().count() <= width {
                    problems.push(format!("{page:?} at {width}, broken early: {line}"));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Whether `next` continues the paragraph of `line`: as plain text, or in the column of descriptions.
fn is_continuation(line: &str, next: &str) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    if line.is_empty() || next.is_empty() || next.trim_start().starts_with('-') {
        return false;
    }
    // A description below its option, because the options are wide.
    let is_option = line.trim_start().starts_with('-') && !line.trim().contains("  ");
    match indent(next) {
        0 => indent(line) == 0,
        1..8 => false,
        column => line.chars().count() > column && !is_option,
    }
}

#[test]
fn the_version_names_the_commit() {
    let version = Context::new().run(&["--version"]).exits(0).stdout;
    let (number, commit) = version.trim_end().split_once(" (").unwrap();
    assert_eq!(number, concat!("cellwright ", env!("CARGO_PKG_VERSION")));
    assert!(commit.ends_with(')') && commit.len() > 7, "{version}");
}

#[test]
fn missing_and_unknown_arguments_are_usage_errors() {
    let context = Context::new();
    context.run(&[]).exits(2);
    let result = context.run(&["raed", "a.ipynb"]).exits(2);
    assert!(result.stderr.contains("read"), "{}", result.stderr);
    assert_eq!(result.stdout, "");
}
