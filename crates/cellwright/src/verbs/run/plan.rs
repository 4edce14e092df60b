//! What a call of `run` comes to: which edits, which cells.

use std::path::Path;

use cellwright_notebook::{CellKind, Cells};
use cellwright_run::parameters::{Cell, INJECTED_TAG, Injection, Parameter, Place, place, unknown};
use cellwright_run::{
    Choice, Edit, Freshness, Ledger, Listing, MAY_RAISE, Planned, SKIPPED, Seen, look,
};

use super::RunArgs;
use crate::engine::Engine;
use crate::evaluation::Failing;
use crate::failure::{Failure, Kind, capitalised};
use crate::freshness;
use crate::notice::Told;
use crate::parameters;
use crate::verbs::eval::canonical;
use crate::verbs::input;

pub(super) struct Plan {
    pub(super) revision: String,
    pub(super) listing: Listing,
    pub(super) edits: Vec<Edit>,
    pub(super) cells: Vec<Planned>,
    pub(super) notices: Vec<Told>,
}

impl Plan {
    pub(super) fn make(
        args: &RunArgs,
        path: &Path,
        cwd: &Path,
        engine: &Engine,
    ) -> Result<Self, Failure> {
        let mut edits = edits(args)?;
        let mut seen = look(path, &edits).map_err(Failure::of_look)?;
        let given = parameters::gather(
            &args.parameters_files,
            &args.parameters,
            &args.raw_parameters,
        )?;
        let mut notices = given.notices;
        let mut chosen = chosen(args, &seen, path, !given.parameters.is_empty())?;
        if args.stale || args.changed {
            let states = states(args, &seen.listing, path, cwd, engine)?;
            chosen.retain(|&index| match states[index] {
                Some(Freshness::Fresh) | None => false,
                Some(Freshness::Stale) => args.stale,
                Some(_) => true,
            });
        }
        if !given.parameters.is_empty() {
            let (edit, told) = injection(&seen.listing, &given.parameters)?;
            notices.extend(told);
            edits.push(edit);
            // What was said about cells was said about the notebook without this one.
            let at = place(&cells(&seen.listing)).place;
            let (index, new) = match at {
                Place::Replace(index) => (index, false),
                Place::After(index) => (index + 1, true),
                Place::Top => (0, true),
            };
            for other in chosen.iter_mut().filter(|other| new && **other >= index) {
                *other += 1;
            }
            chosen.push(index);
            chosen.sort_unstable();
            chosen.dedup();
            seen = look(path, &edits).map_err(Failure::of_look)?;
        }
        let Seen {
            revision, listing, ..
        } = seen;
        let runs = |index: &usize| {
            let empty = listing.source(*index).trim().is_empty();
            !empty && !listing.has_tag(*index, SKIPPED)
        };
        let cells = chosen
            .into_iter()
            .filter(runs)
            .map(|index| Planned::of(&listing, index))
            .collect();
        Ok(Self {
            revision: args.rev.clone().unwrap_or(revision),
            cells,
            listing,
            edits,
            notices,
        })
    }

    /// What it means if a cell fails.
    pub(super) fn failing(&self, index: usize, keep_going: bool) -> Failing {
        if self.listing.has_tag(index, MAY_RAISE) {
            Failing::Expected
        } else if keep_going {
            Failing::Counts
        } else {
            Failing::Ends
        }
    }
}

/// What is known of the cells in the session that is named. Without one every kernel is another.
fn states(
    args: &RunArgs,
    listing: &Listing,
    path: &Path,
    cwd: &Path,
    engine: &Engine,
) -> Result<Vec<Option<Freshness>>, Failure> {
    let Some(session) = &args.session else {
        let flag = if args.stale { "--stale" } else { "--changed" };
        let failure = Failure::new(Kind::BadArguments, format!("{flag} needs a session"));
        return Err(failure.hint(
            "a kernel that ends with the command has run nothing before; keep one with --session NAME",
        ));
    };
    let cwd = canonical(cwd.to_owned());
    if !args.restart
        && let Some(known) = freshness::known(&engine.kernels, path, Some((session, &cwd)))?
    {
        return Ok(known.states(listing));
    }
    Ok(Ledger::default().states(listing, None))
}

