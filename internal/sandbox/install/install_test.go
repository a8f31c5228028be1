package install

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/reyisjones/gpu-orchestrator/config"
)

func TestProductIsRenderedAsAUserWould(t *testing.T) {
	objects, err := Render(config.FS, "default")
	if err != nil {
		t.Fatal(err)
	}
	manager, err := FindManager(objects)
	if err != nil {
		t.Fatal(err)
	}
	if manager.Namespace != "gpu-orchestrator-system" || manager.Account == "" || manager.Config == "" {
		t.Errorf("the manager is %+v", manager)
	}

	first, rest := split(objects)
	kinds := map[string]bool{}
	for _, object := range first {
		kinds[object.GetKind()] = true
	}
	if !kinds[kindNamespace] || !kinds[kindCRD] || len(kinds) != 2 {
		t.Errorf("first come %v", kinds)
	}
	account := false
	for _, object := range rest {
		if object.GetKind() == kindDeployment {
			t.Error("the Deployment is applied, whose pods nothing runs")
		}
		account = account || object.GetKind() == "ServiceAccount" &&
			object.GetName() == manager.Account && object.GetNamespace() == manager.Namespace
	}
	if !account {
		t.Errorf("the manager's account %s is not applied", manager.Account)
	}
}

func TestRenderSaysWhatIsWrong(t *testing.T) {
	files := fstest.MapFS{"default/kustomization.yaml": {Data: []byte("resources: [missing.yaml]")}}
	_, err := Render(files, "default")
	if err == nil || !strings.Contains(err.Error(), "missing.yaml") {
		t.Errorf("the error is %v", err)
	}
}
