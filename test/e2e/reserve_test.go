package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

func expected(d time.Duration) func(*gpuv1alpha1.GPUWorkload) {
	return func(w *gpuv1alpha1.GPUWorkload) { w.Spec.ExpectedDuration = &metav1.Duration{Duration: d} }
}

// Where it is switched on, what may move makes room for what waits, and starts again elsewhere.
func TestMovableWorkloadMakesRoom(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	text := "reservations: {max: 4, patience: 1s, maxWait: 1h}\ndefragmentation: {enabled: true, maxMoves: 1, window: 5s}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := ownCluster(t, "--nodes=2", "--manager-arg=--config="+config)
	ns := c.namespace(t)
	fixed := c.submit(t, gpuWorkload(ns, "fixed", 1, 4, forever))
	c.untilPhase(t, fixed, gpuv1alpha1.PhaseRunning)
	mover := c.submit(t, gpuWorkload(ns, "mover", 1, 4, forever, func(w *gpuv1alpha1.GPUWorkload) { w.Spec.Movable = true }))
	c.untilPhase(t, mover, gpuv1alpha1.PhaseRunning)
	big := c.submit(t, gpuWorkload(ns, "big", 1, 8, forever))
	c.untilPhase(t, big, gpuv1alpha1.PhaseRunning)
	c.until(t, mover, "running again", func(w *gpuv1alpha1.GPUWorkload) bool {
		return w.Status.Attempt == 1 && w.Status.Phase == gpuv1alpha1.PhaseRunning
	})
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(fixed), fixed); err != nil || fixed.Status.Attempt != 0 || mover.Status.AssignedNode != fixed.Status.AssignedNode || mover.Status.RetryCount != 0 {
		t.Errorf("%v; fixed %+v, mover %+v", err, fixed.Status, mover.Status)
	}
	c.untilEvent(t, mover, "Moved")
	c.untilEvent(t, big, "Moving")
	c.untilEvent(t, big, "MoveProposed")
}

// A gang for the whole cluster holds room that others leave alone, unless they end in time, and
// starts when what it waits for has ended. It says when it expects that.
func TestGangHoldsRoomAndOthersPassOnlyInTime(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("reservations: {max: 4, patience: 1s, maxWait: 1h}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := ownCluster(t, "--nodes=4", "--manager-arg=--config="+config)
	ns := c.namespace(t)
	long := c.submit(t, gpuWorkload(ns, "long", 1, 8, forever, expected(40*time.Minute)))
	c.untilPhase(t, long, gpuv1alpha1.PhaseRunning)
	gang := c.submit(t, gpuWorkload(ns, "gang", 4, 8, forever))
	c.untilReason(t, gang, gpuv1alpha1.ConditionPlanned, "Reserved")
	if !strings.HasPrefix(gang.Status.Message, "reserved: 4 nodes, expected in 40 min (") || !strings.Contains(gang.Status.Message, "after "+ns+"/long; ") {
		t.Errorf("the gang says %q", gang.Status.Message)
	}
	c.untilEvent(t, gang, "Reserved")
	vague := c.submit(t, gpuWorkload(ns, "vague", 1, 1))
	c.untilReason(t, vague, gpuv1alpha1.ConditionPlanned, "NoRoom")
	if !strings.Contains(vague.Status.Message, "there is room now, but it is held for "+ns+"/gang") {
		t.Errorf("what does not say when it ends is told %q", vague.Status.Message)
	}
	brief := c.submit(t, gpuWorkload(ns, "brief", 3, 8, runFor("1s"), expected(time.Minute)))
	c.untilPhase(t, brief, gpuv1alpha1.PhaseSucceeded)
	if err := c.Delete(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	c.untilPhase(t, gang, gpuv1alpha1.PhaseRunning)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(vague), vague); err != nil || vague.Status.Phase != gpuv1alpha1.PhasePending {
		t.Errorf("%v; what does not say when it ends is %s", err, vague.Status.Phase)
	}
	// Once the gang is gone nothing is held any more.
	if err := c.Delete(t.Context(), gang); err != nil {
		t.Fatal(err)
	}
	c.untilPhase(t, vague, gpuv1alpha1.PhaseSucceeded)
}
