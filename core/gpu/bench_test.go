package gpu

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkBestGPUSet chooses GPUs of boards with 8 and 16, of a thousand drawn sets of free ones in turn.
// warm has the tables, cold builds the board and its table for the size first.
func BenchmarkBestGPUSet(b *testing.B) {
	wirings := map[int]Wiring{8: dgx1(), 16: nvswitch(16)}
	for _, gpus := range []int{8, 16} {
		frees := make([]Mask, 1024)
		rnd := rand.New(rand.NewPCG(1, uint64(gpus)))
		for i := range frees {
			frees[i] = Mask(rnd.Uint64()) & All(gpus)
		}
		for _, k := range []int{1, 2, 4, 8} {
			b.Run(fmt.Sprintf("state=warm/gpus=%d/k=%d", gpus, k), func(b *testing.B) {
				board := board(b, wirings[gpus])
				board.Best(All(gpus), k, 0)
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					board.Best(frees[i%len(frees)], k, 0)
					i++
				}
			})
		}
		b.Run(fmt.Sprintf("state=warm/gpus=%d/k=4/include=1", gpus), func(b *testing.B) {
			board := board(b, wirings[gpus])
			board.Best(All(gpus), 4, 0)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				free := frees[i%len(frees)].With(gpus - 1)
				board.Best(free, 4, MaskOf(gpus-1))
				i++
			}
		})
		b.Run(fmt.Sprintf("state=cold/gpus=%d/k=4", gpus), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				board(b, wirings[gpus]).Best(All(gpus).Without(0), 4, 0)
			}
		})
		b.Run(fmt.Sprintf("state=cold/gpus=%d/k=all", gpus), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				board := board(b, wirings[gpus])
				for k := 1; k < gpus; k++ {
					board.Best(All(gpus), k, 0)
				}
			}
		})
	}
}

// BenchmarkPlaceMIG places one pod on a node with 8 GPUs, half full.
func BenchmarkPlaceMIG(b *testing.B) {
	g := a100(b)
	var existing []Instance
	for gpu := range 8 {
		existing = append(existing, Instance{GPU: gpu, Profile: "3g.20gb", Start: 4, Used: gpu%2 == 0})
		if gpu%3 == 0 {
			existing = append(existing, Instance{GPU: gpu, Profile: "1g.5gb", Start: 3, Used: true})
		}
	}
	for _, c := range []struct {
		name string
		want []string
	}{
		{"1g", []string{"1g.5gb"}},
		{"reuse", []string{"3g.20gb"}},
		{"balanced", []string{"3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb"}},
		{"evict", []string{"4g.20gb", "4g.20gb", "7g.40gb"}},
		{"refused", []string{"7g.40gb", "7g.40gb", "7g.40gb", "7g.40gb", "7g.40gb"}},
	} {
		b.Run("want="+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g.Place(existing, All(8), c.want)
			}
		})
	}
}

// BenchmarkFitsMIG counts the pods that fit on a node with 8 empty GPUs.
func BenchmarkFitsMIG(b *testing.B) {
	g := a100(b)
	for _, c := range []struct {
		name string
		want []string
	}{
		{"1g", []string{"1g.5gb"}},
		{"two", []string{"2g.10gb", "1g.5gb"}},
		{"balanced", []string{"3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb"}},
		{"all", []string{"1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}},
	} {
		b.Run("want="+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g.Fits(nil, All(8), c.want, 100)
			}
		})
	}
}
