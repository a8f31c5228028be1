package install

import (
	"reflect"
	"testing"

	scheduler "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/reyisjones/gpu-orchestrator/config"
)

func TestOurSchedulerIsRenderedAsAUserWould(t *testing.T) {
	objects, err := Render(config.FS, "scheduler")
	if err != nil {
		t.Fatal(err)
	}
	found, err := FindScheduler(objects)
	if err != nil {
		t.Fatal(err)
	}
	account := false
	for _, object := range objects {
		account = account || object.GetKind() == "ServiceAccount" &&
			object.GetName() == found.Account && object.GetNamespace() == found.Namespace
	}
	if !account || found.Namespace != "gpu-orchestrator-system" {
		t.Errorf("the scheduler is %+v", found)
	}
	profiles := map[string][]scheduler.KubeSchedulerProfile{}
	for _, file := range []string{"second.yaml", "only.yaml"} {
		var c scheduler.KubeSchedulerConfiguration
		if err := yaml.UnmarshalStrict([]byte(found.Configs[file]), &c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		profiles[file] = c.Profiles
	}
	// Profiles differ in who they are for, and in nothing else.
	want := profiles["second.yaml"][0]
	for _, p := range profiles["only.yaml"] {
		p.SchedulerName = want.SchedulerName
		if !reflect.DeepEqual(p, want) {
			t.Errorf("a profile of only.yaml is not that of second.yaml: %+v", p)
		}
	}
}
