//go:build race

package placement

// slowdown is about what the race detector costs on a busy machine.
const slowdown = 12
