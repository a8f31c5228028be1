//go:build race

package controller

// stride is at how many writes the manager dies: one in so many. The race detector makes
// everything ten times slower, and finds at a few of them what there is to find.
const stride = 6
