package attacks

import (
	"maps"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/reyisjones/gpu-orchestrator/config"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/install"
)

// used is every right that the manager's code makes use of, and where. A right that is granted and
// not here is one too many; one that is here and not granted is a failure in a cluster.
func used() map[string]string {
	return map[string]string{
		// "namespace/" are rights in its own namespace, the others are of the whole cluster.
		"gpu.warp.dev/gpuworkloads list":                        "internal/controller/setup.go: cache",
		"gpu.warp.dev/gpuworkloads watch":                       "internal/controller/setup.go: cache",
		"gpu.warp.dev/gpuworkloads patch":                       "internal/controller/lifecycle.go: finalizer",
		"gpu.warp.dev/gpuworkloads delete":                      "internal/controller/lifecycle.go: ttlSecondsAfterFinished",
		"gpu.warp.dev/gpuworkloads/status update":               "internal/controller/reconciler.go: writeStatus",
		"gpu.warp.dev/gpuworkloads/finalizers update":           "internal/controller/template.go: blockOwnerDeletion, where OwnerReferencesPermissionEnforcement is on",
		"gpu.warp.dev/gpunodes list":                            "internal/controller/setup.go: FeedInventories",
		"gpu.warp.dev/gpunodes watch":                           "internal/controller/setup.go: FeedInventories",
		"gpu.warp.dev/pods plan":                                "config/admission/plan-gate.yaml, reserved-keys.yaml",
		"gpu.warp.dev/gpuworkloads get":                         "internal/controller/preempt.go: live, before anybody is evicted",
		"gpu.warp.dev/placementpolicies list":                   "internal/controller: cache",
		"gpu.warp.dev/placementpolicies watch":                  "internal/controller: cache",
		"gpu.warp.dev/placementpolicies/status update":          "internal/controller: what is wrong with a policy",
		"/namespaces list":                                      "internal/controller/setup.go: cache, policies select by labels of namespaces",
		"/namespaces watch":                                     "internal/controller/setup.go: cache",
		"/configmaps[extension-apiserver-authentication] get":   "internal/aggregated: who the API server is",
		"/configmaps[extension-apiserver-authentication] list":  "internal/aggregated",
		"/configmaps[extension-apiserver-authentication] watch": "internal/aggregated",
		"authentication.k8s.io/tokenreviews create":             "internal/aggregated: who asks",
		"authorization.k8s.io/subjectaccessreviews create":      "internal/aggregated: whether they may",
		"batch/jobs get":                                        "internal/controller/plan.go: ownJob",
		"batch/jobs list":                                       "internal/controller/setup.go: cache",
		"batch/jobs watch":                                      "internal/controller/setup.go: cache",
		"batch/jobs create":                                     "internal/controller/plan.go: makeJob",
		"batch/jobs delete":                                     "internal/controller/lifecycle.go: deleteJobs",
		"/pods list":                                            "internal/controller/setup.go: cache; lifecycle.go: live before the finalizer goes",
		"/pods watch":                                           "internal/controller/setup.go: cache",
		"/pods patch":                                           "internal/controller/pods.go: node in, gate out",
		"/pods delete":                                          "internal/controller/pods.go: withdrawal",
		"/nodes list":                                           "internal/controller/setup.go: cache",
		"/nodes watch":                                          "internal/controller/setup.go: cache",
		"events.k8s.io/events create":                           "recorder",
		"events.k8s.io/events patch":                            "recorder: series",
		"scheduling.k8s.io/priorityclasses list":                "internal/webhook/setup.go: cache",
		"scheduling.k8s.io/priorityclasses watch":               "internal/webhook/setup.go: cache",
		"admissionregistration.k8s.io/validatingwebhookconfigurations[gpu-orchestrator] get":    "internal/webhook/certificates/self.go",
		"admissionregistration.k8s.io/validatingwebhookconfigurations[gpu-orchestrator] update": "internal/webhook/certificates/self.go",
		"admissionregistration.k8s.io/mutatingwebhookconfigurations[gpu-orchestrator] get":      "internal/webhook/certificates/self.go",
		"admissionregistration.k8s.io/mutatingwebhookconfigurations[gpu-orchestrator] update":   "internal/webhook/certificates/self.go",
		"namespace/ /secrets[gpu-orchestrator-webhook-certificate] get":                         "internal/webhook/certificates/self.go",
		"namespace/ /secrets[gpu-orchestrator-webhook-certificate] update":                      "internal/webhook/certificates/self.go",
		"namespace/ coordination.k8s.io/leases get":                                             "leader election",
		"namespace/ coordination.k8s.io/leases create":                                          "leader election",
		"namespace/ coordination.k8s.io/leases update":                                          "leader election",
		"namespace/ /events create":                                                             "leader election",
		"namespace/ /events patch":                                                              "leader election",
		"namespace/ events.k8s.io/events create":                                                "leader election",
		"namespace/ events.k8s.io/events patch":                                                 "leader election",
	}
}

// TestGrantedIsUsed holds what every ServiceAccount of the manifests may do against what the code
// does.
func TestGrantedIsUsed(t *testing.T) {
	granted := grantedTo(t, "gpu-orchestrator-manager")
	for right := range granted {
		if used()[right] == "" {
			t.Errorf("granted and not used: %s", right)
		}
	}
	for _, right := range slices.Sorted(maps.Keys(used())) {
		if !granted[right] {
			t.Errorf("used and not granted: %s (%s)", right, used()[right])
		}
	}
	t.Logf("%d rights granted, %d used", len(granted), len(used()))
}

