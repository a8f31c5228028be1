package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/reyisjones/gpu-orchestrator/internal/problem"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/replay"
)

func newSimReport() *cobra.Command {
	var locality bool
	cmd := &cobra.Command{
		Use:   "report FILE…",
		Short: "Show what warp sim jobs -o json printed, several replays as one summary",
		Long: `report shows saved replays: the tables of one, or a summary of several that
compares the first policy of each with the others. Nothing is replayed.`,
		Example: `  warp sim jobs --jobs monday.csv --cluster nodes.csv -o json > monday.json
  warp sim jobs --jobs tuesday.csv --cluster nodes.csv -o json > tuesday.json
  warp sim report monday.json tuesday.json

  # By how much longer gangs communicate by the other policies
  warp sim report --locality monday.json`,
		RunE: func(cmd *cobra.Command, files []string) error {
			reports, err := readReports(files)
			if err != nil {
				return err
			}
			var out bytes.Buffer
			switch {
			case locality:
				err = replay.Locality(&out, reports...)
			case len(reports) == 1:
				err = reports[0].Tables(&out)
			default:
				err = replay.Summary(&out, reports...)
			}
			if err != nil {
				return err
			}
			if _, err := out.WriteTo(cmd.OutOrStdout()); err != nil {
				return fault{fmt.Errorf("writing the report: %w", err)}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&locality, "locality", false, "show by how much longer gangs communicate by other policies than by the first")
	return cmd
}

// readReports reads all files: what is wrong with any is said of all.
func readReports(files []string) ([]*replay.Report, error) {
	if len(files) == 0 {
		return nil, errors.New("no report given: name files that warp sim jobs -o json printed")
	}
	var (
		reports []*replay.Report
		wrong   problem.Problems
	)
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			wrong = append(wrong, problem.Problem{File: name, Text: "cannot be read: " + err.Error()})
			continue
		}
		r, err := replay.ReadReport(name, io.Reader(bytes.NewReader(data)))
		var problems problem.Problems
		switch {
		case errors.As(err, &problems):
			wrong = append(wrong, problems...)
		case err != nil:
			return nil, fault{err}
		}
		reports = append(reports, r)
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return reports, nil
}
