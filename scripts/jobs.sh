#!/usr/bin/env bash
# Replays published traces by the policy that is recommended, by what the product does today
# (greedy/leastLoaded, unless a workload asks for another strategy) and by what most clusters have,
# and prints for each trace who waits how long and how near gangs are. Takes about six minutes.
#
#   scripts/jobs.sh [DATA]    DATA is the folder of the traces, ../shared/data if not given
#   PLOTS=DIR scripts/jobs.sh also draws a page for each trace
#
# The traces do not tell the size of their clusters. Each is replayed on the smallest fat tree of
# whole leaves whose GPUs are in use for at most 80 % in the mean, and which could hold two of the
# largest gangs. Those of ms-itp and Kalos have 4:1 oversubscription at the leaves.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
data=${1:-../shared/data}
[[ -d $data/ms-itp ]] || { echo "$data has no traces: name the folder that has" >&2; exit 2; }
go build -o bin/warp ./cmd/warp
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

policies=hrrn/topologyAware,greedy/leastLoaded,fifo/leastAllocated,greedy/leastAllocated
policies+=,hrrn/leastAllocated,hrrn/mostAllocated

# replay NAME TRACE CLUSTER [FLAG...] prints the tables of one replay and keeps its figures.
replay() {
  local name=$1 trace=$2 cluster=$3
  shift 3
  local flags=(--jobs "$trace" --cluster "$cluster" --policy "$policies" "$@")
  if [[ -n ${PLOTS:-} ]]; then
    mkdir -p "$PLOTS"
    flags+=(--plot "$PLOTS/$name.html")
  fi
  printf '\n=== %s\n' "$name"
  bin/warp sim jobs "${flags[@]}" -o json >"$work/$name.json"
  bin/warp sim report "$work/$name.json"
}

for one in 01:16 02:16 03:24 04:80 05:16 06:16; do
  replay "ms-itp-${one%:*}" "$data/ms-itp/cluster${one%:*}.csv" "fattree:${one#*:}x8/8/8@A100,oversubscription=4"
done
replay kalos "$data/acme/converted_kalos_trace.csv" fattree:256x8/16/8@A100,oversubscription=4
# On the four leaves that 80 % would ask for, its queues never end.
replay philly "$data/philly/philly.csv" fattree:96x8/16/8@V100
replay ms-itp-04-on-a-real-fabric "$data/ms-itp/cluster04.csv" "$data/topology/ibnetdiscover/example.out@A100"

printf '\n=== all traces\n'
bin/warp sim report "$work"/*.json
