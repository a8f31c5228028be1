package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// tale is a history as a test tells it: each line an object at its next revision.
type tale struct {
	t       *testing.T
	trial   *trial
	version uint64
	now     time.Time
	there   map[string]bool
}

func newTale(t *testing.T) *tale {
	return &tale{t: t, now: time.Unix(1e9, 0), there: make(map[string]bool), trial: &trial{limits: limits{
		torn: 10 * time.Second, lost: 10 * time.Second, bystander: 5 * time.Second, bystanders: "bystanders",
	}}}
}

// is says that an object is so from now on; text is JSON with %s for the metadata's other fields.
func (s *tale) is(kind, uid, labels, rest string) {
	s.t.Helper()
	s.tell(kind, uid, labels, rest, false)
}

func (s *tale) gone(kind, uid, labels, rest string) {
	s.t.Helper()
	s.tell(kind, uid, labels, rest, true)
}

func (s *tale) tell(kind, uid, labels, rest string, deleted bool) {
	s.t.Helper()
	s.version++
	s.now = s.now.Add(100 * time.Millisecond)
	namespace := "ns"
	if kind == nodes {
		namespace = ""
	}
	if strings.HasPrefix(uid, "by") {
		namespace = "bystanders"
	}
	if rest != "" {
		rest = "," + rest
	}
	text := fmt.Sprintf(`{"metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":"%d","labels":{%s}}%s}`, uid, namespace, uid, s.version, labels, rest)
	// A deletion timestamp belongs into the metadata.
	if strings.Contains(text, `"ending":true`) {
		text = strings.Replace(text, `"uid"`, `"deletionTimestamp":"2026-01-01T00:00:00Z","uid"`, 1)
	}
	o, version, err := parseObject(kind, json.RawMessage(text))
	if err != nil {
		s.t.Fatalf("%v: %s", err, text)
	}
	s.trial.changes = append(s.trial.changes, change{version: version, kind: kind, created: !s.there[uid], deleted: deleted, seen: s.now, object: o})
	s.there[uid] = !deleted
}

func (s *tale) passes(d time.Duration) { s.now = s.now.Add(d) }

// member labels a pod of workload w, Job job.
func member(job, attempt, rank string) string {
	return fmt.Sprintf(`%q:"w",%q:%q,%q:%q,%q:%q`, labelUID, labelAttempt, attempt, labelRank, rank, labelJob, job)
}

func on(node, phase string) string {
	return fmt.Sprintf(`"spec":{"nodeName":%q,"containers":[{"resources":{"limits":{"nvidia.com/gpu":"8"}}}]},"status":{"phase":%q}`, node, phase)
}

const (
	twoOfThem = `"spec":{"completions":2}`
	ofW       = `"gpu.warp.dev/workload-uid":"w","gpu.warp.dev/attempt":"0"`
	eight     = `"status":{"allocatable":{"nvidia.com/gpu":"8"}}`
)

func planned(job string, more string) string {
	return fmt.Sprintf(`"status":{"phase":"Scheduling","jobName":%q%s}`, job, more)
}

// run is a workload's whole life, without anything wrong.
func (s *tale) run() {
	s.t.Helper()
	s.is(nodes, "n1", "", eight)
	s.is(nodes, "n2", "", eight)
	s.is(pods, "by1", "", `"spec":{}`)
	s.is(pods, "by1", "", `"spec":{"nodeName":"n1"}`)
	s.is(workloads, "w", "", "")
	s.is(workloads, "w", "", planned("j0", ""))
	s.is(jobs, "j0", ofW, twoOfThem)
	s.is(notes, "e1", "", `"reportingController":"gpu-orchestrator","reason":"Planned","note":"2 pods","regarding":{"uid":"w","name":"w"}`)
	for _, rank := range []string{"0", "1"} {
		s.is(pods, "p"+rank, member("j0", "0", rank), `"spec":{}`)
	}
	s.is(pods, "p0", member("j0", "0", "0"), on("n1", "Pending"))
	s.is(pods, "p1", member("j0", "0", "1"), on("n2", "Pending"))
	s.is(pods, "p0", member("j0", "0", "0"), on("n1", "Succeeded"))
	s.is(pods, "p1", member("j0", "0", "1"), on("n2", "Succeeded"))
	s.is(jobs, "j0", ofW, `"spec":{"completions":2},"status":{"conditions":[{"type":"Complete","status":"True"}]}`)
	s.is(workloads, "w", "", `"status":{"phase":"Succeeded","jobName":"j0","conditions":[{"type":"Finished","status":"True","reason":"Succeeded"}]}`)
}

