// Package capture writes a snapshot and a request as a scenario file, so that a decision of a
// live cluster can be asked about again elsewhere: with warp sim place.
//
// It writes what the answer depends on. What the file has no field for it refuses to write,
// rather than write a question with another answer; docs/scenario.md lists what is left out.
package capture
