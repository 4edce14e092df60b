//! Runs one program and tells how long it took and how much memory it had at most.
//!
//!     spawn null|pipe PROGRAM ARGUMENT...
//!
//! prints "NANOSECONDS KILOBYTES EXIT-CODE". The program's own output goes to /dev/null, or
//! through a pipe that is read and thrown away.
//!
//! Why not do this in the driver itself: on Linux a process counts the memory of whoever started it
//! as its own until it calls `exec`, so under a driver of 100 MB every program would seem to need
//! 100 MB. This one needs about two. Also, starting a process from Python takes longer than most of
//! what is measured here.

use std::env;
use std::ffi::OsString;
use std::io::Read;
use std::process::{Command, Stdio, exit};
use std::time::Instant;

/// `struct rusage` of 64-bit Linux: two `timeval`s, then numbers of which the first is the memory.
#[repr(C)]
struct Usage {
    times: [i64; 4],
    most_memory: i64,
    rest: [i64; 13],
}

unsafe extern "C" {
    fn wait4(pid: i32, status: *mut i32, options: i32, usage: *mut Usage) -> i32;
}

fn main() {
    let mut arguments = env::args_os().skip(1);
    let (Some(output), Some(program)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: spawn null|pipe PROGRAM ARGUMENT...");
        exit(2);
    };
    let arguments: Vec<OsString> = arguments.collect();
    let piped = output == "pipe";
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(if piped { Stdio::piped() } else { Stdio::null() })
        .stderr(Stdio::null());
    let mut buffer = vec![0; 64 * 1024];

    let started = Instant::now();
    let mut child = command.spawn().expect("the program starts");
    if let Some(mut pipe) = child.stdout.take() {
        while pipe.read(&mut buffer).expect("the pipe can be read") > 0 {}
    }
    let mut status = 0;
    let mut usage = Usage {
        times: [0; 4],
        most_memory: 0,
        rest: [0; 13],
    };
    // SAFETY: both pointers are to live values of the types that wait4 writes.
    let waited = unsafe { wait4(child.id() as i32, &mut status, 0, &mut usage) };
    let elapsed = started.elapsed().as_nanos();

    assert!(waited > 0, "wait4 failed");
    // The exit code, or 128 and the signal, as shells have it.
    let code = if status & 0x7f == 0 {
        (status >> 8) & 0xff
    } else {
        128 + (status & 0x7f)
    };
    println!("{elapsed} {} {code}", usage.most_memory);
}
