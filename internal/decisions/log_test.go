package decisions

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/reyisjones/gpu-orchestrator/core/explain"
)

func at(minute int) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(minute) * time.Minute)
}

func refusal(minute int, name, sentence string) Decision {
	return Decision{
		Time: at(minute), Workload: types.NamespacedName{Namespace: "team", Name: name}, UID: types.UID(name),
		Outcome: Refused, Reason: explain.Fragmented, Sentence: sentence,
	}
}

func sentences(found []Decision) string {
	var all []string
	for i := range found {
		all = append(all, found[i].Sentence)
	}
	return strings.Join(all, ",")
}

func TestTheSameAgainIsOneEntryAndOneLine(t *testing.T) {
	var lines []string
	l := New(DefaultLimits(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	l.Record(refusal(1, "a", "3 free"))
	l.Record(refusal(2, "b", "b"))
	l.Record(refusal(3, "a", "2 free"))
	planned := refusal(4, "a", "placed")
	planned.Outcome, planned.Reason = Planned, explain.RoomIsThere
	l.Record(planned)
	l.Record(planned)
	found := l.Find(Query{Namespace: "team", Name: "a"})
	if len(found) != 3 || found[0].Count != 2 || found[0].Sentence != "2 free" || found[0].Time != at(1) || found[0].Last != at(3) {
		t.Errorf("%+v", found)
	}
	if len(lines) != 4 || !strings.Contains(lines[0], `"reason"="Fragmented"`) {
		t.Errorf("%d lines: %v", len(lines), lines)
	}
}

// What was said last of a workload is known even when what was said before is forgotten.
func TestForgettingTheOldKeepsTheLatest(t *testing.T) {
	l := New(Limits{Count: 2, Bytes: 1 << 20}, logr.Discard())
	invalid := refusal(1, "a", "old")
	invalid.Outcome = Invalid
	l.Record(invalid)
	l.Record(refusal(2, "a", "new"))
	l.Record(refusal(3, "b", "b"))
	l.Record(refusal(4, "a", "newer"))
	if found := l.Find(Query{Name: "a"}); len(found) != 1 || found[0].Count != 2 || found[0].Time != at(2) {
		t.Errorf("%+v", found)
	}
}

func TestQueriesNarrow(t *testing.T) {
	l := New(DefaultLimits(), logr.Discard())
	l.Record(refusal(1, "a", "1"))
	l.Record(refusal(5, "b", "2"))
	evicted := refusal(7, "b", "3")
	evicted.Outcome = Evicted
	l.Record(evicted)
	other := refusal(8, "c", "4")
	other.Workload.Namespace = "other"
	l.Record(other)
	for name, c := range map[string]struct {
		query Query
		want  string
	}{
		"all":                {Query{}, "1,2,3,4"},
		"of a namespace":     {Query{Namespace: "team"}, "1,2,3"},
		"of a workload":      {Query{Namespace: "team", Name: "b"}, "2,3"},
		"of an outcome":      {Query{Outcome: Evicted}, "3"},
		"since":              {Query{Since: at(6)}, "3,4"},
		"the last":           {Query{Limit: 2}, "3,4"},
		"the last of a team": {Query{Namespace: "team", Limit: 1}, "3"},
		"of nobody":          {Query{Name: "z"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sentences(l.Find(c.query)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// record plays drawn decisions into a log, and says how it is out of bounds.
func record(t *rapid.T, l *Log, limits Limits) string {
	last := map[string]string{}
	for i := range rapid.IntRange(1, 60).Draw(t, "decisions") {
		d := refusal(i, fmt.Sprintf("w%d", rapid.IntRange(0, 5).Draw(t, "workload")), strings.Repeat("x", rapid.IntRange(0, 3000).Draw(t, "words")))
		d.Outcome = rapid.SampledFrom([]Outcome{Planned, Refused, Invalid}).Draw(t, "outcome")
		l.Record(d)
		last[d.Workload.Name] = string(d.Outcome)
		entries, bytes := l.Len()
		if entries > limits.Count || bytes > limits.Bytes {
			return fmt.Sprintf("%d entries, %d bytes", entries, bytes)
		}
		if found := l.Find(Query{Limit: 1}); len(found) != 1 || found[0].Workload != d.Workload || found[0].Last != d.Time {
			return "the newest is not there"
		}
		sum := 0
		for _, d := range l.Find(Query{}) {
			sum += d.size()
		}
		if sum != bytes {
			return fmt.Sprintf("%d bytes counted, there are %d", bytes, sum)
		}
	}
	return ""
}

func TestTheLogIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{Count: rapid.IntRange(1, 20).Draw(t, "count"), Bytes: rapid.IntRange(2000, 20000).Draw(t, "bytes")}
		if problem := record(t, New(limits, logr.Discard()), limits); problem != "" {
			t.Fatal(problem)
		}
	})
}

// The property must be able to fail: a log with no bounds breaks it.
func TestPropertyFindsALogThatGrows(t *testing.T) {
	found := false
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{Count: 5, Bytes: 4000}
		found = found || record(t, New(Limits{Count: 1000, Bytes: 1 << 30}, logr.Discard()), limits) != ""
	})
	if !found {
		t.Error("the property holds for a log without bounds")
	}
}

func TestTheLogIsSafe(t *testing.T) {
	l := New(Limits{Count: 50, Bytes: 1 << 20}, logr.Discard())
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			for i := range 200 {
				l.Record(refusal(i, fmt.Sprintf("w%d-%d", k, i%70), "x"))
				l.Find(Query{Limit: 3})
			}
		})
	}
	all.Wait()
	if entries, _ := l.Len(); entries != 50 {
		t.Errorf("%d entries", entries)
	}
}
