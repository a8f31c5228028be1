package cli

import "github.com/spf13/cobra"

// newSim is the parent of what is answered from files, without a cluster.
func newSim(p Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Answer questions from files, without a cluster",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSimPlace(p), newSimPacking(p))
	return cmd
}
