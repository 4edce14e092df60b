//! Queries: completion, inspection, variables, history.

use cellwright_kernel::{HistoryMode, KernelQuery, Request, StopSignal};

use super::KernelFixture;
use crate::support::run_request;

pub(super) async fn queries_run_no_user_code(mut fixture: KernelFixture) {
    let code = "class Trap:\n    @property\n    def touched(self): raise SystemExit('ran')\n    def __repr__(self): raise SystemExit('ran')\n    def __len__(self): raise SystemExit('ran')\ntrap = Trap()\nnumbers = [1, 2, 3]\ndef double(x):\n    'Twice as much.'\n    return 2 * x";
    fixture.output_of(code).await;
    let stop = StopSignal::never();
    let query = KernelQuery::Complete {
        code: "trap.tou".into(),
        cursor: 8,
    };
    let answer = fixture.kernel.query(&query, &stop).await.unwrap();
    assert!(
        answer["matches"].to_string().contains("touched"),
        "{answer}"
    );
    let query = KernelQuery::Inspect {
        code: "double".into(),
        cursor: 3,
        include_source: true,
    };
    let answer = fixture.kernel.query(&query, &stop).await.unwrap();
    assert_eq!(answer["found"], true);
    assert!(answer.to_string().contains("Twice as much."), "{answer}");
    let query = KernelQuery::IsComplete {
        code: "if x:".into(),
    };
    let answer = fixture.kernel.query(&query, &stop).await.unwrap();
    assert_eq!(answer["status"], "incomplete");
    let query = KernelQuery::Variables { limit: 50 };
    let answer = fixture.kernel.query(&query, &stop).await.unwrap();
    let variables = answer.as_array().or_else(|| answer["variables"].as_array());
    let named = |name: &str| {
        let all = variables.unwrap().iter();
        all.into_iter()
            .find(|one| one["name"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(named("numbers")["length"], 3);
    assert_eq!(named("trap")["type"], "Trap");
    assert_eq!(
        fixture.output_of("1").await,
        "=[1]",
        "the kernel does not work any more"
    );
}

pub(super) async fn history_contains_the_cells_that_ran(mut fixture: KernelFixture) {
    fixture.output_of("x = 20").await;
    fixture.output_of("class Changing:\n    times = 0\n    def __repr__(self):\n        self.times += 1\n        return f'shown {self.times}'\nChanging()").await;
    fixture.output_of("x + 1;").await;
    fixture.output_of("1 / 0").await;
    fixture.output_of("'é\\n' * 2").await;
    let silent = Request {
        history: HistoryMode::Silent,
        ..Request::new("'silent'")
    };
    let (_, outcome) = run_request(fixture.kernel.as_mut(), &silent, &StopSignal::never()).await;
    outcome.unwrap();
    let stop = StopSignal::never();
    let query = KernelQuery::History { last: 4 };
    let answer = fixture.kernel.query(&query, &stop).await.unwrap();
    let cells = answer.as_array().unwrap();
    let entry = |at: usize| (&cells[at]["count"], &cells[at]["output"]);
    assert_eq!(cells.len(), 4, "{answer}");
    assert!(cells[0]["code"].as_str().unwrap().ends_with("Changing()"));
    assert_eq!(entry(0), (&2.into(), &"shown 1".into()));
    assert_eq!(entry(1), (&3.into(), &serde_json::Value::Null));
    assert_eq!(entry(2), (&4.into(), &serde_json::Value::Null));
    assert_eq!(cells[3]["code"], "'é\\n' * 2");
    assert_eq!(entry(3), (&5.into(), &"'é\\né\\n'".into()));
    let query = KernelQuery::History { last: 99 };
    let answer = fixture.kernel.query(&query, &stop).await.unwrap();
    assert_eq!(answer.as_array().unwrap().len(), 5, "{answer}");
    let query = KernelQuery::History { last: 0 };
    let answer = fixture.kernel.query(&query, &stop).await.unwrap();
    assert_eq!(answer, serde_json::json!([]));
}
