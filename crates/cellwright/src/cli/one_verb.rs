//! Parses the command line with the flags of one verb.
//!
//! The parser of all verbs has several hundred flags with their descriptions. To create them takes longer than to read a
//! small notebook, so that the flags of the other verbs are created only for help and errors.

use std::ffi::OsString;

use clap::{Args, Command, FromArgMatches};

use super::{Cli, GlobalArgs, Verb};

/// Parses the arguments, of which the first is the program. `None` if they name no verb, ask for help or are not valid: then
/// the parser of all verbs has the answer.
pub(super) fn parse(arguments: &[OsString]) -> Option<Cli> {
    // No flag in front of the verb has a value.
    let verb = arguments.get(1..)?.iter().find(|argument| {
        let bytes = argument.as_encoded_bytes();
        !bytes.starts_with(b"-")
    })?;
    match verb.to_str()? {
        "read" => parse_as("read", arguments, Verb::Read),
        "write" => parse_as("write", arguments, Verb::Write),
        "edit" => parse_as("edit", arguments, Verb::Edit),
        "notebook" => parse_as("notebook", arguments, Verb::Notebook),
        "diff" => parse_as("diff", arguments, Verb::Diff),
        "git" => parse_as("git", arguments, Verb::Git),
        "eval" => parse_as("eval", arguments, Verb::Eval),
        "run" => parse_as("run", arguments, |args| Verb::Run(Box::new(args))),
        "check" => parse_as("check", arguments, Verb::Check),
        "runs" => parse_as("runs", arguments, Verb::Runs),
        "kernels" => parse_as("kernels", arguments, Verb::Kernels),
        "artifact" => parse_as("artifact", arguments, Verb::Artifact),
        "mcp" => parse_as("mcp", arguments, Verb::Mcp),
        _ => None,
    }
}

fn parse_as<A: Args>(
    name: &'static str,
    arguments: &[OsString],
    verb: impl FnOnce(A) -> Verb,
) -> Option<Cli> {
    let command = GlobalArgs::augment_args(Command::new("cellwright"))
        .subcommand_required(true)
        .subcommand(A::augment_args(Command::new(name)));
    let matches = command.try_get_matches_from(arguments).ok()?;
    let (_, verb_matches) = matches.subcommand()?;
    Some(Cli {
        global: GlobalArgs::from_arg_matches(&matches).ok()?,
        verb: verb(A::from_arg_matches(verb_matches).ok()?),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        let words = line.split(' ').map(Into::into);
        std::iter::once("cellwright".into()).chain(words).collect()
    }

    #[test]
    fn the_result_is_that_of_the_parser_of_all_verbs() {
        for line in [
            "read a.ipynb",
            "--json -q read a.ipynb:3",
            "read a.ipynb --json --quiet",
            "diff a.ipynb b.ipynb",
            "eval 1+1 --timeout 3 --session s --answer -x",
            "eval -- -1",
            "eval --cell 1 --cell 2",
            "run a.ipynb -p x=1 -o b.ipynb --keep-going",
            "check a.ipynb --tolerance 0.1",
            "kernels list --json",
            "runs list",
            "mcp",
        ] {
            let arguments = words(line);
            let all = Cli::try_parse_from(&arguments).unwrap();
            let one = parse(&arguments).unwrap();
            assert_eq!(format!("{one:?}"), format!("{all:?}"), "{line}");
        }
    }

    #[test]
    fn help_and_errors_are_left_to_the_parser_of_all_verbs() {
        for line in [
            "",
            "--help",
            "--version",
            "-V",
            "help read",
            "read --help",
            "read -h",
            "--unknown read a",
            "read",
            "read a --unknown",
            "reed a",
            "--json",
            "-- read a",
        ] {
            assert!(parse(&words(line)).is_none(), "{line}");
        }
    }
}
