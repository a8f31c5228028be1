package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/console"
)

// story is what has been seen of the workloads.
type story struct {
	console *console.Console
	started time.Time

	mu    sync.Mutex
	order []*v1alpha1.GPUWorkload
	last  map[types.UID]*v1alpha1.GPUWorkload
	ended map[types.UID]time.Time
	// told holds the messages that have been shown.
	told map[string]bool
}

func newStory(workloads []*v1alpha1.GPUWorkload, started time.Time, out *console.Console) *story {
	return &story{
		console: out,
		started: started,
		order:   workloads,
		last:    map[types.UID]*v1alpha1.GPUWorkload{},
		ended:   map[types.UID]time.Time{},
		told:    map[string]bool{},
	}
}

// follow tells of every change until all workloads have finished.
func (s *story) follow(ctx context.Context, cluster client.WithWatch) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		// The events end with the workloads.
		defer cancel()
		return s.watch(ctx, cluster, &v1alpha1.GPUWorkloadList{}, &v1alpha1.GPUWorkload{}, s.sawWorkload)
	})
	group.Go(func() error {
		err := s.watch(ctx, cluster, &eventsv1.EventList{}, &eventsv1.Event{}, s.sawEvent)
		if wait.Interrupted(err) {
			return nil
		}
		return err
	})
	return group.Wait()
}

func (s *story) watch(ctx context.Context, cluster client.WithWatch, list client.ObjectList, kind runtime.Object, saw watchtools.ConditionFunc) error {
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			into := list.DeepCopyObject().(client.ObjectList)
			return into, cluster.List(ctx, into, &client.ListOptions{Namespace: namespace, Raw: &options})
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			into := list.DeepCopyObject().(client.ObjectList)
			return cluster.Watch(ctx, into, &client.ListOptions{Namespace: namespace, Raw: &options})
		},
	}
	if _, err := watchtools.UntilWithSync(ctx, source, kind, nil, saw); err != nil {
		return fmt.Errorf("watching: %w", errors.Join(err, context.Cause(ctx)))
	}
	return nil
}

// sawWorkload tells of a change of phase and, while a workload waits, of a change of
// what it waits for. Other messages count pods, which is more than a reader follows.
func (s *story) sawWorkload(change watch.Event) (bool, error) {
	w, ok := change.Object.(*v1alpha1.GPUWorkload)
	if !ok {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ours(w.UID) {
		return false, nil
	}
	if change.Type == watch.Deleted {
		return false, fmt.Errorf("workload %s was deleted", w.Name)
	}
	before := s.last[w.UID]
	s.last[w.UID] = w
	if before == nil {
		before = &v1alpha1.GPUWorkload{}
	}
	waits := w.Status.Phase == v1alpha1.PhasePending && before.Status.Message != w.Status.Message
	if before.UID == "" || before.Status.Phase != w.Status.Phase || waits {
		s.tellWorkload(w, slices.Equal(before.Status.AssignedNodes, w.Status.AssignedNodes))
	}
	if _, known := s.ended[w.UID]; !known && w.Status.Phase.Finished() {
		s.ended[w.UID] = time.Now()
	}
	return len(s.ended) == len(s.order), nil
}

// tellWorkload leaves the nodes out where they are those already told.
func (s *story) tellWorkload(w *v1alpha1.GPUWorkload, sameNodes bool) {
	phase := string(w.Status.Phase)
	if phase == "" {
		phase = "Submitted"
	}
	var details []string
	if len(w.Status.AssignedNodes) > 0 && !sameNodes {
		details = append(details, "on "+nodes(w.Status.AssignedNodes))
	}
	if w.Status.Message != "" {
		s.told[w.Status.Message] = true
		details = append(details, s.console.Paint(console.Dim, w.Status.Message))
	}
	s.tell(w.Name, s.console.Paint(phaseStyle(w.Status.Phase), fmt.Sprintf("%-10s", phase)), strings.Join(details, "  "))
}

// sawEvent tells of an event about one of the workloads, unless the workload's own
// status says the same.
func (s *story) sawEvent(change watch.Event) (bool, error) {
	event, ok := change.Object.(*eventsv1.Event)
	if !ok || change.Type == watch.Deleted {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ours(event.Regarding.UID) && !s.told[event.Note] && !isPhase(event.Reason) {
		style := console.Dim
		if event.Type == "Warning" {
			style = console.Yellow
		}
		s.tell(event.Regarding.Name, s.console.Paint(console.Dim, fmt.Sprintf("%-10s", "event")),
			s.console.Paint(style, event.Reason+": "+event.Note))
	}
	return false, nil
}

// isPhase tells whether an event's reason is the name of a phase, so that the event
// only repeats the change of phase.
func isPhase(reason string) bool {
	switch v1alpha1.WorkloadPhase(reason) {
	case v1alpha1.PhaseScheduled, v1alpha1.PhaseRunning, v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed:
		return true
	default:
		return false
	}
}

func (s *story) ours(uid types.UID) bool {
	for _, w := range s.order {
		if w.UID == uid {
			return true
		}
	}
	return false
}

func (s *story) tell(workload, what, details string) {
	at := s.console.Paint(console.Dim, fmt.Sprintf("%6s", console.Seconds(time.Since(s.started))))
	s.console.Printf("%s  %-16s  %s  %s", at, workload, what, details)
}

func phaseStyle(phase v1alpha1.WorkloadPhase) console.Style {
	switch phase {
	case v1alpha1.PhaseSucceeded:
		return console.Green
	case v1alpha1.PhaseFailed:
		return console.Red
	case v1alpha1.PhaseRunning:
		return console.Cyan
	default:
		return console.Bold
	}
}

// conclude prints the table and the last line.
func (s *story) conclude(watchErr error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WORKLOAD\tPHASE\tGANG\tGPUS\tRETRIES\tTOOK\tNODES")
	succeeded := 0
	for _, submitted := range s.order {
		seen := s.last[submitted.UID]
		if seen == nil {
			seen = submitted
		}
		if seen.Status.Phase == v1alpha1.PhaseSucceeded {
			succeeded++
		}
		took := "-"
		if end, ok := s.ended[submitted.UID]; ok {
			took = console.Seconds(end.Sub(s.started))
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%s\n", seen.Name, seen.Status.Phase, seen.Spec.Parallelism,
			seen.Spec.Parallelism*seen.Spec.GPUCount, seen.Status.RetryCount, took, nodes(seen.Status.AssignedNodes))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	s.console.Printf("\n%s", table.String())

	verdict := fmt.Sprintf("demo: %d of %d workloads Succeeded in %s", succeeded, len(s.order), console.Seconds(time.Since(s.started)))
	if succeeded == len(s.order) {
		s.console.Printf("%s", s.console.Paint(console.Green, verdict))
		return nil
	}
	s.console.Printf("%s", s.console.Paint(console.Red, verdict))
	return errors.Join(fmt.Errorf("%d of %d demo workloads did not succeed", len(s.order)-succeeded, len(s.order)), watchErr)
}

// nodes lists nodes, and more than four by their number.
func nodes(names []string) string {
	const shown = 4
	switch {
	case len(names) == 0:
		return "-"
	case len(names) <= shown:
		return strings.Join(names, ",")
	default:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ","), len(names)-shown)
	}
}
