//! [`Hint`]: what the caller can do next, in parts that each front end renders in its own syntax.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// A hint. Build it with [`hint!`], or from a string if it names no flag and no command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hint {
    parts: Vec<HintPart>,
}

/// A part of a hint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HintPart {
    /// Literal text.
    Text(String),
    /// An option of a verb: `--rev` on the command line, the argument `rev` of a tool.
    Flag {
        /// The long name without dashes.
        name: String,
        /// The value, or a placeholder for it.
        value: Option<String>,
    },
    /// A command: the verb and its arguments, without the name of the program.
    Command(String),
}

/// Builds a [`Hint`] from texts, [`flag`]s and [`command`]s.
#[macro_export]
macro_rules! hint {
    ($($part:expr),+ $(,)?) => {
        $crate::failure::Hint::new(vec![$($crate::failure::HintPart::from($part)),+])
    };
}
pub use crate::hint;

/// A flag by its long name.
pub fn flag(name: impl Into<String>) -> HintPart {
    HintPart::Flag {
        name: name.into(),
        value: None,
    }
}

/// A flag with a value or a placeholder.
pub fn flag_value(name: impl Into<String>, value: impl Into<String>) -> HintPart {
    HintPart::Flag {
        name: name.into(),
        value: Some(value.into()),
    }
}

/// A command: `command("kernels list")` is `cellwright kernels list` on the command line.
pub fn command(words: impl Into<String>) -> HintPart {
    HintPart::Command(words.into())
}

impl Hint {
    pub fn new(parts: Vec<HintPart>) -> Self {
        Self { parts }
    }

    /// Renders the hint; `render` writes a flag or a command.
    pub fn render(&self, mut render: impl FnMut(&HintPart) -> String) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                HintPart::Text(part) => text.push_str(part),
                HintPart::Flag { .. } | HintPart::Command(_) => text.push_str(&render(part)),
            }
        }
        text
    }

    /// The hint for a command line.
    pub fn for_command_line(&self) -> String {
        self.render(|part| {
            let mut text = String::from("`");
            match part {
                HintPart::Text(words) => text.push_str(words),
                HintPart::Flag { name, value } => {
                    text.push_str("--");
                    text.push_str(name);
                    if let Some(value) = value {
                        write!(text, " {value}").ok();
                    }
                }
                HintPart::Command(words) => {
                    text.push_str("cellwright ");
                    text.push_str(words);
                }
            }
            text.push('`');
            text
        })
    }

    /// Whether the hint names a command of this verb.
    pub fn names_command(&self, verb: &str) -> bool {
        let is_verb = |words: &String| words.split(' ').next() == Some(verb);
        let names = |part: &HintPart| matches!(part, HintPart::Command(words) if is_verb(words));
        self.parts.iter().any(names)
    }
}

impl From<&'static str> for HintPart {
    fn from(text: &'static str) -> Self {
        debug_assert!(
            !text.contains(" --") && !text.contains("`--") && !text.contains("`cellwright "),
            "a flag or a command in the text of a hint: {text}"
        );
        Self::Text(text.to_owned())
    }
}

impl From<String> for HintPart {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<HintPart> for Hint {
    fn from(part: HintPart) -> Self {
        Self::new(vec![part])
    }
}

impl From<&'static str> for Hint {
    fn from(text: &'static str) -> Self {
        HintPart::from(text).into()
    }
}

impl From<String> for Hint {
    fn from(text: String) -> Self {
        HintPart::from(text).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_flags_and_commands_as_the_command_line_does() {
        let hint = hint![
            "name one with ",
            flag_value("python", "PATH"),
            "; ",
            command("doctor"),
            format!(" lists {}", 3)
        ];
        assert_eq!(
            hint.for_command_line(),
            "name one with `--python PATH`; `cellwright doctor` lists 3"
        );
        assert_eq!(Hint::from("try again").for_command_line(), "try again");
    }

    #[test]
    fn a_hint_crosses_the_host_protocol() {
        let hint = hint!["see ", flag("all"), command("read a")];
        let json = serde_json::to_string(&hint).unwrap();
        assert_eq!(serde_json::from_str::<Hint>(&json).unwrap(), hint);
    }
}
