package webhook

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Limits are of submissions of one namespace: so many a second on average, so many at once.
// PerSecond 0 is no limit. Each replica counts for itself.
type Limits struct {
	PerSecond float64
	Burst     int
}

// mostNamespaces bounds how many namespaces are remembered: 100 bytes each. One that is
// forgotten, because that many others submitted since, starts with a full bucket again.
const mostNamespaces = 10_000

// limiter has a token bucket for each namespace.
type limiter struct {
	limits Limits
	clock  clock.PassiveClock
	mu     sync.Mutex
	// buckets holds a *rate.Limiter by namespace, the least recently used go first.
	buckets *lru.Cache
}

func newLimiter(limits Limits, c clock.PassiveClock) *limiter {
	return &limiter{limits: limits, clock: c, buckets: lru.New(mostNamespaces)}
}

// take counts a submission. If it is one too many it is not counted, and wait is how long it
// takes until one is allowed.
func (l *limiter) take(namespace string) (wait time.Duration, ok bool) {
	if l.limits.PerSecond <= 0 {
		return 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var bucket *rate.Limiter
	if known, found := l.buckets.Get(namespace); found {
		bucket = known.(*rate.Limiter) //nolint:forcetypeassert // nothing else is put in
	} else {
		bucket = rate.NewLimiter(rate.Limit(l.limits.PerSecond), l.limits.Burst)
		l.buckets.Add(namespace, bucket)
	}
	now := l.clock.Now()
	r := bucket.ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait == 0 {
		return 0, true
	}
	r.CancelAt(now)
	return wait, false
}

// tooMany is an answer that clients understand: kubectl and client-go wait as long as it says and
// try again by themselves.
func (l *limiter) tooMany(namespace string, wait time.Duration) admission.Response {
	seconds := int32(max(1, math.Ceil(wait.Seconds())))
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Allowed: false,
		Result: &metav1.Status{
			Code:   http.StatusTooManyRequests,
			Reason: metav1.StatusReasonTooManyRequests,
			Message: fmt.Sprintf("namespace %s submits GPUWorkloads faster than this installation takes them, %g a second and %d at once: "+
				"try again in %d s, submit fewer and larger ones (spec.parallelism), or ask for a higher webhooks.submissionsPerSecond",
				namespace, l.limits.PerSecond, l.limits.Burst, seconds),
			Details: &metav1.StatusDetails{RetryAfterSeconds: seconds},
		},
	}}
}
