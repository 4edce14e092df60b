//! Attribution of text to cells that run in quick succession.

use crate::support::{python, run_code, start_runner};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_goes_to_the_cell_that_printed_it() {
    run_cells(4000).await;
}

#[tokio::test]
async fn text_goes_to_its_cell_on_one_thread_of_a_busy_machine() {
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
    run_cells(1500).await;
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    for busy in busy {
        busy.join().unwrap();
    }
}

async fn run_cells(count: usize) {
    use cellwright_kernel::Kernel;

    let (mut kernel, _folder) = start_runner(&python()).await;
    for number in 0..count {
        let (sink, outcome) = run_code(&mut kernel, &format!("print({number})")).await;
        outcome.unwrap();
        assert_eq!(sink.summary(), format!("out:\"{number}\\n\""));
    }
    assert_eq!(kernel.take_late_text(), []);
}
