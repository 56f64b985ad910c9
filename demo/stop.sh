#!/usr/bin/env bash
# stop.sh FOLDER: ends what the demo started in FOLDER, the last first, and removes the folder.
set -euo pipefail
folder=$1
touch "$folder/pids"

# The demo's processes work in its folder: so one that only has the same number now is told apart.
ours() { [ "$(readlink "/proc/$1/cwd")" = "$folder" ]; }

for signal in TERM KILL; do
  while read -r pid _; do
    ours "$pid" && kill "-$signal" "$pid"
  done < <(tac "$folder/pids")
  for _ in $(seq 100); do
    running=0
    while read -r pid _; do
      ours "$pid" && running=1
    done <"$folder/pids"
    [ "$running" = 0 ] && break 2
    sleep 0.1
  done
done 2>/dev/null || true
rm -rf "$folder"
