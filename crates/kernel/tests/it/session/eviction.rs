//! Eviction of sessions, and spare kernels.

use std::time::Duration;

use cellwright_kernel::backend::scripted::ScriptStep;
use cellwright_kernel::session::{Policy, SpareKernels};

use super::fixture::{DEAD, SessionFixture};
use super::wait;

#[tokio::test(start_paused = true)]
async fn idle_session_is_evicted_and_its_next_caller_is_notified() {
    let fixture = SessionFixture::new(Policy {
        idle_timeout: Some(Duration::from_mins(5)),
        ..Policy::default()
    });
    let pool = fixture.pool.clone();
    let sweeper = tokio::spawn(async move { pool.evict_idle().await });
    let busy = fixture.submit("a", &[wait(1000)]);
    fixture.advance(900).await;
    // A busy session is not idle.
    assert_eq!(fixture.pool.count(), 1);
    busy.finish().await;
    fixture.advance(299).await;
    assert_eq!(fixture.pool.count(), 1);
    fixture.advance(3).await;
    assert_eq!((fixture.pool.count(), fixture.running_count()), (0, 0));
    let events = fixture.submit("a", &[vec![]]).finish().await;
    assert_eq!(events[..2], ["restarted 1 Idle(300s)", "kernel 1"]);
    sweeper.abort();
}

#[tokio::test(start_paused = true)]
async fn longest_idle_session_is_evicted_for_a_new_one() {
    let fixture = SessionFixture::new(Policy {
        max_sessions: 2,
        ..Policy::default()
    });
    for name in ["one", "two"] {
        let call = fixture.call_to(name, "a", false);
        fixture.submit_to(&call, &[vec![]]).finish().await;
        fixture.advance(1).await;
    }
    let three = fixture.call_to("three", "a", false);
    let busy = fixture.submit_to(&three, &[wait(100)]);
    let names: Vec<String> = fixture
        .pool
        .list()
        .into_iter()
        .map(|report| report.key.name)
        .collect();
    assert_eq!(names, ["two", "three"]);
    let one = fixture.call_to("one", "a", false);
    let evicted = fixture.submit_to(&one, &[wait(100)]);
    // No session is idle now.
    let four = fixture.call_to("four", "a", false);
    assert_eq!(
        fixture.submit_to(&four, &[vec![]]).finish().await,
        ["failed 0: all 2 sessions are busy"]
    );
    assert_eq!(
        evicted.finish().await[0],
        "restarted 1 Evicted { limit: 2 }"
    );
    busy.finish().await;
}

#[tokio::test(start_paused = true)]
async fn session_is_not_idle_during_a_reset() {
    let fixture = SessionFixture::new(Policy {
        max_sessions: 1,
        ..Policy::default()
    });
    fixture.submit("a", &[vec![]]).finish().await;
    fixture.delay_next_start(Duration::from_secs(10));
    let call = fixture.call("a", true);
    let pool = fixture.pool.clone();
    let reset = tokio::spawn(async move { pool.reset(&call).await });
    fixture.advance(1).await;
    let other = fixture.call_to("other", "a", false);
    let rejected = fixture.submit_to(&other, &[vec![]]);
    assert_eq!(rejected.session, None);
    assert_eq!(reset.await.unwrap().unwrap().generation, 2);
}

