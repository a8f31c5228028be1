package applet

import (
	"fmt"
	"os"
)

func manager() int {
	fmt.Fprintln(os.Stderr, "the manager is not part of this build")
	return 1
}
