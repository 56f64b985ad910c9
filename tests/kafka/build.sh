#!/usr/bin/env bash
# build.sh OUT: fetches the jars of Kafka and compiles the tests' broker and clients into the folder OUT:
#   libs/             the jars of pom.xml, by Maven
#   test-kafka.jar    the programs of src/
#   broker.jsa, clients.jsa   class-data archives that halve the start of each; left out where the JVM can't make them
#   classpath         what to give java -cp, in the order the archives were made with
# Does nothing where nothing changed. Takes a minute with an empty Maven repository, 15 s for a change in src/.
set -euo pipefail
out=$(mkdir -p "${1:?build.sh OUT}" && cd "$1" && pwd)
cd "$(dirname "$0")"

need() { command -v "$1" >/dev/null || { echo "$1 is missing: install $2" >&2; exit 1; }; }
need java "a JDK 17 or newer"
need javac "a JDK 17 or newer"

sums() { cat "$@" | cksum; }
fresh() { [ "$(cat "$out/$1.stamp" 2>/dev/null)" = "$2" ]; }
stamp() { echo "$2" >"$out/$1.stamp"; }

libs=$(sums pom.xml)
if ! fresh libs "$libs"; then
  need mvn "Maven"
  rm -rf "$out/libs"
  mvn -q -B -Dstyle.color=never dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$out/libs"
  stamp libs "$libs"
fi

sources=(src/dev/redrive/test/*.java)
program="$libs $(sums "${sources[@]}") $(javac -version 2>&1)"
if ! fresh program "$program"; then
  rm -rf "$out/classes" "$out/test-kafka.jar"
  javac -Xlint:all,-processing,-classfile,-try -Werror --release 17 -cp "$out/libs/*" -d "$out/classes" "${sources[@]}"
  jar --create --file "$out/test-kafka.jar" -C "$out/classes" .
  rm -rf "$out/classes"
  stamp program "$program"
fi
cp log4j2.yaml "$out/log4j2.yaml"
printf '%s' "$out/test-kafka.jar" "$(printf ':%s' "$out"/libs/*.jar)" >"$out/classpath"

# An archive fits one build of the JVM and one class path; java ignores one that does not fit.
archives="$program $(sums archive.sh "$out/classpath") $(java -version 2>&1)"
if ! fresh archives "$archives"; then
  rm -f "$out"/*.jsa
  ./archive.sh "$out" || echo "no class-data archives: brokers will start, only slower" >&2
  stamp archives "$archives"
fi
