// Package decisions remembers what was decided about workloads: what, when, why, and how long
// that took. It is bounded in entries and in bytes, and forgets the oldest first. It keeps
// nothing across restarts: what has to last is in the workloads' status, in events, and in the
// log lines that it writes.
package decisions
