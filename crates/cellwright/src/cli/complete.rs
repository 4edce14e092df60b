//! Completion of a command line: the words that can replace the last one.
//!
//! The scripts of `cellwright completions` call `cellwright __complete -- WORD…` and show its lines: a value, a tab and a
//! description. The line `:files` stands for the names of files.

mod values;

use std::ffi::OsString;

use cellwright_engine::engine::Engine;
use cellwright_stdext::terminal_text::{is_control, show_controls};
use clap::{Arg, ArgAction, Command};

use crate::console::Console;

/// The first argument of a call of the scripts.
pub(crate) const COMMAND: &str = "__complete";

/// The line that requests the names of files.
const FILES: &str = ":files";

/// A word that can replace the last one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) value: String,
    pub(super) description: String,
}

/// Prints the candidates for the last of the words. Nothing here fails: a shell that completes shows no errors.
pub(crate) fn complete(arguments: &[OsString], engine: &Engine) {
    let words: Vec<String> = arguments
        .iter()
        .skip_while(|word| *word == "--")
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut command = <super::Cli as clap::CommandFactory>::command();
    command.build();
    let Some((last, before)) = words.split_last() else {
        return;
    };
    let position = Position::find(&command, before);
    let found = match position.expects(last) {
        Expected::Value(arg) => {
            let Some(found) = values::candidates(arg, &position, last, engine) else {
                print(FILES);
                return;
            };
            found
        }
        Expected::Flag => flags(position.command),
        Expected::Verb => verbs(position.command),
        Expected::Nothing => Vec::new(),
    };
    let matching = found
        .into_iter()
        .filter(|found| found.value.starts_with(last));
    for candidate in matching {
        if let Some(line) = candidate.line() {
            print(&line);
        }
    }
}

impl Candidate {
    /// The line that the script of the shell reads; `None` if the value has control characters, which a shell would show as
    /// they are, or insert without quotes.
    fn line(&self) -> Option<String> {
        if self.value.contains(['\n', '\t']) || self.value.contains(is_control) {
            return None;
        }
        let description = self.description.replace(['\n', '\t'], " ");
        Some(format!("{}\t{}", self.value, show_controls(&description)))
    }
}

fn print(line: &str) {
    // A closed pipe ends the completion.
    Console::new(false, true)
        .write_bytes(format!("{line}\n").as_bytes())
        .ok();
}

/// The position of the word to complete.
pub(super) struct Position<'c> {
    /// The names of the verbs so far, such as `notebook edit`.
    pub(super) verbs: Vec<&'c str>,
    command: &'c Command,
    /// The flag whose value is next.
    flag: Option<&'c Arg>,
    /// The values without a flag so far.
    pub(super) values: Vec<&'c str>,
    only_values: bool,
}

/// What the word to complete can be.
enum Expected<'c> {
    Verb,
    Flag,
    Value(&'c Arg),
    Nothing,
}

impl<'c> Position<'c> {
    fn find(root: &'c Command, words: &'c [String]) -> Self {
        let mut position = Self {
            verbs: Vec::new(),
            command: root,
            flag: None,
            values: Vec::new(),
            only_values: false,
        };
        for word in words {
            position.advance(word);
        }
        position
    }

    fn advance(&mut self, word: &'c str) {
        if self.flag.take().is_some() {
            return;
        }
        let mut args = self.command.get_arguments();
        if self.only_values {
            self.values.push(word);
        } else if word == "--" {
            self.only_values = true;
        } else if let Some(name) = word.strip_prefix("--") {
            // With `=` the value is in the same word.
            self.flag = args.find(|arg| takes_value(arg) && arg.get_long() == Some(name));
        } else if word.starts_with('-') && word.len() > 1 {
            let last = word.chars().next_back();
            self.flag = args.find(|arg| takes_value(arg) && arg.get_short() == last);
        } else if let Some(verb) = self.command.find_subcommand(word) {
            self.verbs.push(verb.get_name());
            self.command = verb;
        } else {
            self.values.push(word);
        }
    }

    fn expects(&self, last: &str) -> Expected<'c> {
        if let Some(flag) = self.flag {
            return Expected::Value(flag);
        }
        if last.starts_with('-') && !self.only_values {
            return Expected::Flag;
        }
        if self.command.has_subcommands() {
            return Expected::Verb;
        }
        let mut values = self.command.get_positionals();
        let next = values.nth(self.values.len()).or_else(|| {
            let last = self.command.get_positionals().last();
            last.filter(|arg| matches!(arg.get_action(), ArgAction::Append))
        });
        next.map_or(Expected::Nothing, Expected::Value)
    }
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

fn flags(command: &Command) -> Vec<Candidate> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    shown
        .filter_map(|arg| {
            Some(Candidate {
                value: format!("--{}", arg.get_long()?),
                description: arg.get_help().map(ToString::to_string).unwrap_or_default(),
            })
        })
        .collect()
}

fn verbs(command: &Command) -> Vec<Candidate> {
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    shown
        .map(|verb| Candidate {
            value: verb.get_name().to_owned(),
            description: verb
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_reach_no_shell() {
        let line = |value: &str, description: &str| {
            let candidate = Candidate {
                value: value.to_owned(),
                description: description.to_owned(),
            };
            candidate.line()
        };
        assert_eq!(line("one", "a\nb").unwrap(), "one\ta b");
        assert_eq!(
            line("one", "\u{1b}]0;x\u{7} \u{9b}1m \u{202e}").unwrap(),
            "one\t␛]0;x␇ <U+009B>1m <U+202E>"
        );
        for value in ["a\u{1b}[2J", "a\tb", "a\nb", "\u{9b}", "\u{202e}a"] {
            assert_eq!(line(value, ""), None);
        }
    }
}
