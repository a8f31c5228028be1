// Package kube reads a live cluster as the simulator's nodes, jobs and pods: Read lists what there
// is, Translate is a function of that alone.
//
// It lists nodes, pods, Jobs and GPUWorkloads, page by page, and asks for nothing else: it
// watches nothing, writes nothing, and reads no Secret, ConfigMap or log. What a cluster has
// forgotten, deleted Jobs and pods above all, it cannot tell.
package kube
