package webhook

import (
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// maxBody is more than an admission request can have: two objects of at most 1.5 MiB, which
	// the store takes, and the request around them.
	maxBody = 4 << 20
	// readWithin bounds how long a request may take to arrive. The API server is on the same
	// network and gives up after the timeoutSeconds of the configuration, 2 s.
	readWithin = 5 * time.Second
	// inFlight bounds what is held in memory of the bodies that arrive or are answered at the same
	// time; it is counted by what they say of their length, and at least leastBody each: some
	// thousand requests of the usual few kilobytes. What is read from a body takes a few times its
	// length.
	inFlight  = 8 << 20
	leastBody = 8 << 10
)

// limit refuses what is too large, too slow or too much before anything reads it. A refusal here
// is no answer to the API server, which then goes by the failurePolicy.
func limit(next http.Handler) http.Handler {
	room := semaphore.NewWeighted(inFlight)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "admission requests are sent with POST", http.StatusMethodNotAllowed)
			return
		}
		if r.ContentLength > maxBody {
			http.Error(w, "an admission request has at most "+strconv.Itoa(maxBody)+" bytes", http.StatusRequestEntityTooLarge)
			return
		}
		// Before the body is read: reading is what takes memory. One that does not tell its length
		// may have any.
		size := max(r.ContentLength, leastBody)
		if r.ContentLength < 0 {
			size = maxBody
		}
		if !room.TryAcquire(size) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many admission requests at the same time: try again", http.StatusServiceUnavailable)
			return
		}
		defer room.Release(size)
		// Best effort: a test's recorder has no connection to put a deadline on.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readWithin))
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}
