#!/usr/bin/env bash
# Measures the product beside the stock scheduler on the sandbox. docs/benchmarks.md says what
# each scenario means. Takes about twenty minutes; results are kept in bin/bench-e2e/.
#
#   scripts/bench-e2e.sh [FLAG...]
#   scripts/bench-e2e.sh -scenario mixed -pairs 1 -nodes 128     a first look
#   scripts/bench-e2e.sh -help                                   all flags
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Built before anything is measured, and as they are installed.
scripts/build.sh sandbox manager
CGO_ENABLED=0 go build -o bin/bench-e2e.bin ./test/bench
exec bin/bench-e2e.bin "$@"
