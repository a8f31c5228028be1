// Package install puts the product into a sandbox's cluster as a user would: it
// renders config/default and applies it, all but the Deployments, as no container
// runs here and the manager is a process that uses the installed account.
package install

import (
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Render builds the kustomization in a folder of a file system. The folder's name
// is relative to the file system's root, as are the paths of those it refers to.
func Render(files fs.FS, dir string) ([]*unstructured.Unstructured, error) {
	memory := filesys.MakeFsInMemory()
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		return memory.WriteFile("/"+path, data)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the manifests: %w", err)
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, "/"+dir)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", dir, err)
	}
	objects := make([]*unstructured.Unstructured, 0, resources.Size())
	for _, r := range resources.Resources() {
		content, err := r.Map()
		if err != nil {
			return nil, fmt.Errorf("rendering %s: %w", r.CurId(), err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects, nil
}
