#!/usr/bin/env bash
# Removes gpu-orchestrator from the cluster of the current kubeconfig.
#
#   scripts/uninstall.sh [OPTIONS] [NAMESPACE]     default: gpu-orchestrator-system
#
#   --yes                also delete the GPUWorkloads that still exist, and with
#                        them their Jobs and pods; without it they stop the removal
#   --timeout SECONDS    how long to wait for that (default 120)
#   --force              a manager that does not run cannot clean up after its
#                        workloads: take their finalizers away, and leave their Jobs
#                        to Kubernetes' garbage collector
#   --keep-crds          leave the CRDs and the GPUWorkloads
#   --crds-only          remove the CRDs and the GPUWorkloads, and nothing else
#
#   KUBECTL="sandbox kubectl"  the kubectl to use
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/cluster.sh
source scripts/cluster.sh

namespace='' yes='' timeout=120 force='' keep_crds='' crds_only=''
while [[ $# -gt 0 ]]; do
  case $1 in
    --yes) yes=1 ;;
    --timeout)
      [[ ${2:-} =~ ^[0-9]+$ ]] || die "--timeout takes a number of seconds"
      timeout=$2
      shift
      ;;
    --force) force=1 ;;
    --keep-crds) keep_crds=1 ;;
    --crds-only) crds_only=1 ;;
    -h | --help)
      usage
      exit
      ;;
    -*) die "unknown option $1; see scripts/uninstall.sh --help" ;;
    *)
      [[ -z $namespace ]] || die "one namespace, please: $namespace or $1"
      namespace=$1
      ;;
  esac
  shift
done
[[ -z $keep_crds || -z $crds_only ]] || die "--keep-crds and --crds-only exclude each other"
namespace=${namespace:-$default_namespace}
valid_namespace "$namespace"

find_kubectl
reach_cluster
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
render "$namespace" "$dir" >"$dir/all.yaml"
only CustomResourceDefinition <"$dir/all.yaml" >"$dir/crds.yaml"
without CustomResourceDefinition <"$dir/all.yaml" >"$dir/rest.yaml"

other=$(installed_in)
if [[ -z $crds_only && -n $other && $other != "$namespace" ]]; then
  die "gpu-orchestrator is installed in namespace $other, not in $namespace"
fi

# workloads prints "NAMESPACE NAME" of each GPUWorkload; nothing if the kind is unknown.
workloads() {
  "${kubectl[@]}" get gpuworkloads.gpu.warp.dev --all-namespaces --ignore-not-found \
    -o jsonpath='{range .items[*]}{.metadata.namespace} {.metadata.name}{"\n"}{end}'
}

kind_known() {
  [[ -n $("${kubectl[@]}" get crd gpuworkloads.gpu.warp.dev --ignore-not-found -o name) ]]
}

# The workloads go first, while a manager runs that carries out their finalizers.
if [[ -z $keep_crds ]] && kind_known; then
  found=$(workloads)
  count=$(grep -c . <<<"$found" || true)
  if [[ $count -gt 0 && -z $yes ]]; then
    head -10 <<<"$found" | sed 's/ /\//; s/^/  /' >&2
    [[ $count -le 10 ]] || echo "  … and $((count - 10)) more" >&2
    die "$count GPUWorkloads still exist. Pass --yes to delete them and stop what they run, or --keep-crds to leave them"
  fi
  if [[ $count -gt 0 ]]; then
    echo "Deleting $count GPUWorkloads"
    if [[ -n $force ]]; then
      "${kubectl[@]}" delete gpuworkloads.gpu.warp.dev --all --all-namespaces --wait=false
      while read -r ns name; do
        [[ -z $name ]] || "${kubectl[@]}" -n "$ns" patch gpuworkloads.gpu.warp.dev "$name" --type=merge \
          -p '{"metadata":{"finalizers":null}}' || true # it may be gone by now
      done < <(workloads)
    elif ! "${kubectl[@]}" delete gpuworkloads.gpu.warp.dev --all --all-namespaces --timeout="${timeout}s"; then
      die "some GPUWorkloads are still being cleaned up after $timeout s. Does the manager run?
  kubectl -n $namespace get pods
If it cannot be brought back, pass --force"
    fi
  fi
fi

if [[ -z $crds_only ]]; then
  echo "Removing the manager from namespace $namespace"
  # A namespace that deploy.sh did not make stays.
  created=$("${kubectl[@]}" get namespace "$namespace" --ignore-not-found \
    -o jsonpath="{.metadata.annotations.${created_annotation//./\\.}}")
  if [[ $created != true ]]; then
    without Namespace <"$dir/rest.yaml" >"$dir/rest.new"
    mv "$dir/rest.new" "$dir/rest.yaml"
  fi
  "${kubectl[@]}" delete --ignore-not-found --timeout="${timeout}s" -f "$dir/rest.yaml"
fi
if [[ -z $keep_crds ]]; then
  echo "Removing the CRDs"
  "${kubectl[@]}" delete --ignore-not-found --timeout="${timeout}s" -f "$dir/crds.yaml"
fi
echo "gpu-orchestrator is removed"
