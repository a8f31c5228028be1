package scheduler

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// move is something that happens to a cluster, drawn before it is played: what is drawn must not
// depend on a bubble.
type move struct {
	kind                     int
	name, size, gpus, choice int
}

const kinds = 8

func drawMoves(t *rapid.T) []move {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) move {
		return move{
			kind:   rapid.IntRange(0, kinds-1).Draw(t, "kind"),
			name:   rapid.IntRange(0, 5).Draw(t, "name"),
			size:   rapid.IntRange(1, 5).Draw(t, "size"),
			gpus:   rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "gpus"),
			choice: rapid.IntRange(0, 50).Draw(t, "choice"),
		}
	}), 1, 25).Draw(t, "moves")
}

// drama plays moves, and returns what was wrong.
type drama struct {
	*stage
	nodes   int
	trouble string // the node that refuses everybody, "" for none
	unlucky int    // how many bindings fail
}

func (d *drama) play(m move) {
	switch m.kind {
	case 0, 1: // A gang, whole or short of a pod.
		name := fmt.Sprintf("g%d", m.name)
		if len(d.bound(name)) > 0 {
			return
		}
		pods := d.gang(name, m.size, int64(m.gpus))
		d.add(pods[:len(pods)-m.choice%5/4]...)
	case 2:
		d.add(d.pod(fmt.Sprintf("p%d", d.made), int64(m.gpus)))
	case 3: // A pod ends.
		if p := d.pick(m.choice); p != nil {
			d.remove(p)
		}
	case 4:
		name := fmt.Sprintf("n%02d", m.choice%d.nodes)
		d.cordon(name, !d.stage.nodes[name].Spec.Unschedulable)
	case 5:
		d.trouble = []string{"", fmt.Sprintf("n%02d", m.choice%d.nodes)}[m.choice%2]
	case 6:
		d.unlucky = m.choice % 3
	case 7:
		d.pass(time.Duration(m.choice) * 2 * time.Second)
		return
	}
	d.settle()
}

// pick returns one of the pods, in an order that does not depend on the run.
func (d *drama) pick(choice int) *corev1.Pod {
	var all []*corev1.Pod
	for _, p := range d.pods {
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b *corev1.Pod) int {
		if a.UID < b.UID {
			return -1
		}
		return 1
	})
	return all[choice%len(all)]
}

// check returns what is wrong at any time: a GPU that is sold twice, or a gang of which a part was
// started.
func (d *drama) check() error {
	sold := map[string]int64{}
	for _, p := range d.pods {
		if p.Spec.NodeName != "" {
			q := p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"]
			sold[p.Spec.NodeName] += q.Value()
		}
	}
	for node, n := range sold {
		if n > 8 {
			return fmt.Errorf("%d GPUs of %s are sold", n, node)
		}
	}
	return nil
}

// calm ends all trouble, lets everything come to rest, and returns who waits although there is
// room, or what is held for nobody.
func (d *drama) calm() error {
	d.trouble, d.unlucky = "", 0
	for name := range d.stage.nodes {
		d.cordon(name, false)
	}
	for range 2 {
		d.pass(150 * time.Second)
	}
	held := int64(0)
	for _, p := range d.pods {
		if p.Spec.NodeName != "" {
			q := p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"]
			held += q.Value()
		}
	}
	if d.held() != held {
		return fmt.Errorf("%d GPUs are counted as held where bound pods hold %d", d.held(), held)
	}
	for _, p := range d.pods {
		if p.Spec.NodeName != "" {
			continue
		}
		ask, err := state.GangOf(p)
		if err != nil {
			return err
		}
		q := askedAlone(p)
		if g := d.plugin.roster.of[p.UID]; g != nil {
			if !g.complete(time.Now(), time.Minute) {
				continue
			}
			q = d.plugin.asked(g, &ask)
		}
		if plan, err := d.plugin.state.PlanPods(&ask, q); err != nil || plan.Feasible {
			return fmt.Errorf("pod %s waits although there is room (%v); it was told %q", p.Name, err, d.said[p.Name])
		}
	}
	return nil
}

// perform plays moves on a stage of its own and returns what was wrong. Asleep, the desk looks after
// nobody who waits.
func perform(t *testing.T, nodes int, moves []move, asleep bool) (wrong error) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if asleep {
			cancel()
		}
		d := &drama{stage: newStage(ctx, t), nodes: nodes}
		for i := range nodes {
			d.addNode(fmt.Sprintf("n%02d", i), fmt.Sprintf("leaf-%d", i/2))
		}
		d.refuses = func(_ *corev1.Pod, node string) bool { return node == d.trouble }
		d.bindFails = func(*corev1.Pod) bool { d.unlucky--; return d.unlucky >= 0 }
		d.settle()
		for i, m := range moves {
			d.play(m)
			if wrong = d.check(); wrong != nil {
				wrong = fmt.Errorf("after move %d: %w", i, wrong)
				return
			}
		}
		wrong = d.calm()
	})
	return wrong
}

// Whatever happens, no GPU is sold twice, nothing is held for nobody in the end, and nobody waits
// for whom there is room.
func TestWhateverHappensNobodyIsForgotten(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		nodes, moves := rapid.IntRange(1, 5).Draw(r, "nodes"), drawMoves(r)
		if err := perform(t, nodes, moves, false); err != nil {
			r.Fatal(err)
		}
	})
}

// The property can fail: a desk that wakes nobody forgets who waits.
func TestADeskAsleepForgets(t *testing.T) {
	moves := []move{{kind: 2, gpus: 8}, {kind: 2, gpus: 8}, {kind: 3}}
	if err := perform(t, 1, moves, false); err != nil {
		t.Fatalf("the moves are bad anyway: %v", err)
	}
	if err := perform(t, 1, moves, true); err == nil {
		t.Error("nobody was forgotten by a desk that wakes nobody")
	}
}
