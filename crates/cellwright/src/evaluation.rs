//! Code that somebody wants run: what is asked ([`Wish`]), what is seen of it while it runs
//! ([`viewer`]), and what came of it ([`EvalAnswer`]). Where it runs is somebody else's business: on a
//! kernel of its own ([`alone`]) or on a session of the host ([`kept`]).

pub(crate) mod alone;
pub(crate) mod events;
pub(crate) mod kept;
mod mark;
mod notebook;
pub(crate) mod progress;
mod recording;
mod report;
mod stage;
mod verdict;
pub(crate) mod viewer;
mod wish;

pub(crate) use mark::Mark;
pub(crate) use notebook::{Put, settled};
pub(crate) use report::{EvalAnswer, Status};
pub(crate) use stage::{AtEnd, Evaluation};
pub(crate) use verdict::Verdict;
pub(crate) use wish::{CellWish, Failing, Shown, Wish};
