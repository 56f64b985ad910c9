//! What the API server makes of a ShareGroupDLQ: defaults, and a sentence for every mistake.

use crate::support::{
    Cluster,
    apply::{Objects, TAKEN, with},
};
use kube::{
    Api, CustomResourceExt,
    api::{DynamicObject, PostParams},
};
use redrive::api::{ShareGroupDLQ, ShareGroupDLQSpec, ShareGroupDLQStatus};
use serde_json::{Value, json};

fn good() -> Value {
    json!({"kafka": {"bootstrapServers": "kafka.shop.svc:9092"}, "groupId": "orders"})
}

/// Every field but those that exclude each other.
fn full() -> Value {
    json!({
        "kafka": {
            "strimziCluster": {"name": "my-cluster", "listener": "tls"},
            "tls": {
                "caSecret": {"name": "ca", "key": "ca.crt"},
                "clientSecret": {"name": "user", "certKey": "user.crt", "keyKey": "user.key"},
            },
            "sasl": {
                "mechanism": "SCRAM-SHA-512",
                "secret": {"name": "user", "usernameKey": "username", "passwordKey": "password"},
            },
        },
        "groupId": "orders",
        "topic": {
            "name": "dlq.orders", "create": "Always", "adopt": true, "provisioner": "KafkaTopic",
            "partitions": 3, "replicationFactor": 3, "config": {"retention.ms": "1209600000"},
        },
        "copyRecords": true,
        "groupConfig": {"share.delivery.count.limit": "5"},
        "deletionPolicy": "Delete",
        "suspend": true,
    })
}

fn full_status() -> Value {
    json!({
        "observedGeneration": 3,
        "conditions": [{
            "type": "Ready", "status": "False", "reason": "TopicMissing", "message": "topic dlq.orders does not exist",
            "observedGeneration": 3, "lastTransitionTime": "2026-11-01T10:00:00Z",
        }],
        "broker": {
            "clusterId": "5L6g3nShT-eMCtK--X86sw", "shareVersion": 2, "topicNamePrefix": "dlq.",
            "autoCreateTopics": true, "ledgerTopicId": "2c4e1b1a-51f8-4f0f-9c38-6f1b9a0d7c11",
        },
        "topic": {"name": "dlq.orders", "id": "9d0f5a0c-0f8b-4bb8-8a1c-2a4f6a3a8f10", "partitions": 3, "replicationFactor": 1, "origin": "Created"},
        "backlog": {
            "messages": 120, "notReplayed": 20,
            "oldestTime": "2026-11-01T00:00:00Z", "newestTime": "2026-11-02T00:00:00Z",
        },
    })
}

async fn objects(namespace: &str) -> (&'static Cluster, Objects) {
    let cluster = Cluster::shared().await;
    cluster.namespace(namespace).await;
    (cluster, Objects::of::<ShareGroupDLQ>(cluster.client().await, namespace))
}