// verdict holds a history to the oracles that should speak.
func (s *tale) verdict(want ...string) {
	s.t.Helper()
	var got []string
	for _, v := range s.trial.run() {
		got = append(got, v.Oracle)
		s.t.Log(v.Oracle, v.Revision, v.What)
	}
	got = slices.Compact(got)
	if !slices.Equal(got, want) {
		s.t.Errorf("blamed %v, want %v", got, want)
	}
}

func ours(verb, resource, uid string) record {
	return record{At: time.Unix(1e9, 0), Verb: verb, Resource: resource, Namespace: "ns", Name: uid, UID: uid, VersionGuard: "1", Code: 200, Point: verb}
}

func TestNothingIsWrongWithAPlainRun(t *testing.T) {
	s := newTale(t)
	s.run()
	s.passes(time.Minute)
	s.trial.quiet = []interval{{s.now, s.now.Add(time.Second)}}
	s.trial.journal = []record{ours("patch", pods, "p0"), ours("create", jobs, ""), {Verb: "delete", Resource: jobs, UIDGuard: "j0", Code: 200}}
	s.verdict()
}

func TestOrderIsThatOfRevisions(t *testing.T) {
	s := newTale(t)
	s.run()
	slices.Reverse(s.trial.changes)
	s.verdict()
}

