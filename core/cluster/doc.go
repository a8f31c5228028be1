// Package cluster is the world as plain data: nodes with their GPUs, the topology they stand
// in, what is taken and what is free.
//
// A Snapshot never changes once it is built; a decision made over it can be made again and
// gives the same answer. The package knows nothing of Kubernetes, of clients or of time: what
// turns a live cluster into a Snapshot is internal/state.
package cluster
