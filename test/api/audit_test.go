package api

import (
	"path/filepath"
	"testing"

	"k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/reyisjones/gpu-orchestrator/test/harness"
)

// TestAuditPolicyExample asks the API server's own reader and evaluator what the example writes
// down.
func TestAuditPolicyExample(t *testing.T) {
	rules, err := policy.LoadPolicyFromFile(filepath.Join(harness.Root(t), "examples", "audit-policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	evaluator := policy.NewPolicyRuleEvaluator(rules)
	person := &user.DefaultInfo{Name: "alice", Groups: []string{user.AllAuthenticated}}
	manager := &user.DefaultInfo{Name: "system:serviceaccount:gpu-orchestrator-system:gpu-orchestrator-manager", Groups: []string{user.AllAuthenticated}}
	for name, c := range map[string]struct {
		who                          user.Info
		verb, group, resource, below string
		want                         audit.Level
	}{
		"a person creates a workload":   {person, "create", "gpu.warp.dev", "gpuworkloads", "", audit.LevelRequest},
		"a person reads a workload":     {person, "get", "gpu.warp.dev", "gpuworkloads", "", audit.LevelNone},
		"the manager writes a status":   {manager, "update", "gpu.warp.dev", "gpuworkloads", "status", audit.LevelMetadata},
		"the manager watches":           {manager, "watch", "", "pods", "", audit.LevelNone},
		"the manager renews its lease":  {manager, "update", "coordination.k8s.io", "leases", "", audit.LevelNone},
		"a person asks why":             {person, "get", "explain.gpu.warp.dev", "gpuworkloads", "explanation", audit.LevelMetadata},
		"a person cordons a node":       {person, "patch", "", "nodes", "", audit.LevelRequest},
		"somebody creates another kind": {person, "create", "", "pods", "", audit.LevelNone},
	} {
		t.Run(name, func(t *testing.T) {
			got := evaluator.EvaluatePolicyRule(&authorizer.AttributesRecord{
				User: c.who, Verb: c.verb, APIGroup: c.group, APIVersion: "v1", Resource: c.resource, Subresource: c.below, ResourceRequest: true,
			})
			if got.Level != c.want {
				t.Errorf("written down at level %s, want %s", got.Level, c.want)
			}
		})
	}
}
