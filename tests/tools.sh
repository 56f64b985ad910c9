#!/usr/bin/env bash
# tools.sh TOOL...: names those that are missing on this machine, with how to get them, and then fails.
set -euo pipefail

how_to_get() {
  case $1 in
    cargo) echo "Rust 1.90 or newer: https://rustup.rs" ;;
    cargo-fmt) echo "rustup component add rustfmt" ;;
    cargo-clippy) echo "rustup component add clippy" ;;
    go) echo "Go 1.26 or newer: https://go.dev/dl" ;;
    java | javac) echo "a JDK, 17 or newer: https://adoptium.net, apt-get install openjdk-17-jdk-headless" ;;
    mvn) echo "Maven: https://maven.apache.org, apt-get install maven" ;;
    cc | c++ | make) echo "a C and C++ compiler with make, which librdkafka is built with: apt-get install build-essential" ;;
    *) echo "install $1" ;;
  esac
}

java_is_old() {
  local version
  version=$(java -version 2>&1 | sed -n '1s/.*version "\([0-9]*\).*/\1/p')
  [ "${version:-0}" -lt 17 ]
}

missing=0
for tool; do
  if ! command -v "$tool" >/dev/null; then
    echo "$tool is missing. Get $(how_to_get "$tool")" >&2
    missing=1
  elif [ "$tool" = java ] && java_is_old; then
    echo "java is too old. Get $(how_to_get java)" >&2
    missing=1
  fi
done
exit "$missing"
