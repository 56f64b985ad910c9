#!/usr/bin/env bash
# shop.sh FOLDER COMMAND...: has the shop of the demo that runs in FOLDER do something; see Shop.java for what it can do.
set -euo pipefail
folder=$1
shift
answered=$(grep -c '^\.$' "$folder/shop.out" || true)
echo "$*" >"$folder/shop.in"
until [ "$(grep -c '^\.$' "$folder/shop.out")" -gt "$answered" ]; do
  kill -0 "$(sed -n 's/ shop$//p' "$folder/pids")" || exit 1
  sleep 0.1
done
answer=$(awk -v skip="$answered" '$0 == "." { skip--; next } skip == 0' "$folder/shop.out")
echo "$answer"
[[ $answer != failed:* ]]
