#!/usr/bin/env bash
# Plays the experiment of FGD (USENIX ATC'23) again: every policy on every published workload
# that is there, ten seeds each, and holds the results against the published ones.
#
#   scripts/fgd.sh [ARGUMENT...]     arguments of `warp sim packing`, such as --plot bin/fgd.html
#
# The traces are not part of this repository: they are in ../shared/data/fgd, or where FGD_DATA
# says. Fails if a published figure is not found again, or if fragmentationAware leaves more GPUs
# idle than FGD did on any workload. Some minutes on two cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

data=${FGD_DATA:-../shared/data/fgd}
nodes=$data/csv/openb_node_list_gpu_node.csv
[[ -e $nodes ]] || { echo "there is no $nodes; FGD_DATA names the folder with csv/ and expected_summary.csv" >&2; exit 1; }

workloads=()
for file in "$data"/csv/openb_pod_list_*.csv; do workloads+=(--pods "$file"); done

scripts/build.sh warp
started=$SECONDS
code=0
bin/warp sim packing --nodes "$nodes" "${workloads[@]}" --policy all --published "$data/expected_summary.csv" "$@" || code=$?
echo "took $((SECONDS - started)) s" >&2
exit "$code"
