//go:build !race

package placement

const slowdown = 1
