#!/usr/bin/env bash
# Runs the product while everything around it fails: every write of every flow through every
# kind of fault, judged at every revision. docs/faults.md tells more.
#
#   scripts/faults.sh                          everything
#   scripts/faults.sh -flows run,retry         only these flows
#   scripts/faults.sh -kinds kill-before,lose  only these kinds of faults
#   scripts/faults.sh -seed 7 -plan 'FLOW | POINT | KIND'   one run again, as a red run prints it
#   RUN=TestLeaders scripts/faults.sh          another of its tests; default: all of them
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A test must never reach the cluster that the person at the keyboard works on.
export KUBECONFIG=/dev/null
run=${RUN:-.}
# What is asked of the sweep is asked of nothing else.
[[ $# -eq 0 || -n ${RUN:-} ]] || run='^TestSweep$'
CGO_ENABLED=0 exec go test -buildvcs=false -count=1 -v -timeout 40m -run "$run" ./test/faults -args "$@"
