package manager

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestDefaultsAreValid(t *testing.T) {
	config := DefaultConfig()
	config.LeaderElection.Enabled = true
	if err := config.Validate(); err != nil {
		t.Error(err)
	}
}

func TestConfigFileOverridesDefaultsAndFlagsOverrideTheFile(t *testing.T) {
	path := write(t, "className: team-a\nworkers: 3\nbindTimeout: 5s\ntopologyLevels: [{name: rack, labels: [example.com/rack]}]\n")
	config, err := LoadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	if config.ClassName != "team-a" || config.Workers != 3 || config.BindTimeout.Duration != 5*time.Second || len(config.TopologyLevels) != 1 || config.DefaultImage == "" {
		t.Errorf("%+v", config)
	}
	cmd, flags := NewCommand(), DefaultConfig()
	flags.Workers, flags.ClassName = 7, "team-b"
	if err := cmd.ParseFlags([]string{"--workers=7"}); err != nil {
		t.Fatal(err)
	}
	override(cmd, &config, &flags)
	if config.Workers != 7 || config.ClassName != "team-a" {
		t.Errorf("workers %d, class %s: only what was given as a flag counts", config.Workers, config.ClassName)
	}
}

func TestBadConfigurationsSayWhatIsWrong(t *testing.T) {
	for text, says := range map[string]string{
		"wrokers: 3":                                         `unknown field "wrokers"`,
		"workers: 0":                                         "workers: Invalid value: 0: must be at least 1",
		"className: Bad_Class":                               "className: Invalid value: \"Bad_Class\": no workload can have this class",
		"client: {qps: -1}":                                  "client: Invalid value",
		"reservations: {max: -1}":                            "reservations.max: Invalid value: -1: must be from 0, which switches reservations off, to 64",
		"reservations: {patience: -1s}":                      "reservations.patience: Invalid value",
		"reservations: {maxWait: 0s}":                        "reservations.maxWait: Invalid value",
		"defragmentation: {maxMoves: -1}":                    "defragmentation.maxMoves: Invalid value: -1",
		"defragmentation: {window: 0s}":                      "defragmentation.window: Invalid value",
		"bindTimeout: -1s":                                   "bindTimeout: Invalid value",
		"stallAfter: 0s":                                     "stallAfter: Invalid value",
		"defaultImage: ''":                                   "defaultImage: Required value",
		"topologyLevels: [{name: Rack}]":                     "topologyLevels[0].name: Invalid value",
		"topologyLevels: [{name: rail}]":                     "topologyLevels[0].labels: Required value",
		"topologyLevels: [{name: r, labels: []}]":            "topologyLevels[0].labels: Required value",
		"leaderElection: {enabled: true, renewDeadline: 9s}": "leaseDuration > renewDeadline",
		"topologyLevels: [{name: r, labels: [a]}, {name: r, labels: [b]}]": "topologyLevels[1].name: Duplicate value",
	} {
		config, err := LoadConfig(write(t, text))
		if err == nil {
			err = config.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %s", text, err, says)
		}
	}
	if _, err := LoadConfig(filepath.Join(t.TempDir(), "none.yaml")); err == nil {
		t.Error("a missing file went unnoticed")
	}
}

func TestHealthFollowsTheControlLoop(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	l := newLoop(clock, time.Minute)
	clock.SetTime(clock.Now().Add(time.Hour))
	if err := l.check(nil); err != nil {
		t.Error("a standby, whose loop never turns, is not healthy:", err)
	}
	l.beat()
	clock.SetTime(clock.Now().Add(time.Minute))
	if err := l.check(nil); err != nil {
		t.Error(err)
	}
	clock.SetTime(clock.Now().Add(time.Second))
	if err := l.check(nil); err == nil || !strings.Contains(err.Error(), "1m1s") {
		t.Errorf("a loop that stood still for 61 s: %v", err)
	}
	l.beat()
	if err := l.check(nil); err != nil {
		t.Error("the loop turns again:", err)
	}
}

func TestStartWaitsForTheClusterAndSaysWhy(t *testing.T) {
	t.Run("nobody listens", func(t *testing.T) {
		server := httptest.NewServer(http.NotFoundHandler())
		server.Close()
		err := waitForCluster(t.Context(), &rest.Config{Host: server.URL}, 50*time.Millisecond, logr.Discard())
		if err == nil || !strings.Contains(err.Error(), "waited 50ms for the cluster at "+server.URL) || !strings.Contains(err.Error(), "refused") {
			t.Error(err)
		}
	})
	t.Run("no CRD", func(t *testing.T) {
		server := httptest.NewServer(http.NotFoundHandler())
		defer server.Close()
		err := waitForCluster(t.Context(), &rest.Config{Host: server.URL}, 50*time.Millisecond, logr.Discard())
		if err == nil || !strings.Contains(err.Error(), "make install") {
			t.Error(err)
		}
	})
	t.Run("an older CRD", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"gpu.warp.dev/v1alpha1","resources":[{"name":"gpuworkloads","kind":"GPUWorkload","namespaced":true,"verbs":["get"]}]}`)
		}))
		defer server.Close()
		err := waitForCluster(t.Context(), &rest.Config{Host: server.URL}, 50*time.Millisecond, logr.Discard())
		if err == nil || !strings.Contains(err.Error(), "the CRD of GPUNode is not installed") {
			t.Error(err)
		}
	})
	t.Run("no right", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
		defer server.Close()
		err := waitForCluster(t.Context(), &rest.Config{Host: server.URL}, time.Hour, logr.Discard())
		if err == nil || !strings.Contains(err.Error(), "asking the API server") {
			t.Error(err)
		}
	})
	t.Run("told to stop", func(t *testing.T) {
		server := httptest.NewServer(http.NotFoundHandler())
		defer server.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := waitForCluster(ctx, &rest.Config{Host: server.URL}, time.Hour, logr.Discard()); err == nil {
			t.Error("no error")
		}
	})
	t.Run("all there", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"gpu.warp.dev/v1alpha1","resources":[{"name":"gpuworkloads","kind":"GPUWorkload","namespaced":true,"verbs":["get"]},{"name":"gpunodes","kind":"GPUNode","verbs":["get"]},{"name":"placementpolicies","kind":"PlacementPolicy","verbs":["get"]}]}`)
		}))
		defer server.Close()
		if err := waitForCluster(t.Context(), &rest.Config{Host: server.URL}, time.Minute, logr.Discard()); err != nil {
			t.Error(err)
		}
	})
}

func TestKubeconfigPointingNowhere(t *testing.T) {
	cmd := NewCommand()
	cmd.SetArgs([]string{"--kubeconfig", filepath.Join(t.TempDir(), "none")})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "finding the cluster") {
		t.Error(err)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
