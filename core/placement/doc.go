// Package placement decides where the pods of a workload go.
//
// Plan is its one verb: a snapshot and a request in, a decision with its reasons out. The same
// Plan serves the controller on a live cluster and what-if questions on an edited snapshot; it
// reads no clock, draws no random number of its own and changes nothing. What it refuses to
// do: evict anybody, or promise room that is not free in the snapshot.
//
// Reserve says when and where a request could start that has to wait, and Backfill what of a
// queue starts now, holds room for later, or waits. Time is what they are told: how long what
// runs has run, and is said to.
package placement
