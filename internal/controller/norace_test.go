//go:build !race

package controller

// stride is at how many writes the manager dies: at every one.
const stride = 1
