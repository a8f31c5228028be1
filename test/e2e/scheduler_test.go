package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/test/harness"
)

const ourScheduler = "gpu-orchestrator"

// gpuPod is a pod for our scheduler that runs until it is deleted.
func gpuPod(namespace, name string, gpus int64, selector map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			SchedulerName: ourScheduler,
			NodeSelector:  selector,
			Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)},
			}}},
		},
	}
}

// gang is the pods of a gang by labels, of so many GPUs each.
func gang(namespace, name string, size int, gpus int64, selector map[string]string) []*corev1.Pod {
	pods := make([]*corev1.Pod, size)
	for i := range pods {
		pods[i] = gpuPod(namespace, fmt.Sprintf("%s-%d", name, i), gpus, selector)
		pods[i].Labels[gpuv1alpha1.GangLabel] = name
		pods[i].Labels[gpuv1alpha1.GangSizeLabel] = fmt.Sprint(size)
		pods[i].Annotations[gpuv1alpha1.RankAnnotation] = fmt.Sprint(i)
	}
	return pods
}

func (c *cluster) make(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	for _, p := range pods {
		if err := c.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

// boundOf returns the nodes of those pods of a gang that have one.
func (c *cluster) boundOf(t *testing.T, namespace, name string) []string {
	t.Helper()
	var list corev1.PodList
	if err := c.List(t.Context(), &list, client.InNamespace(namespace), client.MatchingLabels{gpuv1alpha1.GangLabel: name}); err != nil {
		t.Fatal(err)
	}
	var nodes []string
	for _, p := range list.Items {
		if p.Spec.NodeName != "" {
			nodes = append(nodes, p.Spec.NodeName)
		}
	}
	return nodes
}

func (c *cluster) awaitBound(t *testing.T, namespace, name string, want int) {
	t.Helper()
	eventually(t, func() error {
		if have := len(c.boundOf(t, namespace, name)); have != want {
			return fmt.Errorf("%d of %d pods of gang %s are bound", have, want, name)
		}
		return nil
	})
}

// told returns what the pod's condition says of why it is not scheduled, "" if nothing.
func (c *cluster) told(t *testing.T, namespace, name string) string {
	t.Helper()
	pod := &corev1.Pod{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
		t.Fatal(err)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Message
		}
	}
	return ""
}

func (c *cluster) awaitTold(t *testing.T, namespace, name, what string) {
	t.Helper()
	eventually(t, func() error {
		if said := c.told(t, namespace, name); !strings.Contains(said, what) {
			return fmt.Errorf("pod %s is told %q, not %q", name, said, what)
		}
		return nil
	})
}

// oneLeaf tells whether all nodes are in one leaf.
func (c *cluster) oneLeaf(t *testing.T, nodes []string) error {
	t.Helper()
	leaves := map[string]bool{}
	for _, name := range nodes {
		node := &corev1.Node{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, node); err != nil {
			t.Fatal(err)
		}
		leaves[node.Labels[gpuv1alpha1.LeafLabel]] = true
	}
	if len(leaves) != 1 {
		return fmt.Errorf("%d nodes are in %d leaves", len(nodes), len(leaves))
	}
	return nil
}

// lacksNoRight fails if our scheduler, which runs with the rights of config/scheduler, was refused
// anything.
func lacksNoRight(t *testing.T, c *cluster) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir, "logs", "scheduler.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, "forbidden") && !strings.Contains(line, "being terminated") {
			t.Error(line)
		}
	}
}

// The examples run on our scheduler beside the stock one and alone: everything is bound, and what
// asks for one leaf is in one.
func TestExamplesOnOurScheduler(t *testing.T) {
	for _, mode := range []string{"second", "only"} {
		t.Run(mode, func(t *testing.T) {
			c := ownCluster(t, "--nodes=32", "--scheduler="+mode)
			examples := filepath.Join(harness.Root(t), "examples", "scheduler")
			if said := c.kubectl(nil, "apply", "-f", examples); strings.Contains(said, "rror") {
				t.Fatal(said)
			}
			bystander := gpuPod("default", "bystander", 0, nil)
			bystander.Spec.SchedulerName = ""
			c.make(t, bystander)
			w := gpuWorkload("default", "planned", 4, 8, runFor("1s"))
			w.Spec.SchedulerName = ourScheduler
			c.submit(t, w)
			const want = 1 + 3 + 8 + 4 + 1 + 4
			var list corev1.PodList
			eventually(t, func() error {
				bound := 0
				if err := c.List(t.Context(), &list, client.InNamespace("default")); err != nil {
					return err
				}
				for _, p := range list.Items {
					if p.Spec.NodeName != "" {
						bound++
					}
				}
				if bound != want || len(list.Items) != want {
					return fmt.Errorf("%d of %d pods are bound, want %d", bound, len(list.Items), want)
				}
				return nil
			})
			of := map[string][]string{}
			for _, p := range list.Items {
				of[p.Labels["batch.kubernetes.io/job-name"]] = append(of[p.Labels["batch.kubernetes.io/job-name"]], p.Spec.NodeName)
			}
			for _, job := range []string{"training", "simulation"} {
				if err := c.oneLeaf(t, of[job]); err != nil {
					t.Errorf("%s: %v", job, err)
				}
			}
			lacksNoRight(t, c)
		})
	}
}

// scheduler runs our scheduler as a process of its own.
func (c *cluster) scheduler(t *testing.T, config string, log *os.File) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(c.binary, "scheduler", "--config="+config, "--secure-port=0")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// Our scheduler is killed at random moments while gangs are submitted. The next one goes on: in
// the end every gang is whole, and no GPU was sold twice.
func TestSchedulerKilledAtAnyMoment(t *testing.T) {
	const gangs, size = 12, 8
	c := ownCluster(t, "--nodes=12", "--no-manager", "--scheduler=stock")
	ns, log := c.namespace(t), logFile(t)
	manifest, err := os.ReadFile(filepath.Join(harness.Root(t), "config", "scheduler", "second.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "scheduler.yaml")
	text := strings.Replace(string(manifest), "leaderElect: true", "leaderElect: false", 1)
	text = strings.Replace(text, "clientConnection:\n", "clientConnection:\n  kubeconfig: "+filepath.Join(c.dir, "kubeconfig")+"\n", 1)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	made := make(chan error, 1)
	go func() {
		var errs []error
		for i := range gangs {
			for _, p := range gang(ns, fmt.Sprintf("g%02d", i), size, 1, nil) {
				errs = append(errs, c.Create(context.Background(), p))
			}
		}
		made <- errors.Join(errs...)
	}()
	for range 6 {
		cmd := c.scheduler(t, config, log)
		<-time.After(time.Duration(300+dice.IntN(1200)) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	cmd := c.scheduler(t, config, log)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for i := range gangs {
		c.awaitBound(t, ns, fmt.Sprintf("g%02d", i), size)
	}
}
