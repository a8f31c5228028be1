package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// picture is a file that will be drawn when the answer is known. That it can be written is found
// out before: nobody waits for minutes to hear of a wrong folder. What was there under its name
// stays until the new one is complete.
type picture struct {
	name string
	file *os.File
}

// openPicture returns nil for no name, which is a picture that nobody wants.
func openPicture(name string) (*picture, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // a nil picture does nothing
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("cannot write %s: it is there and is no file", name)
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		var of *fs.PathError
		if errors.As(err, &of) {
			err = of.Err
		}
		return nil, fmt.Errorf("cannot write %s: %w", name, err)
	}
	return &picture{name: name, file: file}, nil
}

// write draws the picture and puts it under its name.
func (p *picture) write(draw func(out io.Writer, name string) error) error {
	if p == nil {
		return nil
	}
	err := draw(p.file, p.name)
	if err == nil {
		err = p.file.Chmod(0o644)
	}
	if closed := p.file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(p.file.Name(), p.name)
	}
	if err != nil {
		return err
	}
	p.file = nil
	return nil
}

// discard removes what was begun and not written.
func (p *picture) discard() {
	if p != nil && p.file != nil {
		_ = p.file.Close()
		_ = os.Remove(p.file.Name())
	}
}
