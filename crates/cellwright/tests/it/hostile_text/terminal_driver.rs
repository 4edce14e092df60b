//! Runs commands on a terminal, and checks every byte that it receives.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cellwright_stdext::hex;
use cellwright_stdext::terminal_text::is_control;
use serde_json::{Value, json};

use crate::context::Context;

/// Runs each command on a new terminal. Prints what the terminal receives, each byte as one character.
const DRIVER: &str = r"
import json, os, pty, select, subprocess, sys, termios, time

def run(case):
    for link in case['links']:
        if os.path.lexists(link[1]):
            os.remove(link[1])
        os.symlink(link[0], link[1])
    terminal, device = pty.openpty()
    settings = termios.tcgetattr(device)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(device, termios.TCSANOW, settings)
    words = [bytes.fromhex(word) for word in case['words']]
    env = {name: value for name, value in case['env'].items()}
    child = subprocess.Popen(words, stdin=device, stdout=device, stderr=device, env=env, cwd=case['dir'], start_new_session=True)
    os.close(device)
    os.write(terminal, bytes.fromhex(case['typed']))
    received = b''
    limit = time.monotonic() + 120
    while time.monotonic() < limit:
        if not select.select([terminal], [], [], 1)[0]:
            if child.poll() is not None:
                break
            continue
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        received += data
    else:
        child.kill()
        received += b'\n[it did not end]\n'
    child.wait()
    os.close(terminal)
    return received.decode('latin-1')

print(json.dumps([run(case) for case in json.load(sys.stdin)]))
";

/// The sequences that a command may write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    /// The colours of the binary and of its help.
    Colours,
    /// Also colours, carriage returns and backspaces of the code that runs.
    OutputOfCode,
    /// None: git without colours.
    Git,
}

/// A command, and what the terminal must show.
pub(super) struct Case {
    words: Vec<OsString>,
    program: PathBuf,
    links: Vec<(PathBuf, PathBuf)>,
    variables: Vec<(String, String)>,
    typed: String,
    allowed: Allowed,
    shows: Vec<&'static str>,
}

impl Case {
    pub(super) fn new(words: Vec<OsString>) -> Self {
        Self {
            // An argument cannot contain NUL.
            words: words
                .into_iter()
                .filter(|word| !word.as_bytes().contains(&0))
                .collect(),
            program: env!("CARGO_BIN_EXE_cellwright").into(),
            links: Vec::new(),
            variables: Vec::new(),
            typed: "\u{4}".to_owned(),
            allowed: Allowed::Colours,
            shows: Vec::new(),
        }
    }

    /// Another program than the binary.
    pub(super) fn program(mut self, program: &Path) -> Self {
        program.clone_into(&mut self.program);
        self
    }

    /// A link to create before the command runs.
    pub(super) fn with_link(mut self, target: &Path, link: &Path) -> Self {
        self.links.push((target.to_owned(), link.to_owned()));
        self
    }

    pub(super) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// What a person types.
    pub(super) fn typed(mut self, text: &str) -> Self {
        text.clone_into(&mut self.typed);
        self
    }

    pub(super) fn allow(mut self, allowed: Allowed) -> Self {
        self.allowed = allowed;
        self
    }

    pub(super) fn output_of_code(self) -> Self {
        self.allow(Allowed::OutputOfCode)
    }

    /// The terminal must show this text.
    pub(super) fn shows(mut self, text: &'static str) -> Self {
        self.shows.push(text);
        self
    }

    /// The terminal must show a control character as a symbol or an escape: the test would otherwise miss the text.
    pub(super) fn shows_controls(self) -> Self {
        self.shows("")
    }
}

/// Collects commands and runs them.
pub(super) struct Terminal<'c> {
    context: &'c Context,
    cases: Vec<Case>,
}

