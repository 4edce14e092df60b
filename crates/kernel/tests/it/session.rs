//! The rules of sessions, one test each: scripted kernels on a paused clock.

mod eviction;
mod fixture;
mod owners;

use std::time::Duration;

use cellwright_kernel::backend::scripted::ScriptStep;
use cellwright_kernel::session::Policy;
use cellwright_kernel::{KernelError, StopReason};
use cellwright_output::{Stream, Traceback};

use fixture::{DEAD, SessionFixture};

fn wait(seconds: u64) -> Vec<ScriptStep> {
    vec![ScriptStep::Sleep(Duration::from_secs(seconds))]
}

fn raise() -> Vec<ScriptStep> {
    let name = "ValueError".to_owned();
    vec![ScriptStep::Raise(Traceback {
        name,
        ..Traceback::default()
    })]
}

#[tokio::test(start_paused = true)]
async fn two_first_calls_at_once_start_one_kernel() {
    let fixture = SessionFixture::new(Policy::default());
    let first = fixture.submit("a", &[vec![]]);
    let second = fixture.submit("a", &[vec![]]);
    assert_eq!(first.finish().await, ["kernel 1", "begin 0", "ok 0"]);
    assert_eq!(second.finish().await, ["kernel 1", "begin 0", "ok 0"]);
    assert_eq!(fixture.start_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn calls_are_served_in_order_and_their_cells_are_not_interleaved() {
    let fixture = SessionFixture::new(Policy::default());
    let first = fixture.submit("a", &[wait(1), wait(1)]);
    let second = fixture.submit("b", &[vec![]]);
    let third = fixture.submit("a", &[vec![]]);
    for job in [first, second, third] {
        job.finish().await;
    }
    assert_eq!(fixture.executed_cells(), ["0.0", "0.1", "1.0", "2.0"]);
}

#[tokio::test(start_paused = true)]
async fn job_ends_at_the_first_cell_that_fails() {
    let fixture = SessionFixture::new(Policy::default());
    let job = fixture.submit("a", &[vec![], raise(), vec![]]);
    let events = job.finish().await;
    assert_eq!(events[1..], ["begin 0", "ok 0", "begin 1", "raised 1"]);
}

#[tokio::test(start_paused = true)]
async fn cancelled_call_leaves_the_queue_and_the_others_run() {
    let fixture = SessionFixture::new(Policy::default());
    let first = fixture.submit("a", &[wait(10)]);
    let second = fixture.submit("b", &[vec![]]);
    let third = fixture.submit("c", &[vec![]]);
    fixture.advance(1).await;
    second.stop_handle.stop(StopReason::Cancelled);
    // The notice names the job that kept the session busy.
    assert_eq!(second.finish().await, ["busy a job 0", "early 0 Cancelled"]);
    first.finish().await;
    third.finish().await;
    assert_eq!(fixture.executed_cells(), ["0.0", "2.0"]);
}

#[tokio::test(start_paused = true)]
async fn wait_for_the_session_has_its_own_limit() {
    let fixture = SessionFixture::new(Policy::default());
    let first = fixture.submit("a", &[wait(100)]);
    let second = fixture.submit_limited("b", &[vec![]], Duration::from_secs(7));
    let events = second.finish().await;
    assert_eq!(events, ["busy a job 0", "early 0 Queue(7s)"]);
    first.stop_handle.stop(StopReason::Cancelled);
    first.finish().await;
    // The limit of a cell starts with the cell.
    let first = fixture.submit("a", &[wait(5)]);
    let before = tokio::time::Instant::now();
    let cells = [vec![ScriptStep::RunUntilStopped]];
    let second = fixture.submit_limited("b", &cells, Duration::from_secs(7));
    assert_eq!(second.finish().await[2], "stopped 0 Cell(7s) Preserved");
    assert_eq!(before.elapsed().as_secs(), 12);
    first.finish().await;
}

#[tokio::test(start_paused = true)]
async fn timeout_of_the_first_cell_starts_after_the_kernel_start() {
    let fixture = SessionFixture::new(Policy::default());
    fixture.delay_next_start(Duration::from_secs(9));
    let cells = [wait(6), vec![ScriptStep::RunUntilStopped]];
    let before = tokio::time::Instant::now();
    let job = fixture.submit_limited("a", &cells, Duration::from_secs(7));
    let events = job.finish().await;
    assert_eq!(
        events,
        [
            "kernel 1",
            "begin 0",
            "ok 0",
            "begin 1",
            "stopped 1 Cell(7s) Preserved"
        ]
    );
    assert_eq!(before.elapsed().as_secs(), 9 + 6 + 7);
}

#[tokio::test(start_paused = true)]
async fn second_call_gets_the_kernel_when_the_first_leaves_during_the_start() {
    let fixture = SessionFixture::new(Policy::default());
    fixture.delay_next_start(Duration::from_secs(5));
    let first = fixture.submit("a", &[vec![]]);
    let second = fixture.submit("b", &[vec![]]);
    fixture.advance(1).await;
    first.stop_handle.stop(StopReason::Cancelled);
    assert_eq!(first.finish().await, ["early 0 Cancelled"]);
    assert_eq!(second.finish().await, ["kernel 1", "begin 0", "ok 0"]);
    assert_eq!(fixture.start_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn queue_limit_rejects_further_calls() {
    let fixture = SessionFixture::new(Policy {
        queue_limit: 1,
        ..Policy::default()
    });
    let first = fixture.submit("a", &[wait(1)]);
    let second = fixture.submit("a", &[vec![]]);
    let third = fixture.submit("other", &[vec![]]);
    assert_eq!(third.session, None);
    assert_eq!(
        third.finish().await,
        ["failed 0: 1 calls are waiting for this session already"]
    );
    // A rejected caller does not become an owner.
    assert_eq!(fixture.pool.list()[0].owners, ["a"]);
    first.finish().await;
    second.finish().await;
}

#[tokio::test(start_paused = true)]
async fn only_the_next_caller_is_notified_of_a_dead_kernel() {
    let fixture = SessionFixture::new(Policy::default());
    let job = fixture.submit("a", &[vec![ScriptStep::Die(DEAD)]]);
    let events = job.finish().await;
    assert_eq!(
        events[1..],
        ["begin 0", "failed 0: the kernel died (signal 9, SIGKILL)"]
    );
    let events = fixture.submit("a", &[vec![]]).finish().await;
    assert_eq!(events[..2], ["restarted 2 Died(signal 9)", "kernel 2"]);
    assert_eq!(fixture.submit("a", &[vec![]]).finish().await[0], "kernel 2");
}

#[tokio::test(start_paused = true)]
async fn death_of_an_idle_kernel_is_noticed_immediately() {
    let fixture = SessionFixture::new(Policy::default());
    fixture.submit("a", &[vec![]]).finish().await;
    fixture.kill(1);
    fixture.advance(0).await;
    assert!(fixture.pool.list()[0].kernel.is_none());
    let events = fixture.submit("a", &[vec![]]).finish().await;
    assert_eq!(events[0], "restarted 2 Died(signal 9)");
}

#[tokio::test(start_paused = true)]
async fn code_that_never_began_is_retried_once_on_a_fresh_kernel() {
    let fixture = SessionFixture::new(Policy::default());
    let job = fixture.submit("a", &[vec![ScriptStep::DieBeforeStart(DEAD)]]);
    let events = job.finish().await;
    assert_eq!(
        events,
        [
            "kernel 1",
            "begin 0",
            "kernel 2",
            "begin 0", // and the kernel dies again
            "failed 0: the kernel died (signal 9, SIGKILL)"
        ]
    );
    assert_eq!(fixture.start_count(), 2);
}

#[tokio::test(start_paused = true)]
async fn code_that_may_have_begun_is_not_retried() {
    let fixture = SessionFixture::new(Policy::default());
    fixture
        .submit("a", &[vec![ScriptStep::Die(DEAD)]])
        .finish()
        .await;
    assert_eq!(fixture.start_count(), 1);
    assert_eq!(fixture.executed_cells(), ["0.0"]);
}

#[tokio::test(start_paused = true)]
async fn kernels_that_die_repeatedly_are_not_restarted_a_third_time() {
    let fixture = SessionFixture::new(Policy::default());
    for _ in 0..3 {
        fixture
            .submit("a", &[vec![ScriptStep::Die(DEAD)]])
            .finish()
            .await;
    }
    let events = fixture.submit("a", &[vec![]]).finish().await;
    assert_eq!(
        events,
        ["failed 0: Python kernel restarted too many times in this session"]
    );
    assert_eq!(fixture.start_count(), 3);
    // A reset clears the restart count.
    let outcome = fixture.pool.reset(&fixture.call("a", true)).await.unwrap();
    assert_eq!(outcome.generation, 4);
    for _ in 0..3 {
        let events = fixture
            .submit("a", &[vec![ScriptStep::Die(DEAD)]])
            .finish()
            .await;
        assert!(events.last().unwrap().contains("the kernel died"));
    }
    assert_eq!(fixture.start_count(), 6);
}

#[tokio::test(start_paused = true)]
async fn finished_cell_clears_the_restart_count() {
    let fixture = SessionFixture::new(Policy {
        max_restarts: 1,
        ..Policy::default()
    });
    for _ in 0..3 {
        fixture
            .submit("a", &[vec![ScriptStep::Die(DEAD)]])
            .finish()
            .await;
        let events = fixture.submit("a", &[raise()]).finish().await;
        assert_eq!(events.last().unwrap(), "raised 0");
    }
}

#[tokio::test(start_paused = true)]
async fn cell_that_ignores_the_interrupt_costs_the_kernel_and_the_next_caller_is_notified() {
    let fixture = SessionFixture::new(Policy::default());
    let job = fixture.submit_limited(
        "a",
        &[vec![ScriptStep::IgnoreInterrupts]],
        Duration::from_secs(3),
    );
    let events = job.finish().await;
    assert_eq!(events[2..], ["stopped 0 Cell(3s) Lost"]);
    let events = fixture.submit("a", &[vec![]]).finish().await;
    assert_eq!(events[0], "restarted 2 Killed");
}

#[tokio::test(start_paused = true)]
async fn interrupt_stops_only_the_running_job() {
    let fixture = SessionFixture::new(Policy::default());
    let first = fixture.submit("a", &[vec![ScriptStep::RunUntilStopped], vec![]]);
    let second = fixture.submit("a", &[vec![]]);
    fixture.advance(1).await;
    let id = first.session.unwrap();
    assert!(fixture.pool.interrupt(id).await.unwrap());
    assert_eq!(first.finish().await[2..], ["stopped 0 Cancelled Preserved"]);
    // The kernel is preserved.
    assert_eq!(second.finish().await, ["kernel 1", "begin 0", "ok 0"]);
    assert!(!fixture.pool.interrupt(id).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn queries_wait_in_the_queue_and_need_a_kernel() {
    let fixture = SessionFixture::new(Policy::default());
    let job = fixture.submit("a", &[wait(2)]);
    let id = job.session.unwrap();
    let answer = fixture.query(id).await.unwrap();
    assert_eq!(answer, 1);
    job.finish().await;
    fixture.kill(1);
    fixture.advance(0).await;
    let answer = fixture.query(id).await;
    assert!(matches!(answer, Err(KernelError::QueryFailed { .. })));
}

#[tokio::test(start_paused = true)]
async fn ending_a_session_stops_the_running_job_and_rejects_waiting_calls() {
    let fixture = SessionFixture::new(Policy::default());
    let first = fixture.submit("a", &[vec![ScriptStep::IgnoreInterrupts]]);
    let second = fixture.submit("a", &[vec![]]);
    fixture.advance(1).await;
    let before = tokio::time::Instant::now();
    fixture.pool.end(first.session.unwrap()).await.unwrap();
    // The end of a session allows two seconds, an interrupt five.
    assert_eq!(before.elapsed().as_secs(), 2);
    assert_eq!(first.finish().await[2..], ["stopped 0 ShuttingDown Lost"]);
    assert_eq!(second.finish().await, ["failed 0: the session was ended"]);
    assert_eq!(fixture.running_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn session_can_be_ended_while_a_reset_waits_for_a_start() {
    let fixture = SessionFixture::new(Policy::default());
    let job = fixture.submit("a", &[vec![]]);
    let id = job.session.unwrap();
    job.finish().await;
    fixture.delay_next_start(Duration::from_hours(1));
    let call = fixture.call("a", true);
    let reset = tokio::spawn({
        let pool = fixture.pool.clone();
        async move { pool.reset(&call).await }
    });
    fixture.advance(1).await;
    let before = tokio::time::Instant::now();
    fixture.pool.end(id).await.unwrap();
    assert_eq!(before.elapsed().as_secs(), 0);
    let answer = reset.await.unwrap();
    assert!(matches!(answer, Err(KernelError::SessionEnded)));
}

#[tokio::test(start_paused = true)]
async fn late_text_goes_to_the_cell_that_printed_it() {
    let late = |text: &str| ScriptStep::PrintLate(Duration::ZERO, Stream::Stdout, text.to_owned());
    let fixture = SessionFixture::new(Policy::default());
    let job = fixture.submit("a", &[vec![late("from 0")], vec![late("from 1")]]);
    let events = job.finish().await;
    let late_lines: Vec<&String> = events.iter().filter(|line| line.contains("late")).collect();
    assert_eq!(late_lines, ["late 0 from 0", "late 1 from 1"]);
    // Also if the kernel died with the cell.
    let job = fixture.submit("a", &[vec![late("final text"), ScriptStep::Die(DEAD)]]);
    let events = job.finish().await;
    assert_eq!(events[2], "late 0 final text");
    assert_eq!(fixture.submit("a", &[vec![]]).finish().await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn startup_text_goes_to_the_first_cell() {
    let fixture = SessionFixture::new(Policy::default());
    fixture.print_on_next_start("a warning");
    let events = fixture.submit("a", &[vec![]]).finish().await;
    assert_eq!(events, ["kernel 1", "begin 0", "text a warning", "ok 0"]);
}

#[tokio::test(start_paused = true)]
async fn late_text_after_the_end_of_a_job_goes_to_the_next_caller() {
    let late = |text: &str| {
        let after = Duration::from_secs(2);
        vec![ScriptStep::PrintLate(
            after,
            Stream::Stdout,
            text.to_owned(),
        )]
    };
    let fixture = SessionFixture::new(Policy::default());
    fixture.submit("a", &[late("a thread")]).finish().await;
    fixture.advance(5).await;
    let events = fixture.submit("a", &[late("final text")]).finish().await;
    assert_eq!(events, ["kernel 1", "earlier a thread", "begin 0", "ok 0"]);
    // Also if the kernel prints it during its shutdown.
    fixture.pool.reset(&fixture.call("a", true)).await.unwrap();
    let events = fixture.submit("a", &[vec![]]).finish().await;
    assert_eq!(
        events,
        ["kernel 2", "earlier final text", "begin 0", "ok 0"]
    );
}

#[tokio::test(start_paused = true)]
async fn run_once_shuts_the_kernel_down_and_gives_threads_the_remaining_time() {
    let fixture = SessionFixture::new(Policy::default());
    fixture.delay_next_shutdown(Duration::from_secs(4));
    let before = tokio::time::Instant::now();
    let events = fixture.run_once(&[vec![]], Duration::from_secs(10)).await;
    assert_eq!(
        events,
        ["kernel 1", "begin 0", "ok 0", "shutdown graceful: true"]
    );
    assert_eq!(before.elapsed().as_secs(), 4);
    fixture.delay_next_shutdown(Duration::from_mins(10));
    let before = tokio::time::Instant::now();
    let events = fixture.run_once(&[wait(4)], Duration::from_secs(10)).await;
    assert_eq!(events.last().unwrap(), "shutdown graceful: false");
    assert_eq!(before.elapsed().as_secs(), 10);
    // After a cell that failed, threads are not waited for.
    fixture.delay_next_shutdown(Duration::from_mins(10));
    let before = tokio::time::Instant::now();
    fixture.run_once(&[raise()], Duration::from_secs(100)).await;
    assert_eq!(before.elapsed().as_secs(), 1);
    assert_eq!(fixture.running_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn failed_start_is_reported_and_the_next_call_starts_again() {
    let fixture = SessionFixture::new(Policy::default());
    fixture.fail_next_start();
    let events = fixture.submit("a", &[vec![]]).finish().await;
    assert_eq!(
        events,
        ["failed 0: the kernel ended while starting (exit code 1)"]
    );
    let events = fixture.submit("a", &[vec![]]).finish().await;
    assert_eq!(events, ["kernel 1", "begin 0", "ok 0"]);
}
