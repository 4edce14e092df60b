//! The commands that git runs: `textconv`, `merge` and `clean`.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_notebook::{ConflictMarkers, Scope};
use cellwright_operations::git::clean::clean as remove_outputs;
use cellwright_operations::git::merge::{MergeRequest, merge as merge_notebooks};
use cellwright_operations::git::textconv::{
    TextconvRequest, TextconvResult, textconv as render_notebook,
};
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::Console;

/// A notebook as text.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TextconvReport {
    /// Path of the notebook.
    path: String,
    /// The text.
    text: String,
}

/// Prints a notebook as text.
pub(super) fn textconv(path: &Path, scope: Scope, console: &Console) -> Result<u8, Failure> {
    let request = TextconvRequest {
        path: path.to_owned(),
        scope,
    };
    match render_notebook(&request)? {
        TextconvResult::Text(text) if console.json => {
            let path = path.display().to_string();
            console.print_json(&TextconvReport { path, text })?;
        }
        TextconvResult::Text(text) => console.print(&text)?,
        TextconvResult::NotANotebook { failure, .. } if console.json => return Err(failure),
        TextconvResult::NotANotebook { text, notice, .. } => {
            console.print_notices(&[notice]);
            console.print(&text)?;
        }
    }
    Ok(0)
}

/// Copies a notebook from stdin to stdout without outputs.
pub(super) fn clean(path: Option<&Path>, console: &Console) -> Result<u8, Failure> {
    if console.json {
        let message = "`git clean` has no `--json`: its output is the notebook";
        return Err(Failure::new(Kind::BadArguments, message));
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    console.write_bytes(&remove_outputs(bytes, path)?)?;
    Ok(0)
}

/// Arguments of `git merge`.
#[derive(Debug, Args)]
#[command(after_help = "\
Writes the result to OURS, in its layout. Lines that both sides changed are put between conflict markers in the \
source of their cell, so that the file remains a notebook. A file that is not a notebook stays unchanged.

Exit codes: 0 merged; 1 conflicts, or not merged.

Example:
  cellwright git merge base.ipynb ours.ipynb theirs.ipynb")]
pub(super) struct MergeArgs {
    /// Common base; can be empty
    base: PathBuf,
    /// Our notebook; receives the result
    ours: PathBuf,
    /// Their notebook
    theirs: PathBuf,
    /// Path of the file in messages
    #[arg(long, value_name = "PATH")]
    path: Option<PathBuf>,
    /// Number of characters in a conflict marker
    #[arg(long, value_name = "N", default_value_t = 7)]
    marker_size: usize,
    /// Name of our side in conflict markers
    #[arg(long = "ours", value_name = "NAME", id = "our_name")]
    our_name: Option<String>,
    /// Name of their side in conflict markers
    #[arg(long = "theirs", value_name = "NAME", id = "their_name")]
    their_name: Option<String>,
}

/// Merges notebooks. Returns the exit code.
pub(super) fn merge(args: &MergeArgs, console: &Console) -> Result<u8, Failure> {
    let request = MergeRequest {
        base: args.base.clone(),
        ours: args.ours.clone(),
        theirs: args.theirs.clone(),
        path: args.path.clone(),
        markers: markers(args),
    };
    match merge_notebooks(&request) {
        Ok(report) => {
            if console.json {
                console.print_json(&report)?;
            }
            console.print_notices(&report.conflicts);
            console.print_notices(&report.notices);
            Ok(u8::from(!report.clean))
        }
        Err(failure) => {
            // Git takes 1 for a conflict and stops at every other code.
            console.report_failure(&failure.hint("nothing was merged; ours is unchanged"));
            Ok(1)
        }
    }
}

fn markers(args: &MergeArgs) -> ConflictMarkers {
    let mut markers = ConflictMarkers {
        size: args.marker_size.clamp(1, 200),
        ..ConflictMarkers::default()
    };
    // Older versions of git pass `%X` and `%Y` instead of names.
    let given = |name: &Option<String>| {
        name.clone()
            .filter(|name| !name.is_empty() && !name.starts_with('%'))
    };
    if let Some(name) = given(&args.our_name) {
        markers.ours = name;
    }
    if let Some(name) = given(&args.their_name) {
        markers.theirs = name;
    }
    markers
}
