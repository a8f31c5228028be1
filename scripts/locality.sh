#!/usr/bin/env bash
# Compares, by the model of communication, where the product places gangs with where the stock
# kube-scheduler's scores put them: by how much longer all-reduces and iterations take. The queue
# is the same. Pods that the stock scheduler places come to nodes in any order, and ranks with
# them: all is also compared with ranks in the order of the topology for both, so
# that only the choice of nodes differs. Takes about five minutes.
#
#   scripts/locality.sh [DATA]    DATA is the folder of the traces, ../shared/data if not given
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
data=${1:-../shared/data}
[[ -d $data/ms-itp ]] || { echo "$data has no traces: name the folder that has" >&2; exit 2; }
go build -o bin/warp ./cmd/warp
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# compare TRACE SHAPE NETWORK... prints the comparison on the shape with each network.
compare() {
  local trace=$1 shape=$2
  shift 2
  local ranks network
  for ranks in false true; do
    for network in "$@"; do
      bin/warp sim jobs --jobs "$trace" --cluster "$shape$network" --sorted-ranks="$ranks" \
        --policy hrrn/topologyAware,hrrn/leastAllocated,hrrn/mostAllocated -o json 2>/dev/null >"$work/one.json"
      bin/warp sim report --locality "$work/one.json"
    done
  done
}

for one in 01:16 02:16 03:24 04:80 06:16; do
  compare "$data/ms-itp/cluster${one%:*}.csv" "fattree:${one#*:}x8/8/8@A100" ,routing=adaptive ,routing=hashed ,oversubscription=4 ,oversubscription=4,routing=hashed
done
compare "$data/acme/converted_kalos_trace.csv" fattree:256x8/16/8@A100 ,routing=adaptive ,routing=hashed ,oversubscription=4 ,oversubscription=4,routing=hashed