#[tokio::test(start_paused = true)]
async fn new_session_adopts_a_spare_and_another_is_started() {
    let fixture = SessionFixture::with_spares(Policy::default(), SpareKernels::new());
    fixture.submit("a", &[vec![]]).finish().await;
    fixture.advance(1).await;
    assert_eq!((fixture.start_count(), fixture.spares.count()), (2, 1));
    // A regular start would take an hour.
    fixture.delay_next_start(Duration::from_hours(1));
    let before = tokio::time::Instant::now();
    let other = fixture.call_to("other", "a", false);
    fixture.submit_to(&other, &[vec![]]).finish().await;
    assert_eq!(before.elapsed().as_secs(), 0);
    assert_eq!((fixture.start_count(), fixture.adoption_count()), (2, 1));
    fixture.advance(4000).await;
    assert_eq!((fixture.start_count(), fixture.spares.count()), (3, 1));
    fixture.pool.close().await;
    assert_eq!(fixture.running_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn spare_that_cannot_be_adopted_is_replaced_by_a_start() {
    let fixture = SessionFixture::with_spares(Policy::default(), SpareKernels::new());
    fixture.submit("a", &[vec![]]).finish().await;
    fixture.advance(1).await;
    fixture.fail_adoptions();
    let other = fixture.call_to("other", "a", false);
    let events = fixture.submit_to(&other, &[vec![]]).finish().await;
    assert_eq!(events, ["kernel 1", "begin 0", "ok 0"]);
    assert_eq!((fixture.start_count(), fixture.adoption_count()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn dead_spare_does_not_count_as_a_restart() {
    let policy = Policy {
        max_restarts: 0,
        ..Policy::default()
    };
    let fixture = SessionFixture::with_spares(policy, SpareKernels::new());
    fixture.submit("a", &[vec![]]).finish().await;
    fixture.advance(1).await;
    fixture.kill(2);
    let other = fixture.call_to("other", "a", false);
    let events = fixture.submit_to(&other, &[vec![]]).finish().await;
    assert_eq!(events, ["kernel 1", "begin 0", "ok 0"]);
}

#[tokio::test(start_paused = true)]
async fn exhaustion_clears_spares_but_no_sessions() {
    let fixture = SessionFixture::with_spares(Policy::default(), SpareKernels::new());
    fixture.submit("a", &[vec![]]).finish().await;
    fixture.advance(1).await;
    assert_eq!(fixture.spares.count(), 1);
    fixture.exhaust_next_start();
    let bare = fixture.call_to("bare", "a", false);
    let events = fixture.submit_to(&bare, &[vec![]]).finish().await;
    assert_eq!(events, ["kernel 1", "begin 0", "ok 0"]);
    // The cleared spares are not replaced.
    fixture.advance(10).await;
    assert_eq!(fixture.spares.count(), 0);
    assert_eq!(fixture.submit("a", &[vec![]]).finish().await[0], "kernel 1");
    // The retry happens only once.
    fixture.exhaust_next_start();
    fixture.exhaust_next_start();
    let third = fixture.call_to("third", "a", false);
    let events = fixture.submit_to(&third, &[vec![]]).finish().await;
    assert!(events[0].starts_with("failed 0: out of file descriptors"));
}

#[tokio::test(start_paused = true)]
async fn closing_the_pool_ends_everything() {
    let fixture = SessionFixture::with_spares(Policy::default(), SpareKernels::new());
    let running = fixture.submit("a", &[vec![ScriptStep::IgnoreInterrupts]]);
    let starting = fixture.call_to("other", "a", false);
    fixture.advance(1).await;
    fixture.delay_next_start(Duration::from_hours(1));
    fixture.kill(2);
    let starting = fixture.submit_to(&starting, &[vec![]]);
    fixture.advance(1).await;
    fixture.pool.close().await;
    assert_eq!(running.finish().await[2], "stopped 0 ShuttingDown Lost");
    assert_eq!(starting.finish().await, ["early 0 ShuttingDown"]);
    let late = fixture.submit("a", &[vec![ScriptStep::Die(DEAD)]]);
    assert_eq!(late.finish().await, ["failed 0: the session was ended"]);
    assert_eq!(fixture.pool.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn pools_of_a_group_share_the_limit_and_the_spares() {
    let policy = Policy {
        max_sessions: 2,
        ..Policy::default()
    };
    let first = SessionFixture::with_spares(policy, SpareKernels::new());
    let second = first.sibling();
    let one = first.call_to("one", "a", false);
    first.submit_to(&one, &[vec![]]).finish().await;
    first.advance(1).await;
    let two = second.call_to("two", "a", false);
    second.submit_to(&two, &[vec![]]).finish().await;
    first.advance(1).await;
    assert_eq!((first.pool.count(), second.pool.count()), (1, 1));
    assert_eq!(first.spares.count(), 1);
    // The session that has been idle longest makes room, whichever pool it belongs to.
    let three = second.call_to("three", "a", false);
    let busy = second.submit_to(&three, &[wait(100)]);
    assert_eq!((first.pool.count(), second.pool.count()), (0, 2));
    let again = second.submit_to(&two, &[wait(100)]);
    // No session of the group is idle now.
    let rejected = first.submit_to(&one, &[vec![]]).finish().await;
    assert_eq!(rejected, ["failed 0: all 2 sessions are busy"]);
    busy.finish().await;
    again.finish().await;
    let events = first.submit_to(&one, &[vec![]]).finish().await;
    assert_eq!(events[0], "restarted 1 Evicted { limit: 2 }");
    // The spares stay until the last pool of the group ends.
    second.pool.close().await;
    first.advance(1).await;
    assert_eq!(first.spares.count(), 1);
    first.pool.close().await;
    assert_eq!((first.spares.count(), first.running_count()), (0, 0));
}
