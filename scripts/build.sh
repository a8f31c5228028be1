#!/usr/bin/env bash
# Compiles binaries of cmd/ into bin/, static.
#
#   scripts/build.sh [NAME...]      default: every one
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ $# -eq 0 ]]; then
  for dir in cmd/*/; do set -- "$@" "$(basename "$dir")"; done
fi

# The control plane in the sandbox tells the version of the modules that it is made
# of. Without this it says v0.0.0-master+$Format:%H$, which clients fail to read.
kubernetes=$(awk '$1 == "k8s.io/kubernetes" {print $2}' go.mod)
IFS=. read -r major minor _ <<<"${kubernetes#v}"
ldflags=()
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  ldflags+=(-X "$package.gitVersion=$kubernetes" -X "$package.gitMajor=$major" -X "$package.gitMinor=$minor")
done

# One at a time: two large links together do not fit into a small machine.
for name in "$@"; do
  [[ -d cmd/$name ]] || { echo "there is no cmd/$name" >&2; exit 1; }
  CGO_ENABLED=0 go build -ldflags "${ldflags[*]}" -o "bin/$name" "./cmd/$name"
done
