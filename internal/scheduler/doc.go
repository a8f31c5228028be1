// Package scheduler makes a kube-scheduler of the engine: one plugin that has GPU pods and gangs
// planned by core/placement, holds a gang together until all of it can be bound, and leaves
// everything else to the stock plugins.
//
// The plan of a gang is made once, in the scheduling cycle of its first member; the other
// members wait outside the queue until it is there, so that a gang without room costs one refusal.
// What is promised counts as held in internal/state at once. The package decides nothing about
// places itself, and polls nothing: pods wait for news that let the engine answer yes.
package scheduler
