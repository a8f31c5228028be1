package manager

import (
	"reflect"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/reyisjones/gpu-orchestrator/internal/state"
)

// Every kind that is cached is trimmed: those that are not named take the default.
func TestEverythingCachedIsTrimmed(t *testing.T) {
	m := &Manager{config: DefaultConfig(), rest: &rest.Config{}}
	options := m.options().Cache
	trims := func(f any) bool { return reflect.ValueOf(f).Pointer() == reflect.ValueOf(state.Trim).Pointer() }
	if !trims(options.DefaultTransform) {
		t.Error("what is not named is not trimmed")
	}
	for kind, by := range options.ByObject {
		if by.Transform != nil && !trims(by.Transform) {
			t.Errorf("%T is not trimmed", kind)
		}
	}
}
