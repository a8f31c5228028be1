package placement

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// TestBriefDecidesTheSame asks drawn questions with and without reasons, with uplinks that cut
// slices: only the reasons may be missing.
func TestBriefDecidesTheSame(t *testing.T) {
	k := newKit(t, 7, 2, 7)
	all := registry(t)
	cases(t, 3000, func(t *rapid.T) {
		s := drawTraffic(t, drawUplinks(t, k.world(t)))
		r := k.request(t, s)
		for i := range r.Groups {
			r.Groups[i].Mbps = oneOf[int64](t, "mbps", 10, 5, 1, 0)
		}
		full, err := Plan(s, r, Options{Strategies: all})
		brief, err2 := Plan(s, r, Options{Strategies: all, Brief: true})
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if full.Feasible != brief.Feasible || full.Undecided != brief.Undecided || !reflect.DeepEqual(full.Groups, brief.Groups) {
			t.Fatalf("%s\nin full %v %+v\nin brief %v %+v", show(s, r), full.Feasible, full.Groups, brief.Feasible, brief.Groups)
		}
	})
}
