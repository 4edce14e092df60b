//! Kernels and launches that tell the world what happens to them.

use std::sync::Arc;
use std::time::Duration;

use cellwright_kernel::backend::scripted::{Killer, Scripted};
use cellwright_kernel::process::Exit;
use cellwright_kernel::session::Launch;
use cellwright_kernel::{
    BoxFuture, Description, Ending, Farewell, Kernel, KernelError, LateText, Outcome, Question,
    Request, State, Stop,
};
use cellwright_output::Sink;
use serde_json::Value;

use super::world::{self, World};

/// How long a start may take before its launch gives up.
pub(super) const START_LIMIT: Duration = Duration::from_mins(1);

/// How a start goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start {
    Well,
    Fails,
    Exhausted,
    Hangs,
}

/// A scripted kernel under observation.
struct Watched {
    number: u32,
    /// Taken by the shutdown.
    inner: Option<Box<Scripted>>,
    world: World,
}

impl Watched {
    fn new(world: &World) -> Self {
        let (number, lingers, answers) = world.with(|state| {
            let number = state.next_kernel();
            let lingers = state.dice.millis(&[0, 0, 0, 100, 700, 3_000]);
            let answers = state.dice.millis(&[0, 5, 400, 90_000]);
            (number, lingers, answers)
        });
        let play = {
            let world = world.clone();
            move |code: &str| world.with(|state| state.execute(number, code))
        };
        let (inner, _) = Scripted::playing(play);
        let inner = inner
            .named(number.to_string())
            .lingering(lingers)
            .answering(answers);
        world.with(|state| state.kernel_started(number, inner.killer()));
        Self {
            number,
            inner: Some(Box::new(inner)),
            world: world.clone(),
        }
    }

    fn inner(&mut self) -> &mut Scripted {
        self.inner.as_mut().unwrap()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.world.with(|state| state.kernel_gone(self.number));
    }
}

impl Kernel for Watched {
    fn description(&self) -> &Description {
        self.inner.as_ref().unwrap().description()
    }

    fn execute<'a>(
        &'a mut self,
        request: &'a Request,
        sink: &'a mut dyn Sink,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Outcome, KernelError>> {
        Box::pin(async move {
            let (number, world) = (self.number, self.world.clone());
            world.with(|state| state.occupy(number));
            let result = self.inner().execute(request, sink, stop).await;
            world.with(|state| {
                state.release(number);
                match &result {
                    Ok(Outcome {
                        ending:
                            Ending::Stopped {
                                reason,
                                state: State::Lost,
                            },
                        ..
                    }) => state.kernel_killed(number, *reason),
                    Ok(_) => state.cell_finished(number),
                    Err(KernelError::Died { .. }) => state.kernel_died(number, false),
                    Err(_) => {}
                }
            });
            result
        })
    }

    fn ask<'a>(
        &'a mut self,
        question: &'a Question,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Value, KernelError>> {
        Box::pin(async move {
            let (number, world) = (self.number, self.world.clone());
            world.with(|state| state.occupy(number));
            let answer = self.inner().ask(question, stop).await;
            world.with(|state| state.release(number));
            answer
        })
    }

    fn attend(&mut self) -> BoxFuture<'_, KernelError> {
        self.inner().attend()
    }

    fn take_late(&mut self) -> Vec<LateText> {
        self.inner().take_late()
    }

    fn requests(&self) -> u64 {
        self.inner.as_ref().unwrap().requests()
    }

    fn is_alive(&mut self) -> bool {
        self.inner().is_alive()
    }

    fn shutdown(mut self: Box<Self>, patience: Stop) -> BoxFuture<'static, Farewell> {
        self.world.with(|state| state.kernel_ending(self.number));
        let inner = self.inner.take().unwrap();
        Box::pin(async move {
            // Gone when this is, not before.
            let _watched = self;
            inner.shutdown(patience).await
        })
    }
}

/// How one session gets its kernels; the number says which session.
pub(super) struct Launcher {
    pub(super) number: u32,
    pub(super) sort: Option<String>,
    pub(super) world: World,
}

/// A start that is under way.
struct Underway {
    world: World,
    launch: u32,
    /// Whether it may be given up: it is for nobody, or over.
    free: bool,
}

impl Underway {
    fn new(world: &World, launch: u32, spare: bool) -> Self {
        world.with(|state| state.starts += 1);
        Self {
            world: world.clone(),
            launch,
            free: spare,
        }
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.world.with(|state| {
            state.starts -= 1;
            if !self.free {
                state.start_given_up(self.launch);
            }
        });
    }
}

impl Launcher {
    fn begin(
        &self,
        stop: Stop,
        spare: bool,
    ) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        let (world, number) = (self.world.clone(), self.number);
        let underway = Underway::new(&world, number, spare);
        let (delay, how) = world.with(|state| state.next_start(number, spare));
        Box::pin(async move {
            let mut underway = underway;
            let delay = if matches!(how, Start::Hangs) {
                START_LIMIT
            } else {
                delay
            };
            tokio::select! {
                biased;
                reason = stop.pulled() => return Err(KernelError::StoppedEarly { reason }),
                () = tokio::time::sleep(delay) => {}
            }
            underway.free = true;
            let stderr = String::new();
            match how {
                Start::Well => {}
                Start::Fails => {
                    let exit = Exit {
                        code: Some(1),
                        signal: None,
                    };
                    return Err(KernelError::FailedToStart { exit, stderr });
                }
                Start::Exhausted => {
                    // EMFILE.
                    let source = std::io::Error::from_raw_os_error(24);
                    return Err(KernelError::exhausted_by(source));
                }
                Start::Hangs => {
                    let after = START_LIMIT;
                    return Err(KernelError::NotReady { after, stderr });
                }
            }
            let kernel = Watched::new(&world);
            if !spare {
                world.with(|state| state.kernel_belongs(kernel.number, number));
            }
            Ok(Box::new(kernel) as Box<dyn Kernel>)
        })
    }
}

impl Launch for Launcher {
    fn start(&self, stop: Stop) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        self.begin(stop, false)
    }

    fn spare(&self) -> Option<String> {
        self.sort.clone()
    }

    fn start_spare(&self, stop: Stop) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        self.begin(stop, true)
    }

    fn adopt(
        &self,
        kernel: Box<dyn Kernel>,
        _stop: Stop,
    ) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        let (world, launch) = (self.world.clone(), self.number);
        let (delay, fails) = world.with(|state| {
            let delay = state.dice.millis(&[0, 0, 20, 2_000]);
            (delay, state.dice.chance(20))
        });
        Box::pin(async move {
            tokio::time::sleep(delay).await;
            if fails {
                let why = "it does not want to".to_owned();
                return Err(KernelError::NoAnswer { why });
            }
            let number = kernel.description().name.parse().unwrap();
            world.with(|state| state.kernel_belongs(number, launch));
            Ok(kernel)
        })
    }
}

pub(super) fn launcher(world: &World, sort: Option<String>) -> (Arc<dyn Launch>, u32) {
    let number = world.with(world::State::next_launch);
    let launch = Launcher {
        number,
        sort,
        world: world.clone(),
    };
    (Arc::new(launch), number)
}

/// Kills whatever kernel it is given to.
pub(super) fn kill(killer: &Killer) {
    killer.kill(Exit {
        code: None,
        signal: Some(11),
    });
}
