//! What git calls: a notebook as text, three notebooks merged, a notebook without outputs.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cellwright_notebook::{
    Cells, ConflictMarkers, FormatError, MergedNotebook, Notebook, NotebookError, Scope,
    merge_three_way, render_textconv, strip_outputs, upgrade,
};
use clap::Args;
use serde::Serialize;

use super::setup::replace;
use crate::console::Console;
use crate::failure::{Failure, Kind};
use crate::notice::{NoticeKind, UserNotice, describe_merge};

/// Prints a notebook as text. Never fails over what is in the file: git would show nothing at all.
pub(super) fn textconv(path: &Path, scope: Scope, screen: &Console) -> Result<u8, Failure> {
    let bytes = read(path)?;
    // Old formats are shown as what they would become.
    let notebook = match Notebook::parse(&bytes[..]) {
        Err(FormatError::OldFormat { .. }) => match upgrade(&bytes) {
            Ok(Some((_, upgraded))) => Notebook::parse(upgraded),
            _ => Notebook::parse(&bytes[..]),
        },
        other => other,
    };
    match notebook {
        Ok(notebook) if screen.json => screen.print_json(&serde_json::json!({
            "path": path.display().to_string(),
            "text": render_textconv(&notebook, scope),
        }))?,
        Ok(notebook) => screen.print(&render_textconv(&notebook, scope))?,
        Err(error) if screen.json => {
            let path = path.to_owned();
            return Err(NotebookError::Format { path, error }.into());
        }
        Err(error) => {
            screen.print_notices(&[not_a_notebook(path, &error, "shown as it is")]);
            screen.print_bytes_as_text(&bytes)?;
        }
    }
    Ok(0)
}

/// Takes outputs out on the way from stdin to stdout. What is no notebook passes as it is.
pub(super) fn clean(path: Option<&Path>, screen: &Console) -> Result<u8, Failure> {
    if screen.json {
        let message = "There is no --json here: the output is the notebook";
        return Err(Failure::new(Kind::BadArguments, message));
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    match Notebook::parse(&bytes[..]) {
        Ok(notebook) => screen.write_bytes(&strip_outputs(&notebook))?,
        Err(error) => {
            let path = path.unwrap_or(Path::new("the standard input"));
            screen.print_notices(&[not_a_notebook(path, &error, "passed on as it is")]);
            screen.write_bytes(&bytes)?;
        }
    }
    Ok(0)
}

fn not_a_notebook(path: &Path, error: &FormatError, so: &str) -> UserNotice {
    UserNotice::new(
        NoticeKind::NotANotebook,
        format!("{} is no notebook ({error}), so it is {so}", path.display()),
    )
}

/// Arguments of `git merge`.
#[derive(Debug, Args)]
#[command(after_help = "\
Writes the result to OURS, in its layout. Lines that both changed stand between marks in the
source of their cell, and the file stays a notebook. What is no notebook is not touched.

Exit codes: 0 merged; 1 there are conflicts, or it could not be merged.

Example:
  cellwright git merge base.ipynb ours.ipynb theirs.ipynb")]
pub(super) struct MergeArgs {
    /// What both come from; may be empty
    base: PathBuf,
    /// Our notebook, which is replaced
    ours: PathBuf,
    /// Their notebook
    theirs: PathBuf,
    /// What to call it in messages
    #[arg(long, value_name = "PATH")]
    path: Option<PathBuf>,
    /// How many signs the marks around conflicts have
    #[arg(long, value_name = "N", default_value_t = 7)]
    marker_size: usize,
    /// What our side is called in the marks
    #[arg(long = "ours", value_name = "NAME", id = "our_name")]
    our_name: Option<String>,
    /// What their side is called in the marks
    #[arg(long = "theirs", value_name = "NAME", id = "their_name")]
    their_name: Option<String>,
}

/// What `git merge` answers.
#[derive(Debug, Serialize)]
struct MergeAnswer {
    path: String,
    clean: bool,
    conflicts: Vec<UserNotice>,
    notices: Vec<UserNotice>,
}

/// Merges; says the exit code.
pub(super) fn merge(args: &MergeArgs, screen: &Console) -> Result<u8, Failure> {
    let name = args.path.as_deref().unwrap_or(&args.ours);
    match merged(args, name) {
        Ok(answer) => {
            if screen.json {
                screen.print_json(&answer)?;
            }
            screen.print_notices(&answer.conflicts);
            screen.print_notices(&answer.notices);
            Ok(u8::from(!answer.clean))
        }
        Err(failure) => {
            // For git every other code is either success or the end of everything.
            screen.report_failure(&failure.hint("nothing was merged; ours is as it was"));
            Ok(1)
        }
    }
}

fn merged(args: &MergeArgs, name: &Path) -> Result<MergeAnswer, Failure> {
    let base = read(&args.base)?;
    let base = if base.trim_ascii().is_empty() {
        // Both sides made the file.
        Notebook::empty()
    } else {
        parse(base, name, "their common ancestor")?
    };
    let ours = parse(read(&args.ours)?, name, "ours")?;
    let theirs = parse(read(&args.theirs)?, name, "theirs")?;
    let merged = merge_three_way(&base, &ours, &theirs, &marks(args));
    // What git gets is a notebook, or nothing.
    let result = parse(merged.bytes.clone(), name, "the result")?;
    if merged.bytes != ours.bytes() {
        replace(&args.ours, &merged.bytes).map_err(|error| {
            let message = format!("Could not write {}", args.ours.display());
            let mut failure = Failure::new(Kind::BadFile, message);
            failure.causes.push(error.to_string());
            failure
        })?;
    }
    Ok(answer(name, &merged, &result))
}

fn answer(name: &Path, merged: &MergedNotebook, result: &Notebook) -> MergeAnswer {
    let id = |cell: usize| result.id(cell).map(String::from);
    let (conflicts, notices): (Vec<_>, Vec<_>) = merged
        .notices
        .iter()
        .partition(|remark| remark.is_conflict());
    let tell = |remarks: Vec<_>| -> Vec<UserNotice> {
        let told = remarks.into_iter();
        told.map(|remark| describe_merge(remark, name, &id))
            .collect()
    };
    MergeAnswer {
        path: name.display().to_string(),
        clean: merged.is_clean(),
        conflicts: tell(conflicts),
        notices: tell(notices),
    }
}

fn marks(args: &MergeArgs) -> ConflictMarkers {
    let mut marks = ConflictMarkers {
        size: args.marker_size.clamp(1, 200),
        ..ConflictMarkers::default()
    };
    // Older versions of git do not know the names, and leave what stands for them.
    let given = |name: &Option<String>| {
        name.clone()
            .filter(|name| !name.is_empty() && !name.starts_with('%'))
    };
    if let Some(name) = given(&args.our_name) {
        marks.ours = name;
    }
    if let Some(name) = given(&args.their_name) {
        marks.theirs = name;
    }
    marks
}

fn parse(bytes: Vec<u8>, name: &Path, which: &str) -> Result<Notebook, Failure> {
    Notebook::parse(bytes).map_err(|error| {
        let path = PathBuf::from(format!("{} ({which})", name.display()));
        NotebookError::Format { path, error }.into()
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| {
        let mut failure = Failure::new(Kind::BadFile, format!("Could not read {}", path.display()));
        failure.causes.push(error.to_string());
        failure
    })
}
