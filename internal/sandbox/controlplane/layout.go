package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
)

// Layout names what a sandbox keeps in its folder.
type Layout struct {
	// Dir is an absolute path.
	Dir string
}

// Kubeconfig is the administrator's.
func (l Layout) Kubeconfig() string { return filepath.Join(l.Dir, "kubeconfig") }

// PKI is the folder of certificates and keys.
func (l Layout) PKI() string { return filepath.Join(l.Dir, "pki") }

// Logs is the folder of the processes' logs.
func (l Layout) Logs() string { return filepath.Join(l.Dir, "logs") }

// Log is the log of one process.
func (l Layout) Log(name string) string { return filepath.Join(l.Logs(), name+".log") }

// Data is where one process keeps its state.
func (l Layout) Data(name string) string { return filepath.Join(l.Dir, "data", name) }

// Config is a configuration file, or a component's kubeconfig.
func (l Layout) Config(name string) string { return filepath.Join(l.Dir, "config", name) }

// marker is a file that says that the folder is a sandbox's.
func (l Layout) marker() string { return filepath.Join(l.Dir, ".gpu-orchestrator-sandbox") }

// Reset removes what an earlier run left and makes the folders anew. The folder
// itself stays, with whatever else is in it. What no sandbox made is never removed:
// then it fails and names what is in the way.
func (l Layout) Reset() error {
	_, err := os.Stat(l.marker())
	ours := err == nil
	for _, path := range []string{l.Kubeconfig(), l.PKI(), l.Logs(), filepath.Join(l.Dir, "data"), filepath.Join(l.Dir, "config")} {
		if _, err := os.Lstat(path); err == nil && !ours {
			return fmt.Errorf("%s is in the way, and no sandbox made it: choose another folder with --dir", path)
		}
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("clearing an earlier run: %w", err)
		}
	}
	if err := os.WriteFile(l.marker(), []byte("made by: sandbox up\n"), 0o600); err != nil {
		return fmt.Errorf("marking the sandbox's folder: %w", err)
	}
	for _, path := range []string{l.PKI(), l.Logs(), filepath.Join(l.Dir, "data"), filepath.Join(l.Dir, "config")} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("making the sandbox's folders: %w", err)
		}
	}
	return nil
}
