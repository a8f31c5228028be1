package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// progressEvery is the least time between two status writes that only tell how far the pods
// are. A gang of 64 would otherwise have its status written for every pod that is bound and
// for every one that starts, and the API server spends more on a status than on a pod.
const progressEvery = time.Second

// pacer remembers when each workload's status was last written.
type pacer struct {
	mu   sync.Mutex
	last map[types.UID]time.Time
}

func newPacer() *pacer { return &pacer{last: make(map[types.UID]time.Time)} }

func (p *pacer) wrote(workload types.UID, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[workload] = now
}

// wait returns how long news of mere progress has yet to wait.
func (p *pacer) wait(workload types.UID, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.last[workload].Add(progressEvery).Sub(now))
}

func (p *pacer) forget(workload types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, workload)
}
