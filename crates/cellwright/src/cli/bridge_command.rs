//! Builds the command line for a call from a cell. Values never become flags.

use std::collections::BTreeMap;

use clap::{Arg, Command, CommandFactory};
use serde_json::{Map, Value};

use super::Cli;
use crate::bridge::BridgeCommand;

/// What can be called: verbs that lead neither to another session nor to what is trusted.
const VERBS: [&str; 6] = ["read", "write", "edit", "notebook", "artifact", "doctor"];

/// Longer values do not fit on a command line everywhere.
const LONG: usize = 64 * 1024;

/// The command line for a call, or what is wrong with it.
pub(crate) fn build(
    name: &str,
    named: &Map<String, Value>,
    positional: &[Value],
) -> Result<BridgeCommand, String> {
    if !VERBS.contains(&name) {
        let there = VERBS.join(", ");
        return Err(format!(
            "`{name}` cannot be called from a cell; there are {there}"
        ));
    }
    let root = Cli::command();
    let mut verb = root
        .find_subcommand(name)
        .ok_or_else(|| format!("there is no verb `{name}`"))?;
    let mut line = BridgeCommand {
        arguments: vec!["--json".to_owned(), name.to_owned()],
        stdin: None,
    };
    let mut named: BTreeMap<&str, &Value> = named
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.as_str(), value))
        .collect();
    // Missing ones at the end are as good as not given.
    let mut given = positional.iter().rev().skip_while(|value| value.is_null());
    let mut positional: Vec<&Value> = given.by_ref().collect();
    positional.reverse();
    if verb.has_subcommands() {
        let action = match named.remove("action") {
            Some(action) => Some(action),
            None if positional.is_empty() => None,
            None => Some(positional.remove(0)),
        };
        verb = subcommand(verb, action)?;
        line.arguments.push(verb.get_name().to_owned());
    }
    let mut places = placed(verb, &mut named, &positional)?;
    if name == "write" && places.len() > 1 {
        // It comes as text, not as the name of a file.
        line.stdin = Some(places.remove(1));
    }
    for (name, value) in named {
        flags(verb, name, value, &mut line)?;
    }
    if !places.is_empty() {
        line.arguments.push("--".to_owned());
        line.arguments.append(&mut places);
    }
    Ok(line)
}

fn subcommand<'a>(verb: &'a Command, action: Option<&Value>) -> Result<&'a Command, String> {
    let found = action
        .and_then(Value::as_str)
        .and_then(|action| verb.find_subcommand(action));
    found.ok_or_else(|| {
        let there: Vec<&str> = verb.get_subcommands().map(Command::get_name).collect();
        let what = action.map_or_else(
            || "nothing".to_owned(),
            |action| format!("`{}`", word(action)),
        );
        let (name, there) = (verb.get_name(), there.join(", "));
        format!("`{name}` begins with what to do, one of {there}; given was {what}")
    })
}

/// The positional arguments in order, those that were named taken from `named`.
fn placed(
    verb: &Command,
    named: &mut BTreeMap<&str, &Value>,
    positional: &[&Value],
) -> Result<Vec<String>, String> {
    let slots: Vec<&Arg> = verb.get_positionals().collect();
    if positional.len() > slots.len() {
        let names: Vec<&str> = slots.iter().map(|slot| slot.get_id().as_str()).collect();
        return Err(format!(
            "`{}` takes {} arguments without a name ({}), not {}",
            verb.get_name(),
            slots.len(),
            names.join(", "),
            positional.len()
        ));
    }
    let mut places = Vec::new();
    for (at, slot) in slots.iter().enumerate() {
        let id = slot.get_id().as_str();
        let by_name = named.remove(id);
        let value = match (positional.get(at).filter(|value| !value.is_null()), by_name) {
            (Some(_), Some(_)) => return Err(format!("`{id}` is given twice")),
            (Some(value), None) => value,
            (None, Some(value)) => value,
            // The rest may still be named, as flags of the same meaning.
            (None, None) => break,
        };
        places.push(single(id, value)?);
    }
    Ok(places)
}

fn flags(
    verb: &Command,
    name: &str,
    value: &Value,
    line: &mut BridgeCommand,
) -> Result<(), String> {
    let long = name.replace('_', "-");
    let find = |long: &str| verb.get_opts().find(|flag| flag.get_long() == Some(long));
    let Some(flag) = verb
        .get_arguments()
        .find(|flag| flag.get_long() == Some(&long))
    else {
        let there: Vec<String> = verb
            .get_arguments()
            .map(|one| {
                one.get_long()
                    .unwrap_or(one.get_id().as_str())
                    .replace('-', "_")
            })
            .collect();
        let (verb, there) = (verb.get_name(), there.join(", "));
        return Err(format!("`{verb}` has no argument `{name}`; it has {there}"));
    };
    if !flag.get_action().takes_values() {
        match value {
            Value::Bool(true) => line.arguments.push(format!("--{long}")),
            Value::Bool(false) => {}
            _ => return Err(format!("`{name}` is true or false")),
        }
        return Ok(());
    }
    let one = std::slice::from_ref(value);
    for value in value.as_array().map_or(one, Vec::as_slice) {
        let text = single(name, value)?;
        if text.len() <= LONG {
            line.arguments.push(format!("--{long}={text}"));
        } else if find(&format!("{long}-file")).is_some() && line.stdin.is_none() {
            line.arguments.push(format!("--{long}-file=-"));
            line.stdin = Some(text);
        } else {
            return Err(format!(
                "`{name}` is longer than 64 KiB; put it into a file"
            ));
        }
    }
    Ok(())
}

