package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reyisjones/gpu-orchestrator/core/placement"
)

// defragment asks which moves make room where there is none. The decision becomes that after
// the moves, or says why they do not help.
func (c *caller) defragment(q *question, asked *asking, d *placement.Decision) ([]placement.Move, error) {
	o := placement.MoveOptions{Options: c.options, MaxMoves: q.Defragment.MaxMoves, Moved: q.Defragment.Moved}
	m, err := c.timed(func() (placement.Moves, error) { return placement.Defragment(q.snapshot, asked.request, o) })
	if err != nil {
		return nil, err
	}
	*d = m.Plan
	d.Why.Sentence, d.Undecided = m.Sentence, m.Undecided
	if !m.Feasible {
		d.Why.Certificate = m.Certificate
	}
	return m.Moves, nil
}

// timed adds how long the engine takes to the time of the answer.
func (c *caller) timed(ask func() (placement.Moves, error)) (placement.Moves, error) {
	if c.clock == nil {
		return ask()
	}
	start := c.clock()
	m, err := ask()
	c.elapsed += c.clock().Sub(start)
	return m, err
}

// movesOf puts moves into the words of the answer.
func movesOf(moves []placement.Move) []WorkloadMove {
	var said []WorkloadMove
	for i := range moves {
		m := WorkloadMove{Workload: moves[i].Workload, Cost: moves[i].Cost}
		for k := range moves[i].Pods {
			p := &moves[i].Pods[k]
			m.Pods = append(m.Pods, PodMove{Pod: p.Pod, From: p.From, To: p.To, GPUs: p.After.Pod.GPUs.Indexes()})
		}
		said = append(said, m)
	}
	return said
}

// maxMoveRows is how many moves a table shows.
const maxMoveRows = 16

// moveRows says in rows what moves where, in order.
func moveRows(moves []WorkloadMove) [][2]string {
	var rows [][2]string
	for i, m := range moves {
		if i == maxMoveRows {
			rows = append(rows, [2]string{"", fmt.Sprintf("… and %d more", len(moves)-i)})
			break
		}
		var pods []string
		for _, p := range m.Pods {
			text := fmt.Sprintf("%s from %s to %s", p.Pod, p.From, p.To)
			if len(p.GPUs) > 0 {
				text += " (GPU " + ranges(p.GPUs) + ")"
			}
			pods = append(pods, text)
		}
		text := m.Workload + ": " + strings.Join(pods, ", ")
		if m.Cost > 0 {
			text += fmt.Sprintf("; costs %.4g GPU-hours", m.Cost)
		}
		rows = append(rows, [2]string{fmt.Sprintf("move %d", i+1), text})
	}
	return rows
}

// maxCost bounds what a move may be said to lose, in GPU-hours.
const maxCost = 1e12

// placedAgain checks what a running pod says of being moved.
func (c *checker) placedAgain(p path, r *Running) {
	if r.Level != "" {
		c.level(p.with("level"), r.Level)
	}
	if !(r.Cost >= 0 && r.Cost <= maxCost) {
		c.bad(p.with("cost"), "is %g; expected GPU-hours, 0 to %g", r.Cost, maxCost)
	}
	if r.Movable && r.member(c.Scenario) {
		c.bad(p.with("movable"), "is true of a member of the request; expected it of other workloads")
	}
	c.tolerations(p.with("tolerations"), r.Tolerations)
}

func (c *checker) defragment() {
	d := c.Defragment
	if d == nil {
		return
	}
	p := path{"defragment"}
	c.atLeast(p.with("maxMoves"), int64(d.MaxMoves), 0)
	for i, name := range d.Moved {
		if !slices.ContainsFunc(c.Running, func(r Running) bool { return r.workload() == name }) {
			c.bad(p.with("moved", i), "%q is no workload under running; expected one of them", name)
		}
	}
}
