// Package extender answers a stock kube-scheduler over HTTP (the extender API v1 of
// k8s.io/kube-scheduler): which nodes a GPU pod may take, which are best, which preemptions would
// help, and, as its binder, whether a choice still holds.
//
// It decides over the same snapshots with the same engine as the rest of the product. Between two
// requests it keeps nothing but what its informers tell, and the bindings that it wrote and they
// do not show yet; so replicas are alike. What it does not promise is a gang as a whole: an
// extender sees one pod at a time and can hold none of them back. Gangs that must start whole
// arrive gated (planned mode); those of plain pods are steered (docs/extender.md).
package extender
