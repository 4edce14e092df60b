//! Power off at any moment: only the old or the new file is ever seen.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::context::Context;

const KILLS: usize = 500;

/// Large enough that a save takes a while: a megabyte of output.
fn notebook(source: &str) -> String {
    format!(
        "{{\"cells\":[{{\"cell_type\":\"code\",\"execution_count\":1,\"metadata\":{{}},\"outputs\":\
         [{{\"output_type\":\"stream\",\"name\":\"stdout\",\"text\":\"{}\"}}],\
         \"source\":\"{source}\"}}],\"metadata\":{{}},\"nbformat\":4,\"nbformat_minor\":4}}\n",
        "x".repeat(1_000_000)
    )
}

#[test]
fn a_reader_sees_the_old_or_the_new_file_whenever_a_writer_is_killed() {
    let context = Context::new();
    let (old, new) = (notebook("old"), notebook("new"));
    let path = context.file("a.ipynb", &old);
    let stop = AtomicBool::new(false);
    let looks = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let seen = fs::read(&path).unwrap();
                assert!(
                    seen == old.as_bytes() || seen == new.as_bytes(),
                    "a file of {} bytes that is neither the old nor the new one",
                    seen.len()
                );
                looks.fetch_add(1, Ordering::Relaxed);
            }
        });
        let finished = kill_repeatedly(&context);
        stop.store(true, Ordering::Relaxed);
        // Some must have been killed before the end and some must have reached it.
        assert!(
            finished > 10 && finished < KILLS - 10,
            "{finished} of {KILLS} finished"
        );
    });
    assert!(looks.load(Ordering::Relaxed) > KILLS / 10);
    // Whatever a killed writer left behind, the next one cleans up.
    context.run(&["edit", "a.ipynb", "--old", "old", "--new", "new"]);
    context
        .run(&["edit", "a.ipynb", "--old", "new", "--new", "old"])
        .exits(0);
    let names: Vec<_> = fs::read_dir(context.folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["a.ipynb"]);
}

/// Starts writers that turn the file over and kills each after a while; the whiles are spread over
/// the time that one needs. Returns how many had finished.
fn kill_repeatedly(context: &Context) -> usize {
    let words = ["old", "new"];
    let mut finished = 0;
    let started = Instant::now();
    let one = context.run(&["edit", "a.ipynb", "--old", "old", "--new", "new"]);
    let whole = started.elapsed();
    assert_eq!(one.code, Some(0), "{}", one.stderr);
    for kill in 0..KILLS {
        let is_new = fs::read(context.path("a.ipynb"))
            .unwrap()
            .ends_with(&notebook("new").as_bytes()[1_000_000..]);
        let (from, to) = if is_new {
            (words[1], words[0])
        } else {
            (words[0], words[1])
        };
        let mut child = context
            .command(&["edit", "a.ipynb", "--old", from, "--new", to])
            .spawn()
            .unwrap();
        // Twice the range: the reader beside us slows the writers down.
        let moment = u32::try_from(kill * 7919 % KILLS).unwrap_or(0);
        let share = f64::from(moment) / 500.0;
        std::thread::sleep(whole.mul_f64(share * 2.0).min(Duration::from_millis(500)));
        child.kill().unwrap();
        finished += usize::from(child.wait().unwrap().success());
    }
    finished
}
