//! Owners of sessions, and resets of shared and private sessions.

use std::time::Duration;

use cellwright_kernel::backend::scripted::ScriptStep;
use cellwright_kernel::session::Policy;

use super::fixture::SessionFixture;
use super::wait;

#[tokio::test(start_paused = true)]
async fn session_ends_when_its_last_owner_leaves() {
    let fixture = SessionFixture::new(Policy::default());
    let job = fixture.submit("a", &[vec![]]);
    let id = job.session.unwrap();
    job.finish().await;
    fixture.submit("b", &[vec![]]).finish().await;
    assert!(!fixture.pool.leave(id, "a").await.unwrap());
    assert_eq!(fixture.running_count(), 1);
    assert!(fixture.pool.leave(id, "b").await.unwrap());
    assert_eq!((fixture.pool.count(), fixture.running_count()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn reset_by_the_only_owner_is_in_place_and_without_a_notice() {
    let fixture = SessionFixture::new(Policy::default());
    fixture.submit("a", &[vec![]]).finish().await;
    let outcome = fixture.pool.reset(&fixture.call("a", true)).await.unwrap();
    assert_eq!((outcome.generation, outcome.private), (2, false));
    let events = fixture.submit("a", &[vec![]]).finish().await;
    assert_eq!(events, ["kernel 2", "begin 0", "ok 0"]);
    // The same for a cell with a reset.
    let call = fixture.call("a", true);
    let events = fixture.submit_to(&call, &[vec![]]).finish().await;
    assert_eq!(events, ["kernel 3", "begin 0", "ok 0"]);
    let events = fixture
        .submit_reset_at("a", &[vec![], vec![]], 1)
        .finish()
        .await;
    assert_eq!(events[3..], ["kernel 4", "begin 1", "ok 1"]);
    assert_eq!((fixture.pool.count(), fixture.running_count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn caller_that_waited_during_a_reset_is_notified() {
    let fixture = SessionFixture::new(Policy::default());
    let first = fixture.submit("a", &[vec![], wait(10)]);
    let second = fixture.submit("a", &[vec![]]);
    fixture.advance(1).await;
    fixture.pool.reset(&fixture.call("a", true)).await.unwrap();
    assert_eq!(
        first.finish().await.last().unwrap(),
        "stopped 1 Reset Preserved"
    );
    assert_eq!(second.finish().await[0], "restarted 2 Reset");
}

#[tokio::test(start_paused = true)]
async fn reset_of_a_shared_session_gives_the_caller_a_permanent_private_session() {
    let fixture = SessionFixture::new(Policy::default());
    fixture.submit("a", &[vec![]]).finish().await;
    let shared = fixture.submit("b", &[vec![]]);
    let id = shared.session.unwrap();
    shared.finish().await;
    let outcome = fixture.pool.reset(&fixture.call("a", true)).await.unwrap();
    assert!(outcome.private && outcome.id != id);
    let private = fixture.submit("a", &[vec![]]);
    assert_eq!(private.session, Some(outcome.id));
    assert_eq!(private.finish().await[0], "kernel 1");
    let others = fixture.submit("b", &[vec![]]);
    assert_eq!(others.session, Some(id));
    assert_eq!(others.finish().await[0], "kernel 1");
    // The next reset is in place.
    let again = fixture.pool.reset(&fixture.call("a", true)).await.unwrap();
    assert_eq!(again.id, outcome.id);
    let owners: Vec<Vec<String>> = fixture
        .pool
        .list()
        .into_iter()
        .map(|report| report.owners)
        .collect();
    assert_eq!(owners, [["b"], ["a"]]);
}

#[tokio::test(start_paused = true)]
async fn private_session_stays_private_after_it_was_evicted_unused() {
    let fixture = SessionFixture::new(Policy {
        idle_timeout: Some(Duration::from_secs(10)),
        ..Policy::default()
    });
    fixture.submit("a", &[vec![]]).finish().await;
    fixture.submit("b", &[vec![]]).finish().await;
    let outcome = fixture.pool.reset(&fixture.call("a", true)).await.unwrap();
    let busy = fixture.submit("b", &[wait(60)]);
    let pool = fixture.pool.clone();
    let sweeper = tokio::spawn(async move { pool.evict_idle().await });
    fixture.advance(30).await;
    assert_eq!(fixture.pool.count(), 1);
    let private = fixture.submit("a", &[vec![]]);
    assert_ne!(private.session, busy.session);
    assert_ne!(private.session, Some(outcome.id));
    // Nothing was lost with it.
    assert_eq!(private.finish().await[0], "kernel 1");
    busy.finish().await;
    sweeper.abort();
}

#[tokio::test(start_paused = true)]
async fn two_concurrent_resets_start_one_kernel() {
    let fixture = SessionFixture::new(Policy::default());
    fixture.submit("a", &[vec![]]).finish().await;
    fixture.delay_next_start(Duration::from_secs(3));
    let (one, two) = (fixture.call("a", true), fixture.call("a", true));
    let (one, two) = tokio::join!(fixture.pool.reset(&one), fixture.pool.reset(&two));
    assert_eq!(one.unwrap(), two.unwrap());
    assert_eq!(fixture.start_count(), 2);
}

#[tokio::test(start_paused = true)]
async fn reset_in_the_middle_of_a_call_is_rejected_in_a_shared_session() {
    let fixture = SessionFixture::new(Policy::default());
    fixture.submit("b", &[vec![]]).finish().await;
    let events = fixture
        .submit_reset_at("a", &[vec![], vec![]], 1)
        .finish()
        .await;
    assert_eq!(
        events,
        ["failed 0: cell 1 needs a fresh kernel, but the session has other owners"]
    );
    assert_eq!(fixture.executed_cells(), ["0.0"]);
}

#[tokio::test(start_paused = true)]
async fn cancelled_reset_discards_nothing() {
    let fixture = SessionFixture::new(Policy::default());
    let first = fixture.submit("a", &[vec![ScriptStep::RunUntilStopped]]);
    let second = fixture.submit_reset_at("a", &[vec![]], 0);
    fixture.advance(1).await;
    // Both in the same instant.
    first
        .stop_handle
        .stop(cellwright_kernel::StopReason::Cancelled);
    second
        .stop_handle
        .stop(cellwright_kernel::StopReason::Cancelled);
    assert_eq!(first.finish().await[2], "stopped 0 Cancelled Preserved");
    assert_eq!(second.finish().await.last().unwrap(), "early 0 Cancelled");
    assert_eq!(fixture.submit("a", &[vec![]]).finish().await[0], "kernel 1");
}

#[tokio::test(start_paused = true)]
async fn splitting_off_does_not_evict_the_shared_session() {
    let fixture = SessionFixture::new(Policy {
        max_sessions: 1,
        ..Policy::default()
    });
    fixture.submit("a", &[vec![]]).finish().await;
    fixture.submit("b", &[vec![]]).finish().await;
    assert!(fixture.pool.reset(&fixture.call("a", true)).await.is_err());
    assert_eq!(fixture.submit("b", &[vec![]]).finish().await[0], "kernel 1");
}
