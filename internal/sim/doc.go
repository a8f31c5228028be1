// Package sim answers scenario files: a placement question with the facts it depends on, as
// JSON or YAML. The answers come from the production engine, core/placement, so that a what-if
// on a laptop and a plan in a cluster cannot disagree.
//
// Read checks everything that a file says before anything is answered, and names every problem
// by file, line and field. Place translates one scenario into core data, asks the engine and
// puts the decision into the words of the file. Render shows it to a person.
//
// The package reads no cluster and no clock: whoever calls Place may pass one to have the
// engine's time measured.
package sim
