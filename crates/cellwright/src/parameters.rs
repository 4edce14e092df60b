//! Parameters as they are given on the command line: `-p`, `-r` and `-f`, made into values.

mod scalar;
mod yaml;

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use cellwright_run::parameters::{Parameter, Value, settle};

use crate::failure::{Failure, Kind};
use crate::notice::Told;
use scalar::Scalar;

/// Larger files are no parameters: they become source of a cell.
const LARGEST: u64 = 16 << 20;

/// What was given.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Given {
    /// Each name once.
    pub(crate) parameters: Vec<Parameter>,
    /// What could surprise.
    pub(crate) notices: Vec<Told>,
}

/// Puts together what was given: what is typed counts more than what stands in files, and what comes
/// later more than what came before.
pub(crate) fn gather(
    files: &[PathBuf],
    typed: &[String],
    raw: &[String],
) -> Result<Given, Failure> {
    let mut given = Given::default();
    for path in files {
        let (parameters, notices) = from_file(path)?;
        given.parameters.extend(parameters);
        given.notices.extend(notices);
    }
    let mut seen = HashSet::new();
    let typed = typed.iter().map(|argument| from_argument(argument));
    let raw = raw.iter().map(|argument| from_raw(argument));
    for parameter in typed.chain(raw) {
        let parameter = parameter?;
        if !seen.insert(parameter.name.clone()) {
            let name = &parameter.name;
            let text = format!("`{name}` was given more than once; the last one counts");
            let told = Told::new("parameter_repeated", text);
            if !given.notices.contains(&told) {
                given.notices.push(told);
            }
        }
        given.parameters.push(parameter);
    }
    (given.parameters, _) = settle(given.parameters);
    Ok(given)
}

/// `NAME=VALUE` of `-r`: the value is text, as it is.
fn from_raw(argument: &str) -> Result<Parameter, Failure> {
    let (name, value) = split(argument, "-r")?;
    Ok(Parameter::new(name, value))
}

/// `NAME=VALUE` of `-p`: numbers, truth values, `null`, quoted text, lists and mappings as YAML has
/// them, else text as it is.
fn from_argument(argument: &str) -> Result<Parameter, Failure> {
    let (name, value) = split(argument, "-p")?;
    let value = read_value(value).map_err(|why| {
        let mut failure = Failure::new(Kind::BadArguments, format!("`-p {argument}` is not YAML"));
        failure.causes.push(why);
        failure.hint(format!("`-r {name}=…` takes text as it is"))
    })?;
    Ok(Parameter::new(name, value))
}

fn split<'a>(argument: &'a str, flag: &str) -> Result<(&'a str, &'a str), Failure> {
    argument.split_once('=').ok_or_else(|| {
        let message = format!("`{flag} {argument}` has no value");
        Failure::new(Kind::BadArguments, message).hint(format!("`{flag} {argument}=VALUE`"))
    })
}

fn read_value(text: &str) -> Result<Value, String> {
    let trimmed = text.trim();
    let closes = |open: char, close: char| {
        trimmed.len() >= 2 && trimmed.starts_with(open) && trimmed.ends_with(close)
    };
    let is_yaml = [('[', ']'), ('{', '}'), ('"', '"'), ('\'', '\'')]
        .iter()
        .any(|(open, close)| closes(*open, *close));
    if is_yaml {
        let read = yaml::read(trimmed).map_err(|error| error.to_string())?;
        return Ok(read.value);
    }
    Ok(match trimmed {
        // Nothing, and what means a folder to a shell, is no null here.
        "" | "~" => Value::from(text),
        // What papermill takes for numbers, and for nothing.
        "None" => Value::Null,
        "nan" => Value::Float(f64::NAN),
        "inf" => Value::Float(f64::INFINITY),
        "-inf" => Value::Float(f64::NEG_INFINITY),
        _ => match scalar::resolve(trimmed) {
            Scalar::Value(value) => value,
            Scalar::Text => Value::from(text),
            Scalar::TooLarge => return Err("a number has too many digits".to_owned()),
        },
    })
}

/// The parameters in a file: a mapping in YAML, so also an object in JSON.
fn from_file(path: &Path) -> Result<(Vec<Parameter>, Vec<Told>), Failure> {
    let failed = |why: String| {
        let message = format!("Could not read parameters from {}", path.display());
        let mut failure = Failure::new(Kind::BadFile, message);
        failure.causes.push(why);
        failure
    };
    let text = read_file(path).map_err(failed)?;
    from_text(&text)
        .map_err(|error| failed(error.to_string()))
        .map(|(parameters, doubts)| {
            let tell = |doubt: &yaml::Doubt| tell_doubt(path, doubt);
            (parameters, doubts.iter().map(tell).collect())
        })
}

fn from_text(text: &str) -> Result<(Vec<Parameter>, Vec<yaml::Doubt>), yaml::YamlError> {
    let read = yaml::read(text)?;
    match read.value {
        Value::Map(entries) => {
            let parameters = entries
                .into_iter()
                .map(|(name, value)| Parameter { name, value })
                .collect();
            Ok((parameters, read.doubts))
        }
        Value::Null => Ok((Vec::new(), Vec::new())),
        _ => Err(yaml::YamlError::NoMapping),
    }
}

fn tell_doubt(path: &Path, doubt: &yaml::Doubt) -> Told {
    let yaml::Doubt { at, word, meant } = doubt;
    let (file, line) = (path.display(), at.line);
    let taken = if word.starts_with('0') {
        "the number"
    } else {
        "the text"
    };
    let word = if word.starts_with('0') {
        word.trim_start_matches('0')
    } else {
        word
    };
    Told::new(
        "yaml_doubt",
        format!(
            "{file}, line {line}: this is {taken} `{word}`, as YAML 1.2 has it; write `{meant}` if you mean \
             what older YAML takes it for"
        ),
    )
}

fn read_file(path: &Path) -> Result<String, String> {
    let metadata = path.metadata().map_err(|error| error.to_string())?;
    if metadata.is_dir() {
        return Err("it is a folder".to_owned());
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST {
        return Err("it is larger than 16 MiB".to_owned());
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.split(|byte| *byte == b'\n').count();
        format!("line {line}: it is not UTF-8")
    })
}

#[cfg(test)]
mod tests;
