package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/reyisjones/gpu-orchestrator/internal/problem"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/importing"
)

// newSimImport is the parent of what makes files of users' own data.
func newSimImport(p Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Make the files of a simulation from your own cluster or accounting",
		Long: `import makes nodes.csv, jobs.csv and pods.csv of your own data. docs/import.md says
what is carried over and what is not.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSimImportCluster(p), newSimImportSacct(), newSimImportSlurmNodes())
	return cmd
}

// importExitCodes is a part of each command's help.
const importExitCodes = `Everything is read before anything is written. The exit code is

  0  if the files were written;
  1  if warp failed, or what it asked did: nothing was written;
  2  if a file or a flag is wrong, a file would be written over, or there is no job
     with GPUs: nothing was written.`

// destination is where the files go.
type destination struct {
	dir   string
	force bool
}

func (d *destination) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.dir, "out", ".", "folder that the files go to; made if it is not there")
	cmd.Flags().BoolVar(&d.force, "force", false, "write over files that are there")
}

// free refuses early what save would refuse after everything was read.
func (d *destination) free(names ...string) error {
	if d.force {
		return nil
	}
	return saving(importing.Free(d.dir, names...))
}

// save writes the files and says what is in them.
func (d *destination) save(cmd *cobra.Command, found *importing.Found) error {
	paths, err := found.Save(d.dir, d.force)
	if err != nil {
		return saving(err)
	}
	found.Summary(cmd.ErrOrStderr(), paths)
	return nil
}

// saving says of an error of writing what to do, and whose fault it is.
func saving(err error) error {
	var exists *importing.ExistsError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exists):
		return fmt.Errorf("%w: choose another folder with --out, or write over it with --force", err)
	default:
		return fault{err}
	}
}

// next says how to go on.
func (d *destination) next(cmd *cobra.Command) {
	jobs, nodes := filepath.Join(d.dir, importing.JobsFile), filepath.Join(d.dir, importing.NodesFile)
	for _, path := range []string{jobs, nodes} {
		if _, err := os.Stat(path); err != nil {
			return
		}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "next: warp sim jobs --jobs %s --cluster %s\n", jobs, nodes)
}

// noJobs is the error of data without any job to simulate; what was left out says why.
func noJobs(cmd *cobra.Command, found *importing.Found, advice string) error {
	for _, n := range found.Left {
		fmt.Fprintf(cmd.ErrOrStderr(), "%8d  %s\n", n.Count, n.Text)
	}
	return fmt.Errorf("there is no job with GPUs to write, and nothing was written%s", advice)
}

// oneFile wants the name of the file to read.
func oneFile(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%d files are named; expected one, with %s, or - for standard input", len(args), what)
		}
		return nil
	}
}

// readOne reads a file as it comes, or standard input for "-": accounting of years does not fit
// in memory.
func readOne(cmd *cobra.Command, name string, read func(name string, in io.Reader) (*importing.Found, error)) (*importing.Found, error) {
	if name == "-" {
		return read("stdin", cmd.InOrStdin())
	}
	file, err := os.Open(name)
	if err != nil {
		var of *fs.PathError
		if errors.As(err, &of) {
			err = of.Err
		}
		return nil, problem.Problems{{File: name, Text: "cannot be read: " + err.Error()}}
	}
	defer file.Close()
	return read(name, file)
}
