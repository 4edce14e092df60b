//! Whose text it is, cell after cell, as fast as they go.

use crate::support::{python, run, runner};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_belongs_to_the_cell_that_printed_it() {
    many_cells(4000).await;
}

#[tokio::test]
async fn the_same_on_one_thread_with_the_machine_busy() {
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let busy: Vec<_> = (0..3)
        .map(|_| {
            let stop = std::sync::Arc::clone(&stop);
            std::thread::spawn(move || {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        })
        .collect();
    many_cells(1500).await;
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    for busy in busy {
        busy.join().unwrap();
    }
}

async fn many_cells(count: usize) {
    use cellwright_kernel::Kernel;

    let (mut kernel, _folder) = runner(&python()).await;
    for number in 0..count {
        let (heard, outcome) = run(&mut kernel, &format!("print({number})")).await;
        outcome.unwrap();
        assert_eq!(heard.line(), format!("out:\"{number}\\n\""));
    }
    assert_eq!(kernel.take_late(), []);
}
