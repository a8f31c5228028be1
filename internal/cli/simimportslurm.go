package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/importing"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/importing/slurm"
)

func newSimImportSacct() *cobra.Command {
	var (
		to    destination
		model string
	)
	cmd := &cobra.Command{
		Use:   "sacct FILE",
		Short: "Make jobs.csv of what Slurm's sacct prints",
		Long: `sacct reads the accounting of Slurm, - for standard input, and writes jobs.csv. Run

  ` + slurm.Command + ` > sacct.txt

with the first day you want; sacct alone shows only today. The columns may be in any
order, more or fewer: JobID, Submit, Start, AllocTRES and one of ElapsedRaw and End
have to be there. Do not ask for JobName or Comment, which may hold bars.

` + importExitCodes,
		Example: `  # A month, and the nodes it ran on
  warp sim import sacct sacct.txt --out may
  scontrol show nodes --oneliner | warp sim import slurm-nodes - --out may

  # For a cluster with other GPUs
  warp sim import sacct sacct.txt --out may --gpu-model any`,
		Args: oneFile("the output of sacct"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(slurm.Models(), model) {
				return fmt.Errorf("unknown --gpu-model %q: choose one of %s", model, strings.Join(slurm.Models(), ", "))
			}
			if err := to.free(importing.JobsFile); err != nil {
				return err
			}
			found, err := readOne(cmd, args[0], func(name string, in io.Reader) (*importing.Found, error) {
				return slurm.ReadJobs(name, in, slurm.Model(model))
			})
			if err != nil {
				return err
			}
			if len(found.Jobs) == 0 {
				return noJobs(cmd, found, "")
			}
			if err := to.save(cmd, found); err != nil {
				return err
			}
			if to.free(importing.NodesFile) == nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "the nodes: %s | warp sim import slurm-nodes - --out %s\n", slurm.NodesCommand, to.dir)
			}
			to.next(cmd)
			return nil
		},
	}
	to.flags(cmd)
	cmd.Flags().StringVar(&model, "gpu-model", string(slurm.Requested), "GPU model that a job wants: the type it requested, if any; the one it was allocated; or any")
	// The only error is a flag that is not there.
	if err := cmd.RegisterFlagCompletionFunc("gpu-model", cobra.FixedCompletions(slurm.Models(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
	return cmd
}

func newSimImportSlurmNodes() *cobra.Command {
	var to destination
	cmd := &cobra.Command{
		Use:   "slurm-nodes FILE",
		Short: "Make nodes.csv of what Slurm's scontrol prints",
		Long: `slurm-nodes reads what ` + slurm.NodesCommand + ` prints, - for standard
input, and writes nodes.csv. It knows nothing of the network: fill in the columns
spine and leaf if you want it simulated.

` + importExitCodes,
		Example: `  scontrol show nodes --oneliner | warp sim import slurm-nodes - --out may`,
		Args:    oneFile("the output of scontrol"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := to.free(importing.NodesFile); err != nil {
				return err
			}
			found, err := readOne(cmd, args[0], slurm.ReadNodes)
			if err != nil {
				return err
			}
			if err := to.save(cmd, found); err != nil {
				return err
			}
			to.next(cmd)
			return nil
		},
	}
	to.flags(cmd)
	return cmd
}
