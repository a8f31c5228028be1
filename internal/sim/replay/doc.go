// Package replay plays the jobs of a trace through the placement engine in simulated time: what
// would this policy have done to this cluster? Places, backfilling, preemption and moves are the
// production code of core/placement; the clock, the trace, the order of queues and the stock
// scheduler's scores are the simulator's own.
//
// A job arrives when the trace says, waits until its policy starts it, runs for as long as the
// trace says and is gone. Nothing fails, and pods start at once. One policy is one replay; every
// replay reads the trace anew and keeps only what waits or runs, and a few numbers of what has
// ended.
package replay
