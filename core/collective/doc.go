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
// # Routing
//
// That holds for adaptive routing, which spreads what crosses an uplink over all of its links. Hashed
// routing (ECMP, and the static routes of InfiniBand) leaves each flow on one of L = C/N links as fast
// as a NIC, taken at random and independently. The gang then waits for the fullest link with flows of
// its own, wherever it crosses, and M/(w*N) replaces (e*w+x)/(w*C), where M is the expected number of
// flows there: of uplinks d, each with a own flows (e*w, or c*w/4 rounded up) and x of others,
//
//	M = 1 + sum over k=1,2,... of 1 - product over d of P(T <= k | own > 0)^K
//	P(T > k | own > 0) = (P(B(a+x) > k) - (1-1/L)^a * P(B(x) > k)) / (1 - (1-1/L)^a)
//	K = L * (1 - (1-1/L)^a)
//
// T is own flows and others on a link, B(n) binomial with n trials of chance 1/L, and K the expected
// number of links with own flows: M is the expected maximum of so many independent links. To take balls
// in bins for independent is usual (Gonnet, "Expected length of the longest probe sequence in hash code
// searching", 1981; Raab and Steger, "Balls into Bins - A Simple and Tight Analysis", 1998). They are not
// quite, as what one bin has the others have not (Dubhashi and Ranjan, "Balls and Bins: A Study in
// Negative Dependence", 1996): of flows thrown at random, the fullest link has within 5% of M from 32
// links on, and within 10% on fewer, mostly more. M is never below 1 nor below the average (a+x)/L,
// grows with flows and uplinks, and is exact where one flow crosses one uplink, or where all uplinks are
// one link. A part of a flow (others count by their share of the time) is a flow that is there with that
// chance. L need not be whole, or more bandwidth could be slower; an uplink slower than a NIC is one
// link, as slow as that.
//
// The flows of a tree take turns at their NIC, so that c*w/4 of them are there at a time, each as large
// as one of a ring. That they are others the next moment is not credited: trees would hardly collide then,
// and this model would flee to them where NCCL, which knows nothing of collisions, stays with the ring.
//
// What is published is of that size. Alone on a non-blocking network, 8 DGX H100 in 8 leaves take 1.8
// times as long for 1 GiB as in one: they get 55% of the bandwidth. Hoefler, Schneider and Lumsdaine
// ("Multistage Switches are not Crossbars", 2008) found 55 to 60% of the bisection bandwidth on
// production clusters with static routes; Geoffray and Hoefler ("Adaptive Routing Strategies for Modern
// High Performance Networks", 2008) 38% on 512 nodes. Meta gained up to 40% for all-reduce by hashing
// over more connections ("RDMA over Ethernet for Distributed AI Training at Meta Scale", 2024); Alibaba
// lays out its network (HPN, 2024) and chooses its paths (C4, 2025) so that such flows do not meet.
//
// A flow is counted where it leaves a domain, not where it enters the next: with two levels, the choice
// of a spine makes both. Not modelled is what makes collisions rarer: leaf switches of single rails, on
// which only flows of that rail meet (where a domain is a group of such, M is too large), several
// connections a flow, and uplinks faster than NICs; nor what makes them more frequent: equal hashes at
// each level (polarization).
//
// # What it does not model
//
// Other collectives than all-reduce; NVLS and SHARP, which reduce in the switches; the overlap of
// communication with computation, but for IterationSlowdown; protocols (LL, LL128, Simple), of which
// it has one set of latencies.
package collective
