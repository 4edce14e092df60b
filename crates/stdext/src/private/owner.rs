//! The owners of files that can be relied upon: this user and the system.

use std::fs;
use std::sync::OnceLock;

/// The user id that files of users without an id in this namespace have.
const OVERFLOW_USER_FILE: &str = "/proc/sys/kernel/overflowuid";

/// The user ids of this process's namespace, with their ids outside.
const USER_MAP_FILE: &str = "/proc/self/uid_map";

/// The user with whose permissions this process accesses files.
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether a user can be relied upon not to replace files: this user and root.
pub(super) fn is_trusted(user: u32) -> bool {
    user == effective_user() || user == 0 || overflow_user() == Some(user)
}

/// The owner of the system's directories in a user namespace in which root has no id, as in most sandboxes. There it cannot
/// be distinguished from other users without an id, so this applies only to directories above those of this user.
fn overflow_user() -> Option<u32> {
    static USER: OnceLock<Option<u32>> = OnceLock::new();
    *USER.get_or_init(|| {
        let map = fs::read_to_string(USER_MAP_FILE).ok()?;
        let user = fs::read_to_string(OVERFLOW_USER_FILE).ok()?;
        (!maps_every_user(&map)).then(|| user.trim().parse().ok())?
    })
}

/// Whether the map of a namespace contains all user ids: then this is no namespace with unknown owners.
fn maps_every_user(map: &str) -> bool {
    map.lines().any(|line| {
        let numbers: Vec<&str> = line.split_ascii_whitespace().collect();
        matches!(numbers[..], ["0", "0", "4294967295"])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflow_user_exists_only_in_a_partial_namespace() {
        assert!(maps_every_user("         0          0 4294967295\n"));
        assert!(!maps_every_user("      1000       1000          1\n"));
        assert!(!maps_every_user("0 100000 65536\n"));
        assert!(!maps_every_user(""));
    }
}
