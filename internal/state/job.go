package state

import (
	"fmt"
	"hash/fnv"
	"strings"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
)

// JobName returns the name of the Job of an attempt: a function of the workload's UID, so that
// making it twice makes it once. It leaves room for the rank that an Indexed Job adds in its
// pods' host names: 63 characters in all.
func JobName(w *gpuv1alpha1.GPUWorkload, attempt int32) string {
	h := fnv.New32a()
	h.Write([]byte(w.UID))
	prefix := strings.ReplaceAll(w.Name, ".", "-")
	if len(prefix) > 36 {
		prefix = prefix[:36]
	}
	return fmt.Sprintf("%s-%08x-%d", strings.TrimRight(prefix, "-"), h.Sum32(), attempt)
}
