//! Carries a plan out: the topic first, the group last, so that no group is pointed to a topic that does not take its
//! dead letters. The first failure ends it; every action is safe to repeat on the next pass.

use super::connection;
use super::plan::{Action, Plan, listed};
use crate::api::ShareGroupDLQ;
use crate::context::Context;
use crate::kafka::TopicId;
use crate::kafka::admin::{Admin, AdminError};
use kube::Resource;

/// What came of a plan's actions.
#[derive(Debug, Default)]
pub struct Applied {
    /// How many were carried out.
    pub done: usize,
    /// The id of the topic that was created.
    pub created: Option<TopicId>,
    pub failure: Option<(Action, AdminError)>,
    /// The lease was lost before all were carried out.
    pub stopped: bool,
}

pub async fn apply(context: &Context, object: &ShareGroupDLQ, plan: &Plan) -> Applied {
    let mut applied = Applied::default();
    let Some(settings) = connection::settings(&object.spec.kafka) else { return applied };
    let admin = context.clusters.admin(&settings);
    for action in &plan.actions {
        if !context.leadership.is_held() {
            applied.stopped = true;
            break;
        }
        match carry_out(&admin, action).await {
            Ok(created) => applied.created = created.or(applied.created),
            Err(error) => {
                applied.failure = Some((action.clone(), error));
                break;
            }
        }
        applied.done += 1;
        tell(context, object, action).await;
    }
    applied
}

async fn carry_out(admin: &Admin, action: &Action) -> Result<Option<TopicId>, AdminError> {
    match action {
        Action::CreateTopic(new) => admin.create_topic(new).await.map(Some),
        Action::GrowPartitions { topic, count } => admin.grow_partitions(topic, *count).await.map(|()| None),
        Action::AlterTopic { topic, changes, .. } => admin.alter_topic_config(topic, changes).await.map(|()| None),
        Action::AlterGroup { group, changes, .. } => admin.alter_group_config(group, changes).await.map(|()| None),
    }
}

/// Topic and group are different actions, so that each has an Event series of its own.
async fn tell(context: &Context, object: &ShareGroupDLQ, action: &Action) {
    let turn = if action.concerns_topic() { "ConfigureTopic" } else { "ConfigureGroup" };
    let object = object.object_ref(&());
    let (reason, note) = match action {
        Action::CreateTopic(new) => ("TopicCreated", format!("created topic {}", new.name)),
        Action::GrowPartitions { topic, count } => {
            ("PartitionsAdded", format!("topic {topic} has {count} partitions now"))
        }
        Action::AlterTopic { topic, changes, drift: false } => {
            ("TopicChanged", format!("set on topic {topic}: {}", listed(changes)))
        }
        Action::AlterGroup { group, changes, drift: false } => {
            ("GroupChanged", format!("set on group {group}: {}", listed(changes)))
        }
        Action::AlterTopic { topic: of, changes, drift: true }
        | Action::AlterGroup { group: of, changes, drift: true } => {
            // Somebody else changed it, and may do it again.
            let note = format!("{of} was changed by others and put back: {}", listed(changes));
            tracing::warn!("{note}");
            return context.events.warning(&object, "DriftCorrected", turn, note).await;
        }
    };
    tracing::info!(reason, "{note}");
    context.events.normal(&object, reason, turn, note).await;
}
