package backoff

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDelayDoublesAndStopsAtFiveMinutes(t *testing.T) {
	for _, c := range []struct {
		base    time.Duration
		attempt int
		random  float64
		want    time.Duration
	}{
		{30 * time.Second, 0, 0, 30 * time.Second},
		{30 * time.Second, 1, 0, time.Minute},
		{30 * time.Second, 2, 0, 2 * time.Minute},
		{30 * time.Second, 3, 0, 4 * time.Minute},
		{30 * time.Second, 4, 0, Max},
		{30 * time.Second, 1000, 0, Max},
		{30 * time.Second, -5, 0, 30 * time.Second},
		{10 * time.Second, 0, 0.5, 10*time.Second + 500*time.Millisecond},
		{0, 0, 0, time.Second},
		{-time.Second, 2, 0, 4 * time.Second},
		{math.MaxInt64, 3, 0.99, Max},
	} {
		if got := Delay(c.base, c.attempt, c.random); got != c.want {
			t.Errorf("Delay(%v, %d, %v) = %v, want %v", c.base, c.attempt, c.random, got, c.want)
		}
	}
}

// delayFunc is what the property is about, so that broken variants can be put in its place.
type delayFunc func(base time.Duration, attempt int, random float64) time.Duration

// checkDelay draws one case and returns what is wrong with it, "" if nothing.
func checkDelay(t *rapid.T, delay delayFunc) string {
	base := time.Duration(rapid.Int64Range(1, int64(10*time.Minute)).Draw(t, "base"))
	attempt := rapid.IntRange(-3, 100).Draw(t, "attempt")
	random := rapid.Float64Range(0, 0.999).Draw(t, "random")
	got := delay(base, attempt, random)
	exact := float64(base) * math.Pow(2, float64(max(attempt, 0)))
	low := math.Min(exact, float64(Max))
	high := math.Min(exact*1.1, float64(Max))
	switch {
	case float64(got) < low-1 || float64(got) > high+1:
		return "outside base x 2^attempt + 0-10 %, capped"
	case delay(base, attempt+1, random) < got:
		return "a later attempt waits less"
	}
	return ""
}

func TestDelayKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if problem := checkDelay(t, Delay); problem != "" {
			t.Fatal(problem)
		}
	})
}

// The property above must be able to fail: each of these mistakes is found.
func TestDelayPropertyFindsMistakes(t *testing.T) {
	for name, broken := range map[string]delayFunc{
		"jitter of 10 % either way": func(base time.Duration, attempt int, random float64) time.Duration {
			return Delay(base, attempt, 2*random-1)
		},
		"no cap": func(base time.Duration, attempt int, _ float64) time.Duration {
			return base << min(max(attempt, 0), 10)
		},
		"linear": func(base time.Duration, attempt int, _ float64) time.Duration {
			return min(base*time.Duration(1+max(attempt, 0)), Max)
		},
		"jitter after the cap": func(base time.Duration, attempt int, random float64) time.Duration {
			return Delay(base, attempt, 0) + time.Duration(random*Jitter*float64(Max))
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := false
			rapid.Check(t, func(t *rapid.T) {
				found = checkDelay(t, broken) != "" || found
			})
			if !found {
				t.Error("the property holds for a broken back-off")
			}
		})
	}
}
