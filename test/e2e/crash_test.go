package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// manager runs the manager as a process of its own, with the rights of its service account.
func (c *cluster) manager(t *testing.T, log *os.File, args ...string) *exec.Cmd {
	t.Helper()
	kubeconfig := filepath.Join(c.dir, "config", "manager.kubeconfig")
	cmd := exec.Command(c.binary, append([]string{"manager", "--kubeconfig", kubeconfig,
		"--metrics-bind-address=0", "--health-probe-bind-address=0"}, args...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func logFile(t *testing.T) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "manager-*.log")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// The manager is killed at random moments while gangs are submitted, fail, are retried and
// end. Whatever it was doing, the next one carries on: every workload ends, no GPU is sold
// twice, no attempt gets two Jobs and no retry is counted twice.
func TestManagerKilledAtAnyMoment(t *testing.T) {
	const workloads = 40
	c := ownCluster(t, "--nodes=16", "--no-manager")
	ns, log := c.namespace(t), logFile(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))

	made := watchJobs(t, c, ns)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	for i := range workloads {
		w := gpuWorkload(ns, fmt.Sprintf("w%02d", i), int32(1+dice.IntN(4)), int32(1+dice.IntN(8)), runFor("500ms"))
		if i%4 == 0 {
			simulate("fail-attempts", "1")(w)
		}
		c.submit(t, w)
	}
	kills := 0
	for {
		cmd := c.manager(t, log)
		lifetime := time.After(time.Duration(300+dice.IntN(2500)) * time.Millisecond)
		if kills >= 25 {
			lifetime = nil
		}
		var done error
		for tick := time.Tick(200 * time.Millisecond); ; {
			select {
			case <-tick:
				if done = allSucceeded(ctx, c, ns, workloads); done != nil && ctx.Err() == nil {
					continue
				}
			case <-lifetime:
				kills++
				done = errors.New("killed")
			}
			break
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if ctx.Err() != nil {
			t.Fatalf("after %d kills: %v", kills, done)
		}
		if done == nil {
			break
		}
	}
	t.Logf("%d workloads ended well through %d kills", workloads, kills)
	if kills < 3 {
		t.Errorf("only %d kills: the test did not test much", kills)
	}
	var list gpuv1alpha1.GPUWorkloadList
	if err := c.List(t.Context(), &list, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	for _, w := range list.Items {
		want := int32(0)
		if w.Spec.Template.Annotations["sandbox.gpu.warp.dev/fail-attempts"] != "" {
			want = 1
		}
		if w.Status.RetryCount != want {
			t.Errorf("%s counts %d retries, %d were needed", w.Name, w.Status.RetryCount, want)
		}
	}
	for key, uids := range made() {
		if len(uids) > 1 {
			t.Errorf("%d Jobs were made for %s: %v", len(uids), key, uids)
		}
	}
}

func allSucceeded(ctx context.Context, c *cluster, ns string, want int) error {
	var list gpuv1alpha1.GPUWorkloadList
	if err := c.List(ctx, &list, client.InNamespace(ns)); err != nil {
		return err
	}
	done := 0
	for _, w := range list.Items {
		switch w.Status.Phase {
		case gpuv1alpha1.PhaseSucceeded:
			done++
		case gpuv1alpha1.PhaseFailed:
			return fmt.Errorf("%s failed: %s", w.Name, w.Status.Message)
		}
	}
	if done < want {
		return fmt.Errorf("%d of %d succeeded", done, want)
	}
	return nil
}

// Two replicas, the leader killed: the standby takes over and everything goes on.
func TestStandbyTakesOver(t *testing.T) {
	c := ownCluster(t, "--nodes=8", "--no-manager")
	ns, log := c.namespace(t), logFile(t)
	args := []string{"--leader-elect", "--leader-election-namespace=gpu-orchestrator-system"}
	leader := c.manager(t, log, args...)
	first := c.submit(t, gpuWorkload(ns, "first", 2, 8))
	c.untilPhase(t, first, gpuv1alpha1.PhaseRunning)
	standby := c.manager(t, log, args...)
	defer func() { _ = standby.Process.Kill(); _ = standby.Wait() }()
	_ = leader.Process.Kill()
	_ = leader.Wait()
	killed := time.Now()
	second := c.submit(t, gpuWorkload(ns, "second", 2, 8))
	c.untilPhase(t, second, gpuv1alpha1.PhaseRunning)
	t.Logf("the next workload ran %s after the leader was killed", time.Since(killed).Round(100*time.Millisecond))
	c.untilPhase(t, first, gpuv1alpha1.PhaseSucceeded)
	c.untilPhase(t, second, gpuv1alpha1.PhaseSucceeded)
}

// Two installations share a cluster, each with the workloads of its class.
func TestInstallationsShareACluster(t *testing.T) {
	c := ownCluster(t, "--nodes=4", "--no-manager")
	ns, log := c.namespace(t), logFile(t)
	blue := c.manager(t, log, "--class=blue")
	defer func() { _ = blue.Process.Kill(); _ = blue.Wait() }()
	plain := c.submit(t, gpuWorkload(ns, "plain", 1, 1, runFor("100ms")))
	ours := c.submit(t, gpuWorkload(ns, "blue", 1, 1, runFor("100ms"), func(w *gpuv1alpha1.GPUWorkload) { w.Spec.ClassName = "blue" }))
	c.untilPhase(t, ours, gpuv1alpha1.PhaseSucceeded)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(plain), plain); err != nil || plain.Status.Phase != "" || len(plain.Finalizers) > 0 {
		t.Errorf("%v; a workload of another class was touched: %+v", err, plain.Status)
	}
	none := c.manager(t, log)
	defer func() { _ = none.Process.Kill(); _ = none.Wait() }()
	c.untilPhase(t, plain, gpuv1alpha1.PhaseSucceeded)
}

// attemptKey names one attempt of one workload.
type attemptKey struct {
	workload string
	attempt  string
}

type jobsMade func() map[attemptKey][]types.UID
