package cli

import "github.com/spf13/cobra"

// newSim is the parent of what is answered without touching a cluster.
func newSim(p Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Ask what would happen: a placement, a policy, a larger cluster",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSimPlace(p), newSimPacking(p), newSimJobs(p), newSimReport(), newSimImport(p))
	return cmd
}