#[tokio::test]
async fn a_bad_dlq_is_refused_with_a_sentence() {
    let (_, objects) = objects("api-dlq-bad").await;
    let kafka = |kafka: Value| json!({"kafka": kafka});
    let servers = |servers: &str| json!({"kafka": {"bootstrapServers": servers}});
    let topic = |topic: Value| json!({"topic": topic});
    let host_and_port = "bootstrapServers is host:port";
    let one_of = "kafka needs exactly one of bootstrapServers, strimziCluster and bindingSecret";
    let bound = |path: &str, than: &str| format!("spec.{path} in body should be {than}");
    let (below_1, many_partitions) =
        (bound("topic.partitions", "greater than or equal to 1"), bound("topic.partitions", "less than"));
    let (no_replica, many_replicas) =
        (bound("topic.replicationFactor", "greater than or equal to 1"), bound("topic.replicationFactor", "less than"));
    let rows = vec![
        ("nothing to connect to", kafka(json!({"bootstrapServers": null})), one_of),
        ("two ways to connect", kafka(json!({"strimziCluster": {"name": "a"}})), one_of),
        (
            "all ways to connect",
            kafka(json!({"strimziCluster": {"name": "a"}, "bindingSecret": {"name": "b"}})),
            one_of,
        ),
        (
            "TLS beside a binding",
            kafka(json!({"bootstrapServers": null, "bindingSecret": {"name": "b"}, "tls": {}})),
            "with bindingSecret, tls and sasl come from that Secret",
        ),
        ("no port", servers("kafka"), host_and_port),
        ("a space", servers("a:9092, b:9092"), host_and_port),
        ("a protocol", servers("PLAINTEXT://a:9092"), host_and_port),
        ("no server", servers(""), "spec.kafka.bootstrapServers"),
        (
            "a name no object has",
            kafka(json!({"bootstrapServers": null, "strimziCluster": {"name": "No_Name"}})),
            "strimziCluster.name",
        ),
        ("no user", kafka(json!({"sasl": {"mechanism": "PLAIN"}})), "spec.kafka.sasl.secret: Required value"),
        (
            "an unknown mechanism",
            kafka(json!({"sasl": {"mechanism": "GSSAPI", "secret": {"name": "a"}}})),
            "supported values: \"SCRAM-SHA-512\", \"SCRAM-SHA-256\", \"PLAIN\", \"OAUTHBEARER\"",
        ),
        (
            "a key no Secret has",
            kafka(json!({"tls": {"caSecret": {"name": "ca", "key": "a/b"}}})),
            "spec.kafka.tls.caSecret.key",
        ),
        ("no Kafka", json!({"kafka": null}), "spec.kafka: Required value"),
        ("no group", json!({"groupId": null}), "spec.groupId: Required value"),
        ("an empty group", json!({"groupId": ""}), "spec.groupId in body should be at least 1 chars long"),
        ("a long group", json!({"groupId": "g".repeat(250)}), "may not be more than 249"),
        ("an empty topic", topic(json!({"name": ""})), "spec.topic.name in body should be at least 1 chars long"),
        ("a topic with a slash", topic(json!({"name": "dlq/orders"})), "not a legal Kafka topic name"),
        ("the topic .", topic(json!({"name": "."})), "not a legal Kafka topic name"),
        (
            "a topic of Kafka's own",
            topic(json!({"name": "__share_group_state"})),
            "names that start with __ belong to Kafka itself",
        ),
        (
            "an unknown policy",
            topic(json!({"create": "Sometimes"})),
            "supported values: \"FollowBroker\", \"Always\", \"Never\"",
        ),
        (
            "an unknown provisioner",
            topic(json!({"provisioner": "Helm"})),
            "supported values: \"Admin\", \"KafkaTopic\"",
        ),
        ("no partition", topic(json!({"partitions": 0})), &below_1),
        ("fewer partitions than none", topic(json!({"partitions": -1})), &below_1),
        ("2^31 partitions", topic(json!({"partitions": 2_147_483_648_i64})), &many_partitions),
        ("no replica", topic(json!({"replicationFactor": 0})), &no_replica),
        ("2^31 replicas", topic(json!({"replicationFactor": 2_147_483_648_i64})), &many_replicas),
        (
            "an empty config",
            topic(json!({"config": {}})),
            "spec.topic.config in body should have at least 1 properties",
        ),
        (
            "a config with a capital",
            topic(json!({"config": {"Retention": "1"}})),
            "names of Kafka configs are lower-case letters",
        ),
        (
            "the consent of the topic",
            topic(json!({"config": {"errors.deadletterqueue.group.enable": "true"}})),
            "errors.deadletterqueue.group.enable is set by Redrive; leave it out",
        ),
        ("a number for a config", topic(json!({"config": {"retention.ms": 1}})), "spec.topic.config.retention.ms"),
        (
            "an empty group config",
            json!({"groupConfig": {}}),
            "spec.groupConfig in body should have at least 1 properties",
        ),
        (
            "the dead-letter topic as a config",
            json!({"groupConfig": {"errors.deadletterqueue.topic.name": "a"}}),
            "errors.deadletterqueue.* is set from topic and copyRecords; leave it out",
        ),
        ("an unknown deletion policy", json!({"deletionPolicy": "Keep"}), "supported values: \"Retain\", \"Delete\""),
        ("an unknown field", json!({"grupId": "orders"}), ".spec.grupId: field not declared in schema"),
        (
            "an unknown field further in",
            topic(json!({"partition": 1})),
            ".spec.topic.partition: field not declared in schema",
        ),
        ("a text for a truth", json!({"suspend": "yes"}), "spec.suspend"),
    ];
    objects.try_new(&good(), rows).await;
}

