//! Builds the command line for a call from a cell. Values never become flags.

use std::collections::BTreeMap;

use cellwright_engine::bridge::BridgeCommand;
use clap::{Arg, Command, CommandFactory};
use serde_json::{Map, Value};

use super::Cli;

/// The verbs that cells can call. None of them reaches another session or changes what the user trusts.
const VERBS: [&str; 6] = ["read", "write", "edit", "notebook", "artifact", "doctor"];

/// Longest value on the command line, in bytes. Systems limit the length of an argument.
const VALUE_LENGTH_MAX: usize = 64 * 1024;

/// Builds the command line of a call. The error describes an invalid call.
pub(crate) fn build(
    name: &str,
    named: &Map<String, Value>,
    positional: &[Value],
) -> Result<BridgeCommand, String> {
    if !VERBS.contains(&name) {
        let callable = VERBS.join(", ");
        return Err(format!(
            "`{name}` cannot be called from a cell; available: {callable}"
        ));
    }
    let root = Cli::command();
    let mut verb = root
        .find_subcommand(name)
        .ok_or_else(|| format!("there is no verb `{name}`"))?;
    let mut command = BridgeCommand {
        arguments: vec!["--json".to_owned(), name.to_owned()],
        stdin: None,
    };
    let mut named: BTreeMap<&str, &Value> = named
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.as_str(), value))
        .collect();
    // `null` at the end counts as missing.
    let mut given = positional.iter().rev().skip_while(|value| value.is_null());
    let mut positional: Vec<&Value> = given.by_ref().collect();
    positional.reverse();
    if verb.has_subcommands() {
        let action = match named.remove("action") {
            Some(action) => Some(action),
            None if positional.is_empty() => None,
            None => Some(positional.remove(0)),
        };
        verb = find_action(verb, action)?;
        command.arguments.push(verb.get_name().to_owned());
    }
    let mut values = positional_values(verb, &mut named, &positional)?;
    if name == "write" && values.len() > 1 {
        // The second argument is the text; on the command line it would be the name of a file.
        command.stdin = Some(values.remove(1));
    }
    for (name, value) in named {
        add_flag(verb, name, value, &mut command)?;
    }
    if !values.is_empty() {
        command.arguments.push("--".to_owned());
        command.arguments.append(&mut values);
    }
    Ok(command)
}

fn find_action<'a>(verb: &'a Command, action: Option<&Value>) -> Result<&'a Command, String> {
    let found = action
        .and_then(Value::as_str)
        .and_then(|action| verb.find_subcommand(action));
    found.ok_or_else(|| {
        let actions: Vec<&str> = verb.get_subcommands().map(Command::get_name).collect();
        let (name, actions) = (verb.get_name(), actions.join(", "));
        match action {
            Some(action) => format!(
                "`{name}` has no action `{}`; actions: {actions}",
                plain_text(action)
            ),
            None => format!("`{name}` needs an action: {actions}"),
        }
    })
}

/// Returns the positional arguments in order. Takes those that the caller named out of `named`.
fn positional_values(
    verb: &Command,
    named: &mut BTreeMap<&str, &Value>,
    positional: &[&Value],
) -> Result<Vec<String>, String> {
    let slots: Vec<&Arg> = verb.get_positionals().collect();
    let takes_many = |slot: &Arg| {
        slot.get_num_args()
            .is_some_and(|count| count.max_values() > 1)
    };
    if positional.len() > slots.len() && !slots.last().is_some_and(|slot| takes_many(slot)) {
        let names: Vec<&str> = slots.iter().map(|slot| slot.get_id().as_str()).collect();
        return Err(format!(
            "`{}` takes {} positional arguments ({}), not {}",
            verb.get_name(),
            slots.len(),
            names.join(", "),
            positional.len()
        ));
    }
    let mut values = Vec::new();
    for (index, slot) in slots.iter().enumerate() {
        let id = slot.get_id().as_str();
        let by_name = named.remove(id);
        let value = match (
            positional.get(index).filter(|value| !value.is_null()),
            by_name,
        ) {
            (Some(_), Some(_)) => return Err(format!("`{id}` is given twice")),
            (Some(value), None) => value,
            (None, Some(value)) => value,
            // The missing arguments may be given as flags.
            (None, None) => break,
        };
        match value.as_array().filter(|_| takes_many(slot)) {
            Some(several) => {
                for value in several {
                    values.push(argument_text(id, value)?);
                }
            }
            None => values.push(argument_text(id, value)?),
        }
    }
    for value in positional.iter().skip(slots.len()) {
        values.push(argument_text("argument", value)?);
    }
    Ok(values)
}

