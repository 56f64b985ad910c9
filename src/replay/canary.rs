//! The canary: which step comes next, how large it is, and when to stop. Pure: no client, no clock.
//!
//! Ten messages, watch them settle, stop if any comes back or none settles, else twice as many, up to a cap.
//! `next` is given what is so and answers with the one thing to do now; the caller does it, tells the outcome by one
//! of the `record_*` calls, and asks again.

use super::settle::{Cause, Standing};

/// Milliseconds since the epoch.
pub type Millis = i64;

/// What the replay's spec fixes for its whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub initial_step: u64,
    pub max_step: u64,
    /// How long a step may take to settle, from its last acknowledged send, in milliseconds.
    pub step_timeout: Millis,
    /// Delivery limit x lock duration, in milliseconds: a consumer that crashes on a message needs this long before
    /// the message can come back, so a partly settled step is trusted no earlier.
    pub redelivery_time: Millis,
}

/// What the user asks for at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    pub suspend: bool,
    pub cancel: bool,
}

/// What is so at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// Messages of this replay that have come back as dead letters, all steps together.
    pub returned: u64,
    /// How the messages of the open step stand.
    pub standing: Standing,
    /// How the messages of all earlier steps stand: some of a partly settled step may settle later, or never.
    pub earlier: Standing,
    /// Whether the dead-letter topic and the group's settings are as they must be: while they are not, a failure could
    /// get lost, so nothing more is sent and nothing is judged.
    pub dlq_ready: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No step is open; the next may begin.
    Between,
    /// The step's intent is recorded and its messages are being sent.
    Sending,
    /// All of the step is sent. `last_sight` is when it was looked at last: time in which nothing could be judged is
    /// added to the deadline.
    Settling {
        deadline: Millis,
        last_sight: Millis,
    },
    Over(Verdict),
}

/// How a replay ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    AllSettled,
    Returned,
    NoneSettled,
    Unsettled(Cause),
    Expired,
    Cancelled,
}

/// How a step ended, as the list of steps tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepEnd {
    Settled,
    PartlySettled,
    Returned,
    NoneSettled,
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub number: u32,
    pub size: u64,
    pub sent: u64,
    pub skipped: u64,
    pub settled: u64,
    pub returned: u64,
    pub started_at: Millis,
    pub deadline: Option<Millis>,
    pub end: Option<StepEnd>,
}

impl Step {
    fn begin(number: u32, size: u64, now: Millis) -> Self {
        let (sent, skipped, settled, returned) = (0, 0, 0, 0);
        Self { number, size, sent, skipped, settled, returned, started_at: now, deadline: None, end: None }
    }

    fn rest(&self) -> u64 {
        self.size - self.sent - self.skipped
    }
}

/// The one thing to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Record the intent of a step of this many messages.
    BeginStep {
        number: u32,
        size: u64,
    },
    /// Send at most this many of the step's messages in one transaction.
    Send {
        at_most: u64,
    },
    /// Look again before long.
    Watch,
    /// Suspended by the user: send nothing, go on watching what was sent.
    Pause,
    /// The dead-letter topic or the group's settings are not as they must be: send nothing, judge nothing.
    Hold,
    Finish(Verdict),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canary {
    policy: Policy,
    /// Messages of the frozen selection.
    selected: u64,
    phase: Phase,
    step: Option<Step>,
    sent: u64,
    skipped: u64,
    /// Messages that had come back when the open step began.
    returned_before: u64,
}

impl Canary {
    pub fn new(policy: Policy, selected: u64) -> Self {
        let nothing =
            Self { policy, selected, phase: Phase::Between, step: None, sent: 0, skipped: 0, returned_before: 0 };
        if selected == 0 { Self { phase: Phase::Over(Verdict::AllSettled), ..nothing } } else { nothing }
    }

