#!/usr/bin/env bash
# Has warp answer the cases of other schedulers' own tests, and has the answers judged.
# The cases are not part of this repository: they are in ../shared/conformance.
#
#   scripts/conformance.sh [CASES.json...]      default: all of them
#
# MUST is what a case asks for; POLICY is which of several equally good answers its source
# gives. Fails if a MUST fails, but for cases that need preemption, which comes later.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

corpus=../shared/conformance
if [[ $# -eq 0 ]]; then set -- "$corpus"/*.json; fi
for file in "$@" "$corpus/check.py"; do
  [[ -e $file ]] || { echo "$file is missing: there is nothing to judge" >&2; exit 1; }
done
command -v python3 >/dev/null || { echo "python3 is missing: the judge is written in it" >&2; exit 1; }

scripts/build.sh warp
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for file in "$@"; do
  bin/warp sim place -f "$file" -o jsonl >"$work/answers.jsonl"
  # Its exit code says that a case failed, which the report does, too.
  python3 "$corpus/check.py" "$file" "$work/answers.jsonl" --json >"$work/$(basename "$file" .json).report" || true
done

python3 - "$work" "$@" <<'PYTHON'
import json, os, sys

work, files, bad = sys.argv[1], sys.argv[2:], 0
for file in files:
    name = os.path.basename(file)
    cases = json.load(open(file))
    cases = cases.get("scenarios", [cases]) if isinstance(cases, dict) else cases
    evicts = {c["name"] for c in cases if (c.get("expect") or {}).get("victims")}
    report = json.load(open(os.path.join(work, name[:-5] + ".report")))[file]
    failed = [f for f in report["failed"] if f["name"] not in evicts]
    later = len(report["failed"]) - len(failed)
    bad += len(failed)
    judged = {c["name"] for c in cases if not c.get("skip")}
    need = len(evicts & judged)
    rest = len(judged) - need
    print("%-18s MUST %3d of %3d   with preemption %2d of %2d   POLICY %3d of %3d" % (
        name[:-5], rest - len(failed), rest, need - later, need, report["policyMatched"], report["policyCases"]))
    for policy, v in sorted(report["policies"].items()):
        print("    %3d of %3d  %s" % (v["matched"], v["of"], policy))
    for f in failed:
        print("    FAILED %s: %s" % (f["name"], f["why"]))
sys.exit(1 if bad else 0)
PYTHON
