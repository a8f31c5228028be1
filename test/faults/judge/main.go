package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// command is a line of the input.
type command struct {
	Do         string
	Path       string
	What, A, B string
	For        string
}

// verdict is the last line of the output.
type verdict struct {
	Changes    int         `json:"changes"`
	Writes     int         `json:"writes"`
	Violations []violation `json:"violations"`
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the API server itself")
	var l limits
	flag.DurationVar(&l.torn, "torn", 30*time.Second, "how long a gang may be bound in part")
	flag.DurationVar(&l.lost, "lost", 30*time.Second, "how long a workload may stand still at the end")
	flag.DurationVar(&l.bystander, "bystander", 10*time.Second, "how long a foreign pod may wait for its node")
	flag.StringVar(&l.bystanders, "bystanders", "", "namespace of foreign pods")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	found, err := sit(ctx, *kubeconfig, l, os.Stdin, os.Stdout)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(2)
	}
	if found > 0 {
		os.Exit(1)
	}
}

// sit watches until the verdict is asked for, and returns how many violations there were.
func sit(ctx context.Context, kubeconfig string, l limits, in io.Reader, out io.Writer) (int, error) {
	h, err := connect(ctx, kubeconfig)
	if err != nil {
		return 0, err
	}
	answer := json.NewEncoder(out)
	if err := answer.Encode(map[string]bool{"ready": true}); err != nil {
		return 0, err
	}
	t := &trial{limits: l}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var c command
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return 0, fmt.Errorf("reading a command: %w", err)
		}
		if c.Do == "verdict" {
			v, err := t.verdict(ctx, h)
			if err != nil {
				return 0, err
			}
			return len(v.Violations), answer.Encode(v)
		}
		if err := t.obey(ctx, c); err != nil {
			return 0, err
		}
		if err := answer.Encode(map[string]string{"done": c.Do}); err != nil {
			return 0, err
		}
	}
	return 0, errors.Join(lines.Err(), errors.New("the input ended before a verdict was asked for"))
}

// obey carries out every command but the last.
func (t *trial) obey(ctx context.Context, c command) error {
	switch c.Do {
	case "journal":
		records, err := readJournal(c.Path)
		t.journal = append(t.journal, records...)
		return err
	case "equal":
		if c.A != c.B {
			t.violations = append(t.violations, violation{Oracle: "O9", What: fmt.Sprintf("different after a restart: %s\nbefore:\n%s\nafter:\n%s", c.What, c.A, c.B)})
		}
		return nil
	case "quiet":
		d, err := time.ParseDuration(c.For)
		if err != nil {
			return fmt.Errorf("reading how long it is to be quiet: %w", err)
		}
		from := time.Now()
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
		t.quiet = append(t.quiet, interval{from: from, to: time.Now()})
		return nil
	default:
		return fmt.Errorf("there is no command %q", c.Do)
	}
}

// verdict completes the history and replays it.
func (t *trial) verdict(ctx context.Context, h *history) (verdict, error) {
	if err := h.settle(ctx, 20*time.Second); err != nil {
		h.gap("%v", err)
	}
	h.mu.Lock()
	t.changes = slices.Clone(h.changes)
	for _, gap := range h.gaps {
		t.violations = append(t.violations, violation{Oracle: "judge", What: "the history is not complete: " + gap})
	}
	h.mu.Unlock()
	found := t.run()
	return verdict{Changes: t.judged, Writes: len(t.journal), Violations: found}, nil
}

func readJournal(path string) ([]record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the journal: %w", err)
	}
	defer f.Close()
	var records []record
	decoder := json.NewDecoder(f)
	for {
		var r record
		err := decoder.Decode(&r)
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the journal %s: %w", path, err)
		}
		records = append(records, r)
	}
}
