package proxy

import (
	"slices"
	"time"
)

// Record is a write as it was seen.
type Record struct {
	At        time.Time `json:"at"`
	Component string    `json:"component"`
	Instance  string    `json:"instance"`
	Point     string    `json:"point"`
	Class     string    `json:"class"`
	Verb      string    `json:"verb"`
	Resource  string    `json:"resource"`
	Sub       string    `json:"subresource,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
	// UIDGuard and VersionGuard are the preconditions that the request carries.
	UIDGuard     string `json:"uidGuard,omitempty"`
	VersionGuard string `json:"versionGuard,omitempty"`
	// Sent says that the API server saw the request; Code is its answer, 0 if there was none.
	// Told is what the client was told, 0 for nothing.
	Sent bool `json:"sent"`
	Code int  `json:"code,omitempty"`
	Told int  `json:"told,omitempty"`
	// UID and Version are those of the object in the answer.
	UID     string `json:"uid,omitempty"`
	Version string `json:"version,omitempty"`
	// Fault names what was done to it, "" for nothing.
	Fault string `json:"fault,omitempty"`
}

func (f *Faults) record(r Record) {
	f.mu.Lock()
	f.journal = append(f.journal, r)
	follow := f.follow
	f.mu.Unlock()
	for _, tell := range follow {
		tell(r)
	}
}

// Journal returns every write so far, in the order in which they ended.
func (f *Faults) Journal() []Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.journal)
}

// Follow has a function called with every further write, from many goroutines.
func (f *Faults) Follow(tell func(Record)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.follow = append(slices.Clone(f.follow), tell)
}

// guards returns the preconditions of a write.
func guards(w Write) (uid, version string) {
	switch w.Verb {
	case "delete", "deletecollection":
		return w.Text("preconditions", "uid"), w.Text("preconditions", "resourceVersion")
	default:
		return w.Text("metadata", "uid"), w.Text("metadata", "resourceVersion")
	}
}

func (v Verb) String() string {
	switch v {
	case Fail:
		return "fail"
	case ResetBefore:
		return "reset-before"
	case CommitThenLose:
		return "commit-then-lose"
	case CommitThenFail:
		return "commit-then-fail"
	case Hang:
		return "hang"
	case Delay:
		return "delay"
	case HoldBefore:
		return "hold-before"
	case HoldAfter:
		return "hold-after"
	}
	return "unknown"
}
