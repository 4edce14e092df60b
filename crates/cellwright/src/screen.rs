//! Where words go: data to stdout, everything else to stderr. The only place that prints.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use cellwright_output::Target;
use serde::Serialize;

use crate::cli::{self, Global};
use crate::env;
use crate::failure::{Failure, Kind};
use crate::notice::Told;

/// The two streams and how they want to be written to.
pub(crate) struct Screen {
    pub(crate) json: bool,
    quiet: bool,
    stdout: Stream,
    stderr: Stream,
}

/// What one stream leads to.
#[derive(Clone, Copy)]
struct Stream {
    terminal: bool,
    colour: bool,
}

impl Stream {
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
pub(crate) enum Outlet {
    Stdout,
    Stderr,
}

/// What sort of finding it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Good,
    Note,
    Warning,
    Bad,
}

/// Colours by what they mean; see STYLE.md.
#[derive(Clone, Copy)]
enum Colour {
    Bad,
    Good,
    Remark,
    Quiet,
}

impl Colour {
    fn code(self) -> &'static str {
        match self {
            Self::Bad => "\u{1b}[31m",
            Self::Good => "\u{1b}[32m",
            Self::Remark => "\u{1b}[36m",
            Self::Quiet => "\u{1b}[2m",
        }
    }
}

impl Screen {
    pub(crate) fn new(global: &Global) -> Self {
        Self {
            json: global.json,
            quiet: global.quiet,
            stdout: Stream::new(&io::stdout()),
            stderr: Stream::new(&io::stderr()),
        }
    }

    /// Prints text as it is; on a terminal without anything that could control it.
    pub(crate) fn data(&self, text: &str) -> Result<(), Failure> {
        let shown = if self.stdout.terminal {
            tame(text)
        } else {
            Cow::Borrowed(text)
        };
        self.bytes(shown.as_bytes())
    }

