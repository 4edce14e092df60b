//! Whose a session is, and what a reset gives to whom.

use std::time::Duration;

use cellwright_kernel::backend::scripted::Step;
use cellwright_kernel::session::Policy;

use super::stage::Stage;
use super::wait;

#[tokio::test(start_paused = true)]
async fn the_last_owner_to_leave_ends_the_session() {
    let stage = Stage::new(Policy::default());
    let job = stage.submit("a", &[vec![]]);
    let id = job.session.unwrap();
    job.done().await;
    stage.submit("b", &[vec![]]).done().await;
    assert!(!stage.pool.leave(id, "a").await.unwrap());
    assert_eq!(stage.alive(), 1);
    assert!(stage.pool.leave(id, "b").await.unwrap());
    assert_eq!((stage.pool.count(), stage.alive()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_reset_by_the_only_owner_is_in_place_and_not_told_to_who_asked() {
    let stage = Stage::new(Policy::default());
    stage.submit("a", &[vec![]]).done().await;
    let renewed = stage.pool.reset(&stage.call("a", true)).await.unwrap();
    assert_eq!((renewed.generation, renewed.private), (2, false));
    let heard = stage.submit("a", &[vec![]]).done().await;
    assert_eq!(heard, ["kernel 2", "begin 0", "ok 0"]);
    // The same with a cell that carries it.
    let call = stage.call("a", true);
    let heard = stage.submit_to(&call, &[vec![]]).done().await;
    assert_eq!(heard, ["kernel 3", "begin 0", "ok 0"]);
    let heard = stage
        .submit_reset_at("a", &[vec![], vec![]], 1)
        .done()
        .await;
    assert_eq!(heard[3..], ["kernel 4", "begin 1", "ok 1"]);
    assert_eq!((stage.pool.count(), stage.alive()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn whoever_waited_while_the_session_was_reset_is_told() {
    let stage = Stage::new(Policy::default());
    let first = stage.submit("a", &[vec![], wait(10)]);
    let second = stage.submit("a", &[vec![]]);
    stage.pass(1).await;
    stage.pool.reset(&stage.call("a", true)).await.unwrap();
    assert_eq!(first.done().await.last().unwrap(), "stopped 1 Reset Kept");
    assert_eq!(second.done().await[0], "restarted 2 Reset");
}

#[tokio::test(start_paused = true)]
async fn a_reset_of_a_shared_session_gives_the_asker_one_of_its_own_for_good() {
    let stage = Stage::new(Policy::default());
    stage.submit("a", &[vec![]]).done().await;
    let shared = stage.submit("b", &[vec![]]);
    let id = shared.session.unwrap();
    shared.done().await;
    let renewed = stage.pool.reset(&stage.call("a", true)).await.unwrap();
    assert!(renewed.private && renewed.id != id);
    let own = stage.submit("a", &[vec![]]);
    assert_eq!(own.session, Some(renewed.id));
    assert_eq!(own.done().await[0], "kernel 1");
    let others = stage.submit("b", &[vec![]]);
    assert_eq!(others.session, Some(id));
    assert_eq!(others.done().await[0], "kernel 1");
    // The next reset is in place.
    let again = stage.pool.reset(&stage.call("a", true)).await.unwrap();
    assert_eq!(again.id, renewed.id);
    let owners: Vec<Vec<String>> = stage.pool.list().into_iter().map(|of| of.owners).collect();
    assert_eq!(owners, [["b"], ["a"]]);
}

#[tokio::test(start_paused = true)]
async fn an_own_session_stays_an_own_one_when_it_was_evicted_unused() {
    let stage = Stage::new(Policy {
        idle: Some(Duration::from_secs(10)),
        ..Policy::default()
    });
    stage.submit("a", &[vec![]]).done().await;
    stage.submit("b", &[vec![]]).done().await;
    let renewed = stage.pool.reset(&stage.call("a", true)).await.unwrap();
    let busy = stage.submit("b", &[wait(60)]);
    let pool = stage.pool.clone();
    let sweeper = tokio::spawn(async move { pool.sweep().await });
    stage.pass(30).await;
    assert_eq!(stage.pool.count(), 1);
    let own = stage.submit("a", &[vec![]]);
    assert_ne!(own.session, busy.session);
    assert_ne!(own.session, Some(renewed.id));
    // Nothing was lost with it.
    assert_eq!(own.done().await[0], "kernel 1");
    busy.done().await;
    sweeper.abort();
}

#[tokio::test(start_paused = true)]
async fn two_resets_at_once_are_one() {
    let stage = Stage::new(Policy::default());
    stage.submit("a", &[vec![]]).done().await;
    stage.next_start(Duration::from_secs(3));
    let (one, two) = (stage.call("a", true), stage.call("a", true));
    let (one, two) = tokio::join!(stage.pool.reset(&one), stage.pool.reset(&two));
    assert_eq!(one.unwrap(), two.unwrap());
    assert_eq!(stage.started(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_reset_in_the_middle_of_a_call_is_refused_where_others_go_on_with_the_kernel() {
    let stage = Stage::new(Policy::default());
    stage.submit("b", &[vec![]]).done().await;
    let heard = stage
        .submit_reset_at("a", &[vec![], vec![]], 1)
        .done()
        .await;
    assert_eq!(
        heard,
        ["failed 0: cell 1 wants a fresh kernel, but others use this session"]
    );
    assert_eq!(stage.ran(), ["0.0"]);
}

#[tokio::test(start_paused = true)]
async fn a_reset_that_comes_too_late_takes_nothing_away() {
    let stage = Stage::new(Policy::default());
    let first = stage.submit("a", &[vec![Step::RunUntilStopped]]);
    let second = stage.submit_reset_at("a", &[vec![]], 0);
    stage.pass(1).await;
    // Both at the same moment.
    first.stopper.stop(cellwright_kernel::StopReason::Cancelled);
    second
        .stopper
        .stop(cellwright_kernel::StopReason::Cancelled);
    assert_eq!(first.done().await[2], "stopped 0 Cancelled Kept");
    assert_eq!(second.done().await.last().unwrap(), "early 0 Cancelled");
    assert_eq!(stage.submit("a", &[vec![]]).done().await[0], "kernel 1");
}

#[tokio::test(start_paused = true)]
async fn whoever_is_split_off_does_not_crowd_out_those_who_stay() {
    let stage = Stage::new(Policy {
        most_sessions: 1,
        ..Policy::default()
    });
    stage.submit("a", &[vec![]]).done().await;
    stage.submit("b", &[vec![]]).done().await;
    assert!(stage.pool.reset(&stage.call("a", true)).await.is_err());
    assert_eq!(stage.submit("b", &[vec![]]).done().await[0], "kernel 1");
}
