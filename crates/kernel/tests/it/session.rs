//! What sessions do, rule by rule: scripted kernels on a paused clock.

mod owners;
mod stage;
mod upkeep;

use std::time::Duration;

use cellwright_kernel::backend::scripted::Step;
use cellwright_kernel::session::Policy;
use cellwright_kernel::{KernelError, StopReason};
use cellwright_output::{Stream, Traceback};

use stage::{DEAD, Stage};

fn wait(seconds: u64) -> Vec<Step> {
    vec![Step::Wait(Duration::from_secs(seconds))]
}

fn raise() -> Vec<Step> {
    let name = "ValueError".to_owned();
    vec![Step::Raise(Traceback {
        name,
        ..Traceback::default()
    })]
}

#[tokio::test(start_paused = true)]
async fn two_first_calls_at_once_start_one_kernel() {
    let stage = Stage::new(Policy::default());
    let first = stage.submit("a", &[vec![]]);
    let second = stage.submit("a", &[vec![]]);
    assert_eq!(first.done().await, ["kernel 1", "begin 0", "ok 0"]);
    assert_eq!(second.done().await, ["kernel 1", "begin 0", "ok 0"]);
    assert_eq!(stage.started(), 1);
}

#[tokio::test(start_paused = true)]
async fn calls_are_served_in_order_with_nobody_between_their_cells() {
    let stage = Stage::new(Policy::default());
    let first = stage.submit("a", &[wait(1), wait(1)]);
    let second = stage.submit("b", &[vec![]]);
    let third = stage.submit("a", &[vec![]]);
    for job in [first, second, third] {
        job.done().await;
    }
    assert_eq!(stage.ran(), ["0.0", "0.1", "1.0", "2.0"]);
}

