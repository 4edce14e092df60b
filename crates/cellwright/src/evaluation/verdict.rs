//! What a person is told at the end of an evaluation, and the exit code.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::report::Status;
use crate::failure::{Failure, Kind};
use crate::live::{Extent, Trouble};
use crate::notice::Told;
use crate::screen::Screen;

/// What a person is told at the end, and the exit code.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Verdict {
    pub(crate) status: Status,
    pub(super) notices: Vec<Told>,
    pub(super) trouble: Option<Failure>,
    /// How long it took until a kernel was ready.
    #[serde(default)]
    pub(crate) ready: Option<Duration>,
    /// How it went with a notebook.
    #[serde(default)]
    pub(super) summary: Option<String>,
}

impl Verdict {
    /// The exit code: that of the code, and if that is fine, of what became of it.
    pub(crate) fn exit_code(&self) -> u8 {
        match &self.trouble {
            Some(trouble) if self.status == Status::Ok => trouble.exit_code(),
            _ => self.status.exit_code(),
        }
    }

    /// What went wrong, if anything did.
    pub(crate) fn trouble(&self) -> Option<&Failure> {
        self.trouble.as_ref()
    }

    /// Whether there is a notice of that kind.
    pub(crate) fn has_notice(&self, kind: &str) -> bool {
        self.notices.iter().any(|notice| notice.kind == kind)
    }

    /// How it went with a notebook.
    pub(crate) fn summary(&self) -> Option<&str> {
        self.summary.as_deref()
    }

    /// Why there was no kernel for it, if there was none.
    pub(crate) fn refusal(&self) -> Option<Failure> {
        let refused = self.status == Status::Refused;
        self.trouble.clone().filter(|_| refused)
    }

    /// Says what is to be said at the end; gives the exit code. `unseen` is why what the code said did
    /// not arrive.
    pub(crate) fn show(
        &self,
        screen: &Screen,
        extent: Extent,
        unseen: Option<&Trouble>,
    ) -> Result<u8, Failure> {
        match unseen {
            // Whoever has read enough stops the code, which is no failure of it.
            Some(Trouble::Closed) if self.status == Status::Cancelled => return Ok(0),
            Some(Trouble::Unwritable(why)) if self.status == Status::Ok => {
                let message = "The code ran to its end, but its output could not be written";
                let mut failure = Failure::new(Kind::BadFile, message);
                failure.causes.push(why.clone());
                return Err(failure.hint("do not repeat it without need: it has done its work"));
            }
            _ => {}
        }
        if let Some(summary) = &self.summary {
            screen.remark(summary);
        }
        // What stopped a cell is said once, as an error; what is missing in the outputs for a notebook
        // matters to those who get them.
        let said = [
            "interrupted",
            "kernel_killed",
            "kernel_died",
            "streams_shortened",
            "outputs_untold",
        ];
        let notices: Vec<Told> = self
            .notices
            .iter()
            .filter(|notice| !said.contains(&notice.kind.as_ref()))
            // Everything was shown.
            .filter(|notice| extent != Extent::Full || notice.kind != "output_cut")
            .cloned()
            .collect();
        screen.notices(&notices);
        if let Some(trouble) = &self.trouble {
            screen.report(trouble);
        }
        Ok(self.exit_code())
    }
}
