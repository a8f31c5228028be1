package applet

import (
	"runtime/debug"
	"strings"
	_ "unsafe" // for go:linkname

	"k8s.io/component-base/version"
)

// Kubernetes' builds set these at link time. A plain `go build` or `go run` leaves them at
// v0.0.0-master+$Format:%H$, which clients such as `kubectl version` cannot read.
//
//go:linkname gitVersion k8s.io/component-base/version.gitVersion
var gitVersion string //nolint:gochecknoglobals // it is the other package's variable

//go:linkname gitMajor k8s.io/component-base/version.gitMajor
var gitMajor string //nolint:gochecknoglobals // it is the other package's variable

//go:linkname gitMinor k8s.io/component-base/version.gitMinor
var gitMinor string //nolint:gochecknoglobals // it is the other package's variable

// TellVersion has the programs of the control plane tell the version of the module they are
// made of. It does nothing where a build set the version already.
func TellVersion() {
	built, ok := debug.ReadBuildInfo()
	if !ok || !strings.HasPrefix(gitVersion, "v0.0.0-master") {
		return
	}
	for _, m := range built.Deps {
		parts := strings.Split(strings.TrimPrefix(m.Version, "v"), ".")
		if m.Path != "k8s.io/kubernetes" || len(parts) < 3 {
			continue
		}
		gitVersion, gitMajor, gitMinor = m.Version, parts[0], parts[1]
		// The same version is always accepted; a refusal would leave the old one told.
		_ = version.SetDynamicVersion(gitVersion)
	}
}