    /// A canary that goes on where an owner that handed over left it. What its last step has not sent is left to the
    /// steps to come, so that no step is larger than the rules allow.
    pub fn resume(policy: Policy, selected: u64, already: Already, now: Millis) -> Self {
        let mut canary = Self::new(policy, selected);
        canary.sent = already.sent;
        canary.skipped = already.skipped;
        canary.returned_before = already.returned;
        let Some((number, size)) = already.last_step else { return canary };
        let sent = already.sent_in_last_step;
        if sent > 0 {
            let deadline = now + policy.step_timeout;
            canary.step = Some(Step { sent, deadline: Some(deadline), ..Step::begin(number, sent, now) });
            canary.phase = Phase::Settling { deadline, last_sight: now };
        } else if number > 1 {
            canary.step = Some(Step { end: Some(StepEnd::Settled), ..Step::begin(number - 1, size / 2, now) });
        }
        canary
    }

    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    pub fn step(&self) -> Option<&Step> {
        self.step.as_ref()
    }

    pub fn sent(&self) -> u64 {
        self.sent
    }

    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    pub fn remaining(&self) -> u64 {
        self.selected - self.sent - self.skipped
    }

    /// The rules, in the order in which they apply.
    pub fn next(&mut self, sight: &Sight, wish: Wish, now: Millis) -> Action {
        if let Phase::Over(verdict) = &self.phase {
            return Action::Finish(verdict.clone());
        }
        self.note(sight);
        if sight.returned > 0 {
            return self.finish(Verdict::Returned, Some(StepEnd::Returned));
        }
        if wish.cancel {
            return self.finish(Verdict::Cancelled, Some(StepEnd::Cancelled));
        }
        if sight.standing.expired + sight.earlier.expired > 0 {
            return self.finish(Verdict::Expired, None);
        }
        match self.phase.clone() {
            Phase::Between => self.between(sight, wish),
            Phase::Sending => self.sending(sight, wish),
            Phase::Settling { deadline, last_sight } => self.settling(sight, wish, deadline, last_sight, now),
            Phase::Over(verdict) => Action::Finish(verdict),
        }
    }

    /// The intent of the step is recorded: from now on its messages may be sent.
    pub fn record_begun(&mut self, number: u32, size: u64, now: Millis) {
        self.step = Some(Step::begin(number, size, now));
        self.phase = Phase::Sending;
    }

    /// A slice is committed. `skipped` were left out because they cannot be sent.
    pub fn record_slice(&mut self, sent: u64, skipped: u64, now: Millis) {
        self.sent += sent;
        self.skipped += skipped;
        let Some(step) = &mut self.step else { return };
        step.sent += sent;
        step.skipped += skipped;
        if step.rest() == 0 {
            let deadline = now + self.policy.step_timeout;
            step.deadline = Some(deadline);
            self.phase = Phase::Settling { deadline, last_sight: now };
        }
    }

    fn note(&mut self, sight: &Sight) {
        let returned = sight.returned.saturating_sub(self.returned_before);
        if let Some(step) = self.step.as_mut().filter(|s| s.end.is_none()) {
            step.settled = sight.standing.settled.min(step.sent);
            step.returned = returned;
        }
    }

    fn between(&mut self, sight: &Sight, wish: Wish) -> Action {
        if self.remaining() == 0 {
            let verdict = match sight.earlier.pending {
                0 => Verdict::AllSettled,
                _ => Verdict::Unsettled(sight.earlier.cause.clone()),
            };
            return self.finish(verdict, None);
        }
        if wish.suspend {
            return Action::Pause;
        }
        if !sight.dlq_ready {
            return Action::Hold;
        }
        let number = self.step.as_ref().map_or(1, |s| s.number + 1);
        Action::BeginStep { number, size: self.next_size() }
    }

    fn next_size(&self) -> u64 {
        let wanted = self.step.as_ref().map_or(self.policy.initial_step, |s| s.size.saturating_mul(2));
        wanted.min(self.policy.max_step).min(self.remaining()).max(1)
    }

    fn sending(&mut self, sight: &Sight, wish: Wish) -> Action {
        if wish.suspend {
            return Action::Pause;
        }
        if !sight.dlq_ready {
            return Action::Hold;
        }
        Action::Send { at_most: self.step.as_ref().map_or(0, Step::rest) }
    }

