package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// options are what the command line says.
type options struct {
	sandbox   string
	manager   string
	scenarios string
	sides     string
	out       string
	nodes     int
	pairs     int
	quick     bool
	keep      string
}

func main() {
	ctrl.SetLogger(logr.Discard())
	var o options
	flag.StringVar(&o.sandbox, "sandbox", "bin/sandbox", "the sandbox's binary")
	flag.StringVar(&o.manager, "manager", "bin/manager", "the manager's binary, as it is installed: for its memory, of which the sandbox's code would be a part")
	flag.StringVar(&o.scenarios, "scenario", strings.Join(scenarioNames(), ","), "what to measure, in this order")
	flag.StringVar(&o.sides, "sides", "stock,scheduler", "whom to compare, of "+strings.Join(sideNames(), ", ")+"; ratios are to the first")
	flag.StringVar(&o.out, "out", "bin/bench-e2e", "folder for the results")
	flag.IntVar(&o.nodes, "nodes", 1024, "nodes with 8 GPUs each, 16 a leaf, 32 leaves a spine")
	flag.IntVar(&o.pairs, "pairs", 5, "how often each side is measured, taking turns")
	flag.BoolVar(&o.quick, "quick", false, "measure for seconds instead of minutes: to try the benchmark, not the product")
	flag.StringVar(&o.keep, "logs", "", "keep the logs of the last sandbox of each side in this folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, &o)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// scenario is one thing to measure.
type scenario struct {
	name string
	run  func(ctx context.Context, o *options, sides []side, r *report) error
}

func scenarios() []scenario {
	return []scenario{
		{"mixed", runMixed},
		{"leaves", runLeaves},
		{"rate", runRate},
		{"steady", runSteady},
	}
}

func scenarioNames() []string {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return names
}

func run(ctx context.Context, o *options) error {
	if o.nodes < 32 || o.pairs < 1 {
		return errors.New("-nodes must be at least 32, and -pairs at least 1")
	}
	sides, err := sidesNamed(o.sides)
	if err != nil {
		return err
	}
	for _, binary := range []*string{&o.sandbox, &o.manager} {
		if *binary, err = filepath.Abs(*binary); err != nil {
			return err
		}
		if _, err := os.Stat(*binary); err != nil {
			return fmt.Errorf("finding a program to measure: %w; build it with: scripts/build.sh %s", err, filepath.Base(*binary))
		}
	}
	chosen := strings.Split(o.scenarios, ",")
	for _, name := range chosen {
		if !slices.Contains(scenarioNames(), name) {
			return fmt.Errorf("there is no scenario %q: choose of %s", name, strings.Join(scenarioNames(), ", "))
		}
	}
	r := newReport(o)
	for _, s := range scenarios() {
		if !slices.Contains(chosen, s.name) {
			continue
		}
		fmt.Printf("\n== %s\n", s.name)
		if err := s.run(ctx, o, sides, r); err != nil {
			// What was measured before is worth keeping.
			return errors.Join(fmt.Errorf("scenario %s: %w", s.name, err), r.write(o.out))
		}
	}
	return r.write(o.out)
}
