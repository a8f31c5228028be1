package slurm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/internal/problem"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/importing"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

const (
	// NodesCommand prints what ReadNodes reads.
	NodesCommand = "scontrol show nodes --oneliner"

	// maxLine bounds a line: that of a node has a few kilobytes.
	maxLine = 1 << 20
	// maxProblems is how many are kept: more tell nothing new.
	maxProblems = 100
	// maxNodeGPUs is the most that package trace reads.
	maxNodeGPUs = 64

	manyTypes = "nodes with GPUs of several types: no model is written"
	down      = "nodes that are down or drained now: written as if they served"
)

// ReadNodes reads what scontrol show nodes prints, with --oneliner or without. It says nothing
// of the network: spine and leaf stay empty.
//
// The error is a problem.Problems where the file is wrong.
func ReadNodes(file string, in io.Reader) (*importing.Found, error) {
	r := nodeReader{file: file, found: &importing.Found{}, lines: map[string]int{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for r.line = 1; lines.Scan(); r.line++ {
		r.read(lines.Text())
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		r.bad(field{line: r.line}, "", fmt.Sprintf("is longer than %d bytes; expected the output of %s", maxLine, NodesCommand))
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	r.end()
	switch {
	case len(r.problems) > 0:
		return nil, r.problems
	case len(r.found.Nodes) == 0:
		return nil, trace.Problem(file, "names no node; expected the output of "+NodesCommand)
	}
	return r.found, nil
}

// nodeReader is what is known while lines are read.
type nodeReader struct {
	file  string
	line  int
	found *importing.Found
	// lines are those of the nodes seen; fields are of the node that is being read.
	lines    map[string]int
	fields   map[string]field
	problems problem.Problems
}

// field is a value and where it stands.
type field struct {
	value        string
	line, column int
}

// read takes in a line: a node, or with indentation more of it.
func (r *nodeReader) read(text string) {
	switch name, isNode := strings.CutPrefix(text, "NodeName="); {
	case strings.TrimSpace(text) == "":
		return
	case isNode && strings.TrimSpace(strings.SplitN(name, " ", 2)[0]) != "":
		r.end()
		r.fields = map[string]field{}
	case r.fields == nil || text[0] != ' ' && text[0] != '\t':
		r.bad(field{line: r.line, column: 1}, "", fmt.Sprintf("begins with %q; expected NodeName=, as %s prints", clipped(text), NodesCommand))
		return
	}
	// Values may hold spaces: those that do, such as OS, Comment and Reason, are not read, and of
	// what they hold nothing is, since the fields that are come before them and the first counts.
	at := 0
	for word := range strings.SplitSeq(text, " ") {
		key, value, ok := strings.Cut(word, "=")
		if _, twice := r.fields[key]; ok && !twice {
			r.fields[key] = field{strings.Clone(strings.TrimSpace(value)), r.line, at + len(key) + 2}
		}
		at += len(word) + 1
	}
}

// end takes in the node that was read.
func (r *nodeReader) end() {
	if r.fields == nil {
		return
	}
	name := r.fields["NodeName"]
	if first, twice := r.lines[name.value]; twice {
		r.bad(name, "NodeName", fmt.Sprintf("%q is also the node of line %d; expected each once", clipped(name.value), first))
		return
	}
	r.lines[name.value] = name.line
	// CPUEfctv is what jobs can have of CPUTot; older versions do not tell.
	cpus := "CPUEfctv"
	if _, ok := r.fields[cpus]; !ok {
		cpus = "CPUTot"
	}
	memory := r.number("RealMemory", math.MaxInt64>>20)
	if _, ok := r.fields["MemSpecLimit"]; ok {
		memory = max(memory-r.number("MemSpecLimit", math.MaxInt64>>20), 0)
	}
	n := trace.Node{Name: name.value, CPUMilli: r.number(cpus, math.MaxInt64/1000) * 1000, MemoryMiB: memory}
	n.GPUs, n.Model = r.gpus()
	if state := strings.ToUpper(r.fields["State"].value); strings.Contains(state, "DOWN") || strings.Contains(state, "DRAIN") || strings.Contains(state, "FAIL") {
		r.found.Changed.Add(down)
	}
	r.found.Nodes = append(r.found.Nodes, n)
}

// gpus reads Gres: "gpu:a100:4(S:0-1),gpu:t4:1", "gpu:8" or "(null)".
func (r *nodeReader) gpus() (count int, model string) {
	types := map[string]bool{}
	gres := r.fields["Gres"]
	for item := range strings.SplitSeq(unbracketed(gres.value), ",") {
		kind, n, isGPU, ok := gpu(item)
		switch {
		case !isGPU:
			continue
		case !ok:
			r.bad(gres, "Gres", fmt.Sprintf("has %q; expected a list such as gpu:a100:4(S:0-1)", clipped(item)))
			return 0, ""
		case n == 0:
			continue
		}
		types[kind] = true
		model = kind
		if count += n; count > maxNodeGPUs {
			r.bad(gres, "Gres", fmt.Sprintf("has more than %d GPUs; expected at most as many", maxNodeGPUs))
			return 0, ""
		}
	}
	if len(types) > 1 {
		r.found.Changed.Add(manyTypes)
		model = ""
	}
	return count, model
}

// gpu reads "gpu", "gpu:8", "gpu:a100" or "gpu:a100:4". Slurm takes what has no number for one.
func gpu(item string) (kind string, n int, isGPU, ok bool) {
	parts := strings.Split(item, ":")
	if parts[0] != "gpu" {
		return "", 0, false, true
	}
	parts, n = parts[1:], 1
	if last := len(parts) - 1; last >= 0 {
		if count, err := strconv.Atoi(parts[last]); err == nil {
			n, parts = count, parts[:last]
		}
	}
	if len(parts) == 1 {
		kind = parts[0]
	}
	return kind, n, true, len(parts) <= 1 && n >= 0 && n <= maxNodeGPUs*maxNodeGPUs
}

// unbracketed drops what stands in brackets, commas and all.
func unbracketed(text string) string {
	var out strings.Builder
	depth := 0
	for _, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth = max(depth-1, 0)
		case depth == 0:
			out.WriteRune(c)
		}
	}
	return out.String()
}

// number reads a field that has to be there.
func (r *nodeReader) number(key string, most int64) int64 {
	f, ok := r.fields[key]
	if !ok {
		r.bad(r.fields["NodeName"], key, "is not told of the node; expected a whole number")
		return 0
	}
	n, err := strconv.ParseInt(f.value, 10, 64)
	if err != nil || n < 0 || n > most {
		r.bad(f, key, fmt.Sprintf("is %q; expected a whole number of 0 to %d", clipped(f.value), most))
		return 0
	}
	return n
}

func (r *nodeReader) bad(at field, key, text string) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, problem.Problem{File: r.file, Line: at.line, Column: at.column, Path: key, Text: text})
	}
}
