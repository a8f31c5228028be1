package certificates

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// Files reads tls.crt and tls.key of a folder, and reads them again when they change. The files
// may come later than the process, as cert-manager's do on a new cluster.
type Files struct {
	dir     string
	watcher atomic.Pointer[certwatcher.CertWatcher]
	problem atomic.Pointer[error]
}

// NewFiles returns a Source of the folder's files.
func NewFiles(dir string) *Files { return &Files{dir: dir} }

// Start implements Source.
func (f *Files) Start(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, firstTries, true, func(context.Context) (bool, error) {
		w, err := certwatcher.New(filepath.Join(f.dir, "tls.crt"), filepath.Join(f.dir, "tls.key"))
		if err != nil {
			err = fmt.Errorf("no certificate in %s yet, is the Secret mounted and its Certificate issued? %w", f.dir, err)
			f.problem.Store(&err)
			return false, nil //nolint:nilerr // it is told by Ready, and tried again
		}
		f.watcher.Store(w)
		return true, nil
	})
	if err != nil {
		return nil //nolint:nilerr // told to end while waiting
	}
	if err := f.watcher.Load().Start(ctx); err != nil {
		return fmt.Errorf("watching the certificate in %s: %w", f.dir, err)
	}
	return nil
}

// NeedLeaderElection implements Source.
func (f *Files) NeedLeaderElection() bool { return false }

// Certificate implements Source.
func (f *Files) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if w := f.watcher.Load(); w != nil {
		return w.GetCertificate(hello)
	}
	return nil, f.Ready()
}

// Ready implements Source.
func (f *Files) Ready() error {
	if f.watcher.Load() != nil {
		return nil
	}
	if p := f.problem.Load(); p != nil {
		return *p
	}
	return errors.New("the certificate's files have not been read yet")
}
