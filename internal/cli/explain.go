package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	explainv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/explain/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/internal/asking"
)

// explainFlags are the flags of warp explain.
type explainFlags struct {
	asking.Access
	output   string
	try      int
	scenario bool
}

func explainOutputs() []string { return []string{"table", "json", "yaml"} }

// errWaiting says that what was asked about does not run. The answer has been written.
var errWaiting = errors.New("it does not run")

func newExplain(p Process) *cobra.Command {
	var flags explainFlags
	cmd := &cobra.Command{
		Use:   "explain NAME",
		Short: "Say why a workload waits, or is where it is, and what would help",
		Long: `explain asks the cluster about a GPUWorkload (NAME), a pod (pod/NAME) or a gang of
pods (gang/NAME). The answer starts with a verdict:

  PLACED  it has its places, and why those
  WAIT    room comes by itself, or nothing but time helps
  CHANGE  the request can be met if it asks for something else
  ASK     somebody else decides: whoever holds the room is less important, idle,
          or could be elsewhere
  BROKEN  something must be mended first
  ENDED   it has succeeded or failed

Remedies have been tried by the engine on the live cluster. docs/explain.md tells
more. You need the right to get gpuworkloads/explanation (or pods/, gangs/) in group
explain.gpu.warp.dev, which the roles view, edit and admin have. The exit code is

  0  if it has its places or has ended;
  1  if no answer was to be had;
  2  if an argument or a flag is wrong;
  3  if it waits.`,
		Example: `  # Why does it wait?
  warp explain llama -n team-a

  # Where would it go with the second remedy?
  warp explain llama -n team-a --try 2

  # A plain pod; a gang of pods; for a program
  warp explain pod/worker-0
  warp explain gang/ring -o json

  # Take the question home, and answer it without the cluster
  warp explain llama --scenario > llama.yaml && warp sim place -f llama.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("say about what: the name of a GPUWorkload, pod/NAME or gang/NAME")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runExplain(cmd, p, args[0], flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.Kubeconfig, "kubeconfig", "", "kubeconfig file; without it $KUBECONFIG, ~/.kube/config, or the pod's own")
	f.StringVar(&flags.Context, "context", "", "context of the kubeconfig, if not its current one")
	f.StringVarP(&flags.Namespace, "namespace", "n", "", "namespace, if not the context's")
	f.StringVarP(&flags.output, "output", "o", "table", "form of the answer: "+strings.Join(explainOutputs(), ", "))
	f.IntVar(&flags.try, "try", 0, "show the plan that the remedy of this number leads to")
	f.BoolVar(&flags.scenario, "scenario", false, "write the question as a scenario file for warp sim place; needs the right to get gpuworkloads/scenario")
	if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(explainOutputs(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // The only error is a flag that is not there.
	}
	return cmd
}

func runExplain(cmd *cobra.Command, p Process, name string, flags explainFlags) error {
	subject, err := asking.ParseSubject(name)
	switch {
	case err != nil:
		return err
	case !slices.Contains(explainOutputs(), flags.output):
		return fmt.Errorf("unknown output %q: choose one of %s", flags.output, strings.Join(explainOutputs(), ", "))
	case flags.try < 0 || cmd.Flags().Changed("try") && flags.try == 0:
		return fmt.Errorf("--try %d: remedies are numbered from 1", flags.try)
	case flags.scenario && subject.Resource != "gpuworkloads":
		return errors.New("--scenario is for GPUWorkloads")
	}
	cluster, err := asking.Connect(flags.Access)
	if err != nil {
		return fault{err}
	}
	var out bytes.Buffer
	runs := true
	if flags.scenario {
		text, err := cluster.Scenario(cmd.Context(), subject)
		if err != nil {
			return fault{err}
		}
		out.WriteString(text)
	} else {
		answer, err := cluster.Explain(cmd.Context(), subject, flags.try)
		if err != nil {
			return fault{err}
		}
		if err := writeExplanation(&out, p, flags.output, answer); err != nil {
			return fault{fmt.Errorf("writing the answer: %w", err)}
		}
		runs = answer.Runs
	}
	if _, err := out.WriteTo(cmd.OutOrStdout()); err != nil {
		return fault{fmt.Errorf("writing the answer: %w", err)}
	}
	if !runs {
		return errWaiting
	}
	return nil
}

func writeExplanation(out *bytes.Buffer, p Process, format string, answer *explainv1alpha1.Explanation) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(answer)
	case "yaml":
		text, err := yaml.Marshal(answer)
		out.Write(text)
		return err
	}
	return asking.Style{Color: p.style().Color}.Write(out, answer)
}
