//! [`Spares`]: kernels that are started before anybody needs them, so that a new session or a reset
//! has one at once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;

use super::launch::Launch;
use crate::kernel::Kernel;
use crate::stop::Stop;

/// For how many sorts of kernel a spare is kept.
const SORTS: usize = 2;

/// How long the start of a spare waits, so that it does not get into the way of whoever has just
/// taken the last one.
const PAUSE: Duration = Duration::from_millis(100);

/// A stock of kernels; clones share it.
#[derive(Clone)]
pub struct Spares {
    /// `None`: there are none, ever.
    stock: Option<Arc<Mutex<Stock>>>,
}

#[derive(Default)]
struct Stock {
    /// By sort, the one used last at the end.
    kernels: VecDeque<(String, Spare)>,
    starts: JoinSet<()>,
    closed: bool,
}

enum Spare {
    Starting,
    Ready(Box<dyn Kernel>),
}

impl Spares {
    /// A stock that keeps a spare for each sort of kernel that was used lately.
    pub fn new() -> Self {
        Self {
            stock: Some(Arc::default()),
        }
    }

    /// No spares.
    pub fn none() -> Self {
        Self { stock: None }
    }

    /// Starts a kernel of this sort if there is none yet.
    pub fn refill(&self, launch: &Arc<dyn Launch>) {
        let (Some(stock), Some(sort)) = (&self.stock, launch.spare()) else {
            return;
        };
        let mut guard = lock(stock);
        while guard.starts.try_join_next().is_some() {}
        if guard.closed || guard.kernels.iter().any(|(there, _)| *there == sort) {
            return;
        }
        let mut leaving = Vec::new();
        while guard.kernels.len() >= SORTS {
            leaving.extend(guard.kernels.pop_front());
        }
        guard.kernels.push_back((sort.clone(), Spare::Starting));
        let (launch, shared) = (Arc::clone(launch), Arc::clone(stock));
        guard.starts.spawn(async move {
            for (_, spare) in leaving {
                end(spare).await;
            }
            tokio::time::sleep(PAUSE).await;
            let started = launch.start_spare(Stop::never()).await;
            let unwanted = put(&shared, &sort, started.ok());
            if let Some(kernel) = unwanted {
                end(Spare::Ready(kernel)).await;
            }
        });
    }

    /// Takes a kernel that is ready, if there is one.
    fn take(&self, launch: &dyn Launch) -> Option<Box<dyn Kernel>> {
        let (stock, sort) = (self.stock.as_ref()?, launch.spare()?);
        let mut guard = lock(stock);
        let ready =
            |(there, spare): &(String, Spare)| *there == sort && matches!(spare, Spare::Ready(_));
        let index = guard.kernels.iter().position(ready)?;
        match guard.kernels.remove(index) {
            Some((_, Spare::Ready(kernel))) => Some(kernel),
            _ => None,
        }
    }

    /// A kernel that is ready as one of this launch's session, if there is one that will do.
    pub(super) async fn adopted(
        &self,
        launch: &dyn Launch,
        stop: &Stop,
    ) -> Option<Box<dyn Kernel>> {
        let kernel = self.take(launch)?;
        let mut kernel = launch.adopt(kernel, stop.clone()).await.ok()?;
        // It may have died while nobody looked, for which the session is not to blame.
        kernel.is_alive().then_some(kernel)
    }

    /// How many are ready.
    pub fn count(&self) -> usize {
        let Some(stock) = &self.stock else { return 0 };
        let ready = |entry: &&(String, Spare)| matches!(entry.1, Spare::Ready(_));
        lock(stock).kernels.iter().filter(ready).count()
    }

    /// Ends all of them.
    pub async fn clear(&self) {
        let Some(stock) = &self.stock else { return };
        let kernels = std::mem::take(&mut lock(stock).kernels);
        for (_, spare) in kernels {
            end(spare).await;
        }
    }

    /// Ends all of them, and keeps no more.
    pub async fn close(&self) {
        let Some(stock) = &self.stock else { return };
        let mut starts = {
            let mut guard = lock(stock);
            guard.closed = true;
            std::mem::take(&mut guard.starts)
        };
        self.clear().await;
        starts.shutdown().await;
    }
}

impl Default for Spares {
    fn default() -> Self {
        Self::new()
    }
}

/// Puts a kernel where it was announced; hands it back if nobody wants it any more.
fn put(
    stock: &Mutex<Stock>,
    sort: &str,
    kernel: Option<Box<dyn Kernel>>,
) -> Option<Box<dyn Kernel>> {
    let mut guard = lock(stock);
    let place = guard
        .kernels
        .iter()
        .position(|(there, spare)| there == sort && matches!(spare, Spare::Starting));
    match (place, kernel) {
        (Some(index), Some(kernel)) => {
            guard.kernels[index].1 = Spare::Ready(kernel);
            None
        }
        (Some(index), None) => {
            // It could not be started: whoever needs one will be told why.
            guard.kernels.remove(index);
            None
        }
        (None, kernel) => kernel,
    }
}

async fn end(spare: Spare) {
    if let Spare::Ready(kernel) = spare {
        let patience = Stop::never().with_timeout(Duration::from_secs(1));
        kernel.shutdown(patience).await;
    }
}

fn lock(stock: &Mutex<Stock>) -> std::sync::MutexGuard<'_, Stock> {
    stock.lock().unwrap_or_else(PoisonError::into_inner)
}
