package api

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// transition is a change of one field of a stored workload.
type transition struct {
	field    string
	from, to string // specs
}

// pinned are the fields that a plan rests on. An optional one can be added, changed and
// removed.
func pinned() []transition {
	return []transition{
		{"modelName", `{modelName: m}`, `{modelName: other}`},
		{"gpuCount", `{modelName: m, gpuCount: 1}`, `{gpuCount: 2}`},
		{"parallelism", `{modelName: m, parallelism: 1}`, `{parallelism: 2}`},
		{"minParallelism", `{modelName: m, parallelism: 4}`, `{minParallelism: 2}`},
		{"minParallelism", `{modelName: m, parallelism: 4, minParallelism: 2}`, `{minParallelism: 3}`},
		{"minParallelism", `{modelName: m, parallelism: 4, minParallelism: 2}`, `{minParallelism: null}`},
		{"schedulingStrategy", `{modelName: m}`, `{schedulingStrategy: random}`},
		{"schedulingStrategy", `{modelName: m, schedulingStrategy: random}`, `{schedulingStrategy: leastLoaded}`},
		{"schedulingStrategy", `{modelName: m, schedulingStrategy: random}`, `{schedulingStrategy: null}`},
		{"restartPolicy", `{modelName: m}`, `{restartPolicy: member}`},
		{"gpu", `{modelName: m}`, `{gpu: {product: Tesla-T4}}`},
		{"gpu", `{modelName: m, gpu: {product: Tesla-T4}}`, `{gpu: {product: Tesla-V100}}`},
		{"gpu", `{modelName: m, gpu: {product: Tesla-T4}}`, `{gpu: {milli: 500}}`},
		{"gpu", `{modelName: m, gpu: {product: Tesla-T4}}`, `{gpu: null}`},
		{"topology", `{modelName: m}`, `{topology: {required: leaf}}`},
		{"topology", `{modelName: m, topology: {required: leaf}}`, `{topology: {required: spine}}`},
		{"topology", `{modelName: m, topology: {required: leaf}}`, `{topology: {slice: {size: 1, level: host}}}`},
		{"topology", `{modelName: m, topology: {required: leaf}}`, `{topology: null}`},
		{"schedulerName", `{modelName: m}`, `{schedulerName: one}`},
		{"schedulerName", `{modelName: m, schedulerName: one}`, `{schedulerName: two}`},
		{"schedulerName", `{modelName: m, schedulerName: one}`, `{schedulerName: null}`},
		{"priorityClassName", `{modelName: m}`, `{priorityClassName: one}`},
		{"priorityClassName", `{modelName: m, priorityClassName: one}`, `{priorityClassName: two}`},
		{"priorityClassName", `{modelName: m, priorityClassName: one}`, `{priorityClassName: null}`},
	}
}

// free are the fields that can be changed at any time.
func free() []transition {
	return []transition{
		{"suspend", `{modelName: m}`, `{suspend: true}`},
		{"priority", `{modelName: m}`, `{priority: high}`},
		{"preemptionPolicy", `{modelName: m}`, `{preemptionPolicy: PreemptLowerPriority}`},
		{"movable", `{modelName: m}`, `{movable: true}`},
		{"expectedDuration", `{modelName: m}`, `{expectedDuration: 1h}`},
		{"preemptible", `{modelName: m}`, `{preemptible: false}`},
		{"retryPolicy", `{modelName: m}`, `{retryPolicy: {maxRetries: 7, backoffSeconds: 1}}`},
		{"ttlSecondsAfterFinished", `{modelName: m}`, `{ttlSecondsAfterFinished: 0}`},
		{"ttlSecondsAfterFinished", `{modelName: m, ttlSecondsAfterFinished: 60}`, `{ttlSecondsAfterFinished: null}`},
		{"activeDeadlineSeconds", `{modelName: m}`, `{activeDeadlineSeconds: 60}`},
		{"template", `{modelName: m}`, `{template: {spec: {containers: [{name: main, image: two}]}}}`},
		{"template", `{modelName: m, template: {spec: {containers: [{name: main, image: one}]}}}`, `{template: {spec: {containers: [{name: main, image: two}]}}}`},
		{"template", `{modelName: m, template: {spec: {containers: [{name: main, image: one}]}}}`, `{template: null}`},
	}
}

// fixed are the fields that never change.
func fixed() []transition {
	return []transition{
		{"className", `{modelName: m}`, `{className: one}`},
		{"className", `{modelName: m, className: one}`, `{className: two}`},
		{"className", `{modelName: m, className: one}`, `{className: null}`},
	}
}

func pinnedSays(field string) string {
	return "spec." + field + ": Forbidden: spec." + field + " cannot be changed once the workload is planned: " +
		"suspend it (spec.suspend: true), wait for its condition Suspended, then change it; if it is finished, create another"
}

const fixedSays = "spec.className: Forbidden: className cannot be changed: delete the workload and create it with the other class"

