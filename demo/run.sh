#!/usr/bin/env bash
# The story of Redrive on a real API server and a real Kafka broker, in under two minutes.
# KEEP=1 leaves all of it running at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=demo/environment.sh
. demo/environment.sh

finish() {
  local status=$?
  trap '' INT TERM
  if [ "$status" != 0 ] && [ "$status" != 130 ]; then
    echo "The demo failed. Its logs:" >&2
    tail -n 5 "$work"/*.log >&2
  fi
  demo/stop.sh "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

bold() { if [ -t 1 ]; then printf '\e[1m%s\e[0m\n' "$*"; else printf '%s\n' "$*"; fi; }
chapter() { echo; bold "== $*"; }
say() { fold -s -w 100 <<<"$*"; }
show() { bold "\$ $*"; eval "$*"; }
shop() { demo/shop.sh "$work" "$@"; }
# What a DLQReplay says of itself.
told() { kubectl -n shop get dlqreplay "$1" -o "jsonpath={$2}"; }
outcome() { told "$1" '.status.conditions[?(@.type=="Succeeded")].message'; }
reason() { told "$1" '.status.conditions[?(@.type=="Succeeded")].reason'; }
# The command that the preview ends with.
start_command() { outcome "$1" | sed 's/.*Replay exactly this: //'; }
until_backlog() {
  kubectl -n shop wait sharegroupdlq/orders "--for=jsonpath={.status.backlog.messages}=$1" --timeout=60s >/dev/null
}
until_condition() { kubectl -n shop wait "$1" "--for=condition=$2" --timeout=90s >/dev/null; }
# Shows the rows of a DLQReplay as they change, until it has ended.
follow() {
  bold "\$ kubectl -n shop get dlqreplay $1 --watch"
  exec 3< <(exec kubectl -n shop get dlqreplay "$1" --watch)
  local watch=$! row
  while IFS= read -r -t 90 row <&3; do
    echo "$row"
    grep -qwE 'STATE|AwaitingReplay|Sending|Settling' <<<"$row" || break
  done
  kill "$watch"
  exec 3<&-
}
# The story has to come true.
expect() {
  [ "$1" = "$2" ] || { echo "expected $2, found $1" >&2; return 1; }
}

chapter "Starting a Kubernetes API server and a Kafka 4.4 broker with default settings"
bootstrap=127.0.0.1:$(free_ports)
start_cluster
start_broker "$bootstrap"
start_shop "$bootstrap"
await cluster '^ready '
await broker '^ready'
shop topic >/dev/null
say "API server: $(kubectl config view -o jsonpath='{.clusters[0].cluster.server}'), Kafka: $bootstrap, logs: $work"

chapter "1. Install Redrive"
show kubectl apply --server-side -k manifests
kubectl wait crd/sharegroupdlqs.redrive.dev crd/dlqreplays.redrive.dev --for=condition=Established --timeout=30s >/dev/null
start_operator
say "No pod runs on this API server, so the operator runs as a process, with the token of its ServiceAccount."

chapter "2. Declare the dead-letter queue of the share group \"orders\""
kubectl create namespace shop >/dev/null
show "sed s/kafka.shop.svc:9092/$bootstrap/ manifests/examples/sharegroupdlq.yaml | kubectl apply -f -"
until_condition sharegroupdlq/orders Ready
show kubectl -n shop get sharegroupdlq

chapter "3. A bad day: 120 orders, and a consumer with a bug that rejects each of them"
shop produce 120
shop start broken
until_backlog 120
show kubectl -n shop get sharegroupdlq
say "Kafka keeps 120 dead letters. On call, somebody stops the consumer:"
shop stop

chapter "4. What would a replay do? A preview changes nothing"
show kubectl apply -f manifests/examples/preview.yaml
until_condition dlqreplay/orders-first Previewed
show kubectl -n shop get dlqreplay
say "Its summary leads with what would go wrong:"
say "$(told orders-first .status.preview.summary)"
say "The topics are as they were, and there is no other:"
shop topics

chapter "5. The consumer is started again, but the bug is still there. The replay goes ahead: a canary"
shop start broken
show "$(start_command orders-first)"
follow orders-first
expect "$(reason orders-first)" MessagesReturned
say "$(outcome orders-first)"
until_backlog 130

chapter "6. The bug is fixed: a new preview, and a replay of exactly what it shows"
shop start fixed
replay=$(sed -e 's/orders-first/orders-fixed/' -e '$a\  reason: fixed in 1.4.2' manifests/examples/preview.yaml | grep -v '^#')
bold '$ kubectl apply -f - <<END'
echo "$replay"
kubectl apply -f - <<<"$replay"
until_condition dlqreplay/orders-fixed Previewed
say "$(told orders-fixed .status.preview.summary)"
show "$(start_command orders-fixed)"
follow orders-fixed
expect "$(reason orders-fixed)" AllSettled
say "$(outcome orders-fixed)"
show "kubectl -n shop get dlqreplay orders-fixed -o custom-columns='STEPS:.status.steps[*].size,VERDICTS:.status.steps[*].verdict'"

chapter "7. What an independent consumer finds on the topic"
shop report | tee "$work/report"
expect "$(tail -n 1 "$work/report")" "shipped: 120 of 120 orders, 0 of them twice"
say "No order was shipped twice, and none is missing: the ten of the first canary came back, and were sent again once the bug was fixed."

chapter "8. The events"
show "kubectl -n shop get events --sort-by=.metadata.creationTimestamp \\
    -o custom-columns=OBJECT:.involvedObject.name,TYPE:.type,REASON:.reason,MESSAGE:.message | cut -c 1-120"

chapter "Done in $SECONDS s"
if [ -n "${KEEP:-}" ]; then
  trap - EXIT
  cat <<HELP
All of it goes on running. To look around and try more:
    export KUBECONFIG=$KUBECONFIG PATH=$cache/cluster:\$PATH
    kubectl -n shop describe dlqreplay orders-fixed
    demo/shop.sh $work start broken; demo/shop.sh $work produce 50; kubectl -n shop get sharegroupdlq --watch
The logs are in $work. To stop it:
    demo/stop.sh $work
HELP
fi