impl<'c> Terminal<'c> {
    pub(super) fn new(context: &'c Context) -> Self {
        Self {
            context,
            cases: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, case: Case) {
        self.cases.push(case);
    }

    /// Runs all commands, with and without colours, and fails with all violations.
    pub(super) fn check(&self) {
        let mut violations = Vec::new();
        for colour in [true, false] {
            for (case, received) in self.cases.iter().zip(self.run(colour)) {
                if let Err(violation) = check(case, &received, colour) {
                    let words: Vec<_> = case
                        .words
                        .iter()
                        .map(|word| word.to_string_lossy())
                        .collect();
                    violations.push(format!("{words:?}: {violation}"));
                }
            }
        }
        assert!(
            violations.is_empty(),
            "{} violations\n{}",
            violations.len(),
            violations.join("\n")
        );
    }

    fn run(&self, colour: bool) -> Vec<Vec<u8>> {
        let plain = self.context.command(&[]);
        let cases: Vec<Value> = self.cases.iter().map(|case| {
            let words = std::iter::once(case.program.as_os_str()).chain(case.words.iter().map(OsString::as_os_str));
            let words: Vec<String> = words.map(|word: &OsStr| hex::encode(word.as_bytes())).collect();
            let mut env = serde_json::Map::new();
            for (name, value) in plain.get_envs() {
                if let Some(value) = value {
                    env.insert(name.to_string_lossy().into_owned(), value.to_string_lossy().into());
                }
            }
            if !colour {
                env.insert("NO_COLOR".to_owned(), "1".into());
            }
            for (name, value) in &case.variables {
                env.insert(name.clone(), value.clone().into());
            }
            json!({"words": words, "env": env, "dir": self.context.dir(), "links": case.links, "typed": hex::encode(case.typed.as_bytes())})
        }).collect();
        let mut driver = Command::new("python3");
        driver
            .args(["-c", DRIVER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut driver = driver.spawn().unwrap();
        let input = Value::from(cases).to_string();
        driver
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        let output = driver.wait_with_output().unwrap();
        let received: Vec<String> = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(received.len(), self.cases.len());
        received
            .iter()
            .map(|received| received.chars().map(|c| c as u8).collect())
            .collect()
    }
}

/// Checks what the terminal received.
fn check(case: &Case, received: &[u8], colour: bool) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(received) else {
        return Err(format!(
            "not UTF-8: {:?}",
            String::from_utf8_lossy(received)
        ));
    };
    if text.contains("it did not end") {
        return Err(format!("it did not end: {text:?}"));
    }
    let shows_symbol = || {
        text.contains('␛')
            || text.contains("<U+")
            || text.contains("\\u")
            || text.contains('␇')
            || text.chars().any(|c| ('\u{2400}'..='\u{2421}').contains(&c))
    };
    for shown in &case.shows {
        if !text.contains(shown) || (shown.is_empty() && !shows_symbol()) {
            return Err(format!("{shown:?} is missing in {text:?}"));
        }
    }
    // The terminal driver of the system writes `\r\n` for a line feed.
    let text = text.replace("\r\n", "\n");
    let mut rest = text.as_str();
    while let Some(at) = rest.find(is_control) {
        let found = &rest[at..];
        let length = allowed_length(found, case.allowed, colour).ok_or_else(|| {
            let end = found.floor_char_boundary(20.min(found.len()));
            let start = rest.floor_char_boundary(at.saturating_sub(30));
            format!("{:?} after {:?}", &found[..end], &rest[start..at])
        })?;
        rest = &found[length..];
    }
    Ok(())
}

/// The length of an allowed sequence at the start of the text.
fn allowed_length(text: &str, allowed: Allowed, colour: bool) -> Option<usize> {
    if allowed == Allowed::Git {
        return None;
    }
    // Code redraws lines, and a progress line is redrawn.
    if allowed == Allowed::OutputOfCode && text.starts_with(['\r', '\u{8}']) {
        return Some(1);
    }
    if let Some(after) = text.strip_prefix("\u{1b}[") {
        let end = after.find(|c: char| !(c.is_ascii_digit() || c == ';'))?;
        let parameters = &after[..end];
        let ours = [
            "0", "1", "2", "4", "31", "32", "33", "36", "1;31", "1;32", "1;33", "1;4",
        ];
        // `LiveText` writes a complete style.
        let of_code =
            allowed == Allowed::OutputOfCode && (parameters.starts_with("0;") || parameters == "0");
        let is_allowed = match after.as_bytes()[end] {
            b'm' => colour && (ours.contains(&parameters) || of_code),
            b'K' => true,
            _ => false,
        };
        return is_allowed.then_some(2 + end + 1);
    }
    None
}
