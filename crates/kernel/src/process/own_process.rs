//! What other processes of the same user can read about this process.

use std::ffi::OsStr;
use std::io;

/// Erases the values of environment variables in the memory that the system shows as `/proc/PID/environ`: those for which
/// `is_kept`, which gets name and value, returns false. The names stay, with empty values.
///
/// The system shows the block of the program's start, which no function of the C library changes. The block is written
/// through `/proc/self/mem`. Call it before other threads read the environment.
#[cfg(target_os = "linux")]
pub fn erase_environment_values(is_kept: &dyn Fn(&OsStr, &OsStr) -> bool) -> io::Result<()> {
    use std::fs::File;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::FileExt;

    let stat = std::fs::read("/proc/self/stat")?;
    let (start, end) = environment_block(&stat).ok_or(io::ErrorKind::InvalidData)?;
    let length = usize::try_from(end.saturating_sub(start)).map_err(io::Error::other)?;
    let memory = File::options()
        .read(true)
        .write(true)
        .open("/proc/self/mem")?;
    let mut block = vec![0; length];
    memory.read_exact_at(&mut block, start)?;
    let mut erased = Vec::new();
    let mut at = 0;
    for entry in block.split(|&byte| byte == 0) {
        if let Some(length) = entry.iter().position(|&byte| byte == b'=') {
            let (name, value) = (&entry[..length], &entry[length + 1..]);
            if !is_kept(OsStr::from_bytes(name), OsStr::from_bytes(value)) {
                erased.push(at + length + 1..at + entry.len());
            }
        }
        at += entry.len() + 1;
    }
    for value in erased {
        block[value].fill(0);
    }
    memory.write_all_at(&block, start)
}

/// Other systems have no such file.
#[cfg(not(target_os = "linux"))]
pub fn erase_environment_values(_: &dyn Fn(&OsStr, &OsStr) -> bool) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The first address of the environment block and the one after its end, from the content of `/proc/PID/stat`.
#[cfg(target_os = "linux")]
fn environment_block(stat: &[u8]) -> Option<(u64, u64)> {
    // The name of the program, in parentheses, may contain everything.
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let text = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    // The fields 50 and 51 of proc_pid_stat(5); the first one after the name is the third.
    let mut fields = text.split_ascii_whitespace().skip(50 - 3);
    let mut address = || fields.next()?.parse().ok();
    Some((address()?, address()?)).filter(|(start, end)| 0 < *start && start < end)
}

/// Keeps other processes of the same user from reading the memory of this process or attaching to it. Only processes with the
/// capability `CAP_SYS_PTRACE` can, such as those of root. There are no core dumps, either. Programs that this process starts
/// are not affected.
#[cfg(target_os = "linux")]
pub fn forbid_inspection() -> io::Result<()> {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Other systems protect processes in other ways.
#[cfg(not(target_os = "linux"))]
pub fn forbid_inspection() -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn environment_block_is_found_whatever_the_name_of_the_program() {
        use super::environment_block;

        let numbers: Vec<String> = (4..=52).map(|field| field.to_string()).collect();
        let stat = format!("7 (a) b (c) S {}\n", numbers.join(" "));
        assert_eq!(environment_block(stat.as_bytes()), Some((50, 51)));
        let own = std::fs::read("/proc/self/stat").unwrap();
        let (start, end) = environment_block(&own).unwrap();
        let size = std::fs::read("/proc/self/environ").unwrap().len();
        assert_eq!(end - start, size as u64);
        assert_eq!(environment_block(b"7 (a) S 1 2"), None);
    }
}
