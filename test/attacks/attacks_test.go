package attacks

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// request is one thing that somebody asks of the API server: a creation, or a change.
type request struct {
	as            identity
	create, patch string
}

func (r request) try(ctx context.Context, w *world) error {
	if r.create != "" {
		return w.dryCreate(ctx, r.as, r.create)
	}
	return w.tryPatch(ctx, r.as, r.patch)
}

// attack is refused with the words of want; its twins are not.
type attack struct {
	name   string
	attack request
	want   string
	twins  []request
}

func TestAttacks(t *testing.T) {
	w := open(t)
	w.stage(t)
	refused, allowed := 0, 0
	for _, a := range all() {
		t.Run(a.name, func(t *testing.T) {
			err := a.attack.try(t.Context(), w)
			switch {
			case err == nil:
				t.Errorf("nobody refuses %s%s", a.attack.create, a.attack.patch)
			case !strings.Contains(err.Error(), a.want):
				t.Errorf("refused, but not with %q: %v", a.want, err)
			}
			refused++
			for _, twin := range a.twins {
				if err := twin.try(t.Context(), w); err != nil {
					t.Errorf("the allowed twin %s%s of %s: %v", twin.create, twin.patch, twin.as.user, err)
				}
				allowed++
			}
		})
	}
	t.Logf("%d attacks refused, %d twins allowed", refused, allowed)
}

// stage makes the objects that attacks are about.
func (w *world) stage(t *testing.T) {
	t.Helper()
	w.given(t,
		`{kind: Pod, metadata: {name: gated, namespace: team-a, labels: {gpu.warp.dev/workload: w, gpu.warp.dev/workload-uid: u}}, spec: {schedulingGates: [{name: gpu.warp.dev/plan}, {name: example.com/own}]}}`,
		`{kind: Pod, metadata: {name: gated, namespace: foreign}, spec: {schedulingGates: [{name: gpu.warp.dev/plan}]}}`,
		`{kind: Pod, metadata: {name: running, namespace: team-a}}`,
		`{kind: Deployment, metadata: {name: old, namespace: team-a}, spec: {template: {spec: {priorityClassName: gold, containers: [{name: main, image: i, env: [{name: NVIDIA_VISIBLE_DEVICES, value: none}]}]}}}}`,
		`{kind: GPUWorkload, metadata: {name: w, namespace: team-a}}`,
		`{kind: GPUWorkload, metadata: {name: urgent, namespace: team-a}, spec: {priority: critical, suspend: true}}`,
	)
}

// given makes objects as an administrator, once.
func (w *world) given(t *testing.T, texts ...string) {
	t.Helper()
	admin := w.as(t, identity{})
	for _, text := range texts {
		u, err := object(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := admin.Create(t.Context(), u, client.FieldOwner("test")); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("creating %s: %v", text, err)
		}
	}
}
