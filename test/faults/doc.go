// Package faults runs the product while everything around it fails, and has the judge say what
// was wrong with the world at any revision. It has no code of its own: docs/faults.md says how
// to run it, replay one run of it, and add to it.
package faults
