//! Kafka's own clients, in one Java process for the whole run, asked by lines of JSON (tests/kafka).

use super::cache;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock};
use tokio::sync::oneshot;

type Answers = Mutex<HashMap<u64, oneshot::Sender<Result<Value, String>>>>;

struct Process {
    _child: Child,
    stdin: Mutex<(ChildStdin, u64)>,
    waiting: Answers,
}

static PROCESS: OnceLock<Process> = OnceLock::new();

/// The clients of one Kafka cluster.
#[derive(Clone)]
pub struct Clients {
    bootstrap: String,
}

/// A record as an independent consumer found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub partition: i32,
    pub offset: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Found {
    pub fn header(&self, key: &str) -> Option<String> {
        let found = self.headers.iter().rev().find(|(name, _)| name == key.as_bytes());
        found.and_then(|(_, value)| value.as_ref()).map(|value| String::from_utf8_lossy(value).into_owned())
    }
}

fn process() -> &'static Process {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| {
        let folder = cache("kafka");
        let classpath = std::fs::read_to_string(folder.join("classpath")).expect("the class path of the Kafka clients");
        let mut command = Command::new("java");
        command.args(["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]);
        command.arg(format!("-XX:SharedArchiveFile={}", folder.join("clients.jsa").display())).arg("-Xshare:auto");
        command
            .arg(format!("-Dlog4j2.configurationFile={}", folder.join("log4j2.yaml").display()))
            .arg("-Dlog.level=ERROR");
        command.args(["-cp", &classpath, "dev.redrive.test.Clients"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("java starts: install a JDK 17 or newer");
        let stdin = Mutex::new((child.stdin.take().expect("it is piped"), 0));
        let stdout = child.stdout.take().expect("it is piped");
        let made = PROCESS.set(Process { _child: child, stdin, waiting: Answers::default() });
        assert!(made.is_ok(), "the clients are started once");
        std::thread::spawn(|| hear(BufReader::new(stdout)));
    });
    PROCESS.get().expect("it was started")
}

fn hear(answers: impl BufRead) {
    for line in answers.lines().map_while(Result::ok) {
        let answer: Value = serde_json::from_str(&line).expect("an answer in JSON");
        let waiting =
            process().waiting.lock().expect("no panic while locked").remove(&answer["id"].as_u64().unwrap_or(0));
        let result = match answer.get("error") {
            Some(error) => {
                Err(format!("{}: {}", error.as_str().unwrap_or(""), answer["message"].as_str().unwrap_or("")))
            }
            None => Ok(answer["ok"].clone()),
        };
        // A test that has ended does not wait any more.
        waiting.map(|waiting| waiting.send(result));
    }
}

impl Clients {
    pub fn of(bootstrap: &str) -> Self {
        Self { bootstrap: bootstrap.into() }
    }

    /// The answer to a request; the error is Kafka's name for it and a message.
    pub async fn try_ask(&self, verb: &str, mut arguments: Value) -> Result<Value, String> {
        let (sender, answer) = oneshot::channel();
        {
            let mut stdin = process().stdin.lock().expect("no panic while locked");
            stdin.1 += 1;
            arguments["id"] = json!(stdin.1);
            arguments["verb"] = json!(verb);
            arguments["bootstrap"] = json!(self.bootstrap);
            process().waiting.lock().expect("no panic while locked").insert(stdin.1, sender);
            writeln!(stdin.0, "{arguments}").expect("the clients hear");
        }
        answer.await.expect("the clients answer")
    }

    pub async fn ask(&self, verb: &str, arguments: Value) -> Value {
        let told = arguments.to_string();
        self.try_ask(verb, arguments).await.unwrap_or_else(|error| panic!("{verb} {told:.300}: {error}"))
    }

    pub async fn create_topic(&self, topic: &str, partitions: i32, configs: Value) {
        self.ask("createTopic", json!({"topic": topic, "partitions": partitions, "configs": configs})).await;
    }

    /// Sends `count` records `v0`, `v1`, ... spread over the partitions, each with a key and two headers.
    pub async fn produce(&self, topic: &str, count: usize, partitions: usize) {
        let text = |text: String| BASE64_STANDARD.encode(text);
        let record = |i: usize| {
            let headers = json!([["app.id", text(format!("id-{i}"))], ["app.null", null]]);
            json!({"key": text(format!("k{i}")), "value": text(format!("v{i}")), "partition": i % partitions, "headers": headers})
        };
        let records: Vec<_> = (0..count).map(record).collect();
        self.ask("produce", json!({"topic": topic, "records": records})).await;
    }

    /// A share consumer that treats every record by `rules` (see Rules.java).
    pub async fn start_share_consumer(&self, name: &str, group: &str, topic: &str, rules: Value) {
        self.ask("startShareConsumer", json!({"name": name, "group": group, "topics": [topic], "rules": rules})).await;
    }

    pub async fn change_rules(&self, name: &str, rules: Value) {
        self.ask("changeRules", json!({"name": name, "rules": rules})).await;
    }

    pub async fn stop_share_consumer(&self, name: &str) {
        self.ask("stopShareConsumer", json!({"name": name})).await;
    }

    /// Everything on the topic, as a consumer of that isolation level sees it.
    pub async fn read(&self, topic: &str, isolation: &str) -> Vec<Found> {
        let found = self.ask("readTopic", json!({"topic": topic, "isolation": isolation})).await;
        let bytes = |value: &Value| value.as_str().map(|text| BASE64_STANDARD.decode(text).expect("base64"));
        let pair = |pair: &Value| (bytes(&pair[0]).unwrap_or_default(), bytes(&pair[1]));
        let record = |record: &Value| Found {
            partition: record["partition"].as_i64().unwrap_or(-1) as i32,
            offset: record["offset"].as_i64().unwrap_or(-1),
            key: bytes(&record["key"]),
            value: bytes(&record["value"]),
            headers: record["headers"].as_array().into_iter().flatten().map(pair).collect(),
        };
        found.as_array().expect("a list of records").iter().map(record).collect()
    }
}
