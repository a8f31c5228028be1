package slurm

import (
	"reflect"
	"strings"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/internal/sim/importing"
	"github.com/reyisjones/gpu-orchestrator/internal/sim/trace"
)

// TestNodes reads nodes as versions of Slurm from 17 to 25 print them.
func TestNodes(t *testing.T) {
	const text = `NodeName=g1 Arch=x86_64 CoresPerSocket=56 CPUAlloc=88 CPUEfctv=192 CPUTot=224 CPULoad=18.41 Gres=gpu:h100:8(S:0-1) NodeAddr=g1 OS=Linux 5.15.0 #1 SMP Tue Nov 14 RealMemory=2060000 AllocMem=706560 MemSpecLimit=65536 State=MIXED ThreadsPerCore=2 CfgTRES=cpu=192,mem=2060000M,gres/gpu=8 Reason=RealMemory=5 Gres=gpu:1 was seen [root@now]
NodeName=g2 CPUTot=64 Gres=gpu:5 RealMemory=512000 State=DOWN*+DRAIN Partitions=a,b

NodeName=g3 Arch=x86_64 CoresPerSocket=16
   CPUAlloc=0 CPUTot=64 CPULoad=0.01
   Gres=gpu:a100:2(S:0,2),gpu:a100_2g.45gb:3,shard:4
   RealMemory=257000 AllocMem=0
   State=IDLE
NodeName=c1 CPUTot=24 Gres=(null) RealMemory=96672 State=IDLE
NodeName=g4 CPUTot=24 Gres=craynetwork:4,gpu:tesla RealMemory=1 State=IDLE
NodeName=g5 CPUTot=24 Gres=gpu RealMemory=1 MemSpecLimit=2
`
	found, err := ReadNodes("f", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []trace.Node{
		{Name: "g1", CPUMilli: 192000, MemoryMiB: 2060000 - 65536, GPUs: 8, Model: "h100"},
		{Name: "g2", CPUMilli: 64000, MemoryMiB: 512000, GPUs: 5},
		{Name: "g3", CPUMilli: 64000, MemoryMiB: 257000, GPUs: 5},
		{Name: "c1", CPUMilli: 24000, MemoryMiB: 96672},
		{Name: "g4", CPUMilli: 24000, MemoryMiB: 1, GPUs: 1, Model: "tesla"},
		{Name: "g5", CPUMilli: 24000, GPUs: 1},
	}
	if !reflect.DeepEqual(found.Nodes, want) {
		t.Errorf("got  %+v\nwant %+v", found.Nodes, want)
	}
	if changed := (importing.Notes{{Count: 1, Text: down}, {Count: 1, Text: manyTypes}}); !reflect.DeepEqual(found.Changed, changed) {
		t.Errorf("changed %v", found.Changed)
	}
}

func TestBadNodes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "f: names no node; expected the output of scontrol show nodes --oneliner"},
		{"PARTITION AVAIL\n", `f:1:1: begins with "PARTITION AVAIL"; expected NodeName=, as scontrol show nodes --oneliner prints`},
		{"  NodeName=a\n", `f:1:1: begins with "  NodeName=a"; expected NodeName=, as scontrol show nodes --oneliner prints`},
		{"NodeName= CPUTot=1\n", `f:1:1: begins with "NodeName= CPUTot=1"; expected NodeName=, as scontrol show nodes --oneliner prints`},
		{"NodeName=a CPUTot=1\n", "f:1:10: RealMemory: is not told of the node; expected a whole number"},
		{"NodeName=a CPUTot=x RealMemory=1\n", `f:1:19: CPUTot: is "x"; expected a whole number of 0 to 9223372036854775`},
		{"NodeName=a\n CPUTot=1 RealMemory=-1\n", `f:2:22: RealMemory: is "-1"; expected a whole number of 0 to 8796093022207`},
		{"NodeName=a CPUTot=1 RealMemory=1 Gres=gpu:a:b:1\n", `f:1:39: Gres: has "gpu:a:b:1"; expected a list such as gpu:a100:4(S:0-1)`},
		{"NodeName=a CPUTot=1 RealMemory=1 Gres=gpu:60,gpu:t:60\n", "f:1:39: Gres: has more than 64 GPUs; expected at most as many"},
		{"NodeName=a CPUTot=1 RealMemory=1\nNodeName=a CPUTot=1 RealMemory=1\n", `f:2:10: NodeName: "a" is also the node of line 1; expected each once`},
		{strings.Repeat("x", maxLine+1), "f:1: is longer than 1048576 bytes; expected the output of scontrol show nodes --oneliner"},
	} {
		_, err := ReadNodes("f", strings.NewReader(c.text))
		if err == nil || err.Error() != c.want {
			t.Errorf("%.60q:\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
}

// FuzzNodes holds that what is read without complaint can be written and read back.
func FuzzNodes(f *testing.F) {
	f.Add("NodeName=a CPUTot=1 RealMemory=1 Gres=gpu:a:1(S:0)\nNodeName=b\n\tCPUEfctv=2 RealMemory=1\n")
	f.Fuzz(func(t *testing.T, text string) {
		found, err := ReadNodes("f", strings.NewReader(text))
		if err != nil {
			return
		}
		var file strings.Builder
		if err := trace.WriteNodes(&file, found.Nodes); err != nil {
			t.Fatal(err)
		}
		if got, err := trace.ReadNodes("nodes.csv", strings.NewReader(file.String())); err != nil || !reflect.DeepEqual(got, found.Nodes) {
			t.Errorf("read back as %+v, %v, want %+v", got, err, found.Nodes)
		}
	})
}
