//! [`Console`]: prints data to stdout and everything else to stderr. The only module that prints.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::SystemTime;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice::UserNotice;
use cellwright_engine::env;
use cellwright_operations::finding::{Finding, Severity};
use cellwright_operations::table::Table;
use cellwright_output::LiveTarget;
use cellwright_stdext::rfc3339;
use cellwright_stdext::secret::redact;
use schemars::JsonSchema;
use serde::Serialize;

use crate::document::Versioned;

/// Stdout and stderr, and the form of the output.
pub(crate) struct Console {
    pub(crate) json: bool,
    quiet: bool,
    stdout: StreamInfo,
    stderr: StreamInfo,
}

/// Properties of a stream.
#[derive(Clone, Copy)]
struct StreamInfo {
    terminal: bool,
    colour: bool,
}

impl StreamInfo {
    fn new(stream: &impl IsTerminal) -> Self {
        let terminal = stream.is_terminal();
        Self {
            terminal,
            colour: terminal && env::value(env::NO_COLOR).is_none(),
        }
    }
}

/// One of the two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StdStream {
    Stdout,
    Stderr,
}

/// Colours by what they mean; see STYLE.md.
#[derive(Clone, Copy)]
enum Colour {
    Error,
    Ok,
    Info,
    Dim,
}

impl Colour {
    fn code(self) -> &'static str {
        match self {
            Self::Error => "\u{1b}[31m",
            Self::Ok => "\u{1b}[32m",
            Self::Info => "\u{1b}[36m",
            Self::Dim => "\u{1b}[2m",
        }
    }
}

