//! [`Console`]: prints data to stdout and everything else to stderr. The only module that prints.
//!
//! Everything is written by [`write_content`]. A terminal receives no control character but those of our own colours and of the
//! checked text of kernels.

use std::borrow::Cow;
use std::ffi::OsString;
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
use cellwright_stdext::secret::{contains_credentials, redact};
use cellwright_stdext::terminal_text::{
    JsonEscapeWriter, escape_json, is_control, show_controls, show_other_controls,
};
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

/// What is written. It determines how control characters are written.
#[derive(Clone, Copy)]
enum Content<'a> {
    /// Text. A terminal shows its control characters.
    Text(&'a str),
    /// Text with colours and redrawn lines, from [`paint`] or `LiveText`. A terminal shows all other control characters.
    Styled(&'a str),
    /// JSON. Its control characters are escaped everywhere: its value stays the same.
    Json(&'a str),
    /// The bytes of a notebook or an artifact. A terminal shows them as text.
    Bytes(&'a [u8]),
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
        Ok(self.write_content(StdStream::Stdout, Content::Text(text))?)
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

    /// Writes bytes unchanged. A terminal shows them as text.
    pub(crate) fn write_bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.write_content(StdStream::Stdout, Content::Bytes(bytes))?)
    }

    /// Writes JSON on one line.
    pub(crate) fn write_json_line(&self, json: &str) -> io::Result<()> {
        let line = format!("{json}\n");
        self.write_content(StdStream::Stdout, Content::Json(&line))
    }

    fn write_content(&self, stream: StdStream, content: Content<'_>) -> io::Result<()> {
        let terminal = match stream {
            StdStream::Stdout => self.stdout.terminal,
            StdStream::Stderr => self.stderr.terminal,
        };
        write_content(stream, terminal, content)
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
        let line = format!("{}\n", paint(text, colour));
        self.write_styled(StdStream::Stdout, &line)
    }

    /// Writes text whose colours and redrawn lines a terminal receives, and flushes it.
    pub(crate) fn write_styled(&self, stream: StdStream, text: &str) -> io::Result<()> {
        self.write_content(stream, Content::Styled(text))
    }

    /// Prints one JSON document, with its version.
    pub(crate) fn print_json(
        &self,
        content: &(impl Serialize + JsonSchema),
    ) -> Result<(), Failure> {
        let value = &Versioned::new(content);
        let mut out = JsonEscapeWriter::new(io::stdout().lock());
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
            out.push_str(&paint(line.trim_end_matches('\n'), colour));
            out.push('\n');
        }
        Ok(self.write_styled(StdStream::Stdout, &out)?)
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
        let mut out = format!("{word} {code}: {}\n", show_controls(text));
        if let Some(next) = next {
            out.push_str(&format!("      next: {}\n", show_controls(next)));
        }
        Ok(self.write_styled(StdStream::Stdout, &out)?)
    }

    /// Prints a remark on stderr, unless `--quiet` or `--json` is given.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet && !self.json {
            self.error_line(&paint(text, self.stderr.colour.then_some(Colour::Dim)));
        }
    }

    /// Prints a remark about a failure on stderr, unless `--quiet` or `--json` is given.
    pub(crate) fn note_failure(&self, text: &str) {
        if !self.quiet && !self.json {
            self.error_line(&paint(text, self.stderr.colour.then_some(Colour::Error)));
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
            self.error_line(&format!("{label} {}", show_controls(&text)));
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
            show_controls(&redact(&failure.message))
        );
        for cause in &failure.causes {
            text.push_str(&format!("\n  caused by: {}", show_controls(&redact(cause))));
        }
        if !failure.hints.is_empty() {
            text.push('\n');
        }
        for hint in &failure.hints {
            let label = paint("hint:", self.stderr.colour.then_some(Colour::Info));
            text.push_str(&format!(
                "\n{label} {}",
                show_controls(&redact(&hint.for_command_line()))
            ));
        }
        self.error_line(&text);
    }

    fn error_line(&self, text: &str) {
        // Errors of stderr are ignored: there is no other place to report them.
        self.write_styled(StdStream::Stderr, &format!("{text}\n"))
            .ok();
    }
}

/// Writes to a stream and flushes it.
fn write_content(stream: StdStream, terminal: bool, content: Content<'_>) -> io::Result<()> {
    let lossy;
    let shown: Cow<'_, str> = match content {
        Content::Json(json) => escape_json(json),
        Content::Text(text) if terminal => show_controls(text),
        Content::Styled(text) if terminal => show_other_controls(text),
        Content::Bytes(bytes) if terminal => {
            lossy = String::from_utf8_lossy(bytes);
            show_controls(&lossy)
        }
        Content::Text(text) | Content::Styled(text) => Cow::Borrowed(text),
        Content::Bytes(bytes) => return write_all(stream, bytes),
    };
    write_all(stream, shown.as_bytes())
}

fn write_all(stream: StdStream, bytes: &[u8]) -> io::Result<()> {
    match stream {
        StdStream::Stdout => {
            let mut out = io::stdout().lock();
            out.write_all(bytes)?;
            out.flush()
        }
        StdStream::Stderr => io::stderr().lock().write_all(bytes),
    }
}

/// Prints help, the version or an error in the arguments; with `json`, an error also as a document.
pub(crate) fn print_usage(error: &clap::Error, plain_text: &str, json: bool) -> ExitCode {
    let is_safe = |argument: OsString| {
        let argument = argument.to_string_lossy();
        !argument.contains(is_control) && !contains_credentials(&argument)
    };
    // A closed stream is not an error.
    if std::env::args_os().all(is_safe) {
        error.print().ok();
    } else {
        // The text repeats arguments, and has no colours to tell from sequences in them.
        let stream = if error.use_stderr() {
            StdStream::Stderr
        } else {
            StdStream::Stdout
        };
        let plain_text = redact(plain_text);
        let shown = show_controls(&plain_text);
        write_content(stream, true, Content::Text(&shown)).ok();
    }
    if error.exit_code() == 0 {
        return ExitCode::SUCCESS;
    }
    if json {
        let message = plain_text.trim_start_matches("error: ").trim_end();
        let failure = Failure::new(Kind::BadArguments, message);
        Console::new(json, true)
            .print_json(&failure.document())
            .ok();
    }
    ExitCode::from(2)
}

/// Prints a line to the process that started this host.
pub(crate) fn print_to_parent(line: &str) {
    let line = format!("{}\n", line.replace('\n', " "));
    // The process that started the host may have exited.
    write_content(
        StdStream::Stdout,
        io::stdout().is_terminal(),
        Content::Text(&line),
    )
    .ok();
}

/// Prints a diagnostic event on stderr.
pub(crate) fn print_event(level: tracing::Level, text: &str) {
    let time = rfc3339::format_micros(SystemTime::now());
    let level = level.as_str().to_ascii_lowercase();
    let text = show_controls(text).replace('\n', " ");
    let line = format!("{time} {level:5} {text}\n");
    // An event that cannot be printed must not end the command.
    write_content(
        StdStream::Stderr,
        io::stderr().is_terminal(),
        Content::Text(&line),
    )
    .ok();
}

/// The text in a colour. Its own control characters are shown as symbols.
fn paint(text: &str, colour: Option<Colour>) -> String {
    let text = show_controls(text);
    match colour {
        Some(colour) => format!("{}{text}\u{1b}[0m", colour.code()),
        None => text.into_owned(),
    }
}
