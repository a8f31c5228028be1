// Package kwok says how simulated nodes and pods behave, as stages for KWOK's
// engine. Pods are steered by annotations:
//
//	sandbox.gpu.warp.dev/start-after    time from bound to Running (default 500ms)
//	sandbox.gpu.warp.dev/run-for        time from Running to the end; pods of a
//	                                    Job run 5s by default, others for ever
//	sandbox.gpu.warp.dev/fail           "true": end with exit code 1
//	sandbox.gpu.warp.dev/fail-attempts  "N": fail only while the pod's label
//	                                    gpu.warp.dev/attempt is below N
//	sandbox.gpu.warp.dev/fail-index     "I": fail only in the pod with this
//	                                    completion index
//
// Times are written as Go writes them: 300ms, 90s, 1h30m. One of the last three
// is enough to make a pod fail; several must all apply. An annotation that cannot
// be read keeps the pod from starting, and its status says why.
//
// A node with the label sandbox.gpu.warp.dev/not-ready=true loses its Ready
// condition until the label is removed.
package kwok

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
)

// stages.yaml is what KWOK reads: its own settings, then a Stage for each step.
//
//go:embed stages.yaml
var stages []byte

// WriteConfig writes KWOK's configuration into a folder, which it makes, and
// returns the file's name.
func WriteConfig(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making KWOK's folder: %w", err)
	}
	path := filepath.Join(dir, "kwok.yaml")
	if err := os.WriteFile(path, stages, 0o600); err != nil {
		return "", fmt.Errorf("writing KWOK's configuration: %w", err)
	}
	return path, nil
}