impl Console {
    /// `json`: stdout holds one JSON document and nothing else. `quiet`: no remarks on stderr.
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        Self {
            json,
            quiet,
            stdout: StreamInfo::new(&io::stdout()),
            stderr: StreamInfo::new(&io::stderr()),
        }
    }

    /// Prints text. On a terminal, control characters are shown as symbols.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        let shown = if self.stdout.terminal {
            escape_controls(text)
        } else {
            Cow::Borrowed(text)
        };
        self.write_bytes(shown.as_bytes())
    }

    /// Prints a table, on a terminal within its width. A remark names the columns that do not fit.
    pub(crate) fn print_table(&self, table: &Table) -> Result<(), Failure> {
        let Some(width) = self.width() else {
            return self.print(&table.to_string());
        };
        let fitted = table.fit(width);
        self.print(&fitted.text)?;
        if !fitted.hidden.is_empty() {
            let hidden = fitted.hidden.join(", ").to_lowercase();
            self.note(&format!("not shown in this width: {hidden}"));
        }
        Ok(())
    }

    /// Number of columns of the terminal; `None` if stdout is not a terminal.
    pub(crate) fn width(&self) -> Option<usize> {
        let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
        self.stdout.terminal.then_some(usize::from(width.0).max(1))
    }

    /// Number of columns of the terminal; `None` if stderr is not a terminal.
    pub(crate) fn stderr_width(&self) -> Option<usize> {
        let (width, _) = terminal_size::terminal_size_of(io::stderr())?;
        self.stderr.terminal.then_some(usize::from(width.0).max(1))
    }

    /// Prints bytes. On a terminal, they are shown as text.
    pub(crate) fn print_bytes_as_text(&self, bytes: &[u8]) -> Result<(), Failure> {
        if !self.stdout.terminal {
            return self.write_bytes(bytes);
        }
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        self.print(&text)
    }

    /// Writes bytes unchanged.
    pub(crate) fn write_bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()?;
        Ok(())
    }

    /// The target of live output on a stream.
    pub(crate) fn target(&self, stream: StdStream) -> LiveTarget {
        let info = match stream {
            StdStream::Stdout => self.stdout,
            StdStream::Stderr => self.stderr,
        };
        match (info.terminal, info.colour) {
            (true, true) => LiveTarget::ColourTerminal,
            (true, false) => LiveTarget::PlainTerminal,
            (false, _) => LiveTarget::Pipe,
        }
    }

    /// Whether stdout is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.stdout.terminal
    }

    /// Whether a progress line can be redrawn on stderr.
    pub(crate) fn can_animate(&self) -> bool {
        self.stderr.terminal && !self.quiet && !self.json
    }

    /// Prints the heading of a cell.
    pub(crate) fn print_heading(&self, text: &str) -> io::Result<()> {
        let colour = self.stdout.colour.then_some(Colour::Info);
        let line = format!("{}\n", paint(&escape_controls(text), colour));
        self.write(StdStream::Stdout, &line)
    }

    /// Writes text unchanged and flushes it.
    pub(crate) fn write(&self, stream: StdStream, text: &str) -> io::Result<()> {
        match stream {
            StdStream::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes())?;
                out.flush()
            }
            StdStream::Stderr => io::stderr().lock().write_all(text.as_bytes()),
        }
    }

    /// Prints one JSON document, with its version.
    pub(crate) fn print_json(
        &self,
        content: &(impl Serialize + JsonSchema),
    ) -> Result<(), Failure> {
        let value = &Versioned::new(content);
        if self.stdout.terminal {
            // JSON leaves control characters above ASCII as they are.
            let text = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
            return self.print(&format!("{text}\n"));
        }
        let mut out = io::BufWriter::new(io::stdout().lock());
        serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
        out.flush()?;
        Ok(())
    }

    /// Prints a unified diff, with colours on a terminal.
    pub(crate) fn print_diff(&self, diff: &str) -> Result<(), Failure> {
        if !self.stdout.colour {
            return self.print(diff);
        }
        let mut out = String::new();
        for line in diff.split_inclusive('\n') {
            let colour = match line.as_bytes().first() {
                Some(b'+') => Some(Colour::Ok),
                Some(b'-') => Some(Colour::Error),
                Some(b'@') => Some(Colour::Info),
                _ => None,
            };
            let text = escape_controls(line.trim_end_matches('\n'));
            out.push_str(&paint(&text, colour));
            out.push('\n');
        }
        self.write_bytes(out.as_bytes())
    }

    /// Prints the findings of a check.
    pub(crate) fn print_findings(&self, findings: &[Finding]) -> Result<(), Failure> {
        for finding in findings {
            let next = finding.next.as_deref();
            self.print_finding(finding.severity, finding.code, &finding.text, next)?;
        }
        Ok(())
    }

    /// Prints a finding: its subject, the text and the next step.
    pub(crate) fn print_finding(
        &self,
        severity: Severity,
        code: &str,
        text: &str,
        next: Option<&str>,
    ) -> Result<(), Failure> {
        let (word, colour) = match severity {
            Severity::Ok => ("ok", Some(Colour::Ok)),
            Severity::Note => ("note", Some(Colour::Dim)),
            Severity::Warning => ("warn", Some(Colour::Info)),
            Severity::Error => ("FAIL", Some(Colour::Error)),
        };
        let word = paint(&format!("{word:<5}"), colour.filter(|_| self.stdout.colour));
        let mut out = format!("{word} {code}: {}\n", escape_controls(text));
        if let Some(next) = next {
            out.push_str(&format!("      next: {}\n", escape_controls(next)));
        }
        self.write_bytes(out.as_bytes())
    }

    /// Prints a remark on stderr, unless `--quiet` or `--json` is given.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet && !self.json {
            self.error_line(&paint(
                &escape_controls(text),
                self.stderr.colour.then_some(Colour::Dim),
            ));
        }
    }

    /// Prints a remark about a failure on stderr, unless `--quiet` or `--json` is given.
    pub(crate) fn note_failure(&self, text: &str) {
        if !self.quiet && !self.json {
            self.error_line(&paint(
                &escape_controls(text),
                self.stderr.colour.then_some(Colour::Error),
            ));
        }
    }

    /// Prints a remark if a command waits for a person who types `what`.
    pub(crate) fn note_stdin(&self, what: &str) {
        if io::stdin().is_terminal() && self.stderr.terminal {
            self.note(&format!(
                "reading {what} from the terminal; Ctrl-D ends the input, Ctrl-C cancels"
            ));
        }
    }

    /// Prints notices on stderr, also with `--quiet`.
    pub(crate) fn print_notices(&self, notices: &[UserNotice]) {
        if self.json {
            return;
        }
        for notice in notices {
            let label = paint("notice:", self.stderr.colour.then_some(Colour::Info));
            let text = match notice.kind.hint() {
                Some(hint) => format!("{}; {}", notice.text, hint.for_command_line()),
                None => notice.text.clone(),
            };
            self.error_line(&format!("{label} {}", escape_controls(&text)));
        }
    }

    /// Prints a failure. Returns the exit code.
    pub(crate) fn report_failure(&self, failure: &Failure) -> ExitCode {
        if failure.is_silent() {
            return ExitCode::SUCCESS;
        }
        self.print_error(failure);
        if self.json {
            // If stdout is closed, the exit code still reports the failure.
            self.print_json(&failure.document()).ok();
        }
        ExitCode::from(failure.exit_code())
    }

    /// Prints a failure on stderr, without credentials.
    pub(crate) fn print_error(&self, failure: &Failure) {
        let bad = self.stderr.colour.then_some(Colour::Error);
        let mut text = format!(
            "{} {}",
            paint("error:", bad),
            escape_controls(&redact(&failure.message))
        );
        for cause in &failure.causes {
            text.push_str(&format!(
                "\n  caused by: {}",
                escape_controls(&redact(cause))
            ));
        }
        if !failure.hints.is_empty() {
            text.push('\n');
        }
        for hint in &failure.hints {
            let label = paint("hint:", self.stderr.colour.then_some(Colour::Info));
            text.push_str(&format!(
                "\n{label} {}",
                escape_controls(&hint.for_command_line())
            ));
        }
        self.error_line(&text);
    }

    fn error_line(&self, text: &str) {
        let mut err = io::stderr().lock();
        // Errors of stderr are ignored: there is no other place to report them.
        writeln!(err, "{text}").ok();
    }
}

