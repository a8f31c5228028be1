// Package fabric makes the clusters that replays run on: from a shape such as
// fattree:1024x8/16/32@H100, from a list of nodes, or from what ibnetdiscover printed of a real
// fabric. The result is core data, with nothing running, the capacities of uplinks as far as they
// are known, and the numbers that core/collective needs.
//
// It takes a cluster as it is told and makes up as little as it can; what it did make up or leave
// out is in the Notes.
package fabric
