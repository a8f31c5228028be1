// Package proxy stands between one component and the API server, and does to its requests what
// a network, an overloaded server or a crash would do: fails them, loses their answers, holds
// them, freezes what is watched.
//
// Every write gets a name that is the same in every run, its Point, so that a test can say
// "the second status update of this flow" and means the same request each time. A write that
// an action holds tells the test, which may then kill or stop the process that waits for the
// answer; nothing has to be built into that process. Every write is recorded.
//
// The proxy knows Kubernetes' API, and nothing of the product: what tells two writes to the
// same resource apart is said by a function of its caller.
package proxy