// transitionCases tells TestEveryRuleHasACase what the tests below cover.
func transitionCases() []ruleCase {
	cases := []ruleCase{{says: fixedSays}}
	for _, p := range pinned() {
		cases = append(cases, ruleCase{says: pinnedSays(p.field)})
	}
	return cases
}

// TestPinnedFields changes each field a plan rests on at every point of a workload's life.
func TestPinnedFields(t *testing.T) {
	c := cluster(t)
	for _, p := range pinned() {
		t.Run(p.from+" to "+p.to, func(t *testing.T) {
			l := life{t, c, create(t, c, namespace(t, c), `{spec: `+p.from+`}`)}
			l.mayChange(p, "new")
			l.status(`{status: {phase: Pending, message: no room}}`)
			l.mayChange(p, "waiting")
			l.status(`{status: {phase: Scheduling, jobName: w-0}}`)
			l.mayNotChange(p, "planned", pinnedSays(p.field))
			l.mayBeTouched("planned")
			l.status(`{status: {phase: Succeeded}}`)
			l.mayNotChange(p, "finished", pinnedSays(p.field))
			l.status(`{status: {phase: Pending, jobName: null}}`)
			l.mayChange(p, "suspended")
		})
	}
}

func TestFreeFields(t *testing.T) {
	c := cluster(t)
	for _, p := range free() {
		t.Run(p.from+" to "+p.to, func(t *testing.T) {
			l := life{t, c, create(t, c, namespace(t, c), `{spec: `+p.from+`}`)}
			l.mayChange(p, "new")
			l.status(`{status: {phase: Running, jobName: w-0}}`)
			l.mayChange(p, "planned")
		})
	}
}

func TestFixedFields(t *testing.T) {
	c := cluster(t)
	for _, p := range fixed() {
		t.Run(p.from+" to "+p.to, func(t *testing.T) {
			l := life{t, c, create(t, c, namespace(t, c), `{spec: `+p.from+`}`)}
			l.mayNotChange(p, "new", fixedSays)
			l.mayBeTouched("new")
			l.status(`{status: {phase: Running, jobName: w-0}}`)
			l.mayNotChange(p, "planned", fixedSays)
			l.mayBeTouched("planned")
		})
	}
}

// TestEveryFieldIsDecided asks of each field of spec whether it can change: a new one must be
// pinned, free or fixed, as somebody will try.
func TestEveryFieldIsDecided(t *testing.T) {
	var decided []string
	for _, transition := range slices.Concat(pinned(), free(), fixed()) {
		decided = append(decided, transition.field)
	}
	for _, f := range fields(definition(t)) {
		name, ok := strings.CutPrefix(f.path, "spec.")
		if ok && !strings.ContainsAny(name, ".[") && !slices.Contains(decided, name) {
			t.Errorf("spec.%s is neither pinned, free nor fixed", name)
		}
	}
}

// TestASecondFieldIsToldToo holds that somebody who edits two pinned fields learns of both.
func TestASecondFieldIsToldToo(t *testing.T) {
	c := cluster(t)
	l := life{t, c, create(t, c, namespace(t, c), `{spec: {modelName: m}}`)}
	l.status(`{status: {jobName: w-0}}`)
	l.mayNotChange(transition{to: `{modelName: other, gpuCount: 2}`}, "planned", pinnedSays("modelName")+", "+pinnedSays("gpuCount"))
}

// life is a stored workload that is seen through the states of its life.
type life struct {
	t        *testing.T
	cluster  client.Client
	workload *unstructured.Unstructured
}

// status writes part of the status.
func (l life) status(text string) {
	l.t.Helper()
	set(l.t, l.workload, text)
	if err := l.cluster.Status().Update(l.t.Context(), l.workload); err != nil {
		l.t.Fatalf("writing %s: %v", text, err)
	}
}

func (l life) change(text string) error {
	l.t.Helper()
	changed := l.workload.DeepCopy()
	set(l.t, changed, text)
	return l.cluster.Update(l.t.Context(), changed, client.DryRunAll, client.FieldValidation("Strict"))
}

func (l life) mayChange(p transition, state string) {
	l.t.Helper()
	if err := l.change(`{spec: ` + p.to + `}`); err != nil {
		l.t.Errorf("%s: %v", state, err)
	}
}

func (l life) mayNotChange(p transition, state, says string) {
	l.t.Helper()
	if got := sentences(l.t, l.change(`{spec: `+p.to+`}`)); got != says {
		l.t.Errorf("%s:\n  got:  %s\n  want: %s", state, got, says)
	}
}

// mayBeTouched holds that what does not change is in nobody's way.
func (l life) mayBeTouched(state string) {
	l.t.Helper()
	if err := l.change(`{metadata: {labels: {touched: "yes"}}, spec: {priority: high}}`); err != nil {
		l.t.Errorf("%s: %v", state, err)
	}
}
