package kwok

import (
	"testing"

	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/config"
)

func load(t *testing.T) []*internalversion.Stage {
	t.Helper()
	path, err := WriteConfig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	objects, err := config.Load(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return config.FilterWithType[*internalversion.Stage](objects)
}

func TestConfigIsAcceptedByKWOK(t *testing.T) {
	for _, s := range load(t) {
		t.Log(s.Name, s.Spec.ResourceRef, s.Spec.Delay, len(s.Spec.Selector.MatchExpressions))
		for _, e := range s.Spec.Selector.MatchExpressions {
			t.Log(e.JQ)
		}
	}
}
