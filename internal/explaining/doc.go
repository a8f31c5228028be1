// Package explaining answers, for the live cluster, why a workload, a pod or a gang waits or is
// where it is. It turns what the caches and the state know into a question for core/explain, and
// the answer into the API's kinds, with the commands that carry remedies out.
//
// Every replica can answer: what the plans of workloads promise is read from their status, as the
// state of a replica that does not lead holds no promises. What was decided only the replica that
// decided it remembers.
package explaining