// Every oracle is shown what it is there for.
func TestPlantedBugs(t *testing.T) {
	for _, v := range []struct {
		oracle, name string
		plant        func(*tale)
	}{
		{"O1", "two pods on the GPUs of one", func(s *tale) {
			s.is(pods, "x", "", on("n1", "Running"))
			s.is(pods, "y", "", on("n1", "Pending"))
		}},
		{"O1", "a pod that is being deleted still holds", func(s *tale) {
			s.is(pods, "x", "", on("n1", "Running"))
			s.is(pods, "x", "", on("n1", "Running")+`,"ending":true`)
			s.is(pods, "y", "", on("n1", "Pending"))
		}},
		{"O2", "bound in part for long", func(s *tale) {
			s.is(workloads, "w2", "", planned("j9", ""))
			s.is(jobs, "j9", `"gpu.warp.dev/workload-uid":"w2","gpu.warp.dev/attempt":"0"`, twoOfThem)
			s.is(pods, "x", strings.Replace(member("j9", "0", "0"), `"w"`, `"w2"`, 1), on("n1", "Running"))
			s.passes(11 * time.Second)
			s.is(pods, "y", strings.Replace(member("j9", "0", "1"), `"w"`, `"w2"`, 1), on("n2", "Running"))
			s.is(workloads, "w2", "", `"status":{"phase":"Running","jobName":"j9"}`)
		}},
		{"O2", "two attempts at once", func(s *tale) {
			s.is(pods, "x", member("j0", "0", "0"), on("n1", "Running"))
			s.is(pods, "y", member("j1", "1", "1"), on("n2", "Running"))
		}},
		{"O3", "two Jobs of one attempt", func(s *tale) {
			s.is(workloads, "w", "", `"status":{"phase":"Running","jobName":"j1"}`)
			s.gone(jobs, "j0", ofW, "")
			s.is(jobs, "j1", ofW, "")
		}},
		{"O3", "two Jobs of one attempt at once", func(s *tale) {
			s.is(workloads, "w", "", `"status":{"phase":"Succeeded","jobName":"j1"}`)
			s.is(jobs, "j1", ofW, "")
		}},
		{"O3", "a Job that came too late and stays", func(s *tale) {
			s.gone(jobs, "j0", ofW, "")
			s.is(workloads, "w", "", `"status":{"phase":"Succeeded","jobName":"j1"}`)
			s.is(jobs, "j1", ofW, "")
		}},
		{"O3", "a Job that came too late and runs", func(s *tale) {
			s.gone(jobs, "j0", ofW, "")
			s.is(workloads, "w", "", `"status":{"phase":"Succeeded","jobName":"j1"}`)
			s.is(jobs, "j1", ofW, "")
			s.is(pods, "x", member("j1", "0", "5"), on("n1", "Pending"))
			s.gone(pods, "x", member("j1", "0", "5"), on("n1", "Pending"))
			s.gone(jobs, "j1", ofW, "")
		}},
		{"O3", "one rank twice", func(s *tale) {
			s.is(pods, "x", member("j0", "0", "0"), on("n1", "Running"))
			s.is(pods, "y", member("j0", "0", "0"), on("n2", "Running"))
		}},
		{"O4", "planned and forgotten", func(s *tale) {
			s.is(workloads, "w2", "", planned("j9", ""))
			s.passes(11 * time.Second)
			s.is(nodes, "n1", "", eight)
		}},
		{"O4", "never looked at", func(s *tale) {
			s.is(workloads, "w2", "", "")
			s.passes(11 * time.Second)
			s.is(nodes, "n1", "", eight)
		}},
		{"O4", "a pod without its workload", func(s *tale) { s.gone(workloads, "w", "", "") }},
		{"O5", "a delete by name alone", func(s *tale) {
			s.trial.journal = []record{{Verb: "delete", Resource: pods, Namespace: "ns", Name: "p0", Code: 200}}
		}},
		{"O5", "somebody else's pod deleted", func(s *tale) {
			s.is(pods, "foreign", "", "")
			s.trial.journal = []record{{Verb: "delete", Resource: pods, Namespace: "ns", Name: "foreign", UIDGuard: "foreign", Code: 200}}
		}},
		{"O5", "somebody else's pod patched", func(s *tale) {
			s.is(pods, "foreign", "", "")
			s.trial.journal = []record{ours("patch", pods, "foreign")}
		}},
		{"O5", "a patch without a guard", func(s *tale) {
			s.trial.journal = []record{{Verb: "patch", Resource: pods, Namespace: "ns", Name: "p0", UID: "p0", Code: 200}}
		}},
		{"O5", "a collection deleted", func(s *tale) {
			s.trial.journal = []record{{Verb: "deletecollection", Resource: jobs, Namespace: "ns"}}
		}},
		{"O5", "a running gang stopped", func(s *tale) {
			s.is(workloads, "w2", "", planned("j9", ""))
			labels := `"gpu.warp.dev/workload-uid":"w2","gpu.warp.dev/attempt":"0"`
			s.is(jobs, "j9", labels, twoOfThem)
			for _, rank := range []string{"0", "1"} {
				s.is(pods, "w2p"+rank, strings.Replace(member("j9", "0", rank), `"w"`, `"w2"`, 1), on([]string{"n1", "n2"}[rank[0]-'0'], "Running"))
			}
			s.gone(jobs, "j9", labels, twoOfThem)
			s.is(workloads, "w2", "", `"status":{"phase":"Running","jobName":"j9"}`)
			s.trial.journal = []record{{Verb: "delete", Resource: jobs, Namespace: "ns", Name: "j9", UIDGuard: "j9", Code: 200}}
		}},
		{"O6", "a retry nobody needed", func(s *tale) {
			s.is(workloads, "w", "", `"status":{"phase":"Succeeded","jobName":"j0","retryCount":1}`)
		}},
		{"O6", "counts that go back", func(s *tale) {
			s.is(workloads, "w2", "", planned("j9", `,"attempt":2`))
			s.is(workloads, "w2", "", planned("j9", `,"attempt":1`))
		}},
		{"O6", "a withdrawn pod counted as failed", func(s *tale) {
			s.is(jobs, "j0", ofW, `"spec":{"completions":2},"status":{"failed":1}`)
		}},
		{"O7", "a status written for nothing", func(s *tale) {
			s.passes(time.Minute)
			s.trial.quiet = []interval{{s.now, s.now.Add(time.Second)}}
			s.is(workloads, "w", "", `"status":{"phase":"Succeeded","jobName":"j0"}`)
		}},
		{"O7", "a write that changes nothing", func(s *tale) {
			s.trial.quiet = []interval{{time.Unix(1e9-1, 0), time.Unix(1e9, 1)}}
			s.trial.changes = nil
			s.trial.journal = []record{ours("patch", "somethings", "p0")}
		}},
		{"O8", "a Job that no plan named", func(s *tale) {
			s.is(jobs, "j1", `"gpu.warp.dev/workload-uid":"w","gpu.warp.dev/attempt":"1"`, "")
		}},
		{"O8", "an event again and again", func(s *tale) {
			for i := range 3 {
				s.is(notes, fmt.Sprint("again", i), "", `"reportingController":"gpu-orchestrator","reason":"NoRoom","note":"no","regarding":{"uid":"w"}`)
			}
		}},
		{"O9", "another answer after a restart", func(s *tale) {
			if err := s.trial.obey(s.t.Context(), command{Do: "equal", What: "snapshot", A: "8 free", B: "7 free"}); err != nil {
				s.t.Fatal(err)
			}
		}},
		{"O12", "a foreign pod that waits", func(s *tale) {
			s.is(pods, "by2", "", `"spec":{}`)
			s.passes(6 * time.Second)
			s.is(pods, "by2", "", `"spec":{"nodeName":"n1"}`)
		}},
		{"O12", "a foreign pod that never starts", func(s *tale) {
			s.is(pods, "by2", "", `"spec":{}`)
			s.passes(6 * time.Second)
			s.is(nodes, "n1", "", eight)
		}},
		{"O12", "a foreign pod with our gate", func(s *tale) {
			s.is(pods, "by2", "", `"spec":{"nodeName":"n1","schedulingGates":[{"name":"gpu.warp.dev/plan"}]}`)
		}},
		{"O12", "a foreign pod deleted", func(s *tale) { s.gone(pods, "by1", "", "") }},
	} {
		t.Run(v.oracle+" "+v.name, func(t *testing.T) {
			s := newTale(t)
			s.run()
			v.plant(s)
			s.verdict(v.oracle)
		})
	}
}

