//! What the API server makes of a DLQReplay: defaults, what may change and when, and a sentence for every mistake.

use crate::support::{
    Cluster,
    apply::{Objects, TAKEN, with},
};
use jiff::Timestamp;
use kube::{Api, api::PostParams};
use redrive::api::{
    DLQReplay, DLQReplaySpec, DLQReplayStatus, Time,
    conditions::find,
    outcome::{self, Reason},
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const TOKEN: &str = "pv1-0123456789abcdef";

fn good() -> Value {
    json!({"dlqRef": {"name": "orders"}})
}

fn full() -> Value {
    json!({
        "dlqRef": {"name": "orders"},
        "action": "Replay",
        "previewToken": TOKEN,
        "reason": "fixed in 1.4.2",
        "selection": {
            "offsets": [{"partition": 0, "ranges": "0-99,120"}],
            "excludeOffsets": [{"partition": 0, "ranges": "7"}],
            "causes": ["Rejected", "DeliveryLimit"],
            "messageContains": "timed out",
            "minDeliveries": 1,
            "maxAttempts": 3,
            "sourceTopics": ["orders"],
            "sourcePartitions": [0, 1],
            "deadLettered": {"from": "2026-11-01T00:00:00Z", "until": "2026-11-30T00:00:00Z"},
            "keys": ["a", ""],
            "headers": [{"name": "tenant", "value": "acme"}],
            "includeReplayed": true,
            "limit": 1000,
        },
        "target": {"topic": "scratch", "partitioning": "Key", "errorHeaders": "Keep", "groupId": "checkers"},
        "allowOtherReaders": ["analytics"],
        "strategy": "AllAtOnce",
        "canary": {"initialStepSize": 1, "maxStepSize": 1, "stepTimeoutSeconds": 1},
        "messagesPerSecond": 1_000_000,
        "onUnsendable": "Skip",
        "onInterruption": "Resume",
        "suspend": true,
        "cancel": true,
        "ttlSecondsAfterFinished": 0,
    })
}

fn full_status() -> Value {
    let time = "2026-11-01T10:00:00Z";
    let ranges = json!([{"partition": 0, "ranges": "0-9,12"}, {"partition": 1, "ranges": "3"}]);
    json!({
        "observedGeneration": 2,
        "conditions": [{
            "type": "Succeeded", "status": "False", "reason": "MessagesReturned", "message": "2 of 10 came back",
            "observedGeneration": 2, "lastTransitionTime": time,
        }],
        "startTime": time,
        "completionTime": time,
        "owner": {"identity": "redrive-7d9c", "since": time},
        "preview": {
            "token": TOKEN, "takenAt": time, "evaluationTime": time, "ledgerAsOf": time,
            "bounds": [{"partition": 0, "from": 0, "until": 1200}],
            "summary": "1200 messages; 1 target missing",
            "messages": 1200, "entries": 1203,
            "problems": [{"type": "TargetMissing", "blocking": true, "messages": 40, "message": "topic payments does not exist"}],
            "targets": [{
                "topic": "orders", "exists": true, "authorized": true, "messages": 1160, "liveConsumers": 2,
                "groups": [{"groupId": "orders", "type": "Share", "members": 2, "willReceive": true}],
            }],
            "breakdown": [{"sourceTopic": "orders", "cause": "Rejected", "hour": time, "count": 1160}],
            "alreadyReplayed": {"messages": 3, "lastTime": time, "lastReplay": "shop/orders-first"},
            "payload": {"original": 1100, "copyOnly": 90, "unavailable": 10},
            "sample": [{
                "partition": 0, "offset": 7, "target": "orders", "cause": "DeliveryLimit", "message": "too often",
                "deliveries": 5, "attempt": 2, "deadLetteredAt": time, "replayedAt": time,
            }],
        },
        "progress": {
            "selected": 1200, "sent": 10, "uncertain": 1, "settled": 8, "expired": 0, "returned": 2, "skipped": 0,
            "inDoubt": 1, "remaining": 1190,
        },
        "step": {"number": 1, "size": 10, "sent": 10, "settled": 8, "returned": 2, "startedAt": time, "deadline": time},
        "steps": [{"number": 1, "size": 10, "sent": 10, "settled": 8, "returned": 2, "startedAt": time, "deadline": time, "verdict": "Returned"}],
        "sent": ranges,
        "sentTruncated": false,
        "uncertain": ranges,
        "inDoubt": ranges,
        "returned": [{
            "partition": 0, "offset": 7, "deadLetterPartition": 1, "deadLetterOffset": 1203, "cause": "Rejected",
            "message": "Offset rejected by client.", "deliveries": 1,
        }],
    })
}

async fn objects(namespace: &str) -> (&'static Cluster, Objects) {
    let cluster = Cluster::shared().await;
    cluster.namespace(namespace).await;
    (cluster, Objects::of::<DLQReplay>(cluster.client().await, namespace))
}

#[tokio::test]
async fn a_step_size_cap_pace_or_timeout_out_of_bounds_is_refused() {
    let (_, objects) = objects("api-replay-bounds").await;
    let fields = [
        ("canary.initialStepSize", "1000000"),
        ("canary.maxStepSize", "1000000"),
        ("canary.stepTimeoutSeconds", "86400"),
        ("messagesPerSecond", "1000000"),
        ("selection.limit", "1000000000"),
        ("selection.minDeliveries", "32767"),
        ("selection.maxAttempts", "32767"),
    ];
    for (field, highest) in fields {
        let (least, most) = (
            format!("spec.{field} in body should be greater than or equal to 1"),
            format!("spec.{field} in body should be less than or equal to {highest}"),
        );
        let set = |value: Value| match field.split_once('.') {
            Some((outer, inner)) => json!({outer: {inner: value}}),
            None => json!({field: value}),
        };
        let rows = vec![
            ("0", set(json!(0)), &*least),
            ("negative", set(json!(-1)), &*least),
            ("2^31", set(json!(2_147_483_648_i64)), &*most),
            ("-2^31 - 1", set(json!(-2_147_483_649_i64)), &*least),
            ("a fraction", set(json!(1.5)), "must be of type integer"),
            ("text", set(json!("10")), field),
        ];
        objects.try_new(&good(), rows).await;
    }
    let ttl = |seconds: i64| json!({"ttlSecondsAfterFinished": seconds});
    let rows = vec![
        ("ttl 0", ttl(0), TAKEN),
        ("ttl -1", ttl(-1), "spec.ttlSecondsAfterFinished in body should be greater than or equal to 0"),
        (
            "ttl 2^31",
            ttl(2_147_483_648),
            "spec.ttlSecondsAfterFinished in body should be less than or equal to 2147483647",
        ),
    ];
    objects.try_new(&good(), rows).await;
}

#[tokio::test]
async fn a_bad_replay_is_refused_with_a_sentence() {
    let (_, objects) = objects("api-replay-bad").await;
    let selection = |selection: Value| json!({"selection": selection});
    let ranges = |ranges: &str| json!({"selection": {"offsets": [{"partition": 0, "ranges": ranges}]}});
    let token = |token: &str| json!({"action": "Replay", "previewToken": token});
    let target = |target: Value| json!({"target": target});
    let (bad_ranges, not_a_token) = ("spec.selection.offsets[0].ranges", "not a preview token");
    let rows = vec![
        ("no ShareGroupDLQ", json!({"dlqRef": null}), "spec.dlqRef: Required value"),
        ("a ShareGroupDLQ without name", json!({"dlqRef": {"name": null}}), "spec.dlqRef.name: Required value"),
        ("an unknown action", json!({"action": "Resend"}), "supported values: \"Preview\", \"Replay\", \"Dismiss\""),
        (
            "a token for a preview",
            json!({"previewToken": TOKEN}),
            "previewToken goes with action: Replay or action: Dismiss",
        ),
        ("an empty token", token(""), "spec.previewToken in body should be at least 1 chars long"),
        ("a token of another version", token("pv2-0123456789abcdef"), not_a_token),
        ("a short token", token("pv1-0123"), not_a_token),
        ("a token with capitals", token("pv1-0123456789ABCDEF"), not_a_token),
        ("an empty reason", json!({"reason": ""}), "spec.reason"),
        (
            "a cap below the first step",
            json!({"canary": {"initialStepSize": 20, "maxStepSize": 10}}),
            "canary.maxStepSize must be at least canary.initialStepSize",
        ),
        (
            "a first step above the cap's default",
            json!({"canary": {"initialStepSize": 1001}}),
            "canary.maxStepSize must be at least canary.initialStepSize",
        ),
        (
            "no offsets",
            selection(json!({"offsets": []})),
            "spec.selection.offsets in body should have at least 1 items",
        ),
        ("no ranges", ranges(""), bad_ranges),
        ("ranges with a space", ranges("1, 2"), bad_ranges),
        ("an open range", ranges("5-"), bad_ranges),
        ("a negative offset", ranges("-5"), bad_ranges),
        ("a comma too many", ranges("1,2,"), bad_ranges),
        ("an offset beyond 64 bits", ranges("10000000000000000000000"), bad_ranges),
        (
            "a partition twice",
            selection(json!({"offsets": [{"partition": 0, "ranges": "1"}, {"partition": 0, "ranges": "2"}]})),
            "duplicate entries for key [partition=0]",
        ),
        ("a negative partition", selection(json!({"sourcePartitions": [-1]})), "greater than or equal to 0"),
        ("no causes", selection(json!({"causes": []})), "spec.selection.causes in body should have at least 1 items"),
        ("an unknown cause", selection(json!({"causes": ["Expired"]})), "spec.selection.causes[0]: Unsupported value"),
        ("a cause twice", selection(json!({"causes": ["Rejected", "Rejected"]})), "duplicate entries"),
        ("an empty text to look for", selection(json!({"messageContains": ""})), "spec.selection.messageContains"),
        ("a long text to look for", selection(json!({"messageContains": "x".repeat(257)})), "may not be more than 256"),
        ("no keys", selection(json!({"keys": []})), "spec.selection.keys in body should have at least 1 items"),
        (
            "a header without value",
            selection(json!({"headers": [{"name": "tenant"}]})),
            "spec.selection.headers[0].value: Required value",
        ),
        (
            "a header twice",
            selection(json!({"headers": [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]})),
            "duplicate entries for key",
        ),
        (
            "no period",
            selection(json!({"deadLettered": {}})),
            "spec.selection.deadLettered in body should have at least 1 properties",
        ),
        (
            "a time that is none",
            selection(json!({"deadLettered": {"from": "yesterday"}})),
            "spec.selection.deadLettered.from",
        ),
        (
            "a period that ends before it begins",
            selection(json!({"deadLettered": {"from": "2026-11-02T00:00:00+01:00", "until": "2026-11-01T22:00:00Z"}})),
            "until must be after from",
        ),
        (
            "a period without length",
            selection(json!({"deadLettered": {"from": "2026-11-01T00:00:00Z", "until": "2026-11-01T00:00:00Z"}})),
            "until must be after from",
        ),
        ("a target with a slash", target(json!({"topic": "a/b"})), "not a legal Kafka topic name"),
        ("the target ..", target(json!({"topic": ".."})), "not a legal Kafka topic name"),
        (
            "a target of Kafka's own",
            target(json!({"topic": "__consumer_offsets"})),
            "names that start with __ belong to Kafka itself",
        ),
        ("an unknown partitioning", target(json!({"partitioning": "Random"})), "supported values: \"Source\", \"Key\""),
        ("unknown error headers", target(json!({"errorHeaders": "Copy"})), "supported values: \"Drop\", \"Keep\""),
        (
            "no other readers",
            json!({"allowOtherReaders": []}),
            "spec.allowOtherReaders in body should have at least 1 items",
        ),
        ("another reader twice", json!({"allowOtherReaders": ["a", "a"]}), "duplicate entries"),
        ("another reader without id", json!({"allowOtherReaders": [""]}), "spec.allowOtherReaders[0]"),
        ("an unknown strategy", json!({"strategy": "BigBang"}), "supported values: \"Canary\", \"AllAtOnce\""),
        ("an unknown onUnsendable", json!({"onUnsendable": "Retry"}), "supported values: \"Fail\", \"Skip\""),
        ("an unknown onInterruption", json!({"onInterruption": "Retry"}), "supported values: \"Stop\", \"Resume\""),
        ("an unknown field", json!({"batchSize": 10}), ".spec.batchSize: field not declared in schema"),
        (
            "an unknown field further in",
            selection(json!({"offset": 1})),
            ".spec.selection.offset: field not declared in schema",
        ),
    ];
    objects.try_new(&good(), rows).await;
}

#[tokio::test]
async fn a_good_replay_is_taken() {
    let (_, objects) = objects("api-replay-good").await;
    let rows = vec![
        ("the least", json!({}), TAKEN),
        ("every field", full(), TAKEN),
        ("a replay without token", json!({"action": "Replay"}), TAKEN),
        ("a dismissal of a token", json!({"action": "Dismiss", "previewToken": TOKEN}), TAKEN),
        (
            "the smallest numbers",
            json!({"canary": {"initialStepSize": 1, "maxStepSize": 1, "stepTimeoutSeconds": 1}, "messagesPerSecond": 1}),
            TAKEN,
        ),
        (
            "the largest numbers",
            json!({"canary": {"initialStepSize": 1_000_000, "maxStepSize": 1_000_000, "stepTimeoutSeconds": 86400}, "messagesPerSecond": 1_000_000}),
            TAKEN,
        ),
        (
            "the largest offset",
            json!({"selection": {"offsets": [{"partition": 0, "ranges": "0-9223372036854775807"}]}}),
            TAKEN,
        ),
        ("a period open at one end", json!({"selection": {"deadLettered": {"from": "2026-11-01T00:00:00.5Z"}}}), TAKEN),
        ("a settling group left empty", json!({"target": {"groupId": ""}}), TAKEN),
    ];
    objects.try_new(&good(), rows).await;
}

#[tokio::test]
async fn a_replay_changes_only_where_and_when_it_may() {
    let (_, objects) = objects("api-replay-changes").await;
    let (none, preview, replay, cancelled) =
        (json!({}), json!({}), json!({"action": "Replay"}), json!({"cancel": true}));
    let quoted = json!({"action": "Replay", "previewToken": TOKEN});
    let no_way_back = "action cannot change once it is Replay or Dismiss";
    let rows = vec![
        // What the preview is about.
        (
            "another ShareGroupDLQ",
            none.clone(),
            json!({"dlqRef": {"name": "b"}}),
            "dlqRef cannot change; make a new DLQReplay",
        ),
        ("a reason later", none.clone(), json!({"reason": "a"}), "reason cannot change"),
        ("another reason", json!({"reason": "a"}), json!({"reason": "b"}), "reason cannot change"),
        ("no reason any more", json!({"reason": "a"}), json!({"reason": null}), "reason cannot change"),
        ("a selection later", none.clone(), json!({"selection": {"limit": 1}}), "selection cannot change"),
        (
            "another selection",
            json!({"selection": {"limit": 1}}),
            json!({"selection": {"limit": 2}}),
            "selection cannot change",
        ),
        (
            "no selection any more",
            json!({"selection": {"limit": 1}}),
            json!({"selection": null}),
            "selection cannot change",
        ),
        ("a target later", none.clone(), json!({"target": {"topic": "a"}}), "target cannot change"),
        (
            "another target",
            json!({"target": {"topic": "a"}}),
            json!({"target": {"topic": "b"}}),
            "target cannot change",
        ),
        ("no target any more", json!({"target": {"topic": "a"}}), json!({"target": null}), "target cannot change"),
        ("another strategy", none.clone(), json!({"strategy": "AllAtOnce"}), "strategy cannot change"),
        ("another step size", none.clone(), json!({"canary": {"initialStepSize": 5}}), "canary cannot change"),
        ("another onInterruption", none.clone(), json!({"onInterruption": "Resume"}), "onInterruption cannot change"),
        (
            "default values written out",
            none.clone(),
            json!({"strategy": "Canary", "canary": {"maxStepSize": 1000}}),
            TAKEN,
        ),
        // Until action is Replay or Dismiss.
        ("replay", preview.clone(), replay.clone(), TAKEN),
        ("replay of a token", preview.clone(), quoted.clone(), TAKEN),
        ("dismiss", preview.clone(), json!({"action": "Dismiss"}), TAKEN),
        ("back to preview", replay.clone(), json!({"action": "Preview"}), no_way_back),
        ("back to preview by leaving it out", replay.clone(), json!({"action": null}), no_way_back),
        ("dismiss what is replayed", replay.clone(), json!({"action": "Dismiss"}), no_way_back),
        ("replay what is dismissed", json!({"action": "Dismiss"}), replay.clone(), no_way_back),
        ("a token later", replay.clone(), json!({"previewToken": TOKEN}), "previewToken cannot change"),
        (
            "another token",
            quoted.clone(),
            json!({"previewToken": "pv1-fedcba9876543210"}),
            "previewToken cannot change",
        ),
        ("no token any more", quoted.clone(), json!({"previewToken": null}), "previewToken cannot change"),
        ("other readers in a preview", preview.clone(), json!({"allowOtherReaders": ["a"]}), TAKEN),
        (
            "other readers as the replay starts",
            preview.clone(),
            json!({"action": "Replay", "allowOtherReaders": ["a"]}),
            TAKEN,
        ),
        (
            "other readers in a replay",
            replay.clone(),
            json!({"allowOtherReaders": ["a"]}),
            "allowOtherReaders cannot change",
        ),
        (
            "no other readers any more in a replay",
            json!({"action": "Replay", "allowOtherReaders": ["a"]}),
            json!({"allowOtherReaders": null}),
            "allowOtherReaders cannot change",
        ),
        ("onUnsendable in a preview", preview.clone(), json!({"onUnsendable": "Skip"}), TAKEN),
        ("onUnsendable in a replay", replay.clone(), json!({"onUnsendable": "Skip"}), "onUnsendable cannot change"),
        // At any time.
        (
            "pace, pause and life of a preview",
            preview.clone(),
            json!({"messagesPerSecond": 5, "suspend": true, "ttlSecondsAfterFinished": 60}),
            TAKEN,
        ),
        (
            "pace, pause and life of a replay",
            replay.clone(),
            json!({"messagesPerSecond": 5, "suspend": true, "ttlSecondsAfterFinished": 60}),
            TAKEN,
        ),
        ("on after a pause", json!({"action": "Replay", "suspend": true}), json!({"suspend": false}), TAKEN),
        // Cancel is final.
        ("cancel a preview", preview.clone(), cancelled.clone(), TAKEN),
        ("cancel a replay", replay.clone(), cancelled.clone(), TAKEN),
        (
            "take a cancel back",
            cancelled.clone(),
            json!({"cancel": false}),
            "cancel is final; make a new DLQReplay for the rest",
        ),
        ("take a cancel back by leaving it out", cancelled.clone(), json!({"cancel": null}), "cancel is final"),
        ("replay a cancelled preview", cancelled.clone(), replay.clone(), "cancelled: action cannot change any more"),
        ("another pace after a cancel", cancelled.clone(), json!({"messagesPerSecond": 5}), TAKEN),
    ];
    objects.try_changes(&good(), rows).await;
}

/// Rules are costed at run time, too: a selection as large as a request may be must not make every later change impossible.
#[tokio::test]
async fn a_replay_with_a_large_selection_can_still_be_paused() {
    let (_, objects) = objects("api-replay-large").await;
    let ranges = vec!["1000000000000-1000000000009"; 2300].join(",");
    let offsets: Vec<_> = (0..10).map(|partition| json!({"partition": partition, "ranges": ranges})).collect();
    let keys: Vec<_> = (0..1000).map(|key| format!("{key:0>256}")).collect();
    let spec = with(&good(), json!({"selection": {"offsets": offsets, "keys": keys}}));
    objects.apply("large", &spec).await.expect("a large selection");
    objects.apply("large", &with(&spec, json!({"suspend": true, "action": "Replay"}))).await.expect("a pause");
    let refused = objects.try_apply("large", &with(&spec, json!({"selection": {"limit": 1}}))).await;
    assert!(refused.is_err_and(|sentence| sentence.contains("selection cannot change")));
}

#[tokio::test]
async fn defaults_are_filled_in() {
    let (_, objects) = objects("api-replay-defaults").await;
    let stored = objects.apply("orders", &good()).await.expect("a good object");
    let defaults = json!({
        "action": "Preview", "strategy": "Canary",
        "canary": {"initialStepSize": 10, "maxStepSize": 1000, "stepTimeoutSeconds": 60},
        "messagesPerSecond": 100, "onUnsendable": "Fail", "onInterruption": "Stop", "suspend": false, "cancel": false,
    });
    assert_eq!(stored["spec"], with(&good(), defaults));
    assert_eq!(stored["status"], json!({"observedGeneration": -1}), "kstatus must not call a new object current");

    let parts = json!({"selection": {"limit": 5}, "target": {"topic": "scratch"}, "canary": {"initialStepSize": 3}});
    let stored = objects.try_apply("other", &with(&good(), parts)).await.expect("a good object");
    let spec = &stored["spec"];
    assert_eq!(spec["selection"], json!({"limit": 5, "includeReplayed": false}));
    assert_eq!(spec["target"], json!({"topic": "scratch", "partitioning": "Source"}));
    assert_eq!(spec["canary"], json!({"initialStepSize": 3, "maxStepSize": 1000, "stepTimeoutSeconds": 60}));
}

#[tokio::test]
async fn the_types_keep_every_field_of_a_replay() {
    let (cluster, objects) = objects("api-replay-types").await;
    let spec: DLQReplaySpec = serde_json::from_value(full()).expect("the spec is one of the type");
    let status: DLQReplayStatus = serde_json::from_value(full_status()).expect("the status is one of the type");
    assert_eq!((json!(spec), json!(status)), (full(), full_status()));

    objects.apply("orders", &full()).await.expect("every field");
    let stored = objects.apply_status("orders", &full_status()).await.expect("every field of the status");
    assert_eq!((&stored["spec"], &stored["status"]), (&full(), &full_status()));

    let api = Api::<DLQReplay>::namespaced(cluster.client().await, "api-replay-types");
    let least = DLQReplay::new("least", DLQReplaySpec::preview_of("orders"));
    let created = api.create(&PostParams::default(), &least).await.expect("what the type writes is taken");
    assert_eq!(created.spec, least.spec, "the defaults of the type are those of the schema");
}

#[tokio::test]
async fn a_status_that_breaks_its_bounds_is_refused() {
    let (_, objects) = objects("api-replay-status").await;
    objects.apply("orders", &good()).await.expect("a good object");
    let step = json!({"number": 1, "size": 1, "sent": 1, "settled": 1, "returned": 0});
    let ready = &full_status()["conditions"][0];
    let rows = [
        (json!({"steps": vec![&step; 21]}), "status.steps: Too many: 21: must have at most 20 items"),
        (json!({"conditions": [ready, ready]}), "duplicate entries for key [type=\"Succeeded\"]"),
        (
            json!({"conditions": [with(ready, json!({"status": "Maybe"}))]}),
            "status.conditions[0].status: Unsupported value",
        ),
        (json!({"conditions": [with(ready, json!({"reason": null}))]}), "status.conditions[0].reason: Required value"),
        (json!({"progress": {"selected": -1}}), "progress.selected in body should be greater than or equal to 0"),
        (json!({"phase": "Running"}), ".status.phase: field not declared in schema"),
    ];
    for (status, expected) in rows {
        let sentence = objects.apply_status("orders", &status).await.expect_err(expected);
        assert!(sentence.contains(expected), "{sentence:?} instead of {expected:?}");
    }
}

#[tokio::test]
async fn kubectl_shows_a_replay() {
    let (cluster, objects) = objects("api-replay-table").await;
    objects.apply("orders-fixed", &full()).await.expect("a good object");
    objects.apply_status("orders-fixed", &full_status()).await.expect("a good status");
    let shown = async |arguments: &[&str]| {
        let table = cluster.kubectl(&[arguments, &["-n", "api-replay-table"]].concat()).await.expect("a table");
        table.lines().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let table = shown(&["get", "replay"]).await;
    assert_eq!(table[0], ["NAME", "STATE", "STEP", "SENT", "SETTLED", "RETURNED", "SELECTED", "AGE"]);
    assert_eq!(table[1][..7], ["orders-fixed", "MessagesReturned", "1", "10", "8", "2", "1200"]);
    let wide = shown(&["get", "dlqreplays", "-o", "wide"]).await;
    assert_eq!((wide[0][7].as_str(), wide[1][7].as_str()), ("TOKEN", TOKEN));
    assert_eq!(shown(&["get", "redrive"]).await.len(), 2);
    for path in ["spec.canary.stepTimeoutSeconds", "spec.selection.deadLettered", "status.preview.problems"] {
        let explained = cluster.kubectl(&["explain", &format!("replay.{path}")]).await.expect("an explanation");
        assert!(explained.contains("DESCRIPTION"), "{explained}");
    }
}

#[tokio::test]
async fn kubectl_waits_for_every_end_of_a_replay() {
    let (cluster, objects) = objects("api-replay-wait").await;
    let ends = [Reason::AllSettled, Reason::MessagesReturned, Reason::Cancelled, Reason::Interrupted];
    for reason in ends {
        let name = reason.to_string().to_lowercase();
        objects.apply(&name, &good()).await.expect("a good object");
        let mut conditions = Vec::new();
        let end = async |conditions: &mut Vec<_>, reason| {
            outcome::set(conditions, reason, "why", Some(1), &Time(Timestamp::now()));
            objects
                .apply_status(&name, &json!({"observedGeneration": 1, "conditions": conditions}))
                .await
                .expect("a status");
        };
        end(&mut conditions, Reason::Settling).await;
        let started = Instant::now();
        let resource = format!("replay/{name}");
        let wait = ["wait", &resource, "-n", "api-replay-wait", "--for=condition=Finished", "--timeout=20s"];
        let (waited, ()) = tokio::join!(cluster.kubectl(&wait), end(&mut conditions, reason));
        waited.unwrap_or_else(|error| panic!("{reason}: {error}"));
        assert!(started.elapsed() < Duration::from_secs(5), "{reason} took {:?}", started.elapsed());
        assert!(find(&conditions, "Finished").is_some_and(|finished| finished.reason == reason.to_string()));
    }
}