#[tokio::test(start_paused = true)]
async fn the_first_cell_that_does_not_end_well_is_the_last() {
    let stage = Stage::new(Policy::default());
    let job = stage.submit("a", &[vec![], raise(), vec![]]);
    let heard = job.done().await;
    assert_eq!(heard[1..], ["begin 0", "ok 0", "begin 1", "raised 1"]);
    let job = stage.submit("a", &[vec![Step::Exit(0)], vec![Step::Exit(3)], vec![]]);
    let heard = job.done().await;
    assert_eq!(heard[1..], ["begin 0", "exit 0 0", "begin 1", "exit 1 3"]);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_leaves_the_queue_and_the_rest_goes_on() {
    let stage = Stage::new(Policy::default());
    let first = stage.submit("a", &[wait(10)]);
    let second = stage.submit("b", &[vec![]]);
    let third = stage.submit("c", &[vec![]]);
    stage.pass(1).await;
    second.stopper.stop(StopReason::Cancelled);
    // It is told who was in the way.
    assert_eq!(second.done().await, ["busy a job 0", "early 0 Cancelled"]);
    first.done().await;
    third.done().await;
    assert_eq!(stage.ran(), ["0.0", "2.0"]);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_the_first_cell_covers_the_wait_for_the_session() {
    let stage = Stage::new(Policy::default());
    let first = stage.submit("a", &[wait(100)]);
    let second = stage.submit_limited("b", &[vec![]], Duration::from_secs(7));
    let heard = second.done().await;
    assert_eq!(heard, ["busy a job 0", "early 0 TimedOut(7s)"]);
    first.stopper.stop(StopReason::Cancelled);
    first.done().await;
    // Whoever gets its turn has what is left.
    let first = stage.submit("a", &[wait(5)]);
    let before = tokio::time::Instant::now();
    let cells = [vec![Step::RunUntilStopped]];
    let second = stage.submit_limited("b", &cells, Duration::from_secs(7));
    assert_eq!(second.done().await[2], "stopped 0 TimedOut(7s) Kept");
    assert_eq!(before.elapsed().as_secs(), 7);
    first.done().await;
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_the_first_cell_covers_the_start() {
    let stage = Stage::new(Policy::default());
    stage.next_start(Duration::from_secs(9));
    let job = stage.submit_limited("a", &[vec![]], Duration::from_secs(7));
    assert_eq!(job.done().await, ["early 0 TimedOut(7s)"]);
    // The kernel comes all the same, for the next one.
    stage.submit("a", &[vec![]]).done().await;
    assert_eq!(stage.started(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_first_waiter_leaves_while_the_kernel_starts_and_the_second_gets_it() {
    let stage = Stage::new(Policy::default());
    stage.next_start(Duration::from_secs(5));
    let first = stage.submit("a", &[vec![]]);
    let second = stage.submit("b", &[vec![]]);
    stage.pass(1).await;
    first.stopper.stop(StopReason::Cancelled);
    assert_eq!(first.done().await, ["early 0 Cancelled"]);
    assert_eq!(second.done().await, ["kernel 1", "begin 0", "ok 0"]);
    assert_eq!(stage.started(), 1);
}

#[tokio::test(start_paused = true)]
async fn no_more_than_so_many_may_wait() {
    let stage = Stage::new(Policy {
        queue: 1,
        ..Policy::default()
    });
    let first = stage.submit("a", &[wait(1)]);
    let second = stage.submit("a", &[vec![]]);
    let third = stage.submit("stranger", &[vec![]]);
    assert_eq!(third.session, None);
    assert_eq!(
        third.done().await,
        ["failed 0: 1 calls are waiting for this session already"]
    );
    // Whoever was refused does not count as somebody who uses it.
    assert_eq!(stage.pool.list()[0].owners, ["a"]);
    first.done().await;
    second.done().await;
}

#[tokio::test(start_paused = true)]
async fn the_next_caller_is_told_that_the_kernel_died_and_only_that_one() {
    let stage = Stage::new(Policy::default());
    let job = stage.submit("a", &[vec![Step::Die(DEAD)]]);
    let heard = job.done().await;
    assert_eq!(
        heard[1..],
        ["begin 0", "failed 0: the kernel died (signal 9, SIGKILL)"]
    );
    let heard = stage.submit("a", &[vec![]]).done().await;
    assert_eq!(heard[..2], ["restarted 2 Died(signal 9)", "kernel 2"]);
    assert_eq!(stage.submit("a", &[vec![]]).done().await[0], "kernel 2");
}

#[tokio::test(start_paused = true)]
async fn a_kernel_that_dies_while_nobody_uses_it_is_noticed_at_once() {
    let stage = Stage::new(Policy::default());
    stage.submit("a", &[vec![]]).done().await;
    stage.kill(1);
    stage.pass(0).await;
    assert!(stage.pool.list()[0].kernel.is_none());
    let heard = stage.submit("a", &[vec![]]).done().await;
    assert_eq!(heard[0], "restarted 2 Died(signal 9)");
}

#[tokio::test(start_paused = true)]
async fn code_that_never_began_is_tried_once_more_on_a_fresh_kernel() {
    let stage = Stage::new(Policy::default());
    let job = stage.submit("a", &[vec![Step::DieUnbegun(DEAD)]]);
    let heard = job.done().await;
    assert_eq!(
        heard,
        [
            "kernel 1",
            "begin 0",
            "kernel 2",
            "begin 0", // and dies there, too
            "failed 0: the kernel died (signal 9, SIGKILL)"
        ]
    );
    assert_eq!(stage.started(), 2);
}

#[tokio::test(start_paused = true)]
async fn code_that_may_have_begun_is_not_tried_again() {
    let stage = Stage::new(Policy::default());
    stage.submit("a", &[vec![Step::Die(DEAD)]]).done().await;
    assert_eq!(stage.started(), 1);
    assert_eq!(stage.ran(), ["0.0"]);
}

#[tokio::test(start_paused = true)]
async fn kernels_that_die_again_and_again_are_not_restarted_a_third_time() {
    let stage = Stage::new(Policy::default());
    for _ in 0..3 {
        stage.submit("a", &[vec![Step::Die(DEAD)]]).done().await;
    }
    let heard = stage.submit("a", &[vec![]]).done().await;
    assert_eq!(
        heard,
        ["failed 0: Python kernel restarted too many times in this session"]
    );
    assert_eq!(stage.started(), 3);
    // Whoever resets it does not mind how often it died.
    let renewed = stage.pool.reset(&stage.call("a", true)).await.unwrap();
    assert_eq!(renewed.generation, 4);
    for _ in 0..3 {
        let heard = stage.submit("a", &[vec![Step::Die(DEAD)]]).done().await;
        assert!(heard.last().unwrap().contains("the kernel died"));
    }
    assert_eq!(stage.started(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_cell_that_ends_lets_the_count_of_restarts_begin_anew() {
    let stage = Stage::new(Policy {
        restarts: 1,
        ..Policy::default()
    });
    for _ in 0..3 {
        stage.submit("a", &[vec![Step::Die(DEAD)]]).done().await;
        let heard = stage.submit("a", &[raise()]).done().await;
        assert_eq!(heard.last().unwrap(), "raised 0");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cell_that_does_not_react_costs_the_kernel_and_the_next_caller_is_told() {
    let stage = Stage::new(Policy::default());
    let job = stage.submit_limited("a", &[vec![Step::Hang]], Duration::from_secs(3));
    let heard = job.done().await;
    assert_eq!(heard[2..], ["stopped 0 TimedOut(3s) Lost"]);
    let heard = stage.submit("a", &[vec![]]).done().await;
    assert_eq!(heard[0], "restarted 2 Killed");
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_stops_what_runs_and_nothing_else() {
    let stage = Stage::new(Policy::default());
    let first = stage.submit("a", &[vec![Step::RunUntilStopped], vec![]]);
    let second = stage.submit("a", &[vec![]]);
    stage.pass(1).await;
    let id = first.session.unwrap();
    assert!(stage.pool.interrupt(id).await.unwrap());
    assert_eq!(first.done().await[2..], ["stopped 0 Cancelled Kept"]);
    // The kernel goes on.
    assert_eq!(second.done().await, ["kernel 1", "begin 0", "ok 0"]);
    assert!(!stage.pool.interrupt(id).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn questions_wait_for_their_turn_and_need_a_kernel() {
    let stage = Stage::new(Policy::default());
    let job = stage.submit("a", &[wait(2)]);
    let id = job.session.unwrap();
    let answer = stage.ask(id).await.unwrap();
    assert_eq!(answer, 1);
    job.done().await;
    stage.kill(1);
    stage.pass(0).await;
    let answer = stage.ask(id).await;
    assert!(matches!(answer, Err(KernelError::NoAnswer { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_ended_stops_what_runs_and_tells_who_waits() {
    let stage = Stage::new(Policy::default());
    let first = stage.submit("a", &[vec![Step::Hang]]);
    let second = stage.submit("a", &[vec![]]);
    stage.pass(1).await;
    let before = tokio::time::Instant::now();
    stage.pool.end(first.session.unwrap()).await.unwrap();
    // Two seconds for last words, not the five of an interrupt.
    assert_eq!(before.elapsed().as_secs(), 2);
    assert_eq!(first.done().await[2..], ["stopped 0 ShuttingDown Lost"]);
    assert_eq!(second.done().await, ["failed 0: the session was ended"]);
    assert_eq!(stage.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_session_can_be_ended_while_a_reset_waits_for_a_start() {
    let stage = Stage::new(Policy::default());
    let job = stage.submit("a", &[vec![]]);
    let id = job.session.unwrap();
    job.done().await;
    stage.next_start(Duration::from_hours(1));
    let call = stage.call("a", true);
    let reset = tokio::spawn({
        let pool = stage.pool.clone();
        async move { pool.reset(&call).await }
    });
    stage.pass(1).await;
    let before = tokio::time::Instant::now();
    stage.pool.end(id).await.unwrap();
    assert_eq!(before.elapsed().as_secs(), 0);
    let answer = reset.await.unwrap();
    assert!(matches!(answer, Err(KernelError::SessionEnded)));
}

#[tokio::test(start_paused = true)]
async fn late_text_goes_to_the_cell_that_caused_it() {
    let late = |text: &str| Step::SayLate(Duration::ZERO, Stream::Stdout, text.to_owned());
    let stage = Stage::new(Policy::default());
    let job = stage.submit("a", &[vec![late("from 0")], vec![late("from 1")]]);
    let heard = job.done().await;
    let said: Vec<&String> = heard.iter().filter(|line| line.contains("late")).collect();
    assert_eq!(said, ["late 0 from 0", "late 1 from 1"]);
    // Also if it was its last.
    let job = stage.submit("a", &[vec![late("last words"), Step::Die(DEAD)]]);
    let heard = job.done().await;
    assert_eq!(heard[2], "late 0 last words");
    assert_eq!(stage.submit("a", &[vec![]]).done().await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn what_a_kernel_says_while_it_starts_belongs_to_its_first_cell() {
    let stage = Stage::new(Policy::default());
    stage.next_says("a warning");
    let heard = stage.submit("a", &[vec![]]).done().await;
    assert_eq!(heard, ["kernel 1", "begin 0", "said a warning", "ok 0"]);
}

#[tokio::test(start_paused = true)]
async fn what_comes_after_the_end_of_a_job_is_told_to_the_next_caller() {
    let late = |text: &str| {
        let after = Duration::from_secs(2);
        vec![Step::SayLate(after, Stream::Stdout, text.to_owned())]
    };
    let stage = Stage::new(Policy::default());
    stage.submit("a", &[late("a thread")]).done().await;
    stage.pass(5).await;
    let heard = stage.submit("a", &[late("last words")]).done().await;
    assert_eq!(heard, ["kernel 1", "heard a thread", "begin 0", "ok 0"]);
    // Also if the kernel says it on its way out.
    stage.pool.reset(&stage.call("a", true)).await.unwrap();
    let heard = stage.submit("a", &[vec![]]).done().await;
    assert_eq!(heard, ["kernel 2", "heard last words", "begin 0", "ok 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_kernel_of_ones_own_ends_with_the_job_and_waits_for_threads_as_long_as_there_is_time() {
    let stage = Stage::new(Policy::default());
    stage.next_lingers(Duration::from_secs(4));
    let before = tokio::time::Instant::now();
    let heard = stage.run_once(&[vec![]], Duration::from_secs(10)).await;
    assert_eq!(
        heard,
        ["kernel 1", "begin 0", "ok 0", "farewell in peace: true"]
    );
    assert_eq!(before.elapsed().as_secs(), 4);
    stage.next_lingers(Duration::from_mins(10));
    let before = tokio::time::Instant::now();
    let heard = stage.run_once(&[wait(4)], Duration::from_secs(10)).await;
    assert_eq!(heard.last().unwrap(), "farewell in peace: false");
    assert_eq!(before.elapsed().as_secs(), 10);
    // A cell that failed has nothing to wait for.
    stage.next_lingers(Duration::from_mins(10));
    let before = tokio::time::Instant::now();
    stage.run_once(&[raise()], Duration::from_secs(100)).await;
    assert_eq!(before.elapsed().as_secs(), 1);
    assert_eq!(stage.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_fails_is_told_and_the_next_call_tries_again() {
    let stage = Stage::new(Policy::default());
    stage.next_fails();
    let heard = stage.submit("a", &[vec![]]).done().await;
    assert_eq!(
        heard,
        ["failed 0: the kernel ended while starting (exit code 1)"]
    );
    let heard = stage.submit("a", &[vec![]]).done().await;
    assert_eq!(heard, ["kernel 1", "begin 0", "ok 0"]);
}