// What looks like a fault and is none.
func TestNoFalseAlarms(t *testing.T) {
	for _, v := range []struct {
		name string
		plot func(*tale)
	}{
		{"room given back before it is used again", func(s *tale) {
			s.is(pods, "x", "", on("n1", "Running"))
			s.gone(pods, "x", "", on("n1", "Running"))
			s.is(pods, "y", "", on("n1", "Running"))
			s.is(pods, "y", "", on("n1", "Failed"))
			s.is(pods, "z", "", on("n1", "Running"))
		}},
		{"a Job that came too late and was taken away", func(s *tale) {
			s.gone(jobs, "j0", ofW, "")
			s.is(workloads, "w", "", `"status":{"phase":"Succeeded","jobName":"j1"}`)
			s.is(jobs, "j1", ofW, "")
			s.is(pods, "x", member("j1", "0", "0"), `"spec":{}`)
			s.gone(pods, "x", member("j1", "0", "0"), `"spec":{}`)
			s.gone(jobs, "j1", ofW, "")
		}},
		{"a member lost after the gang was whole", func(s *tale) {
			s.passes(time.Hour)
			s.is(pods, "p2", member("j0", "0", "0"), on("n1", "Pending"))
		}},
		{"a workload that waits with a reason", func(s *tale) {
			s.is(workloads, "w2", "", `"status":{"phase":"Pending","message":"no room","conditions":[{"type":"Planned","status":"False","reason":"NoRoom"}]}`)
			s.passes(time.Hour)
			s.is(nodes, "n1", "", eight)
		}},
		{"a failure, counted", func(s *tale) {
			s.is(workloads, "w2", "", planned("f0", ""))
			s.is(jobs, "f0", `"gpu.warp.dev/workload-uid":"w2","gpu.warp.dev/attempt":"0"`, twoOfThem)
			s.is(pods, "f0p", strings.Replace(member("f0", "0", "0"), `"w"`, `"w2"`, 1), on("n1", "Failed"))
			s.is(jobs, "f0", `"gpu.warp.dev/workload-uid":"w2","gpu.warp.dev/attempt":"0"`, `"status":{"failed":1,"conditions":[{"type":"Failed","status":"True"}]}`)
			s.is(workloads, "w2", "", `"status":{"phase":"Succeeded","retryCount":1,"attempt":1,"jobName":"f1"}`)
		}},
		{"a gang that is suspended", func(s *tale) {
			s.is(workloads, "w", "", `"spec":{"suspend":true},"status":{"phase":"Running","jobName":"j1","attempt":1}`)
			s.is(jobs, "j1", strings.Replace(ofW, `"0"`, `"1"`, 1), `"spec":{"completions":1}`)
			s.is(pods, "x", member("j1", "1", "0"), on("n1", "Running"))
			s.gone(jobs, "j1", strings.Replace(ofW, `"0"`, `"1"`, 1), `"spec":{"completions":1}`)
			s.gone(pods, "x", member("j1", "1", "0"), on("n1", "Running"))
			s.trial.journal = []record{{Verb: "delete", Resource: jobs, Namespace: "ns", Name: "j1", UIDGuard: "j1", Code: 200}}
		}},
		{"a write that was refused", func(s *tale) {
			s.is(pods, "foreign", "", "")
			r := ours("patch", pods, "foreign")
			r.Code = 409
			s.trial.journal = []record{r}
		}},
	} {
		t.Run(v.name, func(t *testing.T) {
			s := newTale(t)
			s.run()
			v.plot(s)
			s.verdict()
		})
	}
}