    fn settling(&mut self, sight: &Sight, wish: Wish, deadline: Millis, last_sight: Millis, now: Millis) -> Action {
        if !sight.dlq_ready {
            // The time in which a failure could have got lost does not count.
            return self.wait_on(deadline + (now - last_sight).max(0), now, Action::Hold);
        }
        if sight.standing.pending == 0 {
            return self.close_step(StepEnd::Settled, sight, wish);
        }
        if now < deadline {
            let action = if wish.suspend { Action::Pause } else { Action::Watch };
            return self.wait_on(deadline, now, action);
        }
        self.timed_out(sight, wish, deadline, now)
    }

    fn timed_out(&mut self, sight: &Sight, wish: Wish, deadline: Millis, now: Millis) -> Action {
        let standing = &sight.standing;
        if standing.settled == 0 {
            return match (&standing.cause, standing.surely_none) {
                (_, true) => self.finish(Verdict::NoneSettled, Some(StepEnd::NoneSettled)),
                (cause, false) => self.finish(Verdict::Unsettled(cause.clone()), Some(StepEnd::NoneSettled)),
            };
        }
        let trusted = deadline - self.policy.step_timeout + self.policy.redelivery_time;
        if now < trusted {
            let action = if wish.suspend { Action::Pause } else { Action::Watch };
            self.phase = Phase::Settling { deadline, last_sight: now };
            return action;
        }
        if self.remaining() == 0 {
            return self.finish(Verdict::Unsettled(standing.cause.clone()), Some(StepEnd::PartlySettled));
        }
        self.close_step(StepEnd::PartlySettled, sight, wish)
    }

    fn wait_on(&mut self, deadline: Millis, now: Millis, action: Action) -> Action {
        self.phase = Phase::Settling { deadline, last_sight: now };
        if let Some(step) = &mut self.step {
            step.deadline = Some(deadline);
        }
        action
    }

    fn close_step(&mut self, end: StepEnd, sight: &Sight, wish: Wish) -> Action {
        self.end_step(end);
        self.phase = Phase::Between;
        self.between(sight, wish)
    }

    fn end_step(&mut self, end: StepEnd) {
        if let Some(step) = self.step.as_mut().filter(|s| s.end.is_none()) {
            step.end = Some(end);
        }
    }

    fn finish(&mut self, verdict: Verdict, step_end: Option<StepEnd>) -> Action {
        if let Some(end) = step_end {
            self.end_step(end);
        }
        self.phase = Phase::Over(verdict.clone());
        Action::Finish(verdict)
    }
}

