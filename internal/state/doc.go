// Package state turns what the API server tells into the snapshots that core/placement decides
// over. It is the only place that translates Kubernetes objects into core data.
//
// State is fed by informers and keeps, per node, what bound pods hold, what planned pods that
// are not yet bound will hold, and what plans promise to pods that do not exist yet. It writes
// nothing to the API server.
package state
