//! `write`: a notebook replaced by edited text.

use std::path::{Path, PathBuf};

use cellwright_notebook::file::{self, Missing, Request};
use cellwright_notebook::{Cells, Revision, edit};
use clap::Args;

use super::answer::ChangeAnswer;
use super::input;
use crate::engine::Engine;
use crate::failure::{Failure, Kind};

/// Arguments of `write`.
#[derive(Debug, Args)]
#[command(after_help = "\
The text is what `cellwright read` prints: each cell begins with a marker line such as
`# %% [code] cell:3`. A block that names a cell changes it and keeps its outputs, metadata and
everything else; a marker without a number makes a new cell; a cell that is left out is deleted.
Writing back unchanged text leaves the file as it is, byte for byte.

Examples:
  cellwright read a.ipynb > a.txt; $EDITOR a.txt; cellwright write a.ipynb a.txt
  cellwright write a.ipynb --rev 3f2a9c01d4 < edited.txt
  printf '%s\\n' '# %% [code]' 'print(1)' | cellwright write new.ipynb --create")]
pub(crate) struct WriteArgs {
    /// The notebook
    pub(crate) path: PathBuf,
    /// The edited text: a file, or `-` for stdin
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) text: String,
    #[command(flatten)]
    pub(crate) revision: RevisionArg,
    /// Start from an empty notebook if there is no such file
    #[arg(long)]
    pub(crate) create: bool,
}

/// The revision that an edit was made for.
#[derive(Debug, Args)]
pub(crate) struct RevisionArg {
    /// The revision the edit was made for: if the file has changed since, both changes are merged
    /// when they touch different cells, else nothing is written (exit code 3)
    #[arg(long, value_name = "REVISION", value_parser = revision)]
    pub(crate) rev: Option<String>,
}

/// Refuses what cannot be a revision, an empty variable for one.
fn revision(text: &str) -> Result<String, String> {
    if Revision::is_plausible(text) {
        return Ok(text.to_owned());
    }
    Err("a revision is 8 to 32 hexadecimal digits, as `cellwright read` prints it".to_owned())
}

impl RevisionArg {
    /// A revision that is given as data, not typed.
    pub(crate) fn given(rev: Option<String>) -> Result<Self, Failure> {
        match rev.as_deref().map(revision) {
            Some(Err(words)) => {
                let words = format!("`rev` makes no sense: {words}");
                Err(Failure::new(Kind::BadArguments, words).hint("nothing was written"))
            }
            _ => Ok(Self { rev }),
        }
    }

    /// A request to change a file, as the arguments say.
    pub(crate) fn request<'r>(&'r self, engine: &'r Engine, create: bool) -> Request<'r> {
        Request {
            revision: self.rev.as_deref(),
            missing: if create {
                Missing::Create
            } else {
                Missing::Refuse
            },
            baselines: engine.baselines.as_ref(),
            watch: None,
        }
    }
}

/// Replaces a notebook by edited text.
pub(crate) fn write(args: &WriteArgs, engine: &Engine) -> Result<ChangeAnswer, Failure> {
    let text = input::text_from(&args.text)?;
    replace(&args.path, &text, &args.revision, args.create, engine)
}

/// The same with the text at hand.
pub(crate) fn replace(
    path: &Path,
    text: &str,
    revision: &RevisionArg,
    create: bool,
    engine: &Engine,
) -> Result<ChangeAnswer, Failure> {
    let is_new = create && !path.exists();
    if text.is_empty() && !is_new {
        // `read` never prints nothing: this is a pipe whose other end failed.
        return Err(Failure::new(
            Kind::BadArguments,
            format!("The text for {} is empty", path.display()),
        )
        .hint("nothing was written; to delete all cells, write a text of one empty line"));
    }
    let draft = |cells: &dyn Cells| edit::replace_all(cells, text);
    let changed = file::change(path, revision.request(engine, create), &draft)
        .map_err(|error| hint_create(Failure::of_change(error), path, create))?;
    Ok(ChangeAnswer::new("write", path, changed))
}

/// Points to `--create` when the file is what is missing.
pub(crate) fn hint_create(failure: Failure, path: &Path, create: bool) -> Failure {
    if create || path.exists() || failure.kind != Kind::BadFile {
        return failure;
    }
    failure.hint("add --create to start a new notebook there")
}
