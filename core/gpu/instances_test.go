package gpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func a100(t testing.TB) *Geometry {
	t.Helper()
	g, ok := GeometryOf("A100-40GB", 40960)
	if !ok {
		t.Fatal("the A100 is not known")
	}
	return g
}

// instance reads "gpu/profile@start", with a "?" behind it if nobody uses it.
func instance(t testing.TB, s string) Instance {
	t.Helper()
	var x Instance
	idle := s[len(s)-1] == '?'
	if idle {
		s = s[:len(s)-1]
	}
	at := slices.Index([]byte(s), '@')
	if _, err := fmt.Sscanf(s[:1]+" "+s[at+1:], "%d %d", &x.GPU, &x.Start); err != nil {
		t.Fatal(err)
	}
	x.Profile, x.Used = s[2:at], !idle
	return x
}

func instances(t testing.TB, list []string) []Instance {
	t.Helper()
	var all []Instance
	for _, s := range list {
		all = append(all, instance(t, s))
	}
	return all
}

func TestPlaceWhere(t *testing.T) {
	for _, c := range []struct {
		name           string
		existing, want []string
		usable         Mask
		got            []string // nil if it is impossible; "?" behind what is reused
		replaced       []string
	}{
		{"a small one goes where least is lost", nil, []string{"1g.5gb"}, 1, []string{"0/1g.5gb@6"}, nil},
		{"the full GPU is filled before the empty one is opened", []string{"1/1g.5gb@6"}, []string{"1g.5gb"}, 3, []string{"1/1g.5gb@5"}, nil},
		{"a large one leaves the larger start free", nil, []string{"3g.20gb"}, 1, []string{"0/3g.20gb@4"}, nil},
		{"the order of the question is kept", nil, []string{"1g.5gb", "4g.20gb", "2g.10gb"}, 1, []string{"0/1g.5gb@6", "0/4g.20gb@0", "0/2g.10gb@4"}, nil},
		{"what nobody uses is taken first", []string{"1/2g.10gb@2?"}, []string{"2g.10gb"}, 3, []string{"1/2g.10gb@2?"}, nil},
		{"also under another driver's name", []string{"0/3g.19gb@0?"}, []string{"mig-3g.20gb"}, 1, []string{"0/3g.19gb@0?"}, nil},
		{"free room comes before what nobody uses", []string{"0/2g.10gb@0?", "0/2g.10gb@2?"}, []string{"3g.20gb"}, 1, []string{"0/3g.20gb@4"}, nil},
		{"what nobody uses gives way", []string{"0/2g.10gb@0?", "0/2g.10gb@2", "0/3g.20gb@4?"}, []string{"1g.10gb"}, 1, []string{"0/1g.10gb@0"}, []string{"0/2g.10gb@0?"}},
		{"as little as possible gives way", []string{"0/1g.5gb@4?", "0/1g.5gb@5?", "0/4g.20gb@0?"}, []string{"3g.20gb"}, 1, []string{"0/3g.20gb@0"}, []string{"0/4g.20gb@0?"}},
		{"what is in use stays", []string{"0/4g.20gb@0"}, []string{"4g.20gb"}, 1, nil, nil},
		{"one media extension a GPU", []string{"0/1g.5gb+me@6"}, []string{"1g.5gb.me"}, 3, []string{"1/1g.5gb+me@6"}, nil},
		{"seven of eight", nil, []string{"1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb"}, 1, nil, nil},
		{"not on this GPU", nil, []string{"1g.5gb"}, 0, nil, nil},
		{"no such profile", nil, []string{"1g.6gb"}, 1, nil, nil},
		{"nothing", nil, nil, 0, []string{}, nil},
		{"a GPU whose instance is a riddle is left alone", []string{"0/riddle@0"}, []string{"1g.5gb"}, 3, []string{"1/1g.5gb@6"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, existing := a100(t), instances(t, c.existing)
			got, reused, ok := g.Place(existing, c.usable, c.want)
			if ok != (c.got != nil) {
				t.Fatalf("got %+v %v, want %v", got, ok, c.got)
			}
			for i, x := range got {
				s := fmt.Sprintf("%d/%s@%d", x.GPU, x.Profile, x.Start)
				if reused[i] {
					s += "?"
				}
				if s != c.got[i] || !x.Used || x.Size == 0 {
					t.Errorf("got %s %+v, want %s", s, x, c.got[i])
				}
			}
			if replaced := g.Replaced(existing, got); !slices.Equal(replaced, instances(t, c.replaced)) {
				t.Errorf("%+v give way, want %v", replaced, c.replaced)
			}
		})
	}
}

