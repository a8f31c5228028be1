// Package e2e holds the tests of the whole product: the sandbox with its real API server,
// controllers and scheduler, our manager as a process with its own rights, and a judge that
// watches, while the tests run, that no GPU is sold twice. It has no code of its own.
package e2e
