// Package controller carries out what core decides: one reconciler a kind.
//
// The GPUWorkload reconciler works in planned mode: it plans a whole gang, writes the plan
// into the status, makes one Indexed Job whose pods carry a scheduling gate, and opens each
// gate with one patch that pins the pod to its node. Every write has a guard of its own (a
// resourceVersion, a UID or a name that only this workload and attempt can have), so that a
// write that comes late is refused or changes nothing. The write points, in order, are in
// docs/architecture.md.
package controller
