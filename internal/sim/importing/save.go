package importing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// The names of the files.
const (
	NodesFile = "nodes.csv"
	JobsFile  = "jobs.csv"
	PodsFile  = "pods.csv"
)

// ExistsError says that a file would be written over.
type ExistsError struct{ Path string }

// Error implements error.
func (e *ExistsError) Error() string { return e.Path + " exists" }

// Free returns an ExistsError if one of the files is there, before anything is read for long.
func Free(dir string, names ...string) error {
	for _, name := range names {
		path := filepath.Join(dir, name)
		switch _, err := os.Lstat(path); {
		case err == nil:
			return &ExistsError{path}
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("looking for what is in the way: %w", err)
		}
	}
	return nil
}

// Save writes a file for each of nodes, jobs and pods that there are, and returns their paths. All
// are written beside their places first, so that a full disk leaves what was there. Unless over
// is set, one that is there is an ExistsError.
func (f *Found) Save(dir string, over bool) (paths []string, err error) {
	files, err := f.files()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = file.name
	}
	if !over {
		if err := Free(dir, names...); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder: %w", err)
	}
	var beside []string
	defer func() {
		for _, path := range beside {
			err = errors.Join(err, removed(path))
		}
	}()
	for _, file := range files {
		path := filepath.Join(dir, "."+file.name+".part")
		beside = append(beside, path)
		if err := os.WriteFile(path, file.data, 0o644); err != nil {
			return nil, fmt.Errorf("writing %s: %w", file.name, err)
		}
	}
	for i, name := range names {
		path := filepath.Join(dir, name)
		if err := os.Rename(beside[i], path); err != nil {
			return nil, fmt.Errorf("putting %s in its place: %w", name, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// removed removes what was left beside the files; what is in its place already is not there.
func removed(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing what is half written: %w", err)
	}
	return nil
}

type file struct {
	name string
	data []byte
}

// files writes in memory, and reads back what it wrote: that a reader refuses a file is to be
// found out here, not when somebody simulates with it next week.
func (f *Found) files() ([]file, error) {
	var files []file
	add := func(count int, name string, write func(io.Writer) error, read func(io.Reader) error) error {
		if count == 0 {
			return nil
		}
		var data bytes.Buffer
		if err := write(&data); err != nil {
			return err
		}
		if err := read(bytes.NewReader(data.Bytes())); err != nil {
			return fmt.Errorf("what was found cannot be read back: %w", inside{err})
		}
		files = append(files, file{name, data.Bytes()})
		return nil
	}
	err := errors.Join(
		add(len(f.Nodes), NodesFile, func(w io.Writer) error { return trace.WriteNodes(w, f.Nodes) }, func(r io.Reader) error {
			_, err := trace.ReadNodes(NodesFile, r)
			return err
		}),
		add(len(f.Jobs), JobsFile, func(w io.Writer) error { return trace.WriteJobs(w, f.Jobs) }, func(r io.Reader) error {
			jobs := trace.NewJobs(JobsFile, r, trace.JobsOptions{})
			for {
				if _, more := jobs.Next(); !more {
					return jobs.Err()
				}
			}
		}),
		add(len(f.Pods), PodsFile, func(w io.Writer) error { return trace.WritePods(w, f.Pods) }, func(r io.Reader) error {
			_, err := trace.ReadPods(PodsFile, r, nil)
			return err
		}))
	return files, err
}

// inside hides that problems of a file are of a file: this one nobody gave us.
type inside struct{ err error }

func (i inside) Error() string { return i.err.Error() }