/// The cells that are meant.
fn chosen(
    args: &RunArgs,
    seen: &Seen,
    path: &Path,
    with_parameters: bool,
) -> Result<Vec<usize>, Failure> {
    let edited = || seen.edited.iter();
    let mut choice = Choice {
        cells: args.cells.clone(),
        from: args.from.clone(),
        to: args.to.clone(),
        above: args.above.clone(),
        below: args.below.clone(),
        tags: args.tags.clone(),
    };
    if args.and_below && edited().next().is_none() {
        let message = "--and-below goes with an edit";
        let failure = Failure::new(Kind::BadArguments, message);
        return Err(failure.hint("--from CELL runs a cell and those behind it"));
    }
    // Whoever edits and says no more wants to see what became of it.
    if choice.is_all() && edited().next().is_some() && !with_parameters {
        if args.and_below {
            choice.from = edited().next().map(usize::to_string);
        } else {
            let code = |index: &&usize| seen.listing.kind(**index) == CellKind::Code;
            return Ok(edited().filter(code).copied().collect());
        }
    }
    choice
        .resolve(&seen.listing)
        .map_err(|error| Failure::of_choice(error, path))
}

/// The edit that puts the values into the notebook.
fn injection(listing: &Listing, given: &[Parameter]) -> Result<(Edit, Option<Told>), Failure> {
    let language = listing.language().unwrap_or("python");
    let source = cellwright_run::parameters::source(language, given).map_err(|error| {
        let failure = Failure::new(Kind::BadArguments, capitalised(&error.to_string()));
        failure.hint("nothing was written, nothing ran")
    })?;
    let Injection { place, defaults } = place(&cells(listing));
    let told = defaults.and_then(|index| {
        let unknown = unknown(given, &listing.source(index));
        (!unknown.is_empty()).then(|| {
            Told::new(
                "unknown_parameter",
                format!(
                    "the cell of parameters (cell {index}) does not set {}",
                    unknown.join(", ")
                ),
            )
        })
    });
    let insert = Edit {
        action: "insert".to_owned(),
        source: Some(source.clone()),
        tags: vec![INJECTED_TAG.to_owned()],
        ..Edit::default()
    };
    let edit = match place {
        Place::Replace(index) => Edit::source(index.to_string(), source),
        Place::After(index) => Edit {
            after: Some(index.to_string()),
            ..insert
        },
        Place::Top => Edit {
            to: Some(0),
            ..insert
        },
    };
    Ok((edit, told))
}

fn cells(listing: &Listing) -> Vec<Cell> {
    let cell = |(index, cell): (usize, &cellwright_run::Listed)| Cell {
        index,
        is_code: cell.kind == CellKind::Code,
        tags: cell.tags.clone(),
    };
    listing.cells().iter().enumerate().map(cell).collect()
}

fn edits(args: &RunArgs) -> Result<Vec<Edit>, Failure> {
    if !args.given_edits.is_empty() {
        if args.edit_cell.is_some() {
            let failure = Failure::new(
                Kind::BadArguments,
                "--edits and --edit-cell do not go together",
            );
            return Err(failure.hint("nothing was written, nothing ran"));
        }
        return Ok(args.given_edits.clone());
    }
    if let Some(cell) = &args.edit_cell {
        let source = match (&args.source, &args.source_file) {
            (Some(text), _) => text.clone(),
            (None, Some(file)) => input::text_from(file)?,
            (None, None) => {
                let failure = Failure::new(Kind::BadArguments, "--edit-cell needs a new source");
                return Err(failure.hint("give it with --source TEXT, or --source-file FILE"));
            }
        };
        return Ok(vec![Edit::source(cell, source)]);
    }
    let Some(file) = &args.edits else {
        return Ok(Vec::new());
    };
    let text = input::text_from(file)?;
    serde_json::from_str(&text).map_err(|error| {
        let mut failure = Failure::new(Kind::BadArguments, format!("The edits in {file} make no sense"));
        failure.causes.push(error.to_string());
        failure.hint(
            "expected a list such as [{\"action\": \"edit\", \"cell\": \"3\", \"source\": \"x = 1\"}]",
        )
    })
}
