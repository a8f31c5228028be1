package trace

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// text draws what a name may be: anything but spaces at its ends, which reading takes away, and
// the carriage return that CSV takes for a part of a line's end.
func text(least int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		s := rapid.StringOfN(rapid.RuneFrom([]rune("ab,\"|;\n'#é 0")), least, 8, -1).Draw(t, "text")
		if s = strings.TrimSpace(s); len(s) < least {
			return "x"
		}
		return s
	})
}

func moment() *rapid.Generator[time.Duration] {
	return rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(0, maxSeconds*1e6).Draw(t, "µs")) * time.Microsecond
	})
}

// TestWrittenIsReadBack holds for all three files that reading undoes writing.
func TestWrittenIsReadBack(t *testing.T) {
	t.Run("nodes", rapid.MakeCheck(func(t *rapid.T) {
		nodes := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) Node {
			return Node{
				Name: text(1).Draw(t, "name"), CPUMilli: rapid.Int64Min(0).Draw(t, "cpu"), MemoryMiB: rapid.Int64Range(0, 1<<43-1).Draw(t, "memory"),
				GPUs: rapid.IntRange(0, maxGPUs).Draw(t, "GPUs"), Model: text(0).Draw(t, "model"), Spine: text(0).Draw(t, "spine"), Leaf: text(0).Draw(t, "leaf"),
			}
		}), 1, 5, func(n Node) string { return n.Name }).Draw(t, "nodes")
		var file bytes.Buffer
		if err := WriteNodes(&file, nodes); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadNodes("f", &file); err != nil || !reflect.DeepEqual(got, nodes) {
			t.Fatalf("got %+v, %v", got, err)
		}
	}))
	t.Run("pods", rapid.MakeCheck(func(t *rapid.T) {
		pods := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) Pod {
			p := Pod{Name: text(1).Draw(t, "name"), CPUMilli: rapid.Int64Min(0).Draw(t, "cpu"), MemoryMiB: rapid.Int64Range(0, 1<<43-1).Draw(t, "memory"), GPUs: rapid.IntRange(0, maxGPUs).Draw(t, "GPUs")}
			switch p.GPUs {
			case 0:
			case 1:
				p.Milli = rapid.IntRange(1, 1000).Draw(t, "milli")
			default:
				p.Milli = 1000
			}
			p.Models = rapid.SampledFrom([][]string{nil, {"T4"}, {"H100", "P100"}}).Draw(t, "models")
			p.Spec = strings.Join(p.Models, "|")
			return p
		}), 1, 5, func(p Pod) string { return p.Name }).Draw(t, "pods")
		var file bytes.Buffer
		if err := WritePods(&file, pods); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadPods("f", &file, nil); err != nil || !reflect.DeepEqual(got, pods) {
			t.Fatalf("got %+v, %v", got, err)
		}
	}))
	t.Run("jobs", rapid.MakeCheck(func(t *rapid.T) {
		at := time.Duration(0)
		jobs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Job {
			pods := rapid.IntRange(0, 9).Draw(t, "pods")
			return Job{
				ID: text(1).Draw(t, "ID"), Submit: moment().Draw(t, "submit") / 8, Duration: moment().Draw(t, "duration"),
				GPUs: max(pods, 1) * rapid.IntRange(1, 99).Draw(t, "GPUs"), Pods: pods, Model: text(0).Draw(t, "model"),
				Queue: text(0).Draw(t, "queue"), Priority: rapid.Int32().Draw(t, "priority"),
			}
		}), 1, 7).Draw(t, "jobs")
		for i := range jobs {
			at += jobs[i].Submit.Truncate(time.Microsecond)
			jobs[i].Submit = at
		}
		var file bytes.Buffer
		if err := WriteJobs(&file, jobs); err != nil {
			t.Fatal(err)
		}
		got, err := readJobs(file.String(), JobsOptions{})
		for i := range got {
			got[i].Line = 0
		}
		if err != nil || !reflect.DeepEqual(got, jobs) {
			t.Fatalf("got  %+v, %v\nwant %+v\n%s", got, err, jobs, &file)
		}
	}))
}

func TestHowTimesAreWritten(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0", 90 * time.Second: "90", 10500 * time.Millisecond: "10.5", time.Microsecond: "0.000001", 1999999600 * time.Nanosecond: "2"} {
		if got := seconds(d); got != want {
			t.Errorf("%v is written %s, want %s", d, got, want)
		}
	}
}

// TestForms reads what others write between values, and where they do not quote.
func TestForms(t *testing.T) {
	rows := NewRowsOf(Form{Comma: '|', Bare: true}, "f", strings.NewReader("a|b\n\"x|1,5\ny|\"z\n"), "a", "b")
	var got []string
	for rows.Next() {
		got = append(got, rows.Text("a"), rows.Text("b"))
	}
	if err := rows.Err(); err != nil || !reflect.DeepEqual(got, []string{"'x", "1,5", "y", "'z"}) {
		t.Errorf("got %q, %v", got, err)
	}
	rows = NewRowsOf(Form{Comma: '|'}, "f", strings.NewReader("a|b\n"), "c")
	if err := rows.Err(); err == nil || err.Error() != "f:1: there is no column c; expected a header with c, and read a|b" {
		t.Errorf("got %v", err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

func TestAnErrorOfWriting(t *testing.T) {
	if err := WriteNodes(fullDisk{}, nil); err == nil || err.Error() != "writing nodes: the disk is full" {
		t.Errorf("got %v", err)
	}
}
