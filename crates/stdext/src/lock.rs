//! [`LockExt`]: locks that ignore poisoning.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose data is consistent at every point where a thread can panic.
pub trait LockExt<T: ?Sized> {
    /// Locks the mutex, also if a thread panicked while it held the lock.
    fn lock_ignoring_poison(&self) -> MutexGuard<'_, T>;
}

impl<T: ?Sized> LockExt<T> for Mutex<T> {
    fn lock_ignoring_poison(&self) -> MutexGuard<'_, T> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisoned_mutex_can_be_locked() {
        let mutex = Mutex::new(1);
        let panicked = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let mut value = mutex.lock_ignoring_poison();
                *value = 2;
                panic!("expected");
            });
            thread.join().is_err()
        });
        assert!(panicked && mutex.is_poisoned());
        assert_eq!(*mutex.lock_ignoring_poison(), 2);
    }
}
