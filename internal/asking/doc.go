// Package asking asks a cluster why a workload waits or is where it is, and writes the answer for
// a person at a terminal. It knows the API of explanations and nothing of how they come about.
package asking
