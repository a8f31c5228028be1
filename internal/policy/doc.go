// Package policy keeps the cluster's PlacementPolicies and says which of them holds for a
// workload, and what it asks.
//
// A Book takes in policies as they come. What cannot be carried out as written is refused with
// its Problem, and the last edition that could is kept in force. Who reads the Book decides
// nothing and writes nothing: that is for placement, and for the controller of policies.
//
// How expressions are compiled is left to a Compiler, so that who only places knows nothing of
// the language: it is in package expression.
package policy
