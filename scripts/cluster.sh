# Shared by deploy.sh and uninstall.sh, which source it: how to talk to the cluster
# and what the installation looks like there.
# shellcheck shell=bash

# Names that config/ gives and that people find the installation by.
manager=gpu-orchestrator-manager
# shellcheck disable=SC2034 # used by the scripts that source this
default_namespace=gpu-orchestrator-system
# Set on the Namespace only when deploy.sh made it, so that uninstall.sh never
# deletes a namespace that somebody else filled.
created_annotation=gpu.warp.dev/created-by-deploy

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# usage prints the comment at the head of the script.
usage() { awk 'NR > 1 && !/^#/ {exit} NR > 1 {sub(/^# ?/, ""); print}' "$0"; }

# find_kubectl sets the array kubectl: the real one, or the one inside the sandbox's binary.
find_kubectl() {
  if [[ -n ${KUBECTL:-} ]]; then
    read -ra kubectl <<<"$KUBECTL"
  elif command -v kubectl >/dev/null; then
    kubectl=(kubectl)
  elif [[ -x bin/sandbox ]]; then
    kubectl=(bin/sandbox kubectl)
  else
    die "kubectl is not installed. Install it, or build the one in the sandbox with: make build"
  fi
}

# reach_cluster fails with the reason unless the cluster answers.
reach_cluster() {
  local answer
  if ! answer=$("${kubectl[@]}" get --raw /version --request-timeout=10s 2>&1); then
    die "the cluster does not answer: $(tail -1 <<<"$answer")
Current context: $("${kubectl[@]}" config current-context 2>/dev/null || echo none). Set KUBECONFIG, or pick another with: kubectl config use-context"
  fi
}

# valid_namespace fails unless $1 can be a namespace.
valid_namespace() {
  [[ $1 =~ ^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$ ]] ||
    die "'$1' cannot be a namespace: use lower-case letters, digits and '-', 63 at most"
}

# render NAMESPACE DIR prints the manifests of config/default for a namespace.
# It works in DIR: kustomize takes only paths relative to the kustomization.
render() {
  local namespace=$1 dir=$2
  [[ -z ${IMG:-} || $IMG =~ ^[A-Za-z0-9][A-Za-z0-9./:@_-]*$ ]] || die "IMG='$IMG' cannot be an image"
  cp -R config "$dir/config"
  mkdir "$dir/overlay"
  {
    echo "namespace: $namespace"
    echo "resources: [../config/default]"
    echo "patches:"
    # As merge patch: adding under /metadata/annotations would fail or wipe others.
    echo "  - patch: |-"
    echo "      {apiVersion: v1, kind: Namespace, metadata: {name: $default_namespace, annotations: {$created_annotation: 'true'}}}"
    if [[ -n ${IMG:-} ]]; then
      echo "  - target: {kind: Deployment, name: $manager}"
      echo "    patch: |-"
      echo "      - {op: replace, path: /spec/template/spec/containers/0/image, value: '$IMG'}"
    fi
  } >"$dir/overlay/kustomization.yaml"
  # Where webhooks and policies name the namespace, kustomize does not know it for one.
  "${kubectl[@]}" kustomize "$dir/overlay" | sed "s/$default_namespace/$namespace/g"
}

# only KIND, without KIND: filter a stream of manifests by kind.
only() { split_kinds "$1" 1; }
without() { split_kinds "$1" 0; }
split_kinds() {
  awk -v kind="kind: $1" -v want="$2" '
    function flush() { if (doc != "" && is == want) printf "---\n%s", doc; doc = ""; is = 0 }
    /^---/ { flush(); next }
    { doc = doc $0 "\n"; if ($0 == kind) is = 1 }
    END { flush() }'
}

# installed_in prints the namespace whose manager the cluster-wide rights are bound to.
installed_in() {
  "${kubectl[@]}" get clusterrolebinding "$manager" --ignore-not-found \
    -o jsonpath='{.subjects[0].namespace}'
}
