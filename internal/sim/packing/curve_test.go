package packing

import "testing"

// TestColumns: a cluster of two GPUs, 20 thousandths of which are a percent.
func TestColumns(t *testing.T) {
	c := newCurve(2000, 0.12, 300)
	c.note(10, 10, 250)  // 0.5 % rounds to even: column 0
	c.note(30, 30, 200)  // 1.5 %: column 2
	c.note(40, 40, 100)  // 2 %: column 2
	c.note(80, 50, 60)   // 4 %
	c.note(200, 120, 94) // 10 %
	c.note(999, 999, 0)  // beyond the end
	columns := c.columns()
	if len(columns) != 13 {
		t.Fatalf("%d columns", len(columns))
	}
	for _, want := range []Column{
		{Arrived: 0, Allocated: 0.5, Unallocated: 99.5, Fragmentation: 12.5, FragmentationRate: 12.56},
		// Nothing rounds to 1: what went to 0 and 2 stands in.
		{Arrived: 1, Allocated: 1.33, Unallocated: 98.67, Fragmentation: 9.17, FragmentationRate: 9.27},
		{Arrived: 2, Allocated: 1.75, Unallocated: 98.25, Fragmentation: 7.5, FragmentationRate: 7.63},
		{Arrived: 5, Allocated: 2.5, Unallocated: 97.5, Fragmentation: 3, FragmentationRate: 3.08},
		// Nothing near 7: as it was after the last pod.
		{Arrived: 7, Allocated: 2.5, Unallocated: 97.5, Fragmentation: 3, FragmentationRate: 3.08},
		{Arrived: 12, Allocated: 6, Unallocated: 94, Fragmentation: 4.7, FragmentationRate: 5},
	} {
		if got := columns[want.Arrived]; got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	start := newCurve(2000, 0.1, 300).columns()[10]
	if want := (Column{Arrived: 10, Unallocated: 100, Fragmentation: 15, FragmentationRate: 15}); start != want {
		t.Errorf("before any pod: %+v", start)
	}
}

func TestSpread(t *testing.T) {
	if s := spread([]float64{2, 4, 4, 4, 5, 5, 7, 9}); s.Mean != 5 || s.SD < 2.138 || s.SD > 2.1381 {
		t.Errorf("got %+v", s)
	}
	if s := spread([]float64{3}); s != (Spread{Mean: 3}) {
		t.Errorf("got %+v", s)
	}
}
