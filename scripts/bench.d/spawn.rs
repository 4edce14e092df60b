//! Runs one program and prints its time and its peak memory.
//!
//!     spawn null|pipe|FILE all|own PROGRAM ARGUMENT...
//!
//! prints "NANOSECONDS KILOBYTES EXIT-CODE FIRST END CPU". The program's own output goes to /dev/null,
//! through a pipe that is read and discarded, or to a file. FIRST is the number of nanoseconds until
//! the first byte arrived through the pipe, 0 without output; END is the monotonic clock at the end
//! of the program, in nanoseconds. CPU is user and system time of the program alone, without
//! its child processes, in nanoseconds, with the resolution of the kernel (1/100 s).
//!
//! If SPAWN_RESULT names a file, FIRST is the time until that file contains the output of a cell (the
//! text `"output_type"`), to two milliseconds. SPAWN_SECONDS is a time limit after which the program
//! is killed.
//!
//! Memory: `all` is what the kernel counts (`ru_maxrss`): the largest of the program and of all
//! child processes that it waited for, each alone. `own` is the program without those: its
//! high-water mark (`VmHWM`), read every two milliseconds.
//!
//! The driver does not do this itself: on Linux a process counts the memory of its parent until it
//! calls `exec`, so under a driver of 100 MB every program would seem to need 100 MB. This program
//! needs about two. Also, starting a process from Python takes longer than most measured programs.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, exit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// `struct rusage` of 64-bit Linux: two `timeval`s, then numbers of which the first is the memory.
#[repr(C)]
struct Usage {
    times: [i64; 4],
    most_memory: i64,
    rest: [i64; 13],
}

unsafe extern "C" {
    fn wait4(pid: i32, status: *mut i32, options: i32, usage: *mut Usage) -> i32;
    fn waitid(kind: i32, id: u32, info: *mut [u64; 16], options: i32) -> i32;
    fn kill(pid: i32, signal: i32) -> i32;
    fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
}

/// The clock that `Instant` and Python's `time.monotonic_ns` read.
const CLOCK_MONOTONIC: i32 = 1;

/// One process, once it has ended, without taking it away: its numbers can still be read.
const P_PID: i32 = 1;
const WEXITED_WNOWAIT: i32 = 0x0000_0004 | 0x0100_0000;

const SIGKILL: i32 = 9;

/// In what /proc counts processor time.
const NANOSECONDS_PER_TICK: u64 = 10_000_000;

fn main() {
    let mut arguments = env::args_os().skip(1);
    let (Some(output), Some(memory), Some(program)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        eprintln!("usage: spawn null|pipe|FILE all|own PROGRAM ARGUMENT...");
        exit(2);
    };
    let arguments: Vec<OsString> = arguments.collect();
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(if output == "pipe" {
            Stdio::piped()
        } else if output == "null" {
            Stdio::null()
        } else {
            File::create(output).expect("the file can be made").into()
        })
        .stderr(Stdio::null());
    let mut buffer = vec![0; 64 * 1024];
    let ended = AtomicBool::new(false);

    let started = Instant::now();
    let mut child = command.spawn().expect("the program starts");
    let pid = child.id();
    let result = env::var_os("SPAWN_RESULT").map(PathBuf::from);
    let most = env::var("SPAWN_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let most = most.map(Duration::from_secs);
    let watched = Watched {
        pid,
        started,
        result: result.as_deref(),
        most,
    };
    let (elapsed, mut first, end, status, mut kilobytes, own, cpu) = thread::scope(|scope| {
        let watch = (memory == "own").then(|| scope.spawn(|| watch(&watched, &ended)));
        let mut first = 0;
        if let Some(mut pipe) = child.stdout.take() {
            while pipe.read(&mut buffer).expect("the pipe can be read") > 0 {
                if first == 0 {
                    first = started.elapsed().as_nanos();
                }
            }
        }
        // SAFETY: the pointer is to more bytes than `siginfo_t` has.
        unsafe { waitid(P_PID, pid, &mut [0; 16], WEXITED_WNOWAIT) };
        let cpu = processor_time(pid);
        let mut status = 0;
        let mut usage = Usage {
            times: [0; 4],
            most_memory: 0,
            rest: [0; 13],
        };
        // SAFETY: both pointers are to live values of the types that wait4 writes.
        let waited = unsafe { wait4(pid as i32, &mut status, 0, &mut usage) };
        let elapsed = started.elapsed().as_nanos();
        let end = now();
        assert!(waited > 0, "wait4 failed");
        ended.store(true, Ordering::Relaxed);
        let own = watch.map(|watch| watch.join().expect("the watch ends"));
        (elapsed, first, end, status, usage.most_memory, own, cpu)
    });
    if let Some((own, seen)) = own {
        kilobytes = own;
        if result.is_some() {
            first = seen;
        }
    }
    // The exit code, or 128 and the signal, as shells have it.
    let code = if status & 0x7f == 0 {
        (status >> 8) & 0xff
    } else {
        128 + (status & 0x7f)
    };
    println!("{elapsed} {kilobytes} {code} {first} {end} {cpu}");
}

/// What is looked at while the program runs.
struct Watched<'a> {
    pid: u32,
    started: Instant,
    result: Option<&'a Path>,
    most: Option<Duration>,
}

/// The high-water mark of a process, in kilobytes, as it was when last seen, and when the result came.
fn watch(watched: &Watched<'_>, ended: &AtomicBool) -> (i64, u128) {
    let path = format!("/proc/{}/status", watched.pid);
    let (mut most, mut seen) = (0, 0);
    loop {
        let is_last = ended.load(Ordering::Relaxed);
        let status = fs::read_to_string(&path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        most = number.unwrap_or(0).max(most);
        if seen == 0 && watched.result.is_some_and(has_output) {
            seen = watched.started.elapsed().as_nanos();
        }
        if watched
            .most
            .is_some_and(|most| watched.started.elapsed() > most)
        {
            // SAFETY: it takes two numbers. The process is ours and not waited for, so it is still it.
            unsafe { kill(watched.pid as i32, SIGKILL) };
        }
        if is_last {
            return (most, seen);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn has_output(path: &Path) -> bool {
    let text = fs::read(path).unwrap_or_default();
    text.windows(13).any(|window| window == b"\"output_type\"")
}

/// User and system time of a process that has ended but is still there.
fn processor_time(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program, in brackets, may contain anything.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum::<u64>()
        * NANOSECONDS_PER_TICK
}

fn now() -> i64 {
    let mut time = [0; 2];
    // SAFETY: on 64-bit Linux `timespec` is two such numbers.
    let failed = unsafe { clock_gettime(CLOCK_MONOTONIC, &mut time) };
    assert!(failed == 0, "there is no monotonic clock");
    time[0] * 1_000_000_000 + time[1]
}