// First come, first served puts the two large ones on one GPU, and then two media extensions
// are wanted of the other. The search has to part them.
func TestPlaceFindsTheOtherWay(t *testing.T) {
	g, want := a100(t), []string{"4g.20gb", "3g.20gb", "1g.5gb+me", "1g.5gb+me"}
	got, _, ok := g.Place(nil, All(2), want)
	if !ok || got[0].GPU == got[1].GPU || got[2].GPU == got[3].GPU {
		t.Errorf("got %+v %v", got, ok)
	}
	if n, exact := g.Fits(nil, All(4), want, 9); n != 2 || !exact {
		t.Errorf("%d fit on four, exact %v", n, exact)
	}
}

func TestPlaceIsDeterministic(t *testing.T) {
	g := a100(t)
	existing := instances(t, []string{"0/3g.20gb@4", "1/1g.5gb@0?", "1/1g.5gb@1?", "2/2g.10gb@2"})
	want := []string{"1g.5gb", "3g.20gb", "2g.10gb", "1g.5gb"}
	first, _, _ := g.Place(existing, All(3), want)
	for range 20 {
		if again, _, _ := g.Place(existing, All(3), want); !slices.Equal(first, again) {
			t.Fatalf("first %+v, then %+v", first, again)
		}
	}
}

func TestFits(t *testing.T) {
	g := a100(t)
	full := []string{"0/7g.40gb@0", "1/4g.20gb@0"}
	for _, c := range []struct {
		existing, want []string
		usable         Mask
		limit, fit     int
	}{
		{nil, []string{"1g.5gb"}, All(8), 100, 56},
		{nil, []string{"1g.5gb"}, All(8), 10, 10},
		{nil, []string{"1g.5gb", "1g.5gb"}, All(1), 100, 3},
		{nil, []string{"1g.5gb", "1g.5gb"}, All(3), 100, 10},
		{nil, []string{"2g.10gb", "1g.5gb"}, All(8), 100, 18}, // 56 compute slices
		{nil, []string{"3g.20gb", "4g.20gb"}, All(2), 100, 2},
		{nil, []string{"7g.40gb", "1g.5gb"}, All(8), 100, 7},
		{full, []string{"3g.20gb"}, All(3), 100, 3},
		{full, []string{"3g.20gb", "1g.5gb"}, All(2), 100, 0},
		{[]string{"0/7g.40gb@0?"}, []string{"3g.20gb"}, All(1), 100, 2},
		{[]string{"0/3g.20gb@0", "0/2g.10gb@6?"}, []string{"2g.10gb"}, All(1), 100, 2}, // at 6 none should be, but one is
		{[]string{"0/3g.20gb@0"}, []string{"2g.10gb"}, All(1), 100, 1},
		{[]string{"0/1g.5gb@9"}, []string{"1g.5gb"}, All(2), 100, 7}, // nobody knows where it is
		{nil, nil, 0, 5, 5},
		{nil, []string{"1g.5gb"}, 0, 5, 0},
		{nil, []string{"1g.6gb"}, 1, 5, 0},
		{nil, []string{"1g.5gb"}, 1, -1, 0},
	} {
		n, exact := g.Fits(instances(t, c.existing), c.usable, c.want, c.limit)
		if n != c.fit || !exact {
			t.Errorf("%v beside %v on %v: %d fit (exact %v), want %d", c.want, c.existing, c.usable, n, exact, c.fit)
		}
	}
}

// On 64 GPUs that are all different, with many profiles wanted, counting is too much: Fits says
// so, and what it says fits does.
func TestFitsSaysWhenItGivesUp(t *testing.T) {
	g := a100(t)
	var existing []Instance
	rnd := rand.New(rand.NewPCG(0, 4))
	for gpu := range MaxGPUs {
		for range rnd.IntN(5) {
			p := g.profiles[rnd.IntN(len(g.profiles)-1)]
			x := Instance{GPU: gpu, Profile: p.Name, Start: p.Starts[rnd.IntN(len(p.Starts))], Size: p.Memory, Used: true}
			if checkGPU(g, append(slices.Clone(existing), x), gpu) == "" {
				existing = append(existing, x)
			}
		}
	}
	want := []string{"3g.20gb", "1g.10gb", "1g.5gb", "2g.10gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb"}
	n, exact := g.Fits(existing, All(MaxGPUs), want, 100)
	if exact || n == 0 {
		t.Fatalf("%d fit, exact %v: choose a harder case", n, exact)
	}
	var all []string
	for range n {
		all = append(all, want...)
	}
	if _, _, ok := g.Place(existing, All(MaxGPUs), all); !ok {
		t.Errorf("%d do not fit", n)
	}
}
