#!/usr/bin/env bash
# Generates what is made from the code: deep copies, CRDs, reference pages.
#
#   scripts/generate.sh            all of it
#   scripts/generate.sh objects    api/**/zz_generated.deepcopy.go
#   scripts/generate.sh crds       config/crd/bases/
#   scripts/generate.sh docs       docs/reference/api.md and metrics.md
#   scripts/generate.sh check      all of it, and fail if that changed a file
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Reading packages must not need a C compiler, nor compile anything a second time.
export CGO_ENABLED=0

objects() {
  scripts/tool controller-gen object paths=./api/...
}

crds() {
  # Descriptions are kept whole, `kubectl explain` needs them. The metadata of the
  # embedded pod template is generated too: without it labels and annotations of
  # the template would be pruned.
  scripts/tool controller-gen crd:generateEmbeddedObjectMeta=true \
    paths=./api/v1alpha1/... output:crd:artifacts:config=config/crd/bases
  # The stock pattern of a quantity lets in 5e3000000000, which takes hours to read: one
  # such template would stop every client that lists workloads. Two digits of exponent
  # are more than any machine has of anything.
  sed -i -E '/pattern: \^\(\\\+\|-\)\?\(\(\[0-9\]\+/ s/pattern: .*/pattern: ^[+-]?([0-9]{1,32}(\\.[0-9]{0,32})?|\\.[0-9]{1,32})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$/' \
    config/crd/bases/*.yaml
}

docs() {
  mkdir -p docs/reference
  api_reference >docs/reference/.api.md
  mv docs/reference/.api.md docs/reference/api.md
  if [[ -d hack/metricsdoc ]]; then
    go run ./hack/metricsdoc >docs/reference/.metrics.md
    mv docs/reference/.metrics.md docs/reference/metrics.md
  fi
}

api_reference() {
  local dir
  dir=$(mktemp -d)
  # Warnings about the depth of Kubernetes' own types are of no use to anyone.
  if ! scripts/tool crd-ref-docs --source-path=api --config=hack/crd-ref-docs.yaml \
    --renderer=markdown --output-path="$dir/api.md" >"$dir/log" 2>&1; then
    cat "$dir/log" >&2
    rm -rf "$dir"
    return 1
  fi
  echo '<!-- Made from the comments of api/ by scripts/generate.sh docs. Do not edit. -->'
  # `Optional: \{\}` is a marker's empty value, not something to read.
  sed -E 's/(Optional|Required): \\\{\\\} <br \/>/\1/g; s/ <br \/>( \|)/\1/g; s/<br \/>( \|)/\1/g; s/[[:space:]]+$//' "$dir/api.md" | cat -s
  rm -rf "$dir"
}

# Every file that this script writes.
generated() {
  find api -name 'zz_generated*.go'
  find config/crd/bases -type f
  # The first generation makes this folder.
  if [[ -d docs/reference ]]; then find docs/reference -type f; fi
}

check() {
  local before after
  # Compared with what was there, not with the last commit: a change that is
  # complete but not committed yet is in order.
  before=$(generated | sort | xargs -r sha256sum)
  objects
  crds
  docs
  after=$(generated | sort | xargs -r sha256sum)
  if [[ "$before" != "$after" ]]; then
    echo "Generated files were out of date and are now new; commit them:" >&2
    diff <(echo "$before") <(echo "$after") | awk '/^[<>]/ {print "  " $3}' | sort -u >&2
    return 1
  fi
}

case "${1:-all}" in
  all)
    objects
    crds
    docs
    ;;
  objects | crds | docs | check) "$1" ;;
  *)
    sed -n '2,9p' "$0" | sed 's/^# \{0,1\}//' >&2
    exit 2
    ;;
esac
