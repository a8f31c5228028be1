//go:build !race

package placement

const raced = false
