//! [`EditedText`]: a text that the user changed in an editor.

use std::fs;
use std::io::{self, IsTerminal, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Command;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_engine::env;
use cellwright_engine::signals::ignore_interrupts;
use cellwright_operations::editable::EditableText;
use cellwright_stdext::private::temporary;
use tempfile::TempDir;

use crate::console::Console;

/// The editor if no variable names one.
const DEFAULT_EDITOR: &str = "vi";

/// A changed text, and the file with it until the change is made.
pub(crate) struct EditedText {
    pub(crate) text: String,
    path: PathBuf,
    dir: TempDir,
}

/// Whether a person can use an editor: stdin and stdout are a terminal.
pub(crate) fn is_available(console: &Console) -> bool {
    io::stdin().is_terminal() && console.is_terminal()
}

/// Opens a text in the editor of the user. Returns `None` if the text did not change.
pub(crate) fn edit(text: &EditableText) -> Result<Option<EditedText>, Failure> {
    let editor = env::value(env::VISUAL)
        .or_else(|| env::value(env::EDITOR))
        .unwrap_or_else(|| DEFAULT_EDITOR.into());
    let dir = temporary::create_dir("cellwright-")?;
    let path = dir.path().join(&text.file_name);
    // Editors expect a line break at the end.
    let before = format!("{}\n", text.text);
    // Editors that replace the file copy its mode.
    let mut new = fs::OpenOptions::new();
    new.write(true).create_new(true).mode(0o600);
    new.open(&path)?.write_all(before.as_bytes())?;
    // The editor handles Ctrl-C itself.
    let _ignored = ignore_interrupts()?;
    // A shell, because the variable may have arguments and quotes.
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{} \"$@\"", editor.to_string_lossy()))
        .arg("editor")
        .arg(&path)
        // The environment block of this process has lost most values.
        .env_clear()
        .envs(env::all())
        .status();
    let edited = fs::read(&path);
    let kept = |text: String| EditedText {
        text,
        path: path.clone(),
        dir,
    };
    let name = editor.to_string_lossy();
    let cause = match status {
        Ok(status) if status.success() => None,
        Ok(status) => Some(status.to_string()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(cause) = cause {
        let mut failure = Failure::new(Kind::BadFile, format!("The editor `{name}` failed"));
        failure.causes.push(cause);
        failure = failure.hint("nothing was written");
        return Err(match edited {
            Ok(bytes) if bytes != before.as_bytes() => kept(String::new()).keep(failure),
            _ => failure.hint("VISUAL or EDITOR names the editor"),
        });
    }
    let edited = edited.map_err(|error| {
        let mut failure = Failure::new(Kind::BadFile, "The editor removed the file with the text");
        failure.causes.push(error.to_string());
        failure.hint("nothing was written")
    })?;
    if edited == before.as_bytes() {
        return Ok(None);
    }
    let Ok(mut text) = String::from_utf8(edited) else {
        let failure = Failure::new(Kind::BadArguments, "The edited text is not UTF-8");
        return Err(kept(String::new()).keep(failure.hint("nothing was written")));
    };
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(Some(kept(text)))
}

impl EditedText {
    /// Keeps the file, and names it in the failure.
    pub(crate) fn keep(self, failure: Failure) -> Failure {
        let path = self.path;
        // The directory stays until the user removes it.
        drop(self.dir.keep());
        failure.hint(format!("your text is in {}", path.display()))
    }
}
