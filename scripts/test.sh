#!/usr/bin/env bash
# The project's tests. On a fresh Debian machine it needs Go, git and a C compiler;
# what else it uses it installs (as root) or compiles from pinned modules.
#
#   scripts/test.sh          everything: formatting, vet, generated code, lint,
#                            build, import rules, unit tests with the race
#                            detector, API tests and end-to-end tests on a real
#                            control plane. About 20 minutes from nothing on two
#                            cores, a few once compiled.
#   scripts/test.sh fast     formatting, vet, import rules and unit tests: needs no
#                            control plane
#   scripts/test.sh check    fast, generated code, a clean tree after it, and lint:
#                            before a push
#   scripts/test.sh e2e      only the tests on a real control plane
#
# Every step runs even if an earlier one failed; the exit code says whether one did.
# CI=true turns skips into failures.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
root=$PWD

module=github.com/reyisjones/gpu-orchestrator
# The package that links the whole Kubernetes control plane. With the race detector
# it takes half an hour to compile, so nothing that imports it is tested with it.
control_plane=$module/internal/sandbox/applet

# A test must never reach the cluster that the person at the keyboard works on.
export KUBECONFIG=/dev/null

# The commit is of no interest to a test, and asking git for it fails in a clone
# that belongs to somebody else.
export GOFLAGS="${GOFLAGS:+$GOFLAGS }-buildvcs=false"

steps=()    # "result seconds name" of each step that ran
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

# step NAME COMMAND... runs the command under a heading and notes how it went.
step() {
  local name=$1 start=$SECONDS result=ok
  shift
  printf '\n=== %s\n' "$name"
  "$@" || result=FAILED
  steps+=("$result $((SECONDS - start)) $name")
  printf -- '--- %s: %s (%d s)\n' "$name" "$result" $((SECONDS - start))
  [[ $result == ok ]]
}

# need PROGRAM PACKAGE... installs Debian packages if a program is missing.
need() {
  local program=$1
  shift
  command -v "$program" >/dev/null && return
  if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
    echo "installing $*"
    if [[ ! -e $results/apt-updated ]]; then
      apt-get update -qq >"$results/apt.log" 2>&1 || { cat "$results/apt.log" >&2; return 1; }
      touch "$results/apt-updated"
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" \
      >"$results/apt.log" 2>&1 || { cat "$results/apt.log" >&2; return 1; }
    return
  fi
  echo "$program is missing: install $* and run this again" >&2
  return 1
}

requirements() {
  local version want
  if ! command -v go >/dev/null; then
    echo "go is missing: install Go as go.mod names it ($(awk '/^go / {print $2}' go.mod)) or newer" >&2
    return 1
  fi
  version=$(go env GOVERSION) want=go$(awk '/^go / {print $2}' go.mod)
  if [[ $(printf '%s\n%s\n' "$want" "$version" | sort -V | head -1) != "$want" ]]; then
    echo "$version is too old: go.mod needs $want" >&2
    return 1
  fi
  echo "$version, $(nproc) cores"
  # The race detector needs a C compiler; go mod needs git for nothing but is used to it.
  need git git && need cc gcc libc6-dev
}

formatting() {
  local unformatted
  unformatted=$(gofmt -l api cmd config core hack internal test 2>/dev/null)
  if [[ -n $unformatted ]]; then
    printf 'not formatted; run gofmt -w on:\n%s\n' "$unformatted" >&2
    return 1
  fi
}