/// What an earlier owner of the same replay has done, as the ledger tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Already {
    pub sent: u64,
    pub skipped: u64,
    pub returned: u64,
    /// Number and size of the last step with an intent.
    pub last_step: Option<(u32, u64)>,
    pub sent_in_last_step: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POLICY: Policy = Policy { initial_step: 10, max_step: 40, step_timeout: 60_000, redelivery_time: 150_000 };

    fn sight(settled: u64, pending: u64) -> Sight {
        let standing = Standing { settled, pending, ..Standing::default() };
        Sight { returned: 0, standing, earlier: Standing::default(), dlq_ready: true }
    }

    fn calm() -> Wish {
        Wish::default()
    }

    /// A canary that has sent its first step of ten at time 0.
    fn after_first_step() -> Canary {
        let mut canary = Canary::new(POLICY, 120);
        assert_eq!(canary.next(&sight(0, 0), calm(), 0), Action::BeginStep { number: 1, size: 10 });
        canary.record_begun(1, 10, 0);
        assert_eq!(canary.next(&sight(0, 0), calm(), 0), Action::Send { at_most: 10 });
        canary.record_slice(10, 0, 0);
        canary
    }

    #[test]
    fn steps_double_up_to_the_cap_and_the_last_is_what_is_left() {
        let mut canary = Canary::new(POLICY, 120);
        let mut sizes = Vec::new();
        while let Action::BeginStep { number, size } =
            canary.next(&sight(canary.step().map_or(0, |s| s.size), 0), calm(), 0)
        {
            canary.record_begun(number, size, 0);
            canary.record_slice(size, 0, 0);
            sizes.push(size);
        }
        assert_eq!(sizes, [10, 20, 40, 40, 10]);
        assert_eq!(canary.phase(), &Phase::Over(Verdict::AllSettled));
    }

    #[test]
    fn one_return_stops_at_once_also_while_sending_and_paused() {
        let returned = Sight { returned: 1, ..sight(0, 10) };
        for wish in [calm(), Wish { suspend: true, cancel: false }] {
            assert_eq!(after_first_step().next(&returned, wish, 1), Action::Finish(Verdict::Returned));
        }
    }

    #[test]
    fn nothing_settled_stops_at_the_timeout_and_not_before() {
        let none =
            Sight { standing: Standing { surely_none: true, pending: 10, ..Standing::default() }, ..sight(0, 10) };
        let mut canary = after_first_step();
        assert_eq!(canary.next(&none, calm(), 59_999), Action::Watch);
        assert_eq!(canary.next(&none, calm(), 60_000), Action::Finish(Verdict::NoneSettled));
        let mut undecided = after_first_step();
        assert_eq!(undecided.next(&sight(0, 10), calm(), 60_000), Action::Finish(Verdict::Unsettled(Cause::Waiting)));
    }

    #[test]
    fn a_partly_settled_step_is_followed_only_when_a_crash_would_have_shown() {
        let mut canary = after_first_step();
        assert_eq!(canary.next(&sight(4, 6), calm(), 60_000), Action::Watch);
        assert_eq!(canary.next(&sight(4, 6), calm(), 149_999), Action::Watch);
        assert_eq!(canary.next(&sight(4, 6), calm(), 150_000), Action::BeginStep { number: 2, size: 20 });
        assert_eq!(canary.step().and_then(|step| step.end), Some(StepEnd::PartlySettled));
    }

    #[test]
    fn what_an_earlier_step_still_owes_keeps_the_end_from_being_good() {
        let mut canary = Canary::new(Policy { max_step: 10, ..POLICY }, 10);
        canary.record_begun(1, 10, 0);
        canary.record_slice(10, 0, 0);
        let owed = Sight { earlier: Standing { pending: 1, ..Standing::default() }, ..sight(10, 0) };
        assert_eq!(canary.next(&owed, calm(), 1), Action::Finish(Verdict::Unsettled(Cause::Waiting)));
    }

    #[test]
    fn a_pause_sends_nothing_and_its_timer_runs_on() {
        let pause = Wish { suspend: true, cancel: false };
        let mut canary = after_first_step();
        assert_eq!(canary.next(&sight(0, 10), pause, 1), Action::Pause);
        assert_eq!(canary.next(&sight(10, 0), pause, 2), Action::Pause, "settled, and the next step waits");
        assert_eq!(canary.next(&sight(0, 0), calm(), 3), Action::BeginStep { number: 2, size: 20 });
        let mut unsettled = after_first_step();
        assert!(matches!(unsettled.next(&sight(0, 10), pause, 60_000), Action::Finish(Verdict::Unsettled(_))));
    }

    #[test]
    fn a_dead_letter_topic_that_is_not_ready_freezes_the_deadline() {
        let unready = Sight { dlq_ready: false, ..sight(0, 10) };
        let mut canary = after_first_step();
        assert_eq!(canary.next(&sight(0, 10), calm(), 10_000), Action::Watch);
        assert_eq!(canary.next(&unready, calm(), 50_000), Action::Hold);
        assert_eq!(canary.next(&unready, calm(), 90_000), Action::Hold);
        assert_eq!(canary.next(&sight(0, 10), calm(), 130_000), Action::Watch, "80 s of 130 did not count");
        assert!(matches!(canary.next(&sight(0, 10), calm(), 140_000), Action::Finish(_)));
    }

    #[test]
    fn a_cancel_ends_in_every_phase() {
        let cancel = Wish { suspend: false, cancel: true };
        let mut between = Canary::new(POLICY, 5);
        let mut sending = Canary::new(POLICY, 5);
        sending.record_begun(1, 5, 0);
        for canary in [&mut between, &mut sending, &mut after_first_step()] {
            assert_eq!(canary.next(&sight(0, 0), cancel, 0), Action::Finish(Verdict::Cancelled));
            assert_eq!(canary.next(&sight(0, 0), calm(), 0), Action::Finish(Verdict::Cancelled), "and stays so");
        }
    }

    #[test]
    fn a_handed_over_canary_goes_on_with_the_next_step() {
        let already = Already { sent: 30, last_step: Some((2, 20)), sent_in_last_step: 20, ..Already::default() };
        let mut canary = Canary::resume(POLICY, 120, already, 0);
        assert_eq!(canary.next(&sight(20, 0), calm(), 1), Action::BeginStep { number: 3, size: 40 });
        let begun_only = Already { sent: 10, last_step: Some((2, 20)), ..Already::default() };
        let mut canary = Canary::resume(POLICY, 120, begun_only, 0);
        assert_eq!(canary.next(&sight(0, 0), calm(), 1), Action::BeginStep { number: 2, size: 20 });
    }

    /// One thing the world may do between two looks.
    #[derive(Clone, Debug)]
    struct Turn {
        settles: u64,
        returns: bool,
        passes: Millis,
        wish: Wish,
        ready: bool,
        slice: u64,
    }

    fn turn() -> impl Strategy<Value = Turn> {
        let wish = (prop::bool::weighted(0.1), prop::bool::weighted(0.01));
        let wish = wish.prop_map(|(suspend, cancel)| Wish { suspend, cancel });
        (0u64..30, prop::bool::weighted(0.01), 0i64..40_000, wish, prop::bool::weighted(0.9), 1u64..30).prop_map(
            |(settles, returns, passes, wish, ready, slice)| Turn { settles, returns, passes, wish, ready, slice },
        )
    }

    proptest! {
        /// Whatever happens: never more than was selected, no step above the cap, nothing sent after the end, a stop
        /// after the first return, and sums that add up.
        #[test]
        fn the_promises_hold_in_any_history(selected in 0u64..400, turns in prop::collection::vec(turn(), 1..300)) {
            let mut canary = Canary::new(POLICY, selected);
            let (mut now, mut settled, mut earlier, mut returned, mut over) = (0, 0, 0, 0, false);
            for turn in turns {
                now += turn.passes;
                let sent = canary.step().filter(|step| step.end.is_none()).map_or(0, |step| step.sent);
                settled = (settled + turn.settles).min(sent);
                returned += u64::from(turn.returns && canary.sent() > 0);
                let standing = Standing { settled, pending: sent - settled, ..Standing::default() };
                let before = Standing { settled: earlier, pending: canary.sent() - sent - earlier, ..Standing::default() };
                let sight = Sight { returned, standing, earlier: before, dlq_ready: turn.ready };
                let action = canary.next(&sight, turn.wish, now);
                prop_assert!(!over || matches!(action, Action::Finish(_)));
                prop_assert!(returned == 0 || matches!(action, Action::Finish(_)));
                match action {
                    Action::BeginStep { number, size } => {
                        prop_assert!(turn.ready && !turn.wish.suspend && size <= POLICY.max_step);
                        earlier += settled;
                        settled = 0;
                        canary.record_begun(number, size, now);
                    }
                    Action::Send { at_most } => {
                        prop_assert!(turn.ready && !turn.wish.suspend && at_most > 0);
                        canary.record_slice(turn.slice.min(at_most), 0, now);
                    }
                    Action::Finish(_) => over = true,
                    Action::Watch | Action::Pause | Action::Hold => {}
                }
                prop_assert!(canary.sent() <= selected);
                prop_assert_eq!(canary.sent() + canary.remaining(), selected);
            }
        }

        /// Where consumers settle everything the replay ends, and well.
        #[test]
        fn a_healthy_consumer_brings_it_to_its_end(selected in 0u64..2_000) {
            let mut canary = Canary::new(POLICY, selected);
            for _ in 0..1_000 {
                let open = canary.step().filter(|step| step.end.is_none()).map_or(0, |step| step.sent);
                match canary.next(&sight(open, 0), Wish::default(), 0) {
                    Action::BeginStep { number, size } => canary.record_begun(number, size, 0),
                    Action::Send { at_most } => canary.record_slice(at_most, 0, 0),
                    _ => break,
                }
            }
            prop_assert_eq!(canary.phase(), &Phase::Over(Verdict::AllSettled));
            prop_assert_eq!(canary.sent(), selected);
        }
    }
}
