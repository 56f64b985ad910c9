//! Bulk calls whose items end at different times: those that are not final yet are asked again, the others are kept.

use std::collections::{BTreeMap, BTreeSet};

use super::deadline::Pauses;
use super::{ConnectionError, Deadline};

/// What one round brought for one item.
#[derive(Debug)]
pub enum Step<A> {
    Done(A),
    /// A state that passes; given as the answer if it has not by the deadline.
    Again(A),
    /// Nothing could be heard.
    Failed(ConnectionError),
}

/// Calls `round` with the items still open until there are none. Items a broker never names in its answers are missing
/// from the result once the deadline has passed.
pub async fn in_rounds<K, A, F>(
    items: BTreeSet<K>,
    deadline: Deadline,
    mut round: impl FnMut(BTreeSet<K>) -> F,
) -> Result<BTreeMap<K, A>, ConnectionError>
where
    K: Ord + Clone,
    F: Future<Output = Vec<(K, Step<A>)>>,
{
    let mut open = items;
    let mut done = BTreeMap::new();
    let mut pauses = Pauses::default();
    while !open.is_empty() {
        let mut passing = Vec::new();
        let mut failure = None;
        for (item, step) in round(open.clone()).await {
            match step {
                Step::Done(answer) if open.remove(&item) => drop(done.insert(item, answer)),
                Step::Again(answer) => passing.push((item, answer)),
                Step::Failed(error) if !error.is_passing() => return Err(error),
                Step::Failed(error) => failure = Some(error),
                Step::Done(_) => {}
            }
        }
        if !open.is_empty() && !pauses.pause(deadline).await {
            done.extend(passing);
            return failure.map_or(Ok(done), Err);
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn items() -> BTreeSet<u8> {
        [1, 2].into()
    }

    #[tokio::test]
    async fn only_open_items_are_asked_again() {
        let mut asked = Vec::new();
        let answers = in_rounds(items(), Deadline::within(Duration::from_secs(10)), |open| {
            let steps = open.iter().map(|&item| match item == 1 || asked.len() == 2 {
                true => (item, Step::Done("done")),
                false => (item, Step::Again("again")),
            });
            let steps: Vec<_> = steps.collect();
            asked.push(open);
            async { steps }
        });
        assert_eq!(answers.await, Ok([(1, "done"), (2, "done")].into()));
        assert_eq!(asked, [items(), [2].into(), [2].into()]);
    }

    #[tokio::test]
    async fn the_last_answer_is_given_at_the_deadline() {
        let answers = in_rounds(items(), Deadline::within(Duration::from_millis(1200)), |open| async {
            open.into_iter().map(|item| (item, Step::Again(item))).collect()
        });
        assert_eq!(answers.await, Ok([(1, 1), (2, 2)].into()));
    }

    #[tokio::test]
    async fn a_broker_never_heard_of_is_the_error_at_the_deadline() {
        let lost = || ConnectionError::ReachBroker { address: "a:1".into(), reason: "refused".into() };
        let answers = in_rounds(items(), Deadline::within(Duration::from_millis(1200)), |open| {
            let steps = open.into_iter().map(|item| match item {
                1 => (item, Step::Done(())),
                _ => (item, Step::Failed(lost())),
            });
            std::future::ready(steps.collect())
        });
        assert_eq!(answers.await, Err(lost()));
    }
}
