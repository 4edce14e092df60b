//! A thread that shows what code says. Code that runs, and its time limit, do not wait for a reader
//! that does not read.

use std::thread::{Scope, ScopedJoinHandle};

use cellwright_kernel::{StopReason, Stopper};
use cellwright_output::{Bytes, Limits};

use crate::feed::{Chunk, Feed};
use crate::live::{Extent, Face, Trouble};
use crate::screen::Screen;

/// Shows everything that a feed brings, until its end; gives why it did not arrive, if so. Pulls the
/// stopper when nobody is left who wants to know.
pub(crate) fn spawn<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    feed: Feed,
    screen: &'env Screen,
    extent: Extent,
    limits: Limits,
    stopper: Stopper,
) -> ScopedJoinHandle<'scope, Option<Trouble>> {
    scope.spawn(move || {
        let mut face = Face::new(screen, extent, &limits);
        let mut trouble = None;
        while let Some(chunk) = feed.wait() {
            match chunk {
                Chunk::Cell => {
                    face.finish();
                    trouble = trouble.or(face.trouble().cloned());
                    face = Face::new(screen, extent, &limits);
                }
                Chunk::Text(stream, bytes) => face.text(stream, &bytes),
                Chunk::Piece(stream, text) => face.piece(stream, &text),
                Chunk::Lost(bytes) => {
                    let bytes = Bytes(bytes);
                    face.piece(
                        cellwright_output::Stream::Stderr,
                        &format!(
                            "[… {bytes} were not shown: they came faster than they were read …]"
                        ),
                    );
                }
            }
            if face.trouble() == Some(&Trouble::Closed) {
                stopper.stop(StopReason::Cancelled);
            }
        }
        face.finish();
        trouble.or(face.trouble().cloned())
    })
}
