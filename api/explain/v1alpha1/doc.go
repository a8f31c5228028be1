// Package v1alpha1 is the API by which people and programs ask why: group explain.gpu.warp.dev.
// It is served by the manager through the API server's aggregation layer, and stored nowhere:
// each answer is worked out when it is asked for.
package v1alpha1
