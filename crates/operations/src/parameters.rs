//! Parameters of the command line: parses the arguments of `-p`, `-r` and `-f` into values.

mod scalar;
mod yaml;

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice::{NoticeKind, UserNotice};
use cellwright_execution::parameters::{Parameter, Value, deduplicate};

use scalar::Scalar;

/// Largest parameter file, in bytes. The parameters become the source of a cell.
const FILE_SIZE_LIMIT: u64 = 16 << 20;

/// The parameters of a run.
#[derive(Debug, Default, PartialEq)]
pub struct ParameterSet {
    /// Each name occurs once.
    pub parameters: Vec<Parameter>,
    /// About repeated names and ambiguous values.
    pub notices: Vec<UserNotice>,
}

impl From<Vec<Parameter>> for ParameterSet {
    fn from(parameters: Vec<Parameter>) -> Self {
        Self {
            parameters: deduplicate(parameters).0,
            notices: Vec::new(),
        }
    }
}

/// Collects the parameters. Arguments override files, and later ones override earlier ones.
pub fn collect_parameters(
    files: &[PathBuf],
    yaml_arguments: &[String],
    raw_arguments: &[String],
) -> Result<ParameterSet, Failure> {
    let mut set = ParameterSet::default();
    for path in files {
        let (parameters, notices) = from_file(path)?;
        set.parameters.extend(parameters);
        set.notices.extend(notices);
    }
    let mut names = HashSet::new();
    let ambiguous = yaml_arguments
        .iter()
        .filter_map(|argument| ambiguous_argument(argument));
    set.notices.extend(ambiguous);
    let yaml = yaml_arguments
        .iter()
        .map(|argument| from_argument(argument));
    let raw = raw_arguments.iter().map(|argument| from_raw(argument));
    for parameter in yaml.chain(raw) {
        let parameter = parameter?;
        if !names.insert(parameter.name.clone()) {
            let name = &parameter.name;
            let text = format!("`{name}` is given more than once; the last value is used");
            let notice = UserNotice::new(NoticeKind::ParameterRepeated, text);
            if !set.notices.contains(&notice) {
                set.notices.push(notice);
            }
        }
        set.parameters.push(parameter);
    }
    (set.parameters, _) = deduplicate(set.parameters);
    Ok(set)
}

/// Parses `NAME=VALUE` of `-r`: the value is plain text.
fn from_raw(argument: &str) -> Result<Parameter, Failure> {
    let (name, value) = split_name_value(argument, "-r")?;
    Ok(Parameter::new(name, value))
}

/// Parses `NAME=VALUE` of `-p`: numbers, booleans, `null`, quoted text, lists and mappings are YAML; all else is plain
/// text.
fn from_argument(argument: &str) -> Result<Parameter, Failure> {
    let (name, value) = split_name_value(argument, "-p")?;
    let value = parse_value(value).map_err(|why| {
        let mut failure = Failure::new(Kind::BadArguments, format!("`-p {argument}` is not YAML"));
        failure.causes.push(why);
        failure.hint(format!("`-r {name}=…` takes plain text"))
    })?;
    Ok(Parameter::new(name, value))
}

/// The notice about a boolean word of YAML 1.1, which stays text.
fn ambiguous_argument(argument: &str) -> Option<UserNotice> {
    let (name, value) = argument.split_once('=')?;
    let word = value.trim();
    let meaning = scalar::boolean_word(word)?;
    Some(UserNotice::new(
        NoticeKind::YamlAmbiguous,
        format!(
            "`{name}` is the text `{word}`; write `{name}={meaning}` for a boolean, or quote the text: `{name}='{word}'`"
        ),
    ))
}

fn split_name_value<'a>(argument: &'a str, flag: &str) -> Result<(&'a str, &'a str), Failure> {
    argument.split_once('=').ok_or_else(|| {
        let message = format!("`{flag} {argument}` has no value");
        Failure::new(Kind::BadArguments, message).hint(format!("`{flag} {argument}=VALUE`"))
    })
}

fn parse_value(text: &str) -> Result<Value, String> {
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
        // YAML reads both as null. Here they are text: an empty value, and a shell's home directory.
        "" | "~" => Value::from(text),
        // The spellings of numbers and of null that papermill accepts.
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

/// Reads the parameters in a file: a mapping in YAML, so also an object in JSON.
fn from_file(path: &Path) -> Result<(Vec<Parameter>, Vec<UserNotice>), Failure> {
    let failed = |why: String| {
        let message = format!("Could not read parameters from {}", path.display());
        let mut failure = Failure::new(Kind::BadFile, message);
        failure.causes.push(why);
        failure
    };
    let text = read_file(path).map_err(failed)?;
    from_text(&text)
        .map_err(|error| failed(error.to_string()))
        .map(|(parameters, ambiguities)| {
            let describe = |scalar: &yaml::AmbiguousScalar| describe_ambiguity(path, scalar);
            (parameters, ambiguities.iter().map(describe).collect())
        })
}

fn from_text(text: &str) -> Result<(Vec<Parameter>, Vec<yaml::AmbiguousScalar>), yaml::YamlError> {
    let read = yaml::read(text)?;
    match read.value {
        Value::Map(entries) => {
            let parameters = entries
                .into_iter()
                .map(|(name, value)| Parameter { name, value })
                .collect();
            Ok((parameters, read.ambiguities))
        }
        Value::Null => Ok((Vec::new(), Vec::new())),
        _ => Err(yaml::YamlError::NotAMapping),
    }
}

fn describe_ambiguity(path: &Path, scalar: &yaml::AmbiguousScalar) -> UserNotice {
    let yaml::AmbiguousScalar {
        at,
        word,
        unambiguous,
    } = scalar;
    let value = if word.starts_with('0') {
        format!("the number `{}`", word.trim_start_matches('0'))
    } else {
        format!("the text `{word}`")
    };
    UserNotice::new(
        NoticeKind::YamlAmbiguous,
        format!(
            "{}, line {}: this is {value} in YAML 1.2; write `{unambiguous}` for the meaning in YAML 1.1",
            path.display(),
            at.line
        ),
    )
}

fn read_file(path: &Path) -> Result<String, String> {
    let metadata = path.metadata().map_err(|error| error.to_string())?;
    if metadata.is_dir() {
        return Err("it is a directory".to_owned());
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_SIZE_LIMIT + 1).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_SIZE_LIMIT {
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
