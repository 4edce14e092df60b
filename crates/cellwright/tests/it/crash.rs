//! A writer that is killed at any time leaves the old or the new file.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::context::Context;

const KILLS: usize = 500;

/// A notebook with a megabyte of output, so that a save takes long enough to be killed.
fn notebook(source: &str) -> String {
    format!(
        "{{\"cells\":[{{\"cell_type\":\"code\",\"execution_count\":1,\"metadata\":{{}},\"outputs\":\
         [{{\"output_type\":\"stream\",\"name\":\"stdout\",\"text\":\"{}\"}}],\
         \"source\":\"{source}\"}}],\"metadata\":{{}},\"nbformat\":4,\"nbformat_minor\":4}}\n",
        "x".repeat(1_000_000)
    )
}

#[test]
fn a_reader_sees_the_old_or_the_new_file_if_a_writer_is_killed() {
    let context = Context::new();
    let (old, new) = (notebook("old"), notebook("new"));
    let path = context.file("a.ipynb", &old);
    let stop = AtomicBool::new(false);
    let reads = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let content = fs::read(&path).unwrap();
                assert!(
                    content == old.as_bytes() || content == new.as_bytes(),
                    "a file of {} bytes is neither the old nor the new one",
                    content.len()
                );
                reads.fetch_add(1, Ordering::Relaxed);
            }
        });
        let finished = kill_repeatedly(&context);
        stop.store(true, Ordering::Relaxed);
        // The test needs writers that were killed and writers that finished.
        assert!(
            finished > 10 && finished < KILLS - 10,
            "{finished} of {KILLS} finished"
        );
    });
    assert!(reads.load(Ordering::Relaxed) > KILLS / 10);
    // The next writer removes the temporary files of killed writers.
    context.run(&["edit", "a.ipynb", "--old", "old", "--new", "new"]);
    context
        .run(&["edit", "a.ipynb", "--old", "new", "--new", "old"])
        .exits(0);
    let names: Vec<_> = fs::read_dir(context.dir())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["a.ipynb"]);
}

/// Starts writers that replace the content by the other one, and kills each after a delay. The delays are spread
/// over the duration of a write. Returns the number of writers that finished.
fn kill_repeatedly(context: &Context) -> usize {
    let sources = ["old", "new"];
    let mut finished = 0;
    let started = Instant::now();
    let first = context.run(&["edit", "a.ipynb", "--old", "old", "--new", "new"]);
    let write_duration = started.elapsed();
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    for kill in 0..KILLS {
        let is_new = fs::read(context.path("a.ipynb"))
            .unwrap()
            .ends_with(&notebook("new").as_bytes()[1_000_000..]);
        let (from, to) = if is_new {
            (sources[1], sources[0])
        } else {
            (sources[0], sources[1])
        };
        let mut child = context
            .command(&["edit", "a.ipynb", "--old", from, "--new", to])
            .spawn()
            .unwrap();
        // Twice the range, because the reading thread slows the writers down.
        let moment = u32::try_from(kill * 7919 % KILLS).unwrap_or(0);
        let share = f64::from(moment) / 500.0;
        std::thread::sleep(
            write_duration
                .mul_f64(share * 2.0)
                .min(Duration::from_millis(500)),
        );
        child.kill().unwrap();
        finished += usize::from(child.wait().unwrap().success());
    }
    finished
}
