package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// avoidList remembers which nodes refused a workload's pods, so that the next plan does not
// run into the same wall: the scheduler that binds knows of volumes, ports and affinities that
// placement does not. It lives in memory only; forgetting it costs one more refusal.
type avoidList struct {
	mu    sync.Mutex
	until map[types.UID]map[string]time.Time
}

func newAvoidList() *avoidList {
	return &avoidList{until: make(map[types.UID]map[string]time.Time)}
}

func (a *avoidList) add(workload types.UID, node string, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.until[workload] == nil {
		a.until[workload] = make(map[string]time.Time)
	}
	a.until[workload][node] = until
}

func (a *avoidList) nodes(workload types.UID, now time.Time) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var nodes []string
	for node, until := range a.until[workload] {
		if now.Before(until) {
			nodes = append(nodes, node)
		} else {
			delete(a.until[workload], node)
		}
	}
	return nodes
}

func (a *avoidList) forget(workload types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.until, workload)
}
