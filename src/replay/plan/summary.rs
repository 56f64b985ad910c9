//! The preview in one line, which leads with what would go wrong.

use crate::api::{PreviewTarget, Problem, ProblemType, clip};
use crate::replay::survey::Survey;

/// As long as the status allows.
const LONGEST: usize = 4096;

pub fn summary(survey: &Survey, problems: &[Problem], targets: &[PreviewTarget]) -> String {
    let wrong = problems.iter().filter(|problem| leads(problem)).map(|problem| problem.message.clone());
    let what = format!("{} messages ({} dead letters) to {}", survey.messages, survey.entries, names(targets));
    let left_out = [
        (survey.replayed_before, "replayed before and left out"),
        (survey.phantoms, "dead letters of offsets that hold no record, left out"),
        (survey.of_other_groups, "dead letters of other groups, left out"),
        (survey.unreadable, "records that are no dead letters, left out"),
    ];
    let left_out = left_out.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    let parts: Vec<String> = wrong.chain([what]).chain(left_out).collect();
    clip(&parts.join("; "), LONGEST)
}

/// A step's time-out is told among the problems, not led with: it matters to a consumer that crashes only.
fn leads(problem: &Problem) -> bool {
    problem.type_ != ProblemType::StepTimeoutShort
}

fn names(targets: &[PreviewTarget]) -> String {
    match targets {
        [] => "nowhere".into(),
        [one] => one.topic.clone(),
        [first, rest @ ..] => format!("{} and {} more topics", first.topic, rest.len()),
    }
}
