//! What a kernel tells when it is asked.

use cellwright_kernel::{History, Question, Request, Stop};

use super::Place;
use crate::support::run_until;

pub(super) async fn questions_run_no_code_of_the_user(mut place: Place) {
    let code = "class Trap:\n    @property\n    def touched(self): raise SystemExit('ran')\n    def __repr__(self): raise SystemExit('ran')\n    def __len__(self): raise SystemExit('ran')\ntrap = Trap()\nnumbers = [1, 2, 3]\ndef double(x):\n    'Twice as much.'\n    return 2 * x";
    place.heard(code).await;
    let stop = Stop::never();
    let question = Question::Complete {
        code: "trap.tou".into(),
        cursor: 8,
    };
    let answer = place.kernel.ask(&question, &stop).await.unwrap();
    assert!(
        answer["matches"].to_string().contains("touched"),
        "{answer}"
    );
    let question = Question::Inspect {
        code: "double".into(),
        cursor: 3,
        source: true,
    };
    let answer = place.kernel.ask(&question, &stop).await.unwrap();
    assert_eq!(answer["found"], true);
    assert!(answer.to_string().contains("Twice as much."), "{answer}");
    let question = Question::IsComplete {
        code: "if x:".into(),
    };
    let answer = place.kernel.ask(&question, &stop).await.unwrap();
    assert_eq!(answer["status"], "incomplete");
    let question = Question::Variables { limit: 50 };
    let answer = place.kernel.ask(&question, &stop).await.unwrap();
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
    assert_eq!(place.heard("1").await, "=[1]", "it is still there");
}

pub(super) async fn what_ran_is_remembered(mut place: Place) {
    place.heard("x = 20").await;
    place.heard("class Changing:\n    times = 0\n    def __repr__(self):\n        self.times += 1\n        return f'shown {self.times}'\nChanging()").await;
    place.heard("x + 1;").await;
    place.heard("1 / 0").await;
    place.heard("'é\\n' * 2").await;
    let silent = Request {
        history: History::Silent,
        ..Request::new("'nobody'")
    };
    let (_, outcome) = run_until(place.kernel.as_mut(), &silent, &Stop::never()).await;
    outcome.unwrap();
    let stop = Stop::never();
    let question = Question::History { last: 4 };
    let answer = place.kernel.ask(&question, &stop).await.unwrap();
    let cells = answer.as_array().unwrap();
    let told = |at: usize| (&cells[at]["count"], &cells[at]["output"]);
    assert_eq!(cells.len(), 4, "{answer}");
    assert!(cells[0]["code"].as_str().unwrap().ends_with("Changing()"));
    assert_eq!(told(0), (&2.into(), &"shown 1".into()));
    assert_eq!(told(1), (&3.into(), &serde_json::Value::Null));
    assert_eq!(told(2), (&4.into(), &serde_json::Value::Null));
    assert_eq!(cells[3]["code"], "'é\\n' * 2");
    assert_eq!(told(3), (&5.into(), &"'é\\né\\n'".into()));
    let question = Question::History { last: 99 };
    let answer = place.kernel.ask(&question, &stop).await.unwrap();
    assert_eq!(answer.as_array().unwrap().len(), 5, "{answer}");
    let question = Question::History { last: 0 };
    let answer = place.kernel.ask(&question, &stop).await.unwrap();
    assert_eq!(answer, serde_json::json!([]));
}
