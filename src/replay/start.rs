//! From a DLQReplay that is to run to the job it is: the preview is looked at again, and only what it showed is run.

use super::canary::Policy;
use super::look::{self, LookError, Scene, Where};
use super::outgoing::Provenance;
use super::plan::{self, Asked, MakeTokenError, Planned};
use super::quote::Quoted;
use super::report::whole_second;
use super::run::owner::Place;
use super::run::{Job, Route};
use super::selection::Matcher;
use super::{now, token};
use crate::api::outcome::Reason;
use crate::api::{self, DLQReplay, DLQReplaySpec, OnInterruption, Preview, Problem};
use crate::context::Context;
use crate::kafka::admin::{Admin, AdminError, TopicLookup};
use crate::kafka::ledger::{History, Ledger, LedgerError, LedgerSpec, Start};
use crate::kafka::settings::Settings;
use crate::kafka::{Span, TopicId};
use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Look(#[from] LookError),
    #[error(transparent)]
    AskKafka(#[from] AdminError),
    #[error(transparent)]
    ReadLedger(#[from] LedgerError),
    #[error(transparent)]
    MakeToken(#[from] MakeTokenError),
}

/// Where the dead letters of a ShareGroupDLQ are.
#[derive(Clone)]
pub struct Ground {
    pub admin: Admin,
    pub settings: Settings,
    pub dead_letter_topic: String,
    pub group: String,
    /// The ledger's topic id, as it was seen before.
    pub remembered_ledger: Option<String>,
}

/// What becomes of a DLQReplay that is to run.
pub enum Decision {
    Run(Box<Job>),
    End(Reason, String),
}

/// The look and the plan for it, within the bounds of an earlier preview if there is one.
pub async fn preview(
    context: &Context,
    ground: &Ground,
    spec: &DLQReplaySpec,
    earlier: Option<&Preview>,
) -> Result<(Scene, Planned), StartError> {
    let matcher = Matcher::new(spec.selection.as_ref()).map_err(LookError::from)?;
    let span = |bounds: &api::Bounds| Span { partition: bounds.partition, from: bounds.from, until: bounds.until };
    let at = Where {
        admin: &ground.admin,
        settings: &ground.settings,
        dead_letter_topic: &ground.dead_letter_topic,
        group: &ground.group,
        ledger_topic: &context.config.ledger_topic,
        target: plan::target(spec).map(String::as_str),
        settling_group: spec.target.as_ref().and_then(|target| target.settling_group()),
        bounds: earlier.map(|preview| preview.bounds.iter().map(span).collect()),
    };
    let scene = look::look(&at, &matcher).await?;
    let with_ledger = earlier.is_none_or(|preview| preview.ledger_as_of.is_some());
    let asked = Asked { spec, group: &ground.group, now: whole_second(Timestamp::now()), with_ledger };
    let planned = plan::plan(&asked, &scene)?;
    Ok((scene, planned))
}

/// Decides whether the object's replay may begin, by a look at what is so now.
pub async fn decide(
    context: &Context,
    ground: &Ground,
    object: &DLQReplay,
    quoted: &Quoted,
) -> Result<Decision, StartError> {
    let uid = object.uid().unwrap_or_default();
    let spec =
        DLQReplaySpec { selection: quoted.selection.clone(), target: quoted.target.clone(), ..object.spec.clone() };
    if let Some(job) = begun_before(context, ground, object, &spec, &uid).await? {
        return Ok(Decision::Run(Box::new(job)));
    }
    let (scene, planned) = preview(context, ground, &spec, Some(&quoted.preview)).await?;
    if let Some((reason, message)) = find_obstacle(ground, quoted, &scene, &planned) {
        return Ok(Decision::End(reason, message));
    }
    let ledger = match scene.ledger {
        Some(ref ledger) => ledger.clone(),
        None => Ledger::ensure(&ground.admin, &ledger_spec(context)).await?,
    };
    let topics = scene.topics.iter().filter_map(|(name, facts)| Some((name.clone(), facts.found()?)));
    let (ids, partitions) = topics
        .map(|(name, topic)| ((name.clone(), topic.id), (name, topic.partitions.len() as i32)))
        .unzip::<_, _, BTreeMap<_, _>, BTreeMap<_, _>>();
    let settling_group = planned.settling_group.unwrap_or_else(|| ground.group.clone());
    let start = Start {
        uid: uid.clone(),
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
        group: ground.group.clone(),
        token: quoted.preview.token.clone(),
        spec_digest: digest(&object.spec),
        reason: object.spec.reason.clone(),
        requested_by: object.annotations().get(REQUESTED_BY).cloned(),
        strategy: format!("{:?}", object.spec.strategy),
        selected: scene.survey.selected.clone(),
        topics: ids.clone(),
        settling_group: settling_group.clone(),
        dead_letter_ends: BTreeMap::new(),
        at: now(),
    };
    let known = Known { ids, partitions, settling_group, policy: planned.policy };
    let place = place(ground, ledger, scene.dead_letter_topic.id);
    Ok(Decision::Run(Box::new(job(context, ground, &spec, place, start, &scene.history, known))))
}

/// Who asked for the replay, as the API server recorded it.
const REQUESTED_BY: &str = "redrive.dev/replay-requested-by";

/// What forbids to begin, in the order of what a user should hear first.
fn find_obstacle(ground: &Ground, quoted: &Quoted, scene: &Scene, planned: &Planned) -> Option<(Reason, String)> {
    let found = scene.ledger.as_ref().map(|ledger| ledger.id.to_string());
    if let Some(remembered) = ground.remembered_ledger.as_ref().filter(|remembered| found.as_ref() != Some(remembered))
    {
        let found = found.unwrap_or_else(|| "missing".into());
        let message = format!(
            "the ledger had topic id {remembered} and is {found} now: what was replayed before is not known any more, so nothing is sent. See the condition Degraded of the ShareGroupDLQ"
        );
        return Some((Reason::LedgerLost, message));
    }
    if planned.preview.token != quoted.preview.token {
        let message = format!(
            "the preview showed {} messages, the same look now finds {} or another set of them (replayed since, deleted by retention, or a topic was made anew); nothing is sent. Make a new DLQReplay",
            quoted.preview.messages, planned.preview.messages
        );
        return Some((Reason::SelectionChanged, message));
    }
    if planned.preview.messages == 0 {
        return Some((Reason::NothingSelected, NOTHING.into()));
    }
    let blocking = |problems: &[Problem]| problems.iter().any(|problem| problem.blocking);
    blocking(&planned.preview.problems)
        .then(|| (Reason::Blocked, blocked(&quoted.preview.problems, &planned.preview.problems)))
}

pub const NOTHING: &str = "no dead letter matches: nothing to do";

/// Names the problems that block, and says which of them the preview did not show.
fn blocked(before: &[Problem], now: &[Problem]) -> String {
    let new = plan::new_blocking(before, now);
    let tell = |problem: &Problem| {
        let mark = if new.contains(&problem) { "new since the preview: " } else { "" };
        format!("{mark}{}: {}", problem.type_, problem.message)
    };
    let told: Vec<String> = now.iter().filter(|problem| problem.blocking).map(tell).collect();
    format!("nothing is sent. {}", told.join("; "))
}

/// A replay that is in the ledger already goes on, or ends, from what is recorded there, whatever is so now.
async fn begun_before(
    context: &Context,
    ground: &Ground,
    object: &DLQReplay,
    spec: &DLQReplaySpec,
    uid: &str,
) -> Result<Option<Job>, StartError> {
    let Some(ledger) = Ledger::find(&ground.admin, &context.config.ledger_topic).await? else { return Ok(None) };
    let names = BTreeSet::from([ground.dead_letter_topic.clone()]);
    let topics = ground.admin.topics(&names).await?;
    let Some(TopicLookup::Found(topic)) = topics.get(&ground.dead_letter_topic) else { return Ok(None) };
    let history = ledger.read(&ground.admin, &ground.settings, topic.id).await?;
    let Some(start) = history.replays.get(uid).and_then(|replay| replay.start.clone()) else { return Ok(None) };
    tracing::info!(replay = %object.name_any(), "found in the ledger: it was begun by an earlier owner");
    let known = known_of(ground, object, &start).await?;
    let place = place(ground, ledger, topic.id);
    Ok(Some(job(context, ground, spec, place, start, &history, known)))
}

async fn known_of(ground: &Ground, object: &DLQReplay, start: &Start) -> Result<Known, StartError> {
    let names: BTreeSet<String> = start.topics.keys().cloned().collect();
    let groups = BTreeSet::from([start.settling_group.clone()]);
    let (topics, configs) = tokio::try_join!(ground.admin.topics(&names), ground.admin.group_configs(&groups))?;
    let partitions = topics.into_iter().filter_map(|(name, lookup)| match lookup {
        TopicLookup::Found(topic) => Some((name, topic.partitions.len() as i32)),
        _ => None,
    });
    let configs = configs.into_values().find_map(Result::ok);
    Ok(Known {
        ids: start.topics.clone(),
        partitions: partitions.collect(),
        settling_group: start.settling_group.clone(),
        policy: plan::policy(&object.spec, configs.as_ref()),
    })
}

/// What of the topics and the group a job is made with.
struct Known {
    ids: BTreeMap<String, TopicId>,
    partitions: BTreeMap<String, i32>,
    settling_group: String,
    policy: Policy,
}

fn place(ground: &Ground, ledger: Ledger, dead_letter_topic: TopicId) -> Place {
    let (admin, settings) = (ground.admin.clone(), ground.settings.clone());
    Place { admin, settings, ledger, dead_letter_topic }
}

fn job(
    context: &Context,
    ground: &Ground,
    spec: &DLQReplaySpec,
    place: Place,
    start: Start,
    history: &History,
    known: Known,
) -> Job {
    let provenance = Provenance {
        dead_letter_topic: ground.dead_letter_topic.clone(),
        replay: format!("{}/{}/{}", start.namespace, start.name, start.uid),
    };
    let route = Route {
        provenance,
        target: plan::target(spec).cloned(),
        keep_error_headers: spec.target.as_ref().is_some_and(|target| target.keeps_error_headers()),
        ids: known.ids,
        partitions: known.partitions,
    };
    Job {
        place,
        leadership: context.leadership.clone(),
        dead_letter_topic: ground.dead_letter_topic.clone(),
        group: ground.group.clone(),
        settling_group: known.settling_group,
        route,
        policy: known.policy,
        index: history.index(&start.group),
        start,
        resume: spec.on_interruption == OnInterruption::Resume,
        include_replayed: spec.selection.as_ref().is_some_and(|selection| selection.include_replayed),
    }
}

fn ledger_spec(context: &Context) -> LedgerSpec {
    LedgerSpec {
        topic: context.config.ledger_topic.clone(),
        partitions: context.config.ledger_partitions,
        replication_factor: context.config.ledger_replication_factor,
    }
}

/// A digest of what a user can't change in a DLQReplay: by it an object made anew from the same manifest is known.
fn digest(spec: &DLQReplaySpec) -> String {
    token::digest(&json!([spec.dlq_ref, spec.selection, spec.target, spec.strategy, spec.canary, spec.reason]))
}

impl StartError {
    /// Whether Kafka did not answer, rather than answered something that stands in the way.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Look(LookError::AskKafka(error)) | Self::AskKafka(error) => error.is_unreachable(),
            Self::Look(LookError::ReadTopic(_) | LookError::ReadLedger(_)) | Self::ReadLedger(_) => true,
            Self::Look(_) | Self::MakeToken(_) => false,
        }
    }
}
