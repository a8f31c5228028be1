//go:build race

package placement

// raced says that the race detector is on, with which everything takes ten times as long.
const raced = true
