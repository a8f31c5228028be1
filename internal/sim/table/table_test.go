package table

import (
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	var out strings.Builder
	if err := Write(&out, []string{"policy", "p95", "a wide header"}, []string{"fifo", "1.5 h", "±2"}, []string{"hrrn/topologyAware", "10 min", ""}); err != nil {
		t.Fatal(err)
	}
	want := `policy                 p95  a wide header
fifo                 1.5 h             ±2
hrrn/topologyAware  10 min
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
