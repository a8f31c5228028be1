package imports

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/reyisjones/gpu-orchestrator"

// root is the folder of the module: two above this package, where go test runs.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatalf("the module's root is not where it was: %v", err)
	}
	return dir
}

// goFiles calls visit with the slash path of each Go file of the module.
//
// It reads the files itself instead of asking the go command: so files under any
// build tag are judged too, and go test knows that its cached result is stale
// when one of them changes.
func goFiles(t *testing.T, visit func(path string, source []byte)) {
	t.Helper()
	dir := root(t)
	count := 0
	for _, top := range ourRoots {
		err := filepath.WalkDir(filepath.Join(dir, top), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case os.IsNotExist(err):
				return nil // a part of the tree that is not built yet
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "testdata":
				return filepath.SkipDir
			case entry.IsDir() || !strings.HasSuffix(path, ".go"):
				return nil
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			count++
			visit(filepath.ToSlash(relative), source)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if count == 0 {
		t.Fatal("no Go file found: nothing would be judged")
	}
}

// loadTree reads the imports of every file of the module that is not a test.
func loadTree(t *testing.T) tree {
	t.Helper()
	loaded := tree{}
	goFiles(t, func(path string, source []byte) {
		file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ImportsOnly)
		if err != nil {
			t.Fatalf("reading the imports of %s: %v", path, err)
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		p, ok := loaded[dir]
		if !ok {
			p = pkg{name: file.Name.Name, imports: map[string]string{}}
			loaded[dir] = p
		}
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatalf("reading the imports of %s: %v", path, err)
			}
			p.imports[strings.TrimPrefix(imported, module+"/")] = path
		}
	})
	return loaded
}
