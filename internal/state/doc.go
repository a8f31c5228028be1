// Package state turns what the API server tells into the snapshots that core/placement decides
// over. It is the only place that translates Kubernetes objects into core data.
//
// State is fed by informers and keeps, per node, what bound pods hold, what planned pods that
// are not yet bound will hold, and what plans promise to pods that do not exist yet. Whatever
// holds a device it shows pod by pod, with the workload that the pod stands or falls with. It
// writes nothing to the API server.
//
// What is inside a node it does not know, and makes no guess: a label that names a board says
// nothing of which of its links work. Node.Board stays nil until somebody who looked tells.
package state
