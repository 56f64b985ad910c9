# Starts and ends what the demo runs on: an API server, a Kafka broker, the shop and the operator. To be sourced.
# Every process works in the folder $work, has its log there, and is listed in $work/pids.
# shellcheck shell=bash

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${REDRIVE_CACHE:-$repo/.cache}
kafka=$cache/kafka
operator=$(cd "$repo" && realpath -m "${CARGO_TARGET_DIR:-target}/release/redrive")
# Short: the path of a Unix socket ends at 107 bytes.
work=$(mktemp -d /tmp/redrive-demo.XXXXXX)
jvm=(java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "-Dlog4j2.configurationFile=$kafka/log4j2.yaml" -Dlog.level=WARN)

export PATH=$cache/cluster:$PATH KUBECONFIG=$work/cluster/kubeconfig

# start NAME COMMAND...: in the background. Its stdin is a pipe that stays open, NAME.in; its answers are in NAME.out.
start() {
  local name=$1
  shift
  mkfifo "$work/$name.in"
  (cd "$work" && exec "$@" 0<>"$work/$name.in" >"$work/$name.out" 2>"$work/$name.log") &
  echo "$! $name" >>"$work/pids"
}

# await NAME TEXT: until the process has said so.
await() {
  local pid
  pid=$(sed -n "s/ $1\$//p" "$work/pids")
  for _ in $(seq 600); do
    grep -q "$2" "$work/$1.out" "$work/$1.log" && return
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  tail -n 20 "$work/$1.out" "$work/$1.log" >&2
  echo "$1 did not start" >&2
  return 1
}

# Two neighbouring ports that nobody listens on, below those that the system gives to outgoing connections.
free_ports() {
  local port
  while port=$((20000 + RANDOM % 10000)); do
    if ! { : <"/dev/tcp/127.0.0.1/$port" || : <"/dev/tcp/127.0.0.1/$((port + 1))"; } 2>/dev/null; then
      echo "$port"
      return
    fi
  done
}

start_cluster() {
  start cluster "$cache/cluster/testcluster" --dir "$work/cluster"
}

# One node, formatted as new clusters are. What is set is what a single node needs; the rest is Kafka's default.
start_broker() { # HOST:PORT
  local bootstrap=$1 port=${1#*:}
  cat >"$work/broker.properties" <<P
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://$bootstrap,CONTROLLER://127.0.0.1:$((port + 1))
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:$((port + 1))
log.dirs=$work/kafka
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
P
  start broker "${jvm[@]}" "-XX:SharedArchiveFile=$kafka/broker.jsa" -Xshare:auto -cp "$(cat "$kafka/classpath")" \
    dev.redrive.test.Broker "$work/broker.properties" 2
}

start_shop() { # HOST:PORT
  start shop "${jvm[@]}" -cp "$kafka/libs/*" "$repo/demo/Shop.java" "$1"
}

# There is no kubelet here, so no pod runs: the operator runs as a process, with the rights of its ServiceAccount and no others.
start_operator() {
  local server
  server=$(kubectl config view -o jsonpath='{.clusters[0].cluster.server}')
  cat >"$work/operator.kubeconfig" <<K
apiVersion: v1
kind: Config
clusters: [{name: demo, cluster: {server: "$server", certificate-authority: "$work/cluster/ca.crt"}}]
users: [{name: redrive, user: {token: "$(kubectl create token redrive -n redrive-system --duration=24h)"}}]
contexts: [{name: demo, context: {cluster: demo, user: redrive, namespace: redrive-system}}]
current-context: demo
K
  start operator env "KUBECONFIG=$work/operator.kubeconfig" "$operator" run --listen=127.0.0.1:0 --resync-seconds=2
}