/// Adds a named argument to the command line.
fn add_flag(
    verb: &Command,
    name: &str,
    value: &Value,
    command: &mut BridgeCommand,
) -> Result<(), String> {
    let long = name.replace('_', "-");
    let find = |long: &str| verb.get_opts().find(|flag| flag.get_long() == Some(long));
    let Some(flag) = verb
        .get_arguments()
        .find(|flag| flag.get_long() == Some(&long))
    else {
        let available: Vec<String> = verb
            .get_arguments()
            .map(|argument| {
                argument
                    .get_long()
                    .unwrap_or(argument.get_id().as_str())
                    .replace('-', "_")
            })
            .collect();
        let (verb, available) = (verb.get_name(), available.join(", "));
        return Err(format!(
            "`{verb}` has no argument `{name}`; available: {available}"
        ));
    };
    if !flag.get_action().takes_values() {
        match value {
            Value::Bool(true) => command.arguments.push(format!("--{long}")),
            Value::Bool(false) => {}
            _ => return Err(format!("`{name}` must be true or false")),
        }
        return Ok(());
    }
    let one = std::slice::from_ref(value);
    for value in value.as_array().map_or(one, Vec::as_slice) {
        let text = argument_text(name, value)?;
        if text.len() <= VALUE_LENGTH_MAX {
            command.arguments.push(format!("--{long}={text}"));
        } else if find(&format!("{long}-file")).is_some() && command.stdin.is_none() {
            command.arguments.push(format!("--{long}-file=-"));
            command.stdin = Some(text);
        } else {
            return Err(format!("`{name}` is longer than 64 KiB; use a file"));
        }
    }
    Ok(())
}

/// Converts a value into one argument.
fn argument_text(name: &str, value: &Value) -> Result<String, String> {
    if value.is_array() || value.is_object() {
        return Err(format!("`{name}` takes one value, not several"));
    }
    let text = plain_text(value);
    if text.contains('\0') {
        return Err(format!("`{name}` contains a NUL character"));
    }
    Ok(text)
}

/// The text of a string, else the JSON of the value.
fn plain_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments(name: &str, args: &Value, positional: &Value) -> Result<Vec<String>, String> {
        let (args, positional) = (args.as_object().unwrap(), positional.as_array().unwrap());
        build(name, args, positional).map(|command| command.arguments)
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
            assert_eq!(
                arguments(name, &args, &positional).unwrap().join(" "),
                expected
            );
        }
    }

    #[test]
    fn values_never_become_flags() {
        let line = arguments("read", &json!({}), &json!(["--help"])).unwrap();
        assert_eq!(line, ["--json", "read", "--", "--help"]);
        let line = arguments("edit", &json!({"old": "--all", "new": "-q"}), &json!(["-"])).unwrap();
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
                arguments(name, &args, &positional).is_err(),
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
        let args = json!({"source": "x".repeat(VALUE_LENGTH_MAX + 1), "cell": 0});
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
        assert_eq!(
            long.stdin.map(|text| text.len()),
            Some(VALUE_LENGTH_MAX + 1)
        );
        let args = json!({"old": "x".repeat(VALUE_LENGTH_MAX + 1), "new": "y".repeat(VALUE_LENGTH_MAX + 1)});
        assert!(build("edit", args.as_object().unwrap(), &[json!("a")]).is_err());
    }
}