#[tokio::test]
async fn a_good_dlq_is_taken() {
    let (_, objects) = objects("api-dlq-good").await;
    let servers = |servers: &str| json!({"kafka": {"bootstrapServers": servers}});
    let rows = vec![
        ("the least", json!({}), TAKEN),
        ("two servers", servers("a:9092,b:9093"), TAKEN),
        ("IPv6", servers("[::1]:9092"), TAKEN),
        ("a binding", json!({"kafka": {"bootstrapServers": null, "bindingSecret": {"name": "orders-kafka"}}}), TAKEN),
        ("TLS with the system's roots", json!({"kafka": {"tls": {}}}), TAKEN),
        ("a group id that is no topic name", json!({"groupId": "orders / eu"}), TAKEN),
        ("the largest numbers", json!({"topic": {"partitions": 100_000, "replicationFactor": 32767}}), TAKEN),
    ];
    objects.try_new(&good(), rows).await;
    objects.try_apply("new", &full()).await.expect("every field together");
}

#[tokio::test]
async fn group_and_topic_of_a_dlq_cannot_change() {
    let (_, objects) = objects("api-dlq-changes").await;
    let named = |name: &str| json!({"topic": {"name": name}});
    let fixed = "topic.name cannot change; make a new ShareGroupDLQ";
    let rows = vec![
        ("another group", json!({}), json!({"groupId": "b"}), "groupId cannot change; make a new ShareGroupDLQ"),
        ("another topic", named("dlq.a"), named("dlq.b"), fixed),
        ("no topic name any more", named("dlq.a"), json!({"topic": {"name": null}}), fixed),
        ("no topic any more", named("dlq.a"), json!({"topic": null}), fixed),
        ("a topic name before one is in use", json!({}), named("dlq.a"), TAKEN),
        ("another address of Kafka", json!({}), json!({"kafka": {"bootstrapServers": "b:9092"}}), TAKEN),
        (
            "everything else",
            json!({}),
            json!({"topic": {"create": "Never", "adopt": true, "partitions": 6, "config": {"retention.ms": "1"}},
                   "copyRecords": true, "groupConfig": {"share.session.timeout.ms": "5000"}, "deletionPolicy": "Delete", "suspend": true}),
            TAKEN,
        ),
    ];
    objects.try_changes(&good(), rows).await;
}

#[tokio::test]
async fn a_topic_name_left_out_can_be_set_to_the_one_in_use() {
    let (_, objects) = objects("api-dlq-name").await;
    objects.apply("orders", &good()).await.expect("a good object");
    objects.apply_status("orders", &json!({"topic": {"name": "dlq.orders"}})).await.expect("a good status");
    let named = |name: &str| with(&good(), json!({"topic": {"name": name}}));
    let refused = objects.try_apply("orders", &named("dlq.other")).await.expect_err("not the name in use");
    assert!(refused.contains("topic.name can only be set to the name already in use (status.topic.name)"), "{refused}");
    objects.apply("orders", &named("dlq.orders")).await.expect("the name in use");
}

