package ibnet

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/reyisjones/gpu-orchestrator/internal/problem"
)

// small is a switch with two hosts, each of which tells of its link as well.
const small = `# Topology file: written by hand
vendid=0x2c9
switchguid=0xa1(a1)
Switch	36 "S-a1"		# "MF0;leaf-1:MSB7800/U1" enhanced port 0 lid 7 lmc 0
[1]	"H-b1"[1](b1) 		# "one mlx5_0" lid 9 4xEDR
[2][ext 3]	"H-b2"[1](b2) 		# "two mlx5_0" lid 9 4xHDR s=50 w=4

caguid=0xb1
Ca	1 "H-b1"		# "one mlx5_0"
[1](b1) 	"S-a1"[1]		# lid 9 lmc 0 "MF0;leaf-1:MSB7800/U1" lid 7 4xEDR

caguid=0xb2
Ca	1 "H-b2"		# "two mlx5_0"
[1](b2) 	"S-a1"[2]		# lid 9 lmc 0 "MF0;leaf-1:MSB7800/U1" lid 7 4xHDR
`

func TestRead(t *testing.T) {
	g, err := Read("small.out", strings.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Nodes) != 3 || g.OneSided != 0 {
		t.Fatalf("%d nodes, %d links told once", len(g.Nodes), g.OneSided)
	}
	leaf, one := g.Nodes[0], g.Nodes[1]
	if leaf.Kind != Switch || leaf.Name() != "leaf-1" || leaf.Count != 36 || len(leaf.Ports) != 2 {
		t.Errorf("the switch is %+v", leaf)
	}
	if p := leaf.Ports[1]; p.Number != 2 || p.Peer != g.Nodes[2] || p.PeerPort != 1 || p.Mbps != 200_000 {
		t.Errorf("its second port is %+v", p)
	}
	if host, adapter, ok := one.Host(); host != "one" || adapter != "mlx5_0" || !ok || one.Ports[0].Mbps != 100_000 {
		t.Errorf("the HCA is %+v", one)
	}
}

