#!/usr/bin/env bash
# Answers the cases of other schedulers' own tests, and has the answers judged.
# The cases are not part of this repository: they are in ../shared/conformance.
#
#   scripts/conformance.sh [CASES...]      default: all of them; a name is kai or kai.json
#
# MUST is what a case asks for; POLICY is which of several equally good answers its source
# gives. Fails if a MUST fails, but for cases that need preemption, which comes later, and are
# answered as infeasible. TestConformance does it; this only shows what it says.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tests='^TestConformance$'
if [[ $# -gt 0 ]]; then
  names=()
  for file in "$@"; do
    name=$(basename "$file" .json)
    [[ -e ../shared/conformance/$name.json ]] || { echo "there is no ../shared/conformance/$name.json" >&2; exit 1; }
    names+=("$name")
  done
  tests+="/^($(IFS='|'; echo "${names[*]}"))[.]json\$"
fi
# With CI=true missing cases are a failure.
CI=true go test ./internal/sim -count=1 -v -run "$tests" | grep -v '^=== '
