// Package importing is what users' own data becomes before it is written: nodes, jobs and pods as
// the simulator reads them, and what was left out of them or had to be decided. Its
// sub-packages read: slurm what Slurm's commands print, kube a live Kubernetes cluster.
//
// It writes all files or none, never over others unless told to, and gives out nothing that
// package trace does not read back.
package importing