// Windows line ends, no comments, no rates and chassis are all understood.
func TestReadOtherForms(t *testing.T) {
	text := "Chassis 1 (guid 0x1)\r\n\r\nSwitch 2 \"S-a\"\r\n[1] \"R-b\"[2]\r\n\r\nRt 2 \"R-b\"\r\n[2] \"S-a\"[1] # \"it said \"hello\"\" lid 3\r\n"
	g, err := Read("other.out", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if n := g.Nodes[0]; n.Name() != "S-a" || n.Ports[0].Mbps != 0 || n.Ports[0].Peer.Kind != Router {
		t.Errorf("read %+v", n)
	}
}

func TestLinksToldOnce(t *testing.T) {
	g, err := Read("small.out", strings.NewReader(strings.Replace(small, `[1](b1) 	"S-a1"[1]`, "# \t", 1)))
	if err != nil || g.OneSided != 1 {
		t.Errorf("got %v, %+v", err, g)
	}
}

// TestProblems breaks the small file in one place each.
func TestProblems(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"Switch	36", "Switched	36", `:4:7: found "ed\t36 \"S-a1\"\t\t# \"MF0…"; expected the number of ports`},
		{"Switch	36", "Hub	36", `:4:1: found "Hub\t36 \"S-a1\"\t\t# \"MF…"; expected Switch, Ca, Rt, a port such as [1], an attribute`},
		{"Switch	36", "Switch	0", `:4:8: found "0 \"S-a1\"`},
		{"Switch	36", "Switch	999", `expected the number of ports, 1 to 254`},
		{`36 "S-a1"`, `36 S-a1`, `:4:11: found "S-a1\t\t# \"MF0;leaf-1:…"; expected an ID in quotes, such as "S-2c5eab0300b87b40"`},
		{`36 "S-a1"`, `36 "H-a1"`, `:4:12: "H-a1" is no ID of such a node; expected S-`},
		{`36 "S-a1"`, `36 "S-xy"`, `:4:14: found "xy\"`},
		{`36 "S-a1"`, `36 "S-a1`, `:4:18: found "# \"MF0;leaf`},
		{`1 "H-b2"`, `1 "H-b1"`, `:13:6: H-b1 is also the node of line 9; expected each once`},
		{`lid 7 lmc 0`, `lid 7" lmc 0`, ""},
		{`# "one mlx5_0" lid 9 4xEDR`, `# "one mlx5_0 lid 9 4xEDR`, `:5:23: found "\"one mlx5_0 lid 9 4x…"; expected a second quote`},
		{`# "one mlx5_0" lid 9 4xEDR`, `one`, `:5:21: found "one"; expected a comment`},
		{`4xEDR`, `4xZDR`, `:5:42: speed "ZDR"; expected SDR, DDR`},
		{`4xEDR`, `99xEDR`, `:5:42: 99 lanes; expected 1 to 12`},
		{`[1]	"H-b1"`, `[x]	"H-b1"`, `:5:2: found "x]\t\"H-b1\"`},
		{`[1]	"H-b1"`, `[37]	"H-b1"`, `:5:2: found "37]\t\"H-b1\"`},
		{`[1]	"H-b1"`, `[2]	"H-b1"`, `:6:1: port 2 is also in line 5; expected each once`},
		{`[2][ext 3]`, `[2][ext`, `:6:4: found "[ext`},
		{`"H-b1"[1](b1)`, `"H-b1"(b1)`, `:5:11: found "(b1) `},
		{`"H-b1"[1](b1)`, `"H-b1"[1](b1`, `expected a )`},
		{`"H-b1"[1](b1)`, `"H-b9"[1](b1)`, `:5:5: links to H-b9, which is no node of the file`},
		{`"H-b1"[1](b1)`, `"H-b2"[1](b1)`, `:5:5: links to port 1 of H-b2, which line 14 links to port 2 of S-a1`},
		{"vendid=0x2c9", "vendid=2c9", `:2:8: found "2c9"; expected 0x and a number`},
		{"switchguid=0xa1(a1)", "switchguid=0xa1(zz)", `:3:17: found "zz)"; expected a GUID`},
		{"Switch	36", "\n[1]	\"H-b1\"[1]\nSwitch	36", `:5:1: a port without a node; expected Switch, Ca or Rt before it`},
		{small, "", `small.out: there is no node; expected the output of ibnetdiscover`},
		{"vendid=0x2c9", strings.Repeat("x", maxLine+1), `:2: is longer than 65536 bytes`},
	} {
		text := strings.Replace(small, c.from, c.to, 1)
		if text == small {
			t.Fatalf("%q is not in the file", c.from)
		}
		_, err := Read("small.out", strings.NewReader(text))
		var problems problem.Problems
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%q for %q: %v", c.to, c.from, err)
		case c.want != "" && (!errors.As(err, &problems) || len(problems) > 2 || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%.40q for %.40q: got\n%v\nwant something with\n%s", c.to, c.from, err, c.want)
		}
	}
}

// Reading ends where too much is wrong.
func TestProblemsAreBounded(t *testing.T) {
	_, err := Read("noise", strings.NewReader(strings.Repeat("noise\n", 10_000)))
	var problems problem.Problems
	if !errors.As(err, &problems) || len(problems) != maxProblems {
		t.Errorf("got %d problems", len(problems))
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }

func TestReadingFails(t *testing.T) {
	_, err := Read("small.out", failing{})
	if err == nil || err.Error() != "reading small.out: the disk is gone" {
		t.Errorf("got %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(small)
	if rails, err := os.ReadFile("../testdata/rails.txt"); err == nil {
		f.Add(string(rails))
	} else {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := Read("fuzz.out", strings.NewReader(text))
		if err != nil {
			if problems := (problem.Problems{}); !errors.As(err, &problems) || len(problems) == 0 {
				t.Errorf("%v is no problem of the file", err)
			}
			return
		}
		for _, n := range g.Nodes {
			for _, p := range n.Ports {
				if p.Peer == nil || p.Number > n.Count {
					t.Errorf("port %+v of %s hangs in the air", p, n.ID)
				} else if back := p.Peer.port(p.PeerPort); back != nil && (back.Peer != n || back.PeerPort != p.Number) {
					t.Errorf("port %+v of %s is linked to %+v", p, n.ID, back)
				}
			}
		}
	})
}
