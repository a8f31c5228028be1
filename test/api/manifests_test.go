package api

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gpuv1alpha1 "github.com/reyisjones/gpu-orchestrator/api/v1alpha1"
	"github.com/reyisjones/gpu-orchestrator/config"
	"github.com/reyisjones/gpu-orchestrator/internal/sandbox/install"
	"github.com/reyisjones/gpu-orchestrator/test/harness"
)

// apply applies an object on the server, with strict field validation, and returns what the
// server made of it.
func apply(t *testing.T, c client.Client, object *unstructured.Unstructured, options ...client.PatchOption) (*unstructured.Unstructured, error) {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	applied := &unstructured.Unstructured{}
	applied.SetGroupVersionKind(object.GroupVersionKind())
	applied.SetNamespace(object.GetNamespace())
	applied.SetName(object.GetName())
	options = append(options, client.FieldOwner("test"), client.ForceOwnership, client.FieldValidation("Strict"))
	return applied, c.Patch(t.Context(), applied, client.RawPatch(types.ApplyPatchType, data), options...)
}

// TestKubectlApply installs the product as a user without a script does.
func TestKubectlApply(t *testing.T) {
	out := kubectl(t, "apply", "--server-side", "-k", "config/default")
	if got := strings.Count(out, "serverside-applied\n"); got < 9 {
		t.Errorf("%d objects were applied:\n%s", got, out)
	}
}

// TestDefaultManifests applies the product twice: every object is as the server wants it, it
// warns of nothing, and the second time changes nothing.
func TestDefaultManifests(t *testing.T) {
	var warned warnings
	server := connect(t)
	server.WarningHandlerWithContext = &warned
	c, err := client.New(server, client.Options{Scheme: scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := install.Render(config.FS, "default")
	if err != nil {
		t.Fatal(err)
	}
	// kubectl sorts by itself.
	slices.SortStableFunc(rendered, func(a, b *unstructured.Unstructured) int {
		return cmp.Compare(rank(a.GetKind()), rank(b.GetKind()))
	})
	kinds := map[string]int{}
	for _, object := range rendered {
		kinds[object.GetKind()]++
		t.Run(object.GetKind()+" "+object.GetName(), func(t *testing.T) {
			first, err := apply(t, c, object)
			if err != nil {
				t.Fatal(err)
			}
			second, err := apply(t, c, object)
			if err != nil {
				t.Fatal(err)
			}
			if first.GetResourceVersion() != second.GetResourceVersion() {
				t.Error("applied a second time, it changes")
			}
		})
	}
	for _, kind := range []string{"Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap", "Deployment"} {
		if kinds[kind] == 0 {
			t.Errorf("config/default has no %s", kind)
		}
	}
	if len(warned.texts) > 0 {
		t.Errorf("the API server warns: %q", warned.texts)
	}
}

// rank puts namespaces before what is in them.
func rank(kind string) int {
	if kind == "Namespace" {
		return 0
	}
	return 1
}

// document is an object of ours that we show to people.
type document struct {
	from   string
	object *unstructured.Unstructured
}

// TestExamples applies, as a dry run, every object of ours that the examples and the documents
// show: people copy them.
func TestExamples(t *testing.T) {
	c := cluster(t)
	space := namespace(t, c)
	root := harness.Root(t)
	var shown []document
	for _, pattern := range []string{"examples/*.yaml", "examples/policies/*.yaml", "internal/sandbox/demo/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 {
			t.Errorf("there is no %s", pattern)
		}
		for _, file := range files {
			shown = append(shown, documents(t, file, read(t, file))...)
		}
	}
	for _, file := range pages(t, root) {
		shown = append(shown, documents(t, file, fenced(read(t, file)))...)
	}
	for _, s := range shown {
		from, err := filepath.Rel(root, s.from)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(from+" "+s.object.GetName(), func(t *testing.T) {
			if s.object.GetKind() == "GPUWorkload" {
				s.object.SetNamespace(space)
			}
			if _, err := apply(t, c, s.object, client.DryRunAll); err != nil {
				t.Error(err)
			}
		})
	}
	t.Logf("%d objects", len(shown))
}

// pages lists the documents that may show a workload.
func pages(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	for _, top := range []string{"README.md", "docs"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case !entry.IsDir() && filepath.Ext(path) == ".md":
				all = append(all, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// fenced returns the YAML documents of a page that are whole objects: those that name their
// kind.
func fenced(page []byte) []byte {
	var out, block bytes.Buffer
	inside := false
	lines := bufio.NewScanner(bytes.NewReader(page))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch {
		case !inside && (line == "```yaml" || line == "```yml"):
			inside = true
			block.Reset()
		case inside && line == "```":
			inside = false
			if strings.Contains(block.String(), "\napiVersion: gpu.warp.dev/") {
				out.WriteString("---")
				out.Write(block.Bytes())
				out.WriteString("\n")
			}
		case inside:
			block.WriteString("\n" + lines.Text())
		}
	}
	return out.Bytes()
}

// documents returns the objects of a YAML file that are of kinds of ours.
func documents(t *testing.T, from string, text []byte) []document {
	t.Helper()
	var all []document
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		part, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("reading %s: %v", from, err)
		}
		u := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(part, &u.Object); err != nil {
			t.Fatalf("reading %s: %v", from, err)
		}
		if u.GroupVersionKind().Group == gpuv1alpha1.GroupVersion.Group {
			all = append(all, document{from, u})
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
