//! The examples of every help page are commands that the parser accepts.

use std::ffi::OsString;

use clap::{Command, CommandFactory, Parser};

use super::{Cli, one_verb};

/// Splits a line of shell into words. `|`, `;`, `<` and `>` outside of quotes end a command.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ' | '|' | ';' | '<' | '>' | ')') => {
                let command = commands.last_mut().unwrap();
                command.extend(word.take());
                if c != ' ' {
                    commands.push(Vec::new());
                }
            }
            // A command in `$(…)`.
            (None, '(') => {
                word = None;
                commands.push(Vec::new());
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    commands.last_mut().unwrap().extend(word);
    commands.retain(|command| command.first().is_some_and(|first| first == "cellwright"));
    commands
}

fn check_examples(command: &Command, faults: &mut Vec<String>, count: &mut usize) {
    let help = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let examples = help.split_once("Example").map_or("", |(_, rest)| rest);
    for line in examples.lines().filter(|line| line.starts_with("  ")) {
        for words in commands(line) {
            *count += 1;
            match Cli::try_parse_from(&words) {
                Ok(cli) => faults.extend(compare_with_one_verb(&cli, &words)),
                Err(error) => faults.push(format!("{}: {error}", words.join(" "))),
            }
        }
    }
    for subcommand in command.get_subcommands() {
        check_examples(subcommand, faults, count);
    }
}

/// The parser of one verb returns the same, if it knows the verb.
fn compare_with_one_verb(cli: &Cli, words: &[String]) -> Option<String> {
    let words: Vec<OsString> = words.iter().map(Into::into).collect();
    let one = format!("{:?}", one_verb::parse(&words)?);
    let all = format!("{cli:?}");
    (one != all).then(|| format!("{one} is not {all}"))
}

#[test]
fn the_parser_accepts_every_example() {
    let mut faults = Vec::new();
    let mut count = 0;
    check_examples(&Cli::command(), &mut faults, &mut count);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 100, "{count} examples");
}
