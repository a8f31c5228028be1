//go:build race

package placement

// slowdown is about what the race detector costs.
const slowdown = 8