// grantedTo reads the manifests: the rights of one account. Another account, or a binding to
// anybody else, fails the test.
func grantedTo(t *testing.T, name string) map[string]bool {
	t.Helper()
	objects, err := install.Render(config.FS, "default")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string][]rbacv1.PolicyRule{}
	bound := map[string]string{}
	for _, o := range objects {
		switch o.GetKind() {
		case "ServiceAccount":
			if o.GetName() != name {
				t.Errorf("ServiceAccount %s has no table", o.GetName())
			}
		case "ClusterRole", "Role":
			var role rbacv1.ClusterRole
			read(t, o, &role)
			rules[o.GetKind()+" "+o.GetName()] = role.Rules
		case "ClusterRoleBinding", "RoleBinding":
			var binding rbacv1.ClusterRoleBinding
			read(t, o, &binding)
			if len(binding.Subjects) != 1 || binding.Subjects[0].Name != name || binding.Subjects[0].Namespace != system {
				t.Errorf("%s %s is for %v", o.GetKind(), o.GetName(), binding.Subjects)
			}
			where := ""
			if o.GetKind() == "RoleBinding" {
				where = "namespace/ "
			}
			bound[binding.RoleRef.Kind+" "+binding.RoleRef.Name] = where
		}
	}
	granted := map[string]bool{}
	for role, where := range bound {
		for _, r := range rules[role] {
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					if len(r.ResourceNames) > 0 {
						resource += "[" + strings.Join(r.ResourceNames, ",") + "]"
					}
					for _, verb := range r.Verbs {
						granted[where+group+"/"+resource+" "+verb] = true
					}
				}
			}
		}
	}
	return granted
}

func read(t *testing.T, o *unstructured.Unstructured, into any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		t.Fatal(err)
	}
}

// TestDangerousRights asks the API server whether our account has what would make it an
// administrator (attack 6), and whether a tenant has what only we should.
func TestDangerousRights(t *testing.T) {
	w := open(t)
	c := w.as(t, identity{})
	ask := func(who identity, a authorizationv1.ResourceAttributes) bool {
		t.Helper()
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: who.user, Groups: who.groups, ResourceAttributes: &a}}
		if err := c.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	type question = authorizationv1.ResourceAttributes
	denied := []question{
		{Group: "*", Resource: "*", Verb: "*"},
		{Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Verb: "escalate"},
		{Group: "rbac.authorization.k8s.io", Resource: "roles", Verb: "bind"},
		{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings", Verb: "create"},
		{Resource: "users", Verb: "impersonate"},
		{Resource: "serviceaccounts", Verb: "impersonate"},
		{Resource: "serviceaccounts", Subresource: "token", Verb: "create"},
		{Resource: "secrets", Verb: "list"},
		{Resource: "secrets", Verb: "watch"},
		{Resource: "secrets", Verb: "create"},
		{Resource: "secrets", Name: "other", Verb: "get"},
		{Resource: "nodes", Subresource: "proxy", Verb: "get"},
		{Resource: "nodes", Verb: "patch"},
		{Resource: "nodes", Subresource: "status", Verb: "patch"},
		{Resource: "pods", Verb: "create"},
		{Resource: "pods", Subresource: "exec", Verb: "create"},
		{Resource: "pods", Subresource: "binding", Verb: "create"},
		{Resource: "namespaces", Verb: "patch"},
		{Resource: "persistentvolumes", Verb: "create"},
		{Group: "certificates.k8s.io", Resource: "certificatesigningrequests", Subresource: "approval", Verb: "update"},
		{Group: "certificates.k8s.io", Resource: "signers", Verb: "approve"},
		{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations", Name: "other", Verb: "update"},
		{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations", Name: "other", Verb: "update"},
		{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations", Verb: "create"},
		{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations", Verb: "list"},
		{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies", Name: "gpu-orchestrator-plan-gate", Verb: "update"},
		{Group: "gpu.warp.dev", Resource: "nodes", Verb: "label"},
		{Group: "gpu.warp.dev", Resource: "namespaces", Verb: "manage"},
	}
	for _, q := range denied {
		for _, namespace := range []string{teamA, system, "kube-system"} {
			q.Namespace = namespace
			if ask(manager(), q) {
				t.Errorf("the manager may %s %s/%s %q in %s", q.Verb, q.Resource, q.Subresource, q.Name, namespace)
			}
		}
	}
	allowed := []question{
		{Namespace: system, Resource: "secrets", Name: "gpu-orchestrator-webhook-certificate", Verb: "update"},
		{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations", Name: "gpu-orchestrator", Verb: "update"},
		{Namespace: teamA, Group: "gpu.warp.dev", Resource: "pods", Verb: "plan"},
		{Namespace: teamA, Resource: "pods", Verb: "patch"},
	}
	for _, q := range allowed {
		if !ask(manager(), q) {
			t.Errorf("the manager may not %s %s %q", q.Verb, q.Resource, q.Name)
		}
	}
	for _, q := range []question{
		{Namespace: teamA, Group: "gpu.warp.dev", Resource: "pods", Verb: "plan"},
		{Namespace: teamA, Group: "gpu.warp.dev", Resource: "priorities", Name: "critical", Verb: "use"},
		{Group: "gpu.warp.dev", Resource: "namespaces", Name: teamA, Verb: "manage"},
		{Namespace: teamA, Group: "gpu.warp.dev", Resource: "gpuworkloads", Subresource: "status", Verb: "update"},
		{Group: "gpu.warp.dev", Resource: "gpunodes", Verb: "update"},
		{Namespace: system, Resource: "configmaps", Name: "gpu-orchestrator-admission", Verb: "update"},
		{Namespace: teamB, Group: "gpu.warp.dev", Resource: "gpuworkloads", Verb: "create"},
	} {
		if ask(alice, q) {
			t.Errorf("a tenant may %s %s %q", q.Verb, q.Resource, q.Name)
		}
	}
	t.Logf("%d rights denied, %d allowed", 3*len(denied)+7, len(allowed))
}
