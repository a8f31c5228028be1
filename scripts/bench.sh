#!/usr/bin/env bash
# Runs the benchmarks and summarises ten runs of each with benchstat.
#
#   scripts/bench.sh [PACKAGE...]            default ./core/...
#   OLD=bin/bench/FILE scripts/bench.sh      also compares with an earlier run
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p bin/bench
out=bin/bench/$(git rev-parse --short HEAD)-$(date +%Y%m%d-%H%M%S).txt
[[ $# -gt 0 ]] || set -- ./core/...

# One CPU at a time keeps the spread small; a benchmark of parallelism sets its own.
go test -run '^$' -bench . -benchmem -count 10 -cpu 1 "$@" | tee "$out"
echo
scripts/tool benchstat ${OLD:+"$OLD"} "$out"
echo "kept in $out"
