//! The preview: from what is so to what a replay would do and what would go wrong. Pure: all its rules are here.

mod problems;
mod summary;
mod targets;

use super::canary::Policy;
use super::look::Scene;
use super::selection;
use super::survey::{Sample, Survey};
use super::token::{self, Previewed};
use crate::api::{self, Preview, Problem, Time};
use crate::kafka::admin::Configs;
use crate::kafka::{Span, TopicId};
use jiff::Timestamp;
use serde_json::json;
use std::collections::BTreeMap;

/// What the plan is made for.
pub struct Asked<'a> {
    pub spec: &'a api::DLQReplaySpec,
    /// The share group whose dead letters these are.
    pub group: &'a str,
    pub now: Timestamp,
    /// Whether the token may name the ledger: not if the preview that is looked at again was taken before there was one.
    pub with_ledger: bool,
}

/// A preview, and what a replay of it needs beyond.
pub struct Planned {
    pub preview: Preview,
    /// The group whose progress settles a message, if one is known.
    pub settling_group: Option<String>,
    pub policy: Policy,
}

#[derive(Debug, thiserror::Error)]
#[error("the preview's token can't be made: {0}")]
pub struct MakeTokenError(#[from] serde_json::Error);

pub fn plan(asked: &Asked<'_>, scene: &Scene) -> Result<Planned, MakeTokenError> {
    let settling_group = targets::settling_group(asked, scene);
    let settling_configs = settling_group.as_ref().and_then(|group| scene.settling_configs.get(group));
    let policy = policy(asked.spec, settling_configs);
    let targets = targets::targets(asked, scene, settling_group.as_deref());
    let mut problems = problems::find(&problems::Case {
        asked,
        scene,
        targets: &targets,
        policy,
        settling_group: settling_group.as_deref(),
    });
    problems.sort_by_key(|problem| (!problem.blocking, problem.type_));
    let preview = Preview {
        token: token(asked, scene)?,
        taken_at: Time(asked.now),
        evaluation_time: Time(asked.now),
        ledger_as_of: scene.ledger.as_ref().filter(|_| asked.with_ledger).map(|_| Time(asked.now)),
        bounds: scene.bounds.iter().map(bounds).collect(),
        summary: summary::summary(&scene.survey, &problems, &targets),
        messages: signed(scene.survey.messages),
        entries: signed(scene.survey.entries),
        breakdown: breakdown(&scene.survey),
        already_replayed: already_replayed(&scene.survey),
        payload: Some(payload(&scene.survey)),
        sample: scene.survey.samples.iter().map(|one| sample(asked, one)).collect(),
        problems,
        targets,
    };
    Ok(Planned { preview, settling_group, policy })
}

/// The problems that are blocking and were not among those of an earlier preview.
pub fn new_blocking<'a>(before: &[Problem], now: &'a [Problem]) -> Vec<&'a Problem> {
    let known = |problem: &Problem| before.iter().any(|old| old.blocking && old.type_ == problem.type_);
    now.iter().filter(|problem| problem.blocking && !known(problem)).collect()
}

/// The rules of the canary, from the spec and the settling group's configs.
pub fn policy(spec: &api::DLQReplaySpec, configs: Option<&Configs>) -> Policy {
    let number = |name, default| configs.and_then(|configs| configs.number(name)).unwrap_or(default);
    // Defaults of Kafka 4.4, for a group whose configs can't be had.
    let redelivery = number("share.delivery.count.limit", 5) * number("share.record.lock.duration.ms", 30_000);
    let size = |size: i32| u64::from(size.unsigned_abs());
    Policy {
        initial_step: size(spec.canary.initial_step_size),
        max_step: size(spec.canary.max_step_size),
        step_timeout: i64::from(spec.canary.step_timeout_seconds) * 1000,
        redelivery_time: redelivery,
    }
}

fn token(asked: &Asked<'_>, scene: &Scene) -> Result<String, serde_json::Error> {
    let id = |name: &String| scene.topics.get(name).and_then(|facts| facts.found()).map(|topic| topic.id);
    let names = scene.survey.sources.keys().map(|partition| &partition.topic).chain(target(asked.spec));
    let source_topics: BTreeMap<String, Option<TopicId>> = names.map(|name| (name.clone(), id(name))).collect();
    token::token(&Previewed {
        cluster_id: &scene.cluster_id,
        group: asked.group,
        ledger: scene.ledger.as_ref().filter(|_| asked.with_ledger).map(|ledger| ledger.id),
        dead_letter_topic: scene.dead_letter_topic.id,
        source_topics: &source_topics,
        selection: &json!(asked.spec.selection),
        target: &json!(asked.spec.target),
        bounds: &scene.bounds,
        offsets: &scene.survey.selected,
    })
}

/// Another target than the sources, if one was asked for.
pub fn target(spec: &api::DLQReplaySpec) -> Option<&String> {
    spec.target.as_ref().and_then(|target| target.topic.as_ref())
}

/// Counts of messages are far below what an i64 holds.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn time(millis: i64) -> Time {
    Time(Timestamp::from_second(millis.div_euclid(1000)).unwrap_or_default())
}

fn bounds(span: &Span) -> api::Bounds {
    api::Bounds { partition: span.partition, from: span.from, until: span.until }
}

fn breakdown(survey: &Survey) -> Vec<api::BreakdownRow> {
    let row = |(group, count): (super::survey::Group, u64)| api::BreakdownRow {
        source_topic: group.source_topic,
        cause: selection::cause(group.cause),
        hour: time(group.hour),
        count: signed(count),
    };
    survey.breakdown(api::KEPT_PREVIEW_ROWS).into_iter().map(row).collect()
}

fn already_replayed(survey: &Survey) -> Option<api::AlreadyReplayed> {
    let last = survey.last_replay.as_ref()?;
    Some(api::AlreadyReplayed {
        messages: signed(survey.replayed_before + survey.selected_again),
        last_time: Some(time(last.at)),
        last_replay: Some(last.replay.clone()),
    })
}

fn payload(survey: &Survey) -> api::Payload {
    api::Payload {
        original: signed(survey.original),
        copy_only: signed(survey.copy_only),
        unavailable: signed(super::run::account::count(&survey.unavailable)),
    }
}

fn sample(asked: &Asked<'_>, one: &Sample) -> api::SampleMessage {
    let letter = &one.letter;
    api::SampleMessage {
        partition: letter.partition,
        offset: letter.offset,
        target: target(asked.spec).unwrap_or(&letter.source.topic).clone(),
        cause: selection::cause(letter.cause),
        message: api::clip(&one.message, api::CLIPPED_MESSAGE),
        deliveries: letter.deliveries,
        attempt: i32::try_from(letter.attempt).unwrap_or(i32::MAX),
        dead_lettered_at: time(letter.timestamp),
        replayed_at: one.earlier.as_ref().map(|earlier| time(earlier.at)),
    }
}
