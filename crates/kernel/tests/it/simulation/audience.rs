//! Who listens to a job, and is not content with everything.

use cellwright_kernel::session::{Audience, CellEnd, Notice};
use cellwright_kernel::{Description, Ending, Farewell, KernelError, LateText, Outcome};
use cellwright_output::{Event, Sink};

use super::world::World;

/// Listens to one job.
pub(super) struct Listener {
    pub(super) job: usize,
    pub(super) world: World,
    pub(super) heard: Heard,
    pub(super) done: bool,
}

/// Counts what a cell says.
#[derive(Default)]
pub(super) struct Heard {
    bytes: usize,
}

impl Sink for Heard {
    fn push(&mut self, event: Event<'_>) {
        if let Event::Text { bytes, .. } = event {
            self.bytes += bytes.len();
        }
    }
}

impl Audience for Listener {
    fn kernel(&mut self, description: &Description, generation: u32) {
        let kernel = description.name.parse().unwrap();
        self.world
            .with(|state| state.introduced(self.job, kernel, generation));
    }

    fn begin(&mut self, cell: usize) -> &mut dyn Sink {
        self.world.with(|state| state.began(self.job, cell));
        &mut self.heard
    }

    fn end(&mut self, cell: usize, end: CellEnd) {
        let well = matches!(
            &end.result,
            Ok(Outcome {
                ending: Ending::Completed | Ending::Exited { code: 0 },
                ..
            })
        );
        let words = match &end.result {
            Ok(outcome) => format!("{:?}", outcome.ending),
            Err(KernelError::Exhausted { .. }) => "exhausted".to_owned(),
            Err(error) => format!("{error:?}"),
        };
        self.world
            .with(|state| state.ended(self.job, cell, &end.result, well, &words));
    }

    fn late(&mut self, cell: usize, text: &LateText) {
        let said = String::from_utf8_lossy(&text.bytes).into_owned();
        self.world.with(|state| state.late(self.job, cell, &said));
    }

    fn tell(&mut self, notice: Notice) {
        self.world.with(|state| state.told(self.job, &notice));
    }

    fn farewell(&mut self, _farewell: &Farewell) {}

    fn done(mut self: Box<Self>) {
        self.done = true;
        let bytes = self.heard.bytes;
        self.world.with(|state| state.done(self.job, bytes));
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if !self.done {
            let job = self.job;
            self.world
                .with(|state| state.wrong(&format!("job {job} was dropped without a word")));
        }
    }
}
