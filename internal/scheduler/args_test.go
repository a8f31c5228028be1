package scheduler

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

func TestArgsAreReadStrictly(t *testing.T) {
	args, err := decodeArgs(nil)
	if err != nil || len(args.TopologyLevels) == 0 || !*args.Preemption {
		t.Errorf("without args: %+v, %v", args, err)
	}
	args, err = decodeArgs(&runtime.Unknown{Raw: []byte(`{"permitTimeout":"5s","topologyLevels":[{"name":"row","labels":["x/row"]}]}`)})
	if err != nil || args.PermitTimeout.Seconds() != 5 || len(args.TopologyLevels) != 1 {
		t.Errorf("with args: %+v, %v", args, err)
	}
	for text, want := range map[string]string{
		`{"permitTimout":"5s"}`:                         `unknown field "permitTimout"`,
		`{"permitTimeout":"-5s"}`:                       "permitTimeout",
		`{"permitTimeout":"soon"}`:                      "soon",
		`{"topologyLevels":[{"name":"A","labels":[]}]}`: "topologyLevels[0].name",
	} {
		if _, err := decodeArgs(&runtime.Unknown{Raw: []byte(text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v", text, err)
		}
	}
}
