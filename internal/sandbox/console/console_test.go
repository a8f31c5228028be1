package console

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestNoColourOffATerminal(t *testing.T) {
	var out bytes.Buffer
	c := New(&out)
	c.Done("etcd", 1234*time.Millisecond)
	c.Failed("kwok")
	c.Printf("%s", c.Paint(Red, "text"))
	if got := out.String(); strings.Contains(got, "\x1b") || !strings.Contains(got, "✓ etcd") || !strings.Contains(got, "1.2s") {
		t.Errorf("it wrote %q", got)
	}
}

func TestLinesStayWhole(t *testing.T) {
	var out bytes.Buffer
	c := New(&out)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 100 {
				c.Printf("a line")
			}
		})
	}
	writers.Wait()
	if got, want := out.String(), strings.Repeat("a line\n", 800); got != want {
		t.Errorf("lines were mixed")
	}
}
