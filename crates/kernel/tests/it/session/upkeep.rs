//! Which sessions must go, and which kernels are there before anybody needs them.

use std::time::Duration;

use cellwright_kernel::backend::scripted::Step;
use cellwright_kernel::session::{Policy, Spares};

use super::stage::{DEAD, Stage};
use super::wait;

#[tokio::test(start_paused = true)]
async fn a_session_that_was_idle_too_long_is_ended_and_its_next_caller_is_told() {
    let stage = Stage::new(Policy {
        idle: Some(Duration::from_mins(5)),
        ..Policy::default()
    });
    let pool = stage.pool.clone();
    let sweeper = tokio::spawn(async move { pool.sweep().await });
    let busy = stage.submit("a", &[wait(1000)]);
    stage.pass(900).await;
    // Busy is not idle.
    assert_eq!(stage.pool.count(), 1);
    busy.done().await;
    stage.pass(299).await;
    assert_eq!(stage.pool.count(), 1);
    stage.pass(3).await;
    assert_eq!((stage.pool.count(), stage.alive()), (0, 0));
    let heard = stage.submit("a", &[vec![]]).done().await;
    assert_eq!(heard[..2], ["restarted 1 Idle(300s)", "kernel 1"]);
    sweeper.abort();
}

#[tokio::test(start_paused = true)]
async fn the_session_that_was_idle_longest_makes_room_for_a_new_one() {
    let stage = Stage::new(Policy {
        most_sessions: 2,
        ..Policy::default()
    });
    for name in ["one", "two"] {
        let call = stage.call_to(name, "a", false);
        stage.submit_to(&call, &[vec![]]).done().await;
        stage.pass(1).await;
    }
    let three = stage.call_to("three", "a", false);
    let busy = stage.submit_to(&three, &[wait(100)]);
    let names: Vec<String> = stage
        .pool
        .list()
        .into_iter()
        .map(|of| of.key.name)
        .collect();
    assert_eq!(names, ["two", "three"]);
    let one = stage.call_to("one", "a", false);
    let heard = stage.submit_to(&one, &[wait(100)]);
    // Nobody is idle now.
    let four = stage.call_to("four", "a", false);
    assert_eq!(
        stage.submit_to(&four, &[vec![]]).done().await,
        ["failed 0: all 2 sessions are busy"]
    );
    assert_eq!(heard.done().await[0], "restarted 1 Crowded { limit: 2 }");
    busy.done().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_being_reset_is_not_idle() {
    let stage = Stage::new(Policy {
        most_sessions: 1,
        ..Policy::default()
    });
    stage.submit("a", &[vec![]]).done().await;
    stage.next_start(Duration::from_secs(10));
    let call = stage.call("a", true);
    let pool = stage.pool.clone();
    let reset = tokio::spawn(async move { pool.reset(&call).await });
    stage.pass(1).await;
    let other = stage.call_to("other", "a", false);
    let refused = stage.submit_to(&other, &[vec![]]);
    assert_eq!(refused.session, None);
    assert_eq!(reset.await.unwrap().unwrap().generation, 2);
}

#[tokio::test(start_paused = true)]
async fn a_new_session_takes_a_spare_and_another_is_started() {
    let stage = Stage::with(Policy::default(), Spares::new());
    stage.submit("a", &[vec![]]).done().await;
    stage.pass(1).await;
    assert_eq!((stage.started(), stage.spares.count()), (2, 1));
    // A start of its own would take an hour.
    stage.next_start(Duration::from_hours(1));
    let before = tokio::time::Instant::now();
    let other = stage.call_to("other", "a", false);
    stage.submit_to(&other, &[vec![]]).done().await;
    assert_eq!(before.elapsed().as_secs(), 0);
    assert_eq!((stage.started(), stage.adopted()), (2, 1));
    stage.pass(4000).await;
    assert_eq!((stage.started(), stage.spares.count()), (3, 1));
    stage.pool.close().await;
    assert_eq!(stage.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_spare_that_will_not_do_is_replaced_by_a_start() {
    let stage = Stage::with(Policy::default(), Spares::new());
    stage.submit("a", &[vec![]]).done().await;
    stage.pass(1).await;
    stage.adopting_fails();
    let other = stage.call_to("other", "a", false);
    let heard = stage.submit_to(&other, &[vec![]]).done().await;
    assert_eq!(heard, ["kernel 1", "begin 0", "ok 0"]);
    assert_eq!((stage.started(), stage.adopted()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_spare_that_died_is_nobodys_fault() {
    let policy = Policy {
        restarts: 0,
        ..Policy::default()
    };
    let stage = Stage::with(policy, Spares::new());
    stage.submit("a", &[vec![]]).done().await;
    stage.pass(1).await;
    stage.kill(2);
    let other = stage.call_to("other", "a", false);
    let heard = stage.submit_to(&other, &[vec![]]).done().await;
    assert_eq!(heard, ["kernel 1", "begin 0", "ok 0"]);
}

#[tokio::test(start_paused = true)]
async fn when_nothing_is_left_to_start_with_spares_go_and_others_stay() {
    let stage = Stage::with(Policy::default(), Spares::new());
    stage.submit("a", &[vec![]]).done().await;
    stage.pass(1).await;
    assert_eq!(stage.spares.count(), 1);
    stage.next_is_exhausted();
    let bare = stage.call_to("bare", "a", false);
    let heard = stage.submit_to(&bare, &[vec![]]).done().await;
    assert_eq!(heard, ["kernel 1", "begin 0", "ok 0"]);
    // None is started in the place of those that had to go.
    stage.pass(10).await;
    assert_eq!(stage.spares.count(), 0);
    assert_eq!(stage.submit("a", &[vec![]]).done().await[0], "kernel 1");
    // Once is all.
    stage.next_is_exhausted();
    stage.next_is_exhausted();
    let third = stage.call_to("third", "a", false);
    let heard = stage.submit_to(&third, &[vec![]]).done().await;
    assert!(heard[0].starts_with("failed 0: out of file descriptors"));
}

#[tokio::test(start_paused = true)]
async fn closing_the_pool_leaves_nothing_behind() {
    let stage = Stage::with(Policy::default(), Spares::new());
    let running = stage.submit("a", &[vec![Step::Hang]]);
    let starting = stage.call_to("other", "a", false);
    stage.pass(1).await;
    stage.next_start(Duration::from_hours(1));
    stage.kill(2);
    let starting = stage.submit_to(&starting, &[vec![]]);
    stage.pass(1).await;
    stage.pool.close().await;
    assert_eq!(running.done().await[2], "stopped 0 ShuttingDown Lost");
    assert_eq!(starting.done().await, ["early 0 ShuttingDown"]);
    let late = stage.submit("a", &[vec![Step::Die(DEAD)]]);
    assert_eq!(late.done().await, ["failed 0: the session was ended"]);
    assert_eq!(stage.pool.count(), 0);
}
