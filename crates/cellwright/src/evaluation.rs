//! Code that somebody wants run: what is asked ([`Wish`]), what is seen of it while it runs
//! ([`viewer`]), and what came of it ([`EvalAnswer`]). Where it runs is somebody else's business: on a
//! kernel of its own ([`alone`]) or on a session of the host ([`kept`]).

pub(crate) mod alone;
pub(crate) mod kept;
mod report;
mod stage;
pub(crate) mod viewer;
mod wish;

pub(crate) use report::{EvalAnswer, Status, Verdict};
pub(crate) use stage::{AtEnd, Evaluation};
pub(crate) use wish::{CellWish, Wish};
