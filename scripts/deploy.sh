#!/usr/bin/env bash
# Installs gpu-orchestrator into the cluster of the current kubeconfig.
#
#   scripts/deploy.sh [OPTIONS] [NAMESPACE]     default: gpu-orchestrator-system
#
#   --no-wait            do not wait for the manager to be ready
#   --timeout SECONDS    how long to wait (default 180)
#   --crds-only          install the CRDs and nothing else
#   --force-conflicts    take over fields that somebody else set by hand
#   --dry-run            let the API server judge everything and keep nothing
#   --print              print the manifests and touch no cluster
#
#   IMG=registry/name:tag      the manager's image
#   KUBECTL="sandbox kubectl"  the kubectl to use
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/cluster.sh
source scripts/cluster.sh

namespace='' wait=1 timeout=180 crds_only='' print=''
apply_flags=(--server-side --field-manager=gpu-orchestrator-deploy)
dry_run=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --no-wait) wait='' ;;
    --timeout)
      [[ ${2:-} =~ ^[0-9]+$ ]] || die "--timeout takes a number of seconds"
      timeout=$2
      shift
      ;;
    --crds-only) crds_only=1 ;;
    --force-conflicts) apply_flags+=(--force-conflicts) ;;
    --dry-run) dry_run=(--dry-run=server) wait='' ;;
    --print) print=1 ;;
    -h | --help)
      usage
      exit
      ;;
    -*) die "unknown option $1; see scripts/deploy.sh --help" ;;
    *)
      [[ -z $namespace ]] || die "one namespace, please: $namespace or $1"
      namespace=$1
      ;;
  esac
  shift
done
namespace=${namespace:-$default_namespace}
valid_namespace "$namespace"

find_kubectl
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
render "$namespace" "$dir" >"$dir/all.yaml"
if [[ -n $print ]]; then
  cat "$dir/all.yaml"
  exit
fi
reach_cluster

# Server-side: the CRD is larger than the annotation that a client-side apply writes.
apply() { "${kubectl[@]}" apply "${apply_flags[@]}" "${dry_run[@]}" -f -; }

only CustomResourceDefinition <"$dir/all.yaml" >"$dir/crds.yaml"
without CustomResourceDefinition <"$dir/all.yaml" >"$dir/rest.yaml"

# Refuse before anything is changed.
other=$(installed_in)
if [[ -z $crds_only && -n $other && $other != "$namespace" ]]; then
  die "gpu-orchestrator is already installed in namespace $other. Its cluster-wide rights can be bound to one namespace only: run scripts/uninstall.sh $other first"
fi

echo "Installing the CRDs"
apply <"$dir/crds.yaml"
if [[ ${#dry_run[@]} -eq 0 ]]; then
  "${kubectl[@]}" wait --for=condition=Established --timeout=60s -f "$dir/crds.yaml" >/dev/null ||
    die "the API server did not accept the CRDs within 60 s; kubectl describe crd says why"
fi
[[ -z $crds_only ]] || exit 0

echo "Installing into namespace $namespace"
if "${kubectl[@]}" get namespace "$namespace" >/dev/null 2>&1; then
  created=$("${kubectl[@]}" get namespace "$namespace" \
    -o jsonpath="{.metadata.annotations.${created_annotation//./\\.}}")
  if [[ $created != true ]]; then
    echo "The namespace was there before: it is left as it is, and uninstall.sh will not delete it"
    without Namespace <"$dir/rest.yaml" >"$dir/rest.new"
    mv "$dir/rest.new" "$dir/rest.yaml"
  fi
elif [[ ${#dry_run[@]} -gt 0 ]]; then
  # Nothing can be tried in a namespace that is not there.
  only Namespace <"$dir/rest.yaml" | apply
  without Namespace <"$dir/rest.yaml" | sed -E "s/^(  namespace: )$namespace\$/\1default/" >"$dir/rest.new"
  mv "$dir/rest.new" "$dir/rest.yaml"
fi
apply <"$dir/rest.yaml"

if [[ -n $wait ]]; then
  echo "Waiting up to $timeout s for the manager"
  if ! "${kubectl[@]}" -n "$namespace" rollout status "deployment/$manager" --timeout="${timeout}s"; then
    "${kubectl[@]}" -n "$namespace" get pods -o wide >&2 || true
    die "the manager is not ready. Look at: kubectl -n $namespace describe deployment,pods"
  fi
fi

if [[ ${#dry_run[@]} -gt 0 ]]; then
  echo "The API server would accept this; nothing was kept"
  exit
fi
cat <<END

gpu-orchestrator is installed. Try:
  kubectl apply -f examples/gpuworkload-sample.yaml
  kubectl get gpuworkloads -w
END
