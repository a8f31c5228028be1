package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
)

// FuzzPlan asks about small random clusters: whatever the answer is, it is the same when asked
// twice, it gives out nothing twice, and it is what was asked for.
func FuzzPlan(f *testing.F) {
	for seed := range uint64(64) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		file, err := json.Marshal(randomScenario(rand.New(rand.NewPCG(seed, 1))))
		if err != nil {
			t.Fatal(err)
		}
		scenarios, err := Read(Input{Name: "random.json", Data: file})
		if err != nil {
			t.Fatalf("%v\n%s", err, file)
		}
		s := scenarios[0]
		first, err := Place(s, Options{Explain: true})
		if err != nil {
			t.Fatalf("%v\n%s", err, file)
		}
		for _, wrong := range judge(s, &first.Answer) {
			t.Errorf("%s\n%s\n%+v", wrong, file, first.Answer)
		}
		second, err := Place(s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(first.Answer, second.Answer) {
			t.Errorf("asked twice, answered\n%+v\n%+v\n%s", first.Answer, second.Answer, file)
		}
		if first.Feasible == first.Undecided && first.Feasible {
			t.Errorf("feasible and undecided at once\n%s", file)
		}
	})
}

// object is a mapping of a scenario file.
type object = map[string]any

// randomScenario makes up to eight nodes in up to four racks and two blocks, some work, and a
// request for one or two groups.
func randomScenario(r *rand.Rand) object {
	levels := []string{"block", "rack", "kubernetes.io/hostname"}
	kind := r.IntN(3)
	var nodes, running []object
	for i := range 1 + r.IntN(8) {
		name := fmt.Sprintf("n%d", i)
		labels := object{"block": fmt.Sprintf("b%d", r.IntN(2)), "rack": fmt.Sprintf("r%d", r.IntN(2)), levels[2]: name}
		if r.IntN(12) == 0 {
			delete(labels, "rack")
		}
		gpus := 1 + r.IntN(4)
		n := object{
			"name":        name,
			"labels":      labels,
			"allocatable": object{"cpu": fmt.Sprint(2 + r.IntN(7)), "nvidia.com/gpu": gpus, "pods": fmt.Sprint(1 + r.IntN(8))},
			"ready":       r.IntN(10) > 0,
		}
		if r.IntN(10) == 0 {
			n["taints"] = []object{{"key": "gpu", "value": "x", "effect": "NoSchedule"}}
		}
		if kind > 0 {
			n["gpus"] = randomInside(r, gpus)
		}
		nodes = append(nodes, n)
		if r.IntN(2) == 0 {
			running = append(running, object{
				"name": "w-" + name, "workload": fmt.Sprintf("w%d", r.IntN(2)), "node": name,
				"requests": object{"cpu": fmt.Sprintf("%dm", 500*r.IntN(5))},
			})
		}
	}
	var groups []object
	for i := range 1 + r.IntN(2) {
		groups = append(groups, randomGroup(r, fmt.Sprintf("g%d", i), levels, kind))
	}
	request := object{"name": "job", "groups": groups, "strategy": strategies()[r.IntN(len(strategies()))]}
	if len(groups) == 2 && r.IntN(2) == 0 {
		request["sets"] = []object{{"groups": []string{"g0", "g1"}, "required": levels[r.IntN(2)]}}
	}
	return object{"name": "random", "levels": levels, "nodes": nodes, "running": running, "request": request}
}

// randomInside is a node with NVLinks, some GPUs in use, and some shared.
func randomInside(r *rand.Rand, gpus int) object {
	links, milli := make([][]int, gpus), make([]int, gpus)
	for i := range links {
		links[i] = make([]int, gpus)
		milli[i] = []int{1000, 1000, 1000, 600, 200, 0}[r.IntN(6)]
	}
	for i := range links {
		for j := range i {
			links[i][j] = r.IntN(3)
			links[j][i] = links[i][j]
		}
	}
	inside := object{"product": "NVIDIA-H100-80GB-HBM3", "memoryMiB": 81559, "links": links, "milli": milli}
	if r.IntN(2) == 0 {
		inside["used"] = []int{r.IntN(gpus)}
	}
	if i := r.IntN(gpus); milli[i] == 1000 && inside["used"] == nil {
		inside["mig"] = []object{{"gpu": i, "profile": "2g.20gb", "start": 2 * r.IntN(3), "used": r.IntN(2) == 0}}
	}
	return inside
}

func randomGroup(r *rand.Rand, name string, levels []string, kind int) object {
	requests := object{"cpu": fmt.Sprintf("%dm", 250*r.IntN(6))}
	count := 1 + r.IntN(8)
	g := object{"name": name, "count": count, "requests": requests}
	switch what := r.IntN(4); {
	case what == 0 && kind > 0:
		g["gpuMilli"] = 100 * (1 + r.IntN(10))
	case what == 1 && kind == 2:
		g["mig"] = [][]string{{"1g.10gb"}, {"3g.40gb", "1g.10gb"}, {"2g.20gb"}}[r.IntN(3)]
	case what < 3:
		requests["nvidia.com/gpu"] = 1 + r.IntN(3)
	}
	if r.IntN(3) == 0 {
		g["minCount"] = 1 + r.IntN(count)
	}
	required := r.IntN(5)
	topology := object{}
	if required < 3 {
		topology["required"] = levels[required]
	}
	if r.IntN(3) == 0 {
		preferred := r.IntN(3)
		if required < 3 {
			preferred = max(preferred, required)
		}
		topology["preferred"] = levels[preferred]
	}
	g["topology"] = topology
	if r.IntN(3) == 0 {
		level := r.IntN(3)
		if required < 3 {
			level = max(level, required)
		}
		g["slice"] = object{"size": 1 + r.IntN(3), "level": levels[level]}
	}
	return g
}
