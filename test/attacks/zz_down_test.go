package attacks

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// timeout is the timeoutSeconds of both webhooks, and slack what this machine may add.
const (
	timeout = 2 * time.Second
	slack   = time.Second
)

// TestWebhookSetsTheScheduler holds what the mutation does, and that done again it does nothing.
func TestWebhookSetsTheScheduler(t *testing.T) {
	w := open(t)
	for text, want := range map[string]string{
		`{kind: Pod, metadata: {namespace: team-a}}`:                                                 binder,
		`{kind: Pod, metadata: {namespace: team-a}, spec: {schedulerName: gpu-orchestrator}}`:        binder,
		`{kind: Pod, metadata: {namespace: team-a}, spec: {containers: [{name: c, image: i}]}}`:      "default-scheduler",
		`{kind: Pod, metadata: {namespace: foreign}}`:                                                "default-scheduler",
		`{kind: Pod, metadata: {namespace: foreign}, spec: {schedulerName: mine}}`:                   "mine",
		`{kind: Pod, metadata: {namespace: kube-system}, spec: {containers: [{name: c, image: i}]}}`: "default-scheduler",
	} {
		who := alice
		if strings.Contains(text, "kube-system") {
			who = admin
		}
		u, err := w.tryCreate(t.Context(), who, text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got, _, _ := unstructured.NestedString(u.Object, "spec", "schedulerName"); got != want {
			t.Errorf("%s: schedulerName %q, want %q", text, got, want)
		}
	}
}

// TestZDown pauses the manager, then kills it. It is the last test, as nothing brings it back.
func TestZDown(t *testing.T) {
	w := open(t)
	w.stage(t)
	if err := w.manager.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.whileDown(t, "paused", timeout+slack)
	if err := w.manager.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := w.manager.Wait(); err == nil {
		t.Error("the manager ended by itself")
	}
	w.manager = nil
	w.whileDown(t, "dead", slack)
}

// whileDown tries, with nobody behind the webhooks, what must go on and what must not.
func (w *world) whileDown(t *testing.T, how string, within time.Duration) {
	t.Helper()
	for _, c := range []struct {
		name   string
		r      request
		want   string
		within time.Duration
	}{
		// Foreigners do not notice: their pods never get as far as the webhook.
		{"pod of another namespace", request{as: alice, create: `{kind: Pod, metadata: {namespace: foreign}}`}, "", slack},
		{"pod of kube-system", request{as: admin, create: `{kind: Pod, metadata: {namespace: kube-system}}`}, "", slack},
		{"pod of our own namespace", request{as: admin, create: `{kind: Pod, metadata: {namespace: gpu-orchestrator-system}, spec: {securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, containers: [{name: c, image: i, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}`}, "", slack},
		{"pod without GPUs", request{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {containers: [{name: c, image: i}]}}`}, "", slack},
		{"GPU pod that names the scheduler", request{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {schedulerName: gpu-orchestrator}}`}, "", slack},
		// Open: the controller judges it later.
		{"workload", request{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}}`}, "", within},
		{"wrong workload", request{as: alice, create: `{kind: GPUWorkload, metadata: {namespace: team-a}, spec: {schedulingStrategy: nonsense}}`}, "", within},
		{"finalizer of a workload", request{as: admin, patch: `{kind: GPUWorkload, metadata: {namespace: team-a, name: w, finalizers: null}}`}, "", slack},
		// Closed: the API server holds to it by itself.
		{"GPU pod without a scheduler", request{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}}`}, "the webhook that fills it in did not answer", within},
		{"node by name", request{as: alice, create: `{kind: Pod, metadata: {namespace: team-a}, spec: {nodeName: n1}}`}, "spec.nodeName must be empty", slack},
		{"gate", request{as: alice, patch: `{kind: Pod, metadata: {namespace: team-a, name: gated}, spec: {schedulingGates: null}}`}, "is removed by gpu-orchestrator", within},
	} {
		start := time.Now()
		err := c.r.try(t.Context(), w)
		took := time.Since(start)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s, manager %s: %v", c.name, how, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s, manager %s: not refused with %q, but %v", c.name, how, c.want, err)
		}
		if took > c.within {
			t.Errorf("%s, manager %s: took %s, at most %s", c.name, how, took, c.within)
		}
		verdict := "created"
		if err != nil {
			verdict = "refused"
		}
		t.Logf("manager %-6s  %-33s %s after %7.1f ms", how, c.name, verdict, milli(took))
	}
}
