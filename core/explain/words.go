package explain

import (
	"fmt"
	"strings"
)

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

func isAre(n int64) string {
	if n == 1 {
		return " is"
	}
	return " are"
}

func isFree(gpus int64) string {
	switch gpus {
	case 0:
		return "no GPU is free"
	case 1:
		return "1 GPU is free"
	}
	return fmt.Sprintf("%d GPUs are free", gpus)
}

// someOf lists names: "a, b and 3 more".
func someOf(names []string) string {
	const most = 4
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most-1], ", "), len(names)-most+1)
	}
	return join(names)
}

func join(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}
