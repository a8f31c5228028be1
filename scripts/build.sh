#!/usr/bin/env bash
# Compiles binaries of cmd/ into bin/, static.
#
#   scripts/build.sh [NAME...]      default: every one
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ $# -eq 0 ]]; then
  for dir in cmd/*/; do set -- "$@" "$(basename "$dir")"; done
fi

# One at a time: two large links together do not fit into a small machine.
for name in "$@"; do
  [[ -d cmd/$name ]] || { echo "there is no cmd/$name" >&2; exit 1; }
  CGO_ENABLED=0 go build -o "bin/$name" "./cmd/$name"
  # kubectl runs what is called kubectl-warp as `kubectl warp`.
  [[ $name != warp ]] || ln -sf warp bin/kubectl-warp
done