/// A value as one argument.
fn single(name: &str, value: &Value) -> Result<String, String> {
    if value.is_array() || value.is_object() {
        return Err(format!("`{name}` takes one value, not several"));
    }
    let text = word(value);
    if text.contains('\0') {
        return Err(format!("`{name}` has a NUL character in it"));
    }
    Ok(text)
}

fn word(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn typed(name: &str, args: &Value, positional: &Value) -> Result<Vec<String>, String> {
        let (args, positional) = (args.as_object().unwrap(), positional.as_array().unwrap());
        build(name, args, positional).map(|line| line.arguments)
    }

    #[test]
    fn calls_become_the_command_lines_that_a_person_would_type() {
        let cases = [
            (
                "read",
                json!({}),
                json!(["a.ipynb:cells=1"]),
                "--json read -- a.ipynb:cells=1",
            ),
            ("read", json!({"path": "a"}), json!([]), "--json read -- a"),
            (
                "edit",
                json!({"old": "x", "new": "", "all": true, "rev": null}),
                json!(["a"]),
                "--json edit --all --new= --old=x -- a",
            ),
            (
                "edit",
                json!({"old": "x", "new": "y", "all": false}),
                json!(["a"]),
                "--json edit --new=y --old=x -- a",
            ),
            (
                "notebook",
                json!({"source": "y", "after": 2, "type": "markdown"}),
                json!(["insert", "a"]),
                "--json notebook insert --after=2 --source=y --type=markdown -- a",
            ),
            (
                "notebook",
                json!({"action": "delete", "path": "a", "cell": 3}),
                json!([]),
                "--json notebook delete -- a 3",
            ),
            (
                "notebook",
                json!({"type": "raw"}),
                json!(["type", "a", 0]),
                "--json notebook type --type=raw -- a 0",
            ),
            (
                "artifact",
                json!({}),
                json!(["list", null]),
                "--json artifact list",
            ),
            (
                "artifact",
                json!({"grep": "-x", "most": 3}),
                json!(["show", "artifact://3"]),
                "--json artifact show --grep=-x --most=3 -- artifact://3",
            ),
            (
                "doctor",
                json!({"python": "p"}),
                json!([]),
                "--json doctor --python=p",
            ),
        ];
        for (name, args, positional, expected) in cases {
            assert_eq!(typed(name, &args, &positional).unwrap().join(" "), expected);
        }
    }

    #[test]
    fn values_never_become_flags() {
        let line = typed("read", &json!({}), &json!(["--help"])).unwrap();
        assert_eq!(line, ["--json", "read", "--", "--help"]);
        let line = typed("edit", &json!({"old": "--all", "new": "-q"}), &json!(["-"])).unwrap();
        assert_eq!(
            line,
            ["--json", "edit", "--new=-q", "--old=--all", "--", "-"]
        );
        for (name, args, positional) in [
            ("--help", json!({}), json!([])),
            ("eval", json!({}), json!(["1"])),
            ("kernels", json!({}), json!(["list"])),
            ("host", json!({}), json!(["stop"])),
            ("trust", json!({}), json!([])),
            ("config", json!({}), json!([])),
            ("help", json!({}), json!([])),
            ("notebook", json!({}), json!(["--help"])),
            ("notebook", json!({}), json!(["help"])),
            ("notebook", json!({}), json!([])),
            ("read", json!({"help": true}), json!(["a"])),
            ("read", json!({"json": false}), json!(["a"])),
            ("read", json!({"old=x --all": "y"}), json!(["a"])),
            ("read", json!({}), json!(["a", "b"])),
            ("read", json!({"path": "b"}), json!(["a"])),
            ("read", json!({}), json!([["a"]])),
            ("read", json!({}), json!(["a\0b"])),
            ("edit", json!({"all": "yes"}), json!(["a"])),
        ] {
            assert!(
                typed(name, &args, &positional).is_err(),
                "{name} {args} {positional}"
            );
        }
    }

    #[test]
    fn texts_go_through_standard_input() {
        let args = Map::new();
        let written = build("write", &args, &[json!("a"), json!("-text")]).unwrap();
        assert_eq!(written.arguments, ["--json", "write", "--", "a"]);
        assert_eq!(written.stdin.as_deref(), Some("-text"));
        let args = json!({"source": "x".repeat(LONG + 1), "cell": 0});
        let long = build(
            "notebook",
            args.as_object().unwrap(),
            &[json!("edit"), json!("a")],
        )
        .unwrap();
        assert_eq!(
            long.arguments,
            [
                "--json",
                "notebook",
                "edit",
                "--source-file=-",
                "--",
                "a",
                "0"
            ]
        );
        assert_eq!(long.stdin.map(|text| text.len()), Some(LONG + 1));
        let args = json!({"old": "x".repeat(LONG + 1), "new": "y".repeat(LONG + 1)});
        assert!(build("edit", args.as_object().unwrap(), &[json!("a")]).is_err());
    }
}
