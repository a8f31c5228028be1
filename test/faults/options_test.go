package faults

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// What a run may be told: scripts/faults.sh passes its arguments on.
var (
	seed     = flag.Uint64("seed", 0, "seed of the order of the plans; 0 draws one and prints it")
	flowsArg = flag.String("flows", "", "only these flows, comma-separated")
	kindsArg = flag.String("kinds", "", "only these kinds of faults, comma-separated")
	planArg  = flag.String("plan", "", "only this plan: FLOW | POINT | KIND, as a red run prints it")
	repeat   = flag.Int("repeat", 1, "how often each plan is run")
	lanesArg = flag.Int("lanes", 16, "workloads under test at the same time")
	quietFor = flag.Duration("quiet", 30*time.Second, "how long nothing may be written at the end")
	allArg   = flag.Bool("all", false, "also the writes of a flow that flow run has already")
	keepArg  = flag.String("keep", "", "folder for logs and journals; else they are kept only of a red run")
)

func TestMain(m *testing.M) {
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	os.Exit(m.Run())
}

// chosen tells whether a comma-separated list names something; an empty one names all.
func chosen(list, name string) bool {
	if list == "" {
		return true
	}
	for one := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(one) == name {
			return true
		}
	}
	return false
}

// again is the command that runs one plan again.
func again(p plan) string {
	return fmt.Sprintf("make faults ARGS=\"-seed %d -repeat 5 -plan '%s'\"", *seed, p)
}