    /// Prints bytes that may be no text; on a terminal as far as they are.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Result<(), Failure> {
        if !self.stdout.terminal {
            return self.bytes(bytes);
        }
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        self.data(&text)
    }

    /// Prints bytes as they are.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()?;
        Ok(())
    }

    /// What a stream leads to, for text that is shown as it comes.
    pub(crate) fn target(&self, outlet: Outlet) -> Target {
        let stream = match outlet {
            Outlet::Stdout => self.stdout,
            Outlet::Stderr => self.stderr,
        };
        match (stream.terminal, stream.colour) {
            (true, true) => Target::Colours,
            (true, false) => Target::Terminal,
            (false, _) => Target::Pipe,
        }
    }

    /// Whether a person looks on.
    pub(crate) fn on_terminal(&self) -> bool {
        self.stdout.terminal
    }

    /// Whether a line on stderr can be drawn again and again.
    pub(crate) fn draws(&self) -> bool {
        self.stderr.terminal && !self.quiet && !self.json
    }

    /// Prints what stands above what something says.
    pub(crate) fn heading(&self, text: &str) -> io::Result<()> {
        let colour = self.stdout.colour.then_some(Colour::Remark);
        let line = format!("{}\n", paint(&tame(text), colour));
        self.stream(Outlet::Stdout, &line)
    }

    /// Prints text that was made safe, at once.
    pub(crate) fn stream(&self, outlet: Outlet, text: &str) -> io::Result<()> {
        match outlet {
            Outlet::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes())?;
                out.flush()
            }
            Outlet::Stderr => io::stderr().lock().write_all(text.as_bytes()),
        }
    }

    /// Prints one JSON document.
    pub(crate) fn document(&self, value: &impl Serialize) -> Result<(), Failure> {
        if self.stdout.terminal {
            // JSON leaves control characters above ASCII as they are.
            let text = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
            return self.data(&format!("{text}\n"));
        }
        let mut out = io::BufWriter::new(io::stdout().lock());
        serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
        out.flush()?;
        Ok(())
    }

    /// Prints a unified diff, coloured where that helps.
    pub(crate) fn diff(&self, diff: &str) -> Result<(), Failure> {
        if !self.stdout.colour {
            return self.data(diff);
        }
        let mut out = String::new();
        for line in diff.split_inclusive('\n') {
            let colour = match line.as_bytes().first() {
                Some(b'+') => Some(Colour::Good),
                Some(b'-') => Some(Colour::Bad),
                Some(b'@') => Some(Colour::Remark),
                _ => None,
            };
            let text = tame(line.trim_end_matches('\n'));
            out.push_str(&paint(&text, colour));
            out.push('\n');
        }
        self.bytes(out.as_bytes())
    }

    /// Prints one finding of a check: what it is about, what was found, what to do next.
    pub(crate) fn finding(
        &self,
        mark: Mark,
        code: &str,
        text: &str,
        next: Option<&str>,
    ) -> Result<(), Failure> {
        let (word, colour) = match mark {
            Mark::Good => ("ok", Some(Colour::Good)),
            Mark::Note => ("note", Some(Colour::Quiet)),
            Mark::Warning => ("warn", Some(Colour::Remark)),
            Mark::Bad => ("FAIL", Some(Colour::Bad)),
        };
        let word = paint(&format!("{word:<5}"), colour.filter(|_| self.stdout.colour));
        let mut out = format!("{word} {code}: {}\n", tame(text));
        if let Some(next) = next {
            out.push_str(&format!("      next: {}\n", tame(next)));
        }
        self.bytes(out.as_bytes())
    }

    /// A line about what was done, on stderr, unless the user wants quiet.
    pub(crate) fn remark(&self, text: &str) {
        if !self.quiet && !self.json {
            self.error_line(&paint(
                &tame(text),
                self.stderr.colour.then_some(Colour::Quiet),
            ));
        }
    }

    /// Notices on stderr. They are said even when quiet: something was not as it seemed.
    pub(crate) fn notices(&self, notices: &[Told]) {
        if self.json {
            return;
        }
        for notice in notices {
            let label = paint("notice:", self.stderr.colour.then_some(Colour::Remark));
            self.error_line(&format!("{label} {}", tame(&notice.text)));
        }
    }

    /// Says what failed and gives the exit code.
    pub(crate) fn report(&self, failure: &Failure) -> ExitCode {
        if failure.is_silent() {
            return ExitCode::SUCCESS;
        }
        self.complain(failure);
        if self.json {
            // The exit code says it too, should stdout be gone.
            self.document(&failure.document()).ok();
        }
        ExitCode::from(failure.exit_code())
    }

    /// Says what failed, on stderr.
    pub(crate) fn complain(&self, failure: &Failure) {
        let bad = self.stderr.colour.then_some(Colour::Bad);
        let mut text = format!("{} {}", paint("error:", bad), tame(&failure.message));
        for cause in &failure.causes {
            text.push_str(&format!("\n  caused by: {}", tame(cause)));
        }
        if !failure.hints.is_empty() {
            text.push('\n');
        }
        for hint in &failure.hints {
            let label = paint("hint:", self.stderr.colour.then_some(Colour::Remark));
            text.push_str(&format!("\n{label} {}", tame(hint)));
        }
        self.error_line(&text);
    }

    fn error_line(&self, text: &str) {
        let mut err = io::stderr().lock();
        // Nobody is left to be told when stderr is closed.
        writeln!(err, "{text}").ok();
    }
}

/// Prints help, the version, or what is wrong with the arguments.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // Nobody is left to be told when the stream is closed.
    error.print().ok();
    if error.exit_code() == 0 {
        return ExitCode::SUCCESS;
    }
    if cli::wants_json() {
        let text = error.render().to_string();
        let message = text.trim_start_matches("error: ").trim_end();
        let failure = Failure::new(Kind::BadArguments, message);
        let mut out = io::stdout().lock();
        writeln!(out, "{:#}", failure.document()).ok();
    }
    ExitCode::from(2)
}

/// One line for whoever started this process to be a host.
pub(crate) fn tell_starter(line: &str) {
    let mut out = io::stdout().lock();
    // A starter that has gone does not want to know.
    writeln!(out, "{}", line.replace('\n', " ")).ok();
    out.flush().ok();
}

fn paint(text: &str, colour: Option<Colour>) -> String {
    match colour {
        Some(colour) => format!("{}{text}\u{1b}[0m", colour.code()),
        None => text.to_owned(),
    }
}

/// Shows control characters instead of obeying them: notebooks are other people's text.
fn tame(text: &str) -> Cow<'_, str> {
    let wild = |c: char| {
        // Marks that turn the direction of text around can make it read as something else.
        let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        turns || (c.is_control() && c != '\n' && c != '\t')
    };
    if !text.contains(wild) {
        return Cow::Borrowed(text);
    }
    let show = |c: char| match c {
        _ if !wild(c) => c,
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
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(tame("a\tb\nc"), "a\tb\nc");
        assert_eq!(tame("ab\u{202e}cd"), "ab\u{fffd}cd");
        assert_eq!(tame("\u{1b}[2J\r\u{9b}1m\u{7f}"), "␛[2J␍\u{fffd}1m␡");
    }
}
