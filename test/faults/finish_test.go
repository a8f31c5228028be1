package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// briefly is the quiet at the end of the tests that are not the sweep.
const briefly = 5 * time.Second

// makeBystanders makes a pod every second that is none of the product's business. None may be
// refused; the judge sees to the rest.
func (s *sweep) makeBystanders(ctx context.Context) {
	tick := time.Tick(time.Second)
	for i := 0; ; i++ {
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: bystanders, Name: fmt.Sprintf("b%04d", i)},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}},
		}
		if err := s.Create(ctx, pod); err != nil && ctx.Err() == nil && i > 0 {
			s.t.Errorf("O12: a foreign pod was refused: %v", err)
		}
	}
}

// settleResidents starts what lives through everything: gangs that run, one that can never fit,
// and one that is suspended.
func (s *sweep) settleResidents(ctx context.Context) *lane {
	l, err := s.openLane(ctx, -1, "residents", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	running := []*gpuv1alpha1.GPUWorkload{l.gang("one", 1, 1, forever), l.gang("pair", 2, 3, forever), l.gang("four", 4, 2, forever)}
	never, asleep := l.gang("never", 1, 16), l.gang("asleep", 2, 4, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Suspend = true })
	for _, w := range append(running, never, asleep) {
		if err := l.Create(ctx, w); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, w := range running {
		if err := l.untilPhase(ctx, w, gpuv1alpha1.PhaseRunning); err != nil {
			s.t.Fatal(err)
		}
	}
	return l
}

// finish waits until nothing moves, compares what a manager knows with what a fresh one reads,
// holds every write of a while against the product, and prints the judge's verdict.
func (s *sweep) finish(ctx context.Context, residents *lane, quiet time.Duration) {
	s.judgeResidents(ctx, residents)
	s.restartEqual(ctx, residents)
	s.ask(map[string]string{"do": "quiet", "for": quiet.String()})
	s.ask(map[string]string{"do": "journal", "path": s.writeJournal()})
	v := s.verdict()
	for name := range s.unplanned {
		s.t.Errorf("no fault plan: %q: say in faultPlans which faults it is put through", name)
	}
	t := s.tally
	s.t.Logf("write points %d (%d come and go) | plans %d, fired %d, write did not come again %d | requests failed %d, kills %d, pauses %d | "+
		"workloads exposed to kills and pauses %d | late writes refused %d, carried out %d | revisions judged %d, writes judged %d | "+
		"violations %d, red plans %d | %.1f min",
		t.points, t.comeAndGo, t.plans, t.fired, t.missed, t.requests, t.kills, t.pauses, t.exposures, t.lateRefused, t.lateDone,
		v.Changes, v.Writes, len(v.Violations), len(s.red), time.Since(s.started).Minutes())
}

// judgeResidents sees that what ran from before still runs, and was never started again.
func (s *sweep) judgeResidents(ctx context.Context, l *lane) {
	var all gpuv1alpha1.GPUWorkloadList
	if err := l.List(ctx, &all, client.InNamespace(l.namespace)); err != nil {
		s.t.Fatal(err)
	}
	for _, w := range all.Items {
		want := map[string]gpuv1alpha1.WorkloadPhase{"never": gpuv1alpha1.PhasePending, "asleep": gpuv1alpha1.PhasePending}[w.Name]
		if want == "" {
			want = gpuv1alpha1.PhaseRunning
		}
		if w.Status.Phase != want || w.Status.Attempt != 0 || w.Status.RetryCount != 0 {
			s.t.Errorf("resident %s is %s in attempt %d after %d retries: %s", w.Name, w.Status.Phase, w.Status.Attempt, w.Status.RetryCount, w.Status.Message)
		}
	}
}

// restartEqual asks a manager that has followed the events, and one that has just read
// everything, what they know.
func (s *sweep) restartEqual(ctx context.Context, l *lane) {
	// What just ended may still be on its way to the managers' caches.
	select {
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
	}
	// Of two, the one that stands by: a change of the leader would be a matter of its own.
	instance := "manager-a"
	if s.leads() == instance {
		instance = "manager-b"
	}
	workload := l.namespace + "/asleep"
	if err := s.crew.revive(instance); err != nil {
		s.t.Fatal(err)
	}
	before, err := s.crew.scenario(ctx, instance, workload)
	if err != nil {
		s.t.Error(err)
		return
	}
	if err := s.crew.kill(instance); err != nil {
		s.t.Fatal(err)
	}
	if err := s.crew.start(instance); err != nil {
		s.t.Fatal(err)
	}
	after, err := s.crew.scenario(ctx, instance, workload)
	if err != nil {
		s.t.Error(err)
		return
	}
	s.ask(map[string]string{"do": "equal", "what": "the scenario of " + workload, "a": before, "b": after})
	// Its first look at everything is over before the quiet begins.
	select {
	case <-time.After(5 * time.Second):
	case <-ctx.Done():
	}
}

func (s *sweep) ask(command map[string]string) {
	if _, err := s.judge.ask(command); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sweep) writeJournal() string {
	path := filepath.Join(s.dir, "journal.jsonl")
	f, err := os.Create(path)
	if err != nil {
		s.t.Fatal(err)
	}
	encoder := json.NewEncoder(f)
	for _, r := range s.faults.Journal() {
		if err := encoder.Encode(r); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// verdict prints what the judge found, each with the plan in whose namespace it happened.
func (s *sweep) verdict() verdict {
	answer, err := s.judge.ask(map[string]string{"do": "verdict"})
	if err != nil {
		s.t.Fatal(err)
	}
	var v verdict
	if err := json.Unmarshal(answer, &v); err != nil {
		s.t.Fatal(err)
	}
	for _, found := range v.Violations {
		what := fmt.Sprintf("%s at revision %d: %s", found.Oracle, found.Revision, found.What)
		if p, namespace := s.planOf(found.What); namespace != "" && p.point != "" {
			s.fail(p, "%s", what)
			continue
		}
		s.t.Error(what)
	}
	return v
}

func (s *sweep) planOf(text string) (plan, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '/' || r == ',' }) {
		if p, ok := s.namespaces[word]; ok {
			return p, word
		}
	}
	return plan{}, ""
}

// clear deletes what holds GPUs in the lane.
func (l *lane) clear(ctx context.Context) error {
	var all gpuv1alpha1.GPUWorkloadList
	if err := l.List(ctx, &all, client.InNamespace(l.namespace)); err != nil {
		return err
	}
	for i := range all.Items {
		if w := &all.Items[i]; !w.Status.Phase.Finished() {
			if err := l.remove(ctx, w); err != nil {
				return err
			}
			if err := l.gone(ctx, w); err != nil {
				return err
			}
		}
	}
	var decoy corev1.Pod
	decoy.Namespace, decoy.Name = l.namespace, "decoy"
	return client.IgnoreNotFound(l.Delete(ctx, &decoy, client.GracePeriodSeconds(0)))
}

// median and worst of some durations.
func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
