#!/usr/bin/env bash
# archive.sh OUT: runs the broker and the clients of OUT once and archives the classes they loaded: both start in half the time after.
set -euo pipefail
out=$1
work=$(mktemp -d)
trap 'exec 3>&- 4>&- 2>/dev/null; wait; rm -rf "$work"' EXIT
classpath=$(cat "$out/classpath")
jvm=(java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "-Dlog4j2.configurationFile=$out/log4j2.yaml" -Dlog.level=WARN -cp "$classpath")
port=$((20000 + RANDOM % 10000))

cat >"$work/broker.properties" <<P
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1))
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:$((port + 1))
log.dirs=$work/data
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.share.assignment.interval.ms=0
P

start() { # NAME MAIN ARGUMENTS...: fifo NAME.in, answers in NAME.out
  local name=$1; shift
  mkfifo "$work/$name.in"
  "${jvm[@]}" "-XX:ArchiveClassesAtExit=$out/$name.jsa" "$@" <"$work/$name.in" >"$work/$name.out" 2>"$work/$name.log" &
}
await() { # NAME TEXT: in its answers
  for _ in $(seq 300); do
    grep -q "$2" "$work/$1.out" && return 0
    sleep 0.1
  done
  cat "$work/$1.log" "$work/$1.out" >&2
  return 1
}
ask() { # ID VERB ARGUMENTS
  echo "{\"id\":$1,\"verb\":\"$2\",\"bootstrap\":\"127.0.0.1:$port\"$3}" >&4
  await clients "\"id\":$1,"
}

start broker dev.redrive.test.Broker "$work/broker.properties" 2
broker=$!
exec 3>"$work/broker.in"
await broker ready
start clients dev.redrive.test.Clients
clients=$!
exec 4>"$work/clients.in"
ask 1 createTopic ',"topic":"t","partitions":1'
ask 2 alterConfigs ',"resource":"GROUP","name":"g","set":{"share.auto.offset.reset":"earliest"}'
ask 3 produce ',"topic":"t","records":[{"value":"YQ=="}],"transaction":"commit"'
ask 4 startShareConsumer ',"name":"s","group":"g","topics":["t"],"rules":{"default":"ACCEPT"}'
ask 5 readTopic ',"topic":"t","isolation":"read_committed"'
for id in $(seq 6 40); do
  ask "$id" seen ',"name":"s"'
  grep -q ACCEPT "$work/clients.out" && break
  sleep 0.5
done
ask 99 snapshot ''
exec 4>&-
wait "$clients" || true
echo stop >&3
wait "$broker" || true
exec 3>&-
[ -s "$out/broker.jsa" ] && [ -s "$out/clients.jsa" ]
