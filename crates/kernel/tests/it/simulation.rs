//! Randomised simulation of sessions: scripted kernels, a paused clock, and rules that must always hold.
//! The same seed gives the same run.
//!
//! `CELLWRIGHT_TEST_SEED=n` runs one seed and prints its trace; `CELLWRIGHT_TEST_FACTOR` multiplies the
//! number of seeds.

mod callers;
mod cells;
mod kernel;
mod model;
mod observer;
mod ownership;
mod rng;
mod rules;

use std::time::Duration;

use cellwright_kernel::session::{Policy, Sessions, SpareKernels};
use tokio::time::{sleep, timeout};

use callers::RandomCaller;
use model::Model;
use rng::SeededRng;

/// The number of seeds per test.
const SEEDS: u64 = 1000;

/// How long closing the pool may take: the grace of running cells, and the shutdown of kernels and spares.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2 + 5);

/// Runs a seed. Returns its trace and the violated rules.
fn simulate(seed: u64) -> (Vec<String>, Vec<String>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let model = runtime.block_on(run(seed));
    drop(runtime);
    model.with(|state| (state.trace.clone(), state.violations.clone()))
}

async fn run(seed: u64) -> Model {
    let mut rng = SeededRng::new(seed);
    let policy = Policy {
        max_sessions: rng.between(1, 4),
        idle_timeout: rng
            .chance(50)
            .then(|| rng.pick_millis(&[400, 20_000, 300_000])),
        max_restarts: u32::try_from(rng.below(4)).unwrap(),
        queue_limit: rng.between(1, 5),
        ..Policy::default()
    };
    let spares = if rng.chance(50) {
        SpareKernels::new()
    } else {
        SpareKernels::disabled()
    };
    let model = Model::new(seed, policy.max_restarts);
    let pool = Sessions::new(policy.clone(), spares);
    model.with(|state| {
        state.note(&format!("{policy:?}"));
        state.pool = Some(pool.clone());
    });
    let sweeper = tokio::spawn({
        let pool = pool.clone();
        async move { pool.evict_idle().await }
    });
    let mut callers = RandomCaller::new(model.clone(), pool.clone(), &mut rng);
    let actions = rng.between(20, 60);
    let close_at = if rng.chance(20) {
        rng.below(actions)
    } else {
        actions
    };
    for action in 0..actions {
        if action == close_at {
            callers.close();
        }
        callers.act(&mut rng);
        let pause = rng.pick_millis(&[0, 0, 0, 1, 1, 30, 100, 400, 3_000, 30_000, 400_000]);
        if pause.is_zero() {
            for _ in 0..rng.below(4) {
                tokio::task::yield_now().await;
            }
        } else {
            sleep(pause).await;
        }
        let count = pool.count();
        model.with(|state| {
            state.check(
                count <= policy.max_sessions,
                &format!("{count} sessions, limit {}", policy.max_sessions),
            );
        });
    }
    model.with(|state| {
        state.note("the end");
        state.closed = true;
    });
    if timeout(CLOSE_TIMEOUT, pool.close()).await.is_err() {
        model.with(|state| state.violation("the pool took too long to close"));
    }
    // All operations that are still running have a time limit.
    sleep(Duration::from_mins(10)).await;
    callers.check_answered();
    sweeper.abort();
    model.with(|state| {
        state.finish();
        // Breaks the reference cycle: the pool holds launchers, which hold the model.
        state.pool = None;
    });
    model
}

fn simulate_seeds(first: u64) {
    if let Ok(seed) = std::env::var("CELLWRIGHT_TEST_SEED") {
        let seed: u64 = seed.parse().unwrap();
        let (trace, violations) = simulate(seed);
        let mut out = std::io::stdout().lock();
        std::io::Write::write_all(&mut out, trace.join("\n").as_bytes()).unwrap();
        assert!(violations.is_empty(), "{}", violations.join("\n"));
        return;
    }
    let factor = std::env::var("CELLWRIGHT_TEST_FACTOR").ok();
    let factor: u64 = factor.and_then(|factor| factor.parse().ok()).unwrap_or(1);
    let mut violations = Vec::new();
    for seed in 0..SEEDS * factor {
        let (_, found) = simulate(first * 1_000_000_000 + seed);
        violations.extend(found.into_iter().next());
    }
    let shown: Vec<&str> = violations.iter().take(20).map(String::as_str).collect();
    assert!(
        violations.is_empty(),
        "{} seeds violated a rule\n{}",
        violations.len(),
        shown.join("\n")
    );
}

#[test]
fn sessions_follow_their_rules_1() {
    simulate_seeds(0);
}

#[test]
fn sessions_follow_their_rules_2() {
    simulate_seeds(1);
}

#[test]
fn sessions_follow_their_rules_3() {
    simulate_seeds(2);
}

#[test]
fn sessions_follow_their_rules_4() {
    simulate_seeds(3);
}

#[test]
fn same_seed_gives_the_same_run() {
    for seed in 0..20 {
        let (first, _) = simulate(seed);
        let (second, _) = simulate(seed);
        assert_eq!(first, second, "seed {seed}");
    }
}
