//! The tokio runtime of a command, and the file descriptors that it needs.

use cellwright_diagnostics::failure::Failure;
use cellwright_kernel::KernelError;

/// How many file descriptors an execution needs.
const RUN_DESCRIPTOR_RESERVE: usize = 14;

/// Creates a runtime of one thread.
pub fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    check_descriptors(RUN_DESCRIPTOR_RESERVE)?;
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}

/// Runs a future to its end on a new thread: the caller may be a thread of another runtime.
pub fn block_on<T: Send>(future: impl Future<Output = T> + Send) -> Result<T, Failure> {
    let run = || Ok(runtime()?.block_on(future));
    std::thread::scope(|scope| match scope.spawn(run).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Returns an error unless this process can open `count` more descriptors. Some libraries panic or stop working without
/// descriptors, so callers check first.
pub fn check_descriptors(count: usize) -> Result<(), KernelError> {
    let mut open = Vec::new();
    for _ in 0..count {
        match std::fs::File::open("/dev/null") {
            Ok(file) => open.push(file),
            Err(source) => return Err(KernelError::from_exhaustion(source)),
        }
    }
    Ok(())
}
