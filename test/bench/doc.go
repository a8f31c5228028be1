// Command bench measures the product beside the stock scheduler on the sandbox: a real control
// plane with simulated nodes. Every side gets a fresh cluster for every run, and sides take
// turns, so that whatever else the machine does falls on all of them.
//
// It is careful to cost little itself: units of work are created by a few workers over one
// connection, and followed by one watch that carries metadata alone. docs/benchmarks.md says
// what each scenario means.
package main