#[tokio::test]
async fn defaults_are_filled_in() {
    let (_, objects) = objects("api-dlq-defaults").await;
    let stored = objects.apply("orders", &good()).await.expect("a good object");
    let expected = with(
        &good(),
        json!({
            "topic": {"create": "FollowBroker", "adopt": false, "provisioner": "Admin"},
            "copyRecords": false, "deletionPolicy": "Retain", "suspend": false,
        }),
    );
    assert_eq!(stored["spec"], expected);
    assert_eq!(stored["status"], json!({"observedGeneration": -1}), "kstatus must not call a new object current");

    let secrets = json!({"kafka": {"tls": {"clientSecret": {"name": "u"}}, "sasl": {"mechanism": "PLAIN", "secret": {"name": "u"}}}, "topic": {"adopt": true}});
    let stored = objects.try_apply("other", &with(&good(), secrets)).await.expect("a good object");
    let (kafka, topic) = (&stored["spec"]["kafka"], &stored["spec"]["topic"]);
    assert_eq!(kafka["tls"]["clientSecret"], json!({"name": "u", "certKey": "user.crt", "keyKey": "user.key"}));
    assert_eq!(kafka["sasl"]["secret"], json!({"name": "u", "usernameKey": "username", "passwordKey": "password"}));
    assert_eq!(topic, &json!({"create": "FollowBroker", "adopt": true, "provisioner": "Admin"}));
}

#[tokio::test]
async fn the_types_keep_every_field_of_a_dlq() {
    let (cluster, objects) = objects("api-dlq-types").await;
    let spec: ShareGroupDLQSpec = serde_json::from_value(full()).expect("the spec is one of the type");
    let status: ShareGroupDLQStatus = serde_json::from_value(full_status()).expect("the status is one of the type");
    assert_eq!((json!(spec), json!(status)), (full(), full_status()));

    objects.apply("orders", &full()).await.expect("every field");
    let stored = objects.apply_status("orders", &full_status()).await.expect("every field of the status");
    assert_eq!((&stored["spec"], &stored["status"]), (&full(), &full_status()));

    let api = Api::<ShareGroupDLQ>::namespaced(cluster.client().await, "api-dlq-types");
    let least = ShareGroupDLQ::new("least", serde_json::from_value(good()).expect("the least spec"));
    let created = api.create(&PostParams::default(), &least).await.expect("what the type writes is taken");
    assert_eq!(created.spec, least.spec, "the defaults of the type are those of the schema");
}

#[tokio::test]
async fn kubectl_shows_a_dlq() {
    let (cluster, objects) = objects("api-dlq-table").await;
    objects.apply("orders", &full()).await.expect("a good object");
    objects.apply_status("orders", &full_status()).await.expect("a good status");
    let row = ["orders", "False", "orders", "dlq.orders", "120", "TopicMissing"];
    for name in ["sgdlq", "sharegroupdlq", "sharegroupdlqs.redrive.dev", "redrive"] {
        let table = cluster.kubectl(&["get", name, "-n", "api-dlq-table"]).await.expect("a table");
        let words = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect::<Vec<_>>();
        assert_eq!(words[0], ["NAME", "READY", "GROUP", "TOPIC", "BACKLOG", "REASON", "AGE"], "{table}");
        let shown = words[1][0].rsplit('/').next().into_iter().chain(words[1][1..6].iter().copied());
        assert!(shown.eq(row), "{table}");
    }
    let explained = cluster.kubectl(&["explain", "sgdlq.spec.topic.create"]).await.expect("an explanation");
    assert!(explained.contains("FollowBroker") && explained.contains("only while the brokers' own"), "{explained}");
}

#[tokio::test]
async fn null_is_the_same_as_absent() {
    let (cluster, _) = objects("api-dlq-null").await;
    let resource = ShareGroupDLQ::api_resource();
    let api = Api::<DynamicObject>::namespaced_with(cluster.client().await, "api-dlq-null", &resource);
    let object = json!({
        "apiVersion": "redrive.dev/v1alpha1", "kind": "ShareGroupDLQ", "metadata": {"name": "orders"}, "status": null,
        "spec": {"kafka": {"bootstrapServers": "a:9092", "tls": null}, "groupId": "orders", "topic": null, "suspend": null},
    });
    let stored = api.create(&PostParams::default(), &serde_json::from_value(object).expect("an object")).await;
    let stored = json!(stored.expect("null is taken"));
    assert_eq!(stored["spec"]["kafka"], json!({"bootstrapServers": "a:9092"}));
    assert_eq!(
        (&stored["spec"]["topic"]["create"], &stored["spec"]["suspend"]),
        (&json!("FollowBroker"), &json!(false))
    );
    assert_eq!(stored["status"]["observedGeneration"], -1);
}
