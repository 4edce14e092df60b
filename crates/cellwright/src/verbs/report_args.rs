//! Arguments for the JSON of a report.

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_execution::ReportDetail;
use clap::Args;

use crate::console::Console;

/// How much of a report JSON contains.
#[derive(Debug, Default, Args)]
pub(crate) struct ReportArgs {
    /// Leave out of the JSON what `text` contains already: `outputs` with all their data, and the lines of tracebacks
    #[arg(long)]
    no_outputs: bool,
}

impl ReportArgs {
    /// How much of a report JSON contains. `events`: whether events are printed.
    pub(crate) fn detail(&self, console: &Console, events: bool) -> Result<ReportDetail, Failure> {
        if !self.no_outputs {
            return Ok(ReportDetail::Full);
        }
        if console.json || events {
            return Ok(ReportDetail::NoOutputs);
        }
        let message = "`--no-outputs` needs `--json` or `--events`";
        Err(Failure::new(Kind::BadArguments, message))
    }
}

/// Rejects `--json` together with `--events`.
pub(crate) fn check_events(events: bool, console: &Console) -> Result<(), Failure> {
    if events && console.json {
        let message = "`--events` and `--json` cannot be combined";
        return Err(Failure::new(Kind::BadArguments, message));
    }
    Ok(())
}
