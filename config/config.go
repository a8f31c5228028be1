// Package config carries the Kubernetes manifests of the product inside its binaries, so that
// what the sandbox installs and what the tests check is what a user applies.
package config

import "embed"

// FS holds this folder: crd/, rbac/, manager/, webhook/, admission/, explain/, default/, scheduler/ and
// extender/, each a kustomization.
//
//go:embed crd rbac manager webhook admission explain default scheduler extender
var FS embed.FS
