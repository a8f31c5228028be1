package manager

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// docs/operations.md lists every flag and every key of the file, with the default.
func TestOperationsTellsEveryFlagAndKey(t *testing.T) {
	data, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	row := func(name string) string {
		for line := range strings.Lines(string(data)) {
			if cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |"); strings.HasPrefix(line, "|") && strings.Contains(cell, "`"+name+"`") {
				return line
			}
		}
		return ""
	}
	NewCommand().Flags().VisitAll(func(f *pflag.Flag) {
		line := row("--" + f.Name)
		if line == "" && f.Name != "help" {
			t.Errorf("--%s is not in docs/operations.md", f.Name)
		}
		if d := f.DefValue; (strings.HasPrefix(f.Name, "default-") || f.Name == "workers") && !strings.Contains(line, d) {
			t.Errorf("--%s: the default %s is not in %q", f.Name, d, line)
		}
	})
	config := DefaultConfig()
	config.ClassName, config.LeaderElection.Enabled, config.LeaderElection.Namespace = "x", true, "x"
	text, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := yaml.Unmarshal(text, &keys); err != nil {
		t.Fatal(err)
	}
	for key, value := range keys {
		names := []string{key}
		if nested, ok := value.(map[string]any); ok {
			names = names[:0]
			for sub := range nested {
				names = append(names, key+"."+sub)
			}
		}
		for _, name := range names {
			if row(name) == "" {
				t.Errorf("key %s is not in docs/operations.md", name)
			}
		}
	}
	if line := row("workers"); !strings.Contains(line, "16") {
		t.Errorf("workers: %q", line)
	}
}
