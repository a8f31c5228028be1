// Package webhook answers the API server's admission requests: it checks GPUWorkloads beyond what
// the CRD can say, limits how fast a namespace may submit them, and gives GPU pods of managed
// namespaces the installation's one scheduler.
//
// It decides nothing of its own about a workload: what is wrong with one is what the controller
// would say of it, said earlier. It writes nothing, asks nobody while it answers but its cache,
// and every replica serves, leader or not. What it would let through while it is down is found by
// the controller, or was refused by the policies in config/admission, which the API server checks
// itself.
package webhook