shell_scripts() {
  need shellcheck shellcheck || return
  shellcheck scripts/*.sh scripts/tool .ci/run
}

# packages light|heavy [PATTERN...] lists packages by whether they import the
# control plane, themselves or through others.
packages() {
  local weight=$1
  shift
  go list -f '{{.ImportPath}} {{join .Deps " "}}' "$@" |
    awk -v heavy="$control_plane" -v want="$weight" '{
      is = ($1 == heavy) ? "heavy" : "light"
      for (i = 2; i <= NF; i++) if ($i == heavy) is = "heavy"
      if (is == want) print $1
    }'
}

vet() {
  # Without cgo, so that build, vet, lint and the end-to-end tests share what they compile.
  local list
  list=$(packages light ./...) || return
  if [[ $mode == all ]]; then list=./...; fi
  # shellcheck disable=SC2086 # a list of packages
  CGO_ENABLED=0 go vet $list
}

build() {
  # First the large binary, by itself: two links at a time do not fit in small machines.
  scripts/build.sh sandbox &&
    CGO_ENABLED=0 go build ./... &&
    rm -rf bin/envtest && bin/sandbox assets bin/envtest &&
    du -h bin/sandbox bin/envtest
}

# run_tests NAME FORMAT ARGS... runs go test through gotestsum, whose closing line counts the tests.
run_tests() {
  local name=$1 format=$2
  shift 2
  scripts/tool gotestsum --format "$format" --format-hide-empty-pkg \
    --jsonfile "$results/$name.json" -- "$@"
}

tidy() {
  # Downloads more than a build does, so continuous integration leaves it out.
  go mod tidy -diff || { echo "go.mod is not tidy; run: go mod tidy" >&2; return 1; }
}

clean_tree() {
  local dirty
  dirty=$(git status --porcelain)
  if [[ -n $dirty ]]; then
    printf 'these changes are not committed:\n%s\n' "$dirty" >&2
    return 1
  fi
}

lint() {
  # Without cgo for the same reason as vet.
  CGO_ENABLED=0 scripts/tool golangci-lint run ./...
}

imports() {
  CGO_ENABLED=0 run_tests imports pkgname -count=1 ./test/imports
}

unit() {
  local light heavy_tested status=0
  light=$(packages light ./api/... ./config/... ./core/... ./internal/... ./cmd/...) || return
  # shellcheck disable=SC2086 # lists of packages
  run_tests unit pkgname -race -shuffle=on -timeout 15m \
    -covermode=atomic -coverprofile=coverage.out $light || status=1
  if [[ $mode == all ]]; then
    heavy_tested=$(packages heavy ./internal/... ./cmd/... | xargs -r go list -f \
      '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}') || return
    if [[ -n $heavy_tested ]]; then
      # shellcheck disable=SC2086
      CGO_ENABLED=0 run_tests unit-heavy pkgname -timeout 15m $heavy_tested || status=1
    fi
  fi
  coverage
  return $status
}

# coverage prints what the unit tests cover, generated code aside.
coverage() {
  [[ -s coverage.out ]] || return 0
  grep -v -e '/zz_generated' -e '\.pb\.go:' coverage.out >"$results/coverage" && mv "$results/coverage" coverage.out
  go tool cover -func=coverage.out | awk '/^total:/ {print "\ncoverage of statements by unit tests: " $NF "  (go tool cover -html=coverage.out shows where)"}'
}

end_to_end() {
  local list
  if [[ ! -x bin/sandbox || ! -d bin/envtest ]]; then
    echo "not run: the sandbox was not built" >&2
    return 1
  fi
  # The sweep of faults takes a machine of its own for a quarter of an hour: make faults.
  list=$(go list ./test/... | grep -v -e "^$module/test/imports$" -e "^$module/test/faults$")
  if [[ -z $list ]]; then
    echo "there is no test under test/ but the import rules" >&2
    return 1
  fi
  # One package at a time: each starts control planes of its own.
  # shellcheck disable=SC2086 # a list of packages
  CGO_ENABLED=0 run_tests end-to-end testname -p 1 -count=1 -timeout 40m $list
}

# summary prints how each step went, and last the number of tests.
summary() {
  local entry failed=0
  printf '\n=== summary\n'
  for entry in "${steps[@]}"; do
    printf '%-7s %5d s  %s\n' "${entry%% *}" "$(cut -d' ' -f2 <<<"$entry")" "$(cut -d' ' -f3- <<<"$entry")"
    [[ $entry == FAILED* ]] && failed=1
  done
  count() { cat "$results"/*.json 2>/dev/null | grep -c "\"Action\":\"$1\",.*\"Test\":"; }
  printf '\n%d passed, %d failed, %d skipped\n' "$(count pass)" "$(count fail)" "$(count skip)"
  return $failed
}

# in_modes MODE... tells whether this run is in one of the modes.
in_modes() { [[ " $* " == *" $mode "* ]]; }

mode=${1:-all}
if ! in_modes all fast check e2e || [[ $# -gt 1 ]]; then
  awk 'NR > 1 && !/^#/ {exit} NR > 1 {sub(/^# ?/, ""); print}' "$0" >&2
  exit 2
fi

step "requirements" requirements || { summary; exit 1; }
if in_modes all fast check; then
  step "formatting" formatting
fi
if in_modes all check; then
  step "shell scripts" shell_scripts
  step "generated files are up to date" scripts/generate.sh check
fi
if in_modes check; then
  step "go.mod is tidy" tidy
  step "the tree is clean" clean_tree
fi
if in_modes all e2e; then
  step "build, with the sandbox" build
  export SANDBOX_BIN=$root/bin/sandbox KUBEBUILDER_ASSETS=$root/bin/envtest
fi
if in_modes all fast check; then
  step "vet" vet
fi
if in_modes all check; then
  step "lint" lint
fi
if in_modes all fast check; then
  step "import rules" imports
  step "unit tests" unit
fi
if in_modes all e2e; then
  step "end-to-end tests" end_to_end
fi
summary
