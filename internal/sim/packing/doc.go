// Package packing fills a cluster with the pods of a trace until they ask for more than it has,
// and says how many GPUs stay idle: the experiment of FGD (Weng et al., USENIX ATC'23), pod by
// pod as its authors ran it, so that their figures can be found again and ours be held against
// them.
//
// Two sorts of policies play. The strategies of the product run as they do in a cluster: each pod
// is a placement.Plan, and what it decides is a cluster.Txn. The six published policies are
// written anew here for comparison, and are of no other use: nothing here schedules anything.
package packing
