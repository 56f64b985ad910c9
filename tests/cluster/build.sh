#!/usr/bin/env bash
# build.sh OUT: builds the test cluster (etcd, kube-apiserver, kube-controller-manager, kubectl and helm in one binary)
# and its links kubectl and helm into the folder OUT. Cold about 15 CPU minutes; Go's own cache makes every later build take seconds.
set -euo pipefail
out=$(mkdir -p "${1:?build.sh OUT}" && cd "$1" && pwd)
cd "$(dirname "$0")"
version() { go list -m -f '{{.Version}}' "$1"; }
kubernetes=$(version k8s.io/kubernetes); helm=$(version helm.sh/helm/v4)
IFS=. read -r major minor _ <<<"${kubernetes#v}"
# Without the stamp the API server calls itself v0.0.0, and a chart's kubeVersion check refuses it.
stamp="-s -w -X helm.sh/helm/v4/internal/version.version=$helm"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  stamp+=" -X $package.gitVersion=$kubernetes -X $package.gitMajor=$major -X $package.gitMinor=$minor"
done
# -l (no inlining) saves a quarter of the cold build; the server is fast enough without it.
CGO_ENABLED=0 go build -trimpath -gcflags=all=-l -ldflags "$stamp" -o "$out/testcluster" .
ln -sf testcluster "$out/kubectl"
ln -sf testcluster "$out/helm"
