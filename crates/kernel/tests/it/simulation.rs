//! Sessions played through by chance: scripted kernels, a paused clock, and rules that must hold
//! whatever happens. The same seed gives the same run.
//!
//! `CELLWRIGHT_TEST_SEED=n` plays one seed and prints what happened; `CELLWRIGHT_TEST_FACTOR`
//! multiplies how many are played.

mod actions;
mod audience;
mod cells;
mod dice;
mod kernel;
mod places;
mod rules;
mod world;

use std::time::Duration;

use cellwright_kernel::session::{Policy, Sessions, Spares};
use tokio::time::{sleep, timeout};

use actions::Player;
use dice::Dice;
use world::World;

/// How many seeds each test plays.
const SEEDS: u64 = 1000;

/// How long the end of everything may take: last words, and farewells of kernels and spares.
const CLOSING: Duration = Duration::from_secs(2 + 5);

/// What happened under a seed, and what should not have.
fn play(seed: u64) -> (Vec<String>, Vec<String>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let world = runtime.block_on(run(seed));
    drop(runtime);
    world.with(|state| (state.trace.clone(), state.wrongs.clone()))
}

async fn run(seed: u64) -> World {
    let mut dice = Dice::new(seed);
    let policy = Policy {
        most_sessions: dice.between(1, 4),
        idle: dice
            .chance(50)
            .then(|| dice.millis(&[400, 20_000, 300_000])),
        restarts: u32::try_from(dice.below(4)).unwrap(),
        queue: dice.between(1, 5),
        ..Policy::default()
    };
    let spares = if dice.chance(50) {
        Spares::new()
    } else {
        Spares::none()
    };
    let world = World::new(seed, policy.restarts);
    let pool = Sessions::new(policy.clone(), spares);
    world.with(|state| {
        state.note(&format!("{policy:?}"));
        state.pool = Some(pool.clone());
    });
    let sweeper = tokio::spawn({
        let pool = pool.clone();
        async move { pool.sweep().await }
    });
    let mut player = Player::new(world.clone(), pool.clone(), &mut dice);
    let actions = dice.between(20, 60);
    let closes = if dice.chance(20) {
        dice.below(actions)
    } else {
        actions
    };
    for action in 0..actions {
        if action == closes {
            player.close();
        }
        player.act(&mut dice);
        let pause = dice.millis(&[0, 0, 0, 1, 1, 30, 100, 400, 3_000, 30_000, 400_000]);
        if pause.is_zero() {
            for _ in 0..dice.below(4) {
                tokio::task::yield_now().await;
            }
        } else {
            sleep(pause).await;
        }
        let count = pool.count();
        world.with(|state| {
            state.check(
                count <= policy.most_sessions,
                &format!("{count} sessions, limit {}", policy.most_sessions),
            );
        });
    }
    world.with(|state| {
        state.note("the end");
        state.closed = true;
    });
    if timeout(CLOSING, pool.close()).await.is_err() {
        world.with(|state| state.wrong("the pool took too long to close"));
    }
    // Whatever is still under way has a limit.
    sleep(Duration::from_mins(10)).await;
    player.check_answered();
    sweeper.abort();
    world.with(|state| {
        state.finish();
        // The pool knows launches, which know the world.
        state.pool = None;
    });
    world
}

fn play_all(first: u64) {
    if let Ok(seed) = std::env::var("CELLWRIGHT_TEST_SEED") {
        let seed: u64 = seed.parse().unwrap();
        let (trace, wrongs) = play(seed);
        let mut out = std::io::stdout().lock();
        std::io::Write::write_all(&mut out, trace.join("\n").as_bytes()).unwrap();
        assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
        return;
    }
    let factor = std::env::var("CELLWRIGHT_TEST_FACTOR").ok();
    let factor: u64 = factor.and_then(|factor| factor.parse().ok()).unwrap_or(1);
    let mut wrongs = Vec::new();
    for seed in 0..SEEDS * factor {
        let (_, wrong) = play(first * 1_000_000_000 + seed);
        wrongs.extend(wrong.into_iter().next());
    }
    let shown: Vec<&str> = wrongs.iter().take(20).map(String::as_str).collect();
    assert!(
        wrongs.is_empty(),
        "{} seeds went wrong\n{}",
        wrongs.len(),
        shown.join("\n")
    );
}

#[test]
fn sessions_keep_their_rules_whatever_happens_1() {
    play_all(0);
}

#[test]
fn sessions_keep_their_rules_whatever_happens_2() {
    play_all(1);
}

#[test]
fn sessions_keep_their_rules_whatever_happens_3() {
    play_all(2);
}

#[test]
fn sessions_keep_their_rules_whatever_happens_4() {
    play_all(3);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..20 {
        let (first, _) = play(seed);
        let (second, _) = play(seed);
        assert_eq!(first, second, "seed {seed}");
    }
}