/// Prints help, the version or an error in the arguments; with `json`, an error also as a document.
pub(crate) fn print_usage(error: &clap::Error, json: bool) -> ExitCode {
    // A closed stream is not an error.
    error.print().ok();
    if error.exit_code() == 0 {
        return ExitCode::SUCCESS;
    }
    if json {
        let text = error.render().to_string();
        let message = text.trim_start_matches("error: ").trim_end();
        let failure = Failure::new(Kind::BadArguments, message);
        let mut out = io::stdout().lock();
        let document = serde_json::to_string_pretty(&Versioned::new(&failure.document()));
        writeln!(out, "{}", document.unwrap_or_default()).ok();
    }
    ExitCode::from(2)
}

/// Prints a line to the process that started this host.
pub(crate) fn print_to_parent(line: &str) {
    let mut out = io::stdout().lock();
    // The process that started the host may have exited.
    writeln!(out, "{}", line.replace('\n', " ")).ok();
    out.flush().ok();
}

/// Prints a diagnostic event on stderr.
pub(crate) fn print_event(level: tracing::Level, text: &str) {
    let time = rfc3339::format_micros(SystemTime::now());
    let level = level.as_str().to_ascii_lowercase();
    let text = escape_controls(text).replace('\n', " ");
    // An event that cannot be printed must not end the command.
    writeln!(io::stderr().lock(), "{time} {level:5} {text}").ok();
}

fn paint(text: &str, colour: Option<Colour>) -> String {
    match colour {
        Some(colour) => format!("{}{text}\u{1b}[0m", colour.code()),
        None => text.to_owned(),
    }
}

/// Replaces control characters by symbols, because text from notebooks and kernels could control the terminal.
fn escape_controls(text: &str) -> Cow<'_, str> {
    let is_control = |c: char| {
        // Characters that change the direction of text can disguise it.
        let is_bidi = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        is_bidi || (c.is_control() && c != '\n' && c != '\t')
    };
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let show = |c: char| match c {
        _ if !is_control(c) => c,
        '\u{7f}' => '\u{2421}',
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        _ => '\u{fffd}',
    };
    Cow::Owned(text.chars().map(show).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escape_controls("a\tb\nc"), "a\tb\nc");
        assert_eq!(escape_controls("ab\u{202e}cd"), "ab\u{fffd}cd");
        assert_eq!(
            escape_controls("\u{1b}[2J\r\u{9b}1m\u{7f}"),
            "␛[2J␍\u{fffd}1m␡"
        );
    }
}
