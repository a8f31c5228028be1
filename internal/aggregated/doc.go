// Package aggregated serves group explain.gpu.warp.dev through the API server's aggregation
// layer: whoever may ask the API server may ask here, and Kubernetes' own roles say about which
// namespaces. It is a handler behind the parts of k8s.io/apiserver that tell who asks and whether
// they may, and no generic API server: nothing is stored, watched or admitted here.
package aggregated
