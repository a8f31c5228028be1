package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// movableScenario is a random scenario with work on its GPUs that may move.
func movableScenario(r *rand.Rand) object {
	s := randomScenario(r)
	running := s["running"].([]object)
	for i, n := range s["nodes"].([]object) {
		for k := range r.IntN(3) {
			running = append(running, object{
				"name": fmt.Sprintf("m%d-%d", i, k), "workload": fmt.Sprintf("m%d", r.IntN(5)), "node": n["name"],
				"requests": object{"nvidia.com/gpu": 1 + r.IntN(2)}, "movable": r.IntN(6) > 0, "cost": r.IntN(3),
				"tolerations": []object{{"operator": "Exists"}},
			})
		}
	}
	s["running"] = running
	if request := s["request"].(object); r.IntN(3) > 0 {
		// Most random requests have room, or ask for more than there is.
		group := object{"name": "g0", "count": 1 + r.IntN(2), "requests": object{"nvidia.com/gpu": 2 + r.IntN(3)}, "topology": object{}}
		if r.IntN(2) == 0 {
			group["topology"] = object{"required": "rack"}
		}
		request["groups"] = []object{group}
		delete(request, "sets")
	}
	s["defragment"] = object{"maxMoves": r.IntN(4)}
	return s
}

// TestRandomMoves holds random answers with moves to what the scenario asks for.
func TestRandomMoves(t *testing.T) {
	answered, moved := 0, 0
	for seed := range uint64(1500) {
		file, err := json.Marshal(movableScenario(rand.New(rand.NewPCG(seed, 7))))
		if err != nil {
			t.Fatal(err)
		}
		scenarios, err := Read(Input{Name: "random.json", Data: file})
		if err != nil {
			continue // More than a node has.
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
		if err != nil || !reflect.DeepEqual(first.Answer, second.Answer) {
			t.Errorf("asked twice, answered\n%+v\n%+v\n%s", first.Answer, second.Answer, file)
		}
		answered++
		if len(first.Moves) > 0 {
			moved++
		}
	}
	if answered < 200 || moved < 10 {
		t.Errorf("%d scenarios were answered, %d with moves", answered, moved)
	}
}

// TestJudgeFindsWrongMoves breaks a good answer in the ways that the judge is there to find.
func TestJudgeFindsWrongMoves(t *testing.T) {
	var s *Scenario
	for _, one := range readExamples(t) {
		if one.Name == "12-defragment" {
			s = one
		}
	}
	for want, spoil := range map[string]func(*Answer){
		"moves twice":                  func(a *Answer) { a.Moves = append(a.Moves, a.Moves[0]) },
		"bert spread over 2 domains":   func(a *Answer) { a.Moves[0].Pods[1].To = "n4" },
		"may not":                      func(a *Answer) { a.Moves[1].Workload = "scan" },
		"1 too much of nvidia.com/gpu": func(a *Answer) { a.Moves = a.Moves[:1] },
		"of nvidia.com/gpu on n5":      func(a *Answer) { a.Moves[0].Pods[1].To = "n5" },
		"is no node":                   func(a *Answer) { a.Moves[1].Pods[0].To = "n9" },
		"more than is allowed":         func(a *Answer) { a.Moves = slices.Repeat(a.Moves, 3) },
	} {
		r, err := Place(s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		spoil(&r.Answer)
		if found := strings.Join(judge(s, &r.Answer), "; "); !strings.Contains(found, want) {
			t.Errorf("spoilt so that it says %q: the judge finds %q", want, found)
		}
	}
}

// TestMovesAreChecked finds what is wrong in what a file says of moves.
func TestMovesAreChecked(t *testing.T) {
	const file = `name: moves
levels: [rack]
nodes: [{name: a, labels: {rack: r1}, allocatable: {nvidia.com/gpu: 4}}]
running:
- {name: w, node: a, level: row, cost: -1, movable: true, tolerations: [{operator: Is}]}
- {name: x, workload: job, node: a, movable: true}
request: {name: job, groups: [{name: main, count: 1}]}
defragment: {maxMoves: -1, moved: [y]}
`
	_, err := Read(Input{Name: "moves.yaml", Data: []byte(file)})
	for _, want := range []string{
		`running[0].level: "row" is none of the levels`, "running[0].cost: is -1; expected GPU-hours",
		"running[0].tolerations[0].operator", "running[1].movable: is true of a member",
		"defragment.maxMoves: is -1", `defragment.moved[0]: "y" is no workload`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said in: %v", want, err)
		}
	}
}
