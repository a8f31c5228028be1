package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// inTwoLeaves has leaf a full of one workload and leaf b of two; what is to be asked follows.
const inTwoLeaves = `
name: reserve
levels: [leaf, kubernetes.io/hostname]
nodes:
- {name: a1, labels: {leaf: a, kubernetes.io/hostname: a1}, allocatable: {nvidia.com/gpu: 8}}
- {name: a2, labels: {leaf: a, kubernetes.io/hostname: a2}, allocatable: {nvidia.com/gpu: 8}}
- {name: b1, labels: {leaf: b, kubernetes.io/hostname: b1}, allocatable: {nvidia.com/gpu: 8}}
- {name: b2, labels: {leaf: b, kubernetes.io/hostname: b2}, allocatable: {nvidia.com/gpu: 8}}
running:
- {name: x-0, workload: x, node: a1, requests: {nvidia.com/gpu: 8}%s}
- {name: x-1, workload: x, node: a2, requests: {nvidia.com/gpu: 8}%s}
- {name: y-0, node: b1, requests: {nvidia.com/gpu: 8}%s}
- {name: z-0, node: b2, requests: {nvidia.com/gpu: 8}%s}
request: {name: job, %s groups: [{name: g, count: %d, requests: {nvidia.com/gpu: 8}, topology: {required: leaf}}]}
reservation: true
`

func TestReservation(t *testing.T) {
	type scene struct {
		x0, x1, y, z, request string
		count                 int
	}
	cases := []struct {
		name               string
		scene              scene
		start, latest, end string
		reason             string
	}{
		{"the first leaf to be free", scene{", ends: 5h", "", ", ends: 3h, elapsed: 90m", ", ends: 2h", "runtime: 10h,", 2},
			"2h0m0s", "2h0m0s", "12h0m0s", "job could start in 2 h in leaf b, once y-0 and z-0 have ended"},
		{"the longest of a workload's pods counts", scene{", ends: 1h", ", ends: 3h", ", ends: 4h", "", "", 2},
			"3h0m0s", "3h0m0s", "", "job could start in 3 h in leaf a, once x has ended"},
		{"quantiles", scene{", ends: {p50: 1h, p90: 4h}", "", "", "", "runtime: {p90: 1h},", 2},
			"1h0m0s", "4h0m0s", "2h0m0s", "job could start in 1 h (4 h if they take long) in leaf a, once x has ended"},
		{"an overrun", scene{", ends: 1h, elapsed: 2h", "", "", "", "", 2},
			"1h0m0s", "1h0m0s", "", "job could start in 1 h in leaf a, once x has ended"},
		{"nobody knows", scene{count: 2},
			"", "", "", "job could start in leaf a, once x has ended; when that is, no estimate tells"},
		{"never", scene{", ends: 1h", "", "", "", "", 3},
			"", "", "", "it could not start even after everything that runs has ended"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := tc.scene
			r := place(t, fmt.Sprintf(inTwoLeaves, s.x0, s.x1, s.y, s.z, s.request, s.count)).Reservation
			if r == nil || r.Start != tc.start || r.Latest != tc.latest || r.End != tc.end || r.Reason != tc.reason {
				t.Errorf("got %+v, want %q, %q, %q, %q", r, tc.start, tc.latest, tc.end, tc.reason)
			}
		})
	}
}

func TestReservationIsNotAskedInVain(t *testing.T) {
	file := fmt.Sprintf(inTwoLeaves, ", ends: 1h", "", "", "", "", 2)
	if r := place(t, strings.Replace(file, "reservation: true", "", 1)); r.Reservation != nil {
		t.Errorf("not asked for: %+v", r.Reservation)
	}
	if r := place(t, strings.Replace(file, "node: a2", `node: ""`, 1)); r.Feasible || r.Reservation == nil {
		t.Errorf("feasible %v, reservation %+v", r.Feasible, r.Reservation)
	}
	if r := place(t, strings.Replace(file, "count: 2, requests: {nvidia.com/gpu: 8}", "count: 2, requests: {}", 1)); !r.Feasible || r.Reservation != nil {
		t.Errorf("it fits: %+v", r.Reservation)
	}
}

func TestRuntimeProblems(t *testing.T) {
	for text, want := range map[string]string{
		", ends: soon":                   `10: running[0].ends: is the text "soon"; expected a duration such as 45m or 2h30m`,
		", ends: 3":                      `10: running[0].ends: is 3; expected a duration`,
		", ends: -1h":                    `running[0].ends: is the text "-1h"; expected a duration such as 45m or 2h30m, up to ten years`,
		", ends: 900000h":                `up to ten years`,
		", ends: 0s":                     `running[0].ends: is 0; expected how long it runs, or nothing if that is not known`,
		", ends: {p50: 2h, p90: 1h}":     `running[0].ends.p90: is 1h0m0s, but p50 is 2h0m0s; expected no less`,
		", ends: {p99: 2h}":              `running[0].ends.p99: there is no such field here; expected one of p50, p90`,
		", ends: [2h]":                   `running[0].ends: is a list; expected fields with values`,
		", ends: 1h, elapsed: {p50: 1h}": `running[0].elapsed: is a mapping; expected a single value`,
	} {
		_, err := Read(Input{Name: "test.yaml", Data: []byte(fmt.Sprintf(inTwoLeaves, text, "", "", "", "", 2))})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	_, err := Read(Input{Name: "test.yaml", Data: []byte(fmt.Sprintf(inTwoLeaves, "", "", "", "", "runtime: {},", 2))})
	if want := "request.runtime: is 0"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// TestReservationsAreRight asks about small random clusters, and then about the same without
// what has to end first: there the reservation must be a right answer.
func TestReservationsAreRight(t *testing.T) {
	asked := 0
	for seed := range uint64(1200) {
		r := rand.New(rand.NewPCG(seed, 9))
		file := randomScenario(r)
		file["reservation"] = true
		running, _ := file["running"].([]object)
		for i := range running {
			if r.IntN(3) > 0 {
				running[i]["ends"] = fmt.Sprintf("%dm", 1+r.IntN(9))
			}
			for _, n := range file["nodes"].([]object) {
				if n["name"] == running[i]["node"] {
					running[i]["requests"] = object{"cpu": n["allocatable"].(object)["cpu"]}
				}
			}
		}
		data, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		scenarios, err := Read(Input{Name: "random.json", Data: data})
		if err != nil {
			t.Fatal(err)
		}
		s := scenarios[0]
		result, err := Place(s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		h := result.Reservation
		if h == nil || len(h.Placement) == 0 {
			continue
		}
		asked++
		later := *s
		later.Running = slices.DeleteFunc(slices.Clone(s.Running), func(r Running) bool { return slices.Contains(h.Needs, r.workload()) })
		answer, err := Place(&later, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !answer.Feasible {
			t.Errorf("without %v it does not fit: %s\n%s", h.Needs, answer.Reason, data)
		}
		for _, wrong := range judge(&later, &Answer{Feasible: true, Placement: h.Placement, GPUs: map[string][][]int{}, MIG: answer.MIG}) {
			if !strings.Contains(wrong, "instances") {
				t.Errorf("%s\n%s\n%+v", wrong, data, h)
			}
		}
	}
	if asked < 60 {
		t.Errorf("only %d reservations of 1200", asked)
	}
	t.Logf("%d reservations", asked)
}
