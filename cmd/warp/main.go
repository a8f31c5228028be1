// Command warp is the command line of gpu-orchestrator.
package main

import (
	"os"
	"path/filepath"
	"time"

	"github.com/reyisjones/gpu-orchestrator/internal/cli"
)

func main() {
	os.Exit(cli.Run(cli.Process{
		Name:           filepath.Base(os.Args[0]),
		Args:           os.Args[1:],
		In:             os.Stdin,
		Out:            os.Stdout,
		Err:            os.Stderr,
		Clock:          time.Now,
		LookupVariable: os.LookupEnv,
	}))
}
