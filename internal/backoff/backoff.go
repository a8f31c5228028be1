// Package backoff says how long to wait before a retry. It is arithmetic: it neither sleeps nor
// reads a clock, and the random part is an argument, so that a restarted controller comes to
// the same answer.
package backoff

import (
	"math"
	"time"
)

// Max is the longest pause between two attempts, jitter included.
const Max = 5 * time.Minute

// Jitter is the largest share of a pause that is added at random, so that workloads that
// failed together do not come back together.
const Jitter = 0.10

// Delay returns base x 2^attempt plus 0-10 %, at most Max. Attempts count from 0; negative
// ones are taken as 0. Random is in [0, 1) and picks the share of jitter. A base of zero or
// less is taken as one second: a retry without any pause would spin.
func Delay(base time.Duration, attempt int, random float64) time.Duration {
	if base <= 0 {
		base = time.Second
	}
	// Beyond 2^40 the cap has long been reached; the bound keeps the float exact and finite.
	exponent := min(max(attempt, 0), 40)
	delay := float64(base) * math.Pow(2, float64(exponent)) * (1 + Jitter*random)
	if delay >= float64(Max) {
		return Max
	}
	return time.Duration(delay)
}
