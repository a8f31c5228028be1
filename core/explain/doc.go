// Package explain says to people what the engine decided: why a workload waits, whose decision it
// is that it need not, and what would help.
//
// Explain is its one verb: a question and its snapshot in, an Explanation out. Whatever it
// proposes it has tried: each remedy was applied to the snapshot and the request was planned
// again, by the engine that places workloads. What it refuses to do: guess. A time that no
// estimate tells and a loss that nobody measured are unknown, never zero.
package explain
