package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/importing"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/importing/kube"
)

// clusterFlags are the flags of warp sim import cluster.
type clusterFlags struct {
	destination
	kubeconfig, context, namespace string
	since                          time.Duration
	nodesOnly                      bool
	spineLabels, leafLabels        []string
}

func newSimImportCluster(p Process) *cobra.Command {
	var flags clusterFlags
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Make nodes.csv, jobs.csv and pods.csv of a live Kubernetes cluster",
		Long: `cluster lists the nodes, pods, Jobs and GPUWorkloads of a live cluster and writes what
they tell: the nodes, the jobs that ran, and the pods for the packing experiment. It
needs the right to list those four and no other; it watches and writes nothing there.
docs/import.md has a role to apply. What was deleted, the cluster cannot tell.

` + importExitCodes,
		Example: `  # The last week of the cluster that kubectl talks to
  warp sim import cluster --out week

  # A month of one namespace of another
  warp sim import cluster --context prod --namespace research --since 720h --out month`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runSimImportCluster(cmd, p, &flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.kubeconfig, "kubeconfig", "", "file that says where the cluster is; without, as for kubectl: KUBECONFIG, then ~/.kube/config")
	f.StringVar(&flags.context, "context", "", "context of that file; without, its current one")
	f.StringVarP(&flags.namespace, "namespace", "n", "", "only the jobs and pods of this namespace; without, of all")
	f.DurationVar(&flags.since, "since", 7*24*time.Hour, "how long ago a job was submitted at most")
	f.BoolVar(&flags.nodesOnly, "nodes-only", false, "write nodes.csv alone, to run another trace on these nodes; needs the right to list nodes alone")
	f.StringSliceVar(&flags.spineLabels, "spine-label", kube.SpineLabels(), "labels of a node's spine; the first that it has counts")
	f.StringSliceVar(&flags.leafLabels, "leaf-label", kube.LeafLabels(), "labels of a node's leaf; the first that it has counts")
	flags.destination.flags(cmd)
	return cmd
}

func runSimImportCluster(cmd *cobra.Command, p Process, flags *clusterFlags) error {
	if flags.since <= 0 {
		return fmt.Errorf("--since is %v; expected how long ago, such as 168h", flags.since)
	}
	names := []string{importing.NodesFile}
	if !flags.nodesOnly {
		names = append(names, importing.JobsFile, importing.PodsFile)
	}
	if err := flags.free(names...); err != nil {
		return err
	}
	config, err := kube.Connect(flags.kubeconfig, flags.context)
	if err != nil {
		return err
	}
	objects, err := kube.Read(cmd.Context(), config, kube.Scope{Namespace: flags.namespace, NodesOnly: flags.nodesOnly})
	if err != nil {
		return fault{fmt.Errorf("reading the cluster at %s: %w", config.Host, err)}
	}
	found := kube.Translate(objects, kube.Options{
		Now: p.Clock(), Since: flags.since, SpineLabels: flags.spineLabels, LeafLabels: flags.leafLabels,
	})
	switch {
	case len(found.Nodes) == 0:
		return errors.New("the cluster has no node, and nothing was written")
	case len(found.Jobs) == 0 && !flags.nodesOnly:
		return noJobs(cmd, found, ": look further back with --since, or write the nodes with --nodes-only")
	}
	if err := flags.save(cmd, found); err != nil {
		return err
	}
	if !flags.nodesOnly {
		flags.next(cmd)
	}
	return nil
}
