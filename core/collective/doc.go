// Package collective models how long an all-reduce takes: where the ranks of a gang sit, what
// the fabric carries and who else is on it go in, seconds come out. It is what makes one placement
// better than another in a replay, in the unit that users feel.
//
// Two algorithms are modelled, the two that NCCL chooses from on any fabric, and the better one
// counts. Of n ranks on k nodes, for S bytes:
//
//	ring  S * 2(n-1)/n * max(1/V, 1/(w*N), (e*w+x)/(w*C))   + 2 * (sum of the ring's edges - shortest)
//	tree  S * 2 / 0.92 * max(1/V, 1/(w*N), (c*w/4+x)/(w*C)) + 2 * (log2(n/k)*Lg + log2(k)*Ln)
//
// V is what a GPU sends inside its node, which counts where a node has two ranks or more; N is what
// a NIC sends, and w how many of them do at once between two nodes: the smallest number of ranks on
// a node where each GPU has a NIC of its own, as NCCL uses as many channels as every node has, 1
// where a node has one for all. C is an uplink, of which e edges of the ring, or c edges of both
// trees, leave the domain, and x flows of others. An edge takes Lg inside a node and Ln between
// nodes, with two hops more for each level crossed; trees take the longest of the ring's Ln.
//
// The ring is optimal in bandwidth (Patarasu and Yuan, "Bandwidth optimal all-reduce algorithms
// for clusters of workstations", 2009) and slow to start. It visits the nodes in the order of their
// first ranks, all ranks of a node in a row, and leaves a domain as often as consecutive nodes
// change it: that is why rank order matters. The tree is the double binary tree of Sanders, Speck
// and Träff ("Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009) in the
// form of NCCL (src/graph/trees.cc, ncclGetDtree): two trees over the nodes, each for half of the
// data, such that what is inside in one is a leaf of the other. Every node then sends 2S bytes in
// all (two or three nodes send less, which NCCL's model and this one overlook). Time as latency plus
// size over bandwidth, the ratios n/(2(n-1)) and 1/2 from link to all-reduce bandwidth, the 0.92 of
// trees, and steps counted as inside or between nodes are those of NCCL's own tuning model
// (src/graph/tuning.cc, ncclTopoTuneModel).
//
// One thing departs from it: inside a node NCCL counts n/k-1 steps of a tree, as its GPUs are
// chained. Taken as it is, that makes tiny messages faster on two half nodes than on one whole one;
// log2(n/k) steps do not.
//
// # Sharing
//
// An edge of the ring counts as w flows on each uplink that it crosses; an edge of either tree, which
// brings S/2 up and S/2 down where the ring brings 2S one way, as w/4. An uplink is divided equally
// among the flows on it: who has more connections for the same data gets no more of it. Max-min
// fairness would hand on what a flow cannot use, and be a little faster under load; but there, one
// more flow can speed up a third, and a model in which sharing helps invites the planner to share.
//
// # What it does not model
//
// Other collectives than all-reduce; NVLS and SHARP, which reduce in the switches; the overlap of
// communication with computation, but for IterationSlowdown; collisions of flows on single links of
// an uplink, as adaptive routing avoids them; protocols (LL, LL128, Simple), of which it has one
// set of latencies.
package collective
