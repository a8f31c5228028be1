package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// checkPicture finds out whether a picture could be written, before the answer is worked out:
// nobody waits for minutes to hear of a wrong folder. No name is no picture.
func checkPicture(name string) error {
	if name == "" {
		return nil
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("cannot write %s: it is there and is no file", name)
	}
	file, err := beside(name)
	if err != nil {
		var of *fs.PathError
		if errors.As(err, &of) {
			err = of.Err
		}
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// beside creates a file in the folder of another.
func beside(name string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
}

// writePicture draws a picture. What was there under its name stays until the new one is complete.
func writePicture(name string, draw func(out io.Writer, name string) error) error {
	if name == "" {
		return nil
	}
	file, err := beside(name)
	if err != nil {
		return err
	}
	if err = errors.Join(draw(file, name), file.Chmod(0o644), file.Close()); err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
