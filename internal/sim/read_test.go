package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sound is a scenario with nothing wrong; the tests break it in one place each.
const sound = `name: sound
levels: [rack, kubernetes.io/hostname]
nodes:
- name: a
  labels: {rack: r1, kubernetes.io/hostname: a}
  allocatable: {cpu: "8", memory: 64Gi, nvidia.com/gpu: 2, pods: "10"}
  taints: [{key: gpu, value: "yes", effect: NoSchedule}]
  gpus:
    product: NVIDIA-H100-80GB-HBM3
    memoryMiB: 81559
    links: [[0, 18], [18, 0]]
    pcie: [[SELF, PIX], [PIX, SELF]]
    numa: [0, 0]
    milli: [1000, 600]
- name: b
  labels: {rack: r2, kubernetes.io/hostname: b}
  allocatable: {cpu: 8, nvidia.com/gpu: "8"}
  gpus:
    product: NVIDIA-H100-80GB-HBM3
    memoryMiB: 81559
    used: [0, 1]
    mig: [{gpu: 2, profile: 1g.10gb, start: 6}, {gpu: 2, profile: 3g.40gb, start: 0, used: false}]
uplinks:
- {level: rack, domain: r1, mbps: 100000}
running:
- {name: w-0, workload: w, node: a, requests: {cpu: 500m, nvidia.com/gpu: 1}, gpus: [0]}
- {name: w-1, workload: w, node: "", requests: {cpu: 1}}
- {name: job-0, workload: job, group: workers, node: gone}
request:
  name: job
  strategy: topologyAware
  groups:
  - name: leader
    count: 1
    requests: {cpu: 1}
    together: lws
    topology: {required: rack}
  - name: workers
    count: 4
    minCount: 2
    requests: {cpu: "1", nvidia.com/gpu: 1}
    gpusInclude: [1]
    together: lws
    nodeSelector: {rack: r2}
    affinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: rack, operator: In, values: [r2]}]
    tolerations: [{key: gpu, operator: Exists}]
    slice: {size: 2, level: kubernetes.io/hostname}
  sets:
  - {groups: [workers], preferred: rack}
  replaces: [job-0]
scoring:
  node: {topology: 40, resources: 35, balance: 25}
  hint: {a: 70}
expect:
  feasible: true
  placement: {workers: {b: 4}}
`

func TestSoundScenario(t *testing.T) {
	scenarios, err := Read(Input{Name: "sound.yaml", Data: []byte(sound)})
	if err != nil {
		t.Fatal(err)
	}
	s := scenarios[0]
	if got := s.Nodes[0].Allocatable; got["cpu"] != 8000 || got["memory"] != 64<<30 || got["nvidia.com/gpu"] != 2 {
		t.Errorf("allocatable of a is %v", got)
	}
	if len(s.Request.Groups[1].Slice) != 1 || s.Request.Groups[1].Slice[0] != (Slice{Size: 2, Level: "kubernetes.io/hostname"}) {
		t.Errorf("slice is %v", s.Request.Groups[1].Slice)
	}
	if s.Nodes[1].geometry == nil {
		t.Error("the MIG profiles of a known product are not known")
	}
}

// TestProblems breaks the sound scenario in one place at a time. A want names the line, the
// field and the words that matter.
func TestProblems(t *testing.T) {
	cases := []struct{ name, old, new, want string }{
		{"unknown field", "rack: r1, kub", "rack: r1, kub", ""},
		{"misspelt field", "    milli:", "    mili:", `14: nodes[0].gpus.mili: there is no such field here; expected one of architecture, broken`},
		{"field of another place", "  count: 1\n", "  count: 1\n    size: 3\n", `35: request.groups[0].size: there is no such field`},
		{"number for a text", "{rack: r1, kub", "{rack: 1, kub", `5: nodes[0].labels.rack: is 1; expected a text: write it in quotes`},
		{"text for a number", "count: 4", "count: four", `39: request.groups[1].count: is the text "four"; expected a whole number`},
		{"fraction for a number", "count: 4", "count: 4.5", `request.groups[1].count: is 4.5; expected a whole number`},
		{"list for a mapping", "labels: {rack: r2, kubernetes.io/hostname: b}", "labels: [r2]", `16: nodes[1].labels: is a list; expected fields with values`},
		{"mapping for a list", "replaces: [job-0]", "replaces: {a: b}", `request.replaces: is a mapping; expected a list`},
		{"field twice", "name: job\n", "name: job\n  name: job2\n", `30: request.name: is there twice, on lines 30 and 31; expected once`},
		{"no name", "name: sound\n", "", `1: name: is missing; expected a name in kebab-case`},
		{"name not in kebab-case", "name: sound", "name: Sound Case", `1: name: is "Sound Case"; expected kebab-case`},
		{"level twice", "levels: [rack,", "levels: [rack, rack,", `levels[1]: "rack" is the name of an earlier level, too`},
		{"node twice", "- name: b\n", "- name: a\n", `15: nodes[1].name: "a" is the name of an earlier node, too`},
		{"host twice", "hostname: b}", "hostname: a}", `16: nodes[1].labels["kubernetes.io/hostname"]: "a" is the host of node a, too`},
		{"not a quantity", "cpu: 8,", "cpu: eight,", `17: nodes[1].allocatable.cpu: is the text "eight"; expected a Kubernetes quantity such as "500m" or "8"`},
		{"NaN", "cpu: 8,", "cpu: .nan,", `nodes[1].allocatable.cpu: is .nan; expected a Kubernetes quantity`},
		{"negative", "cpu: 8,", "cpu: -8,", `nodes[1].allocatable.cpu: is -8; expected nothing below zero`},
		{"overflow", "cpu: 8,", "cpu: 9e30,", `nodes[1].allocatable.cpu: is 9e30; expected up to 1125899906842`},
		{"a quantity that takes hours", "cpu: 8,", "cpu: 5e9999999999,", `nodes[1].allocatable.cpu: is the text "5e9999999999"; expected a Kubernetes quantity`},
		{"part of a GPU", `nvidia.com/gpu: "8"}`, `nvidia.com/gpu: "500m"}`, `nodes[1].allocatable["nvidia.com/gpu"]: is the text "500m"; expected a whole number`},
		{"part of a thousandth", "cpu: 500m", "cpu: 500u", `running[0].requests.cpu: is the text "500u"; expected no less than thousandths`},
		{"taint's effect", "effect: NoSchedule", "effect: Never", `7: nodes[0].taints[0].effect: is "Never"; expected one of NoSchedule, PreferNoSchedule, NoExecute`},
		{"links one way", "[[0, 18], [18, 0]]", "[[0, 18], [12, 0]]", `11: nodes[0].gpus.links[0][1]: is 18, but [1][0] is 12; expected the same both ways`},
		{"link to itself", "[[0, 18], [18, 0]]", "[[4, 18], [18, 0]]", `nodes[0].gpus.links[0][0]: is 4; expected 0`},
		{"links not square", "[[0, 18], [18, 0]]", "[[0, 18], [18]]", `nodes[0].gpus.links[1]: has 1 value; expected 2`},
		{"PCIe class", "[[SELF, PIX], [PIX, SELF]]", "[[SELF, PIG], [PIG, SELF]]", `12: nodes[0].gpus.pcie[0][1]: is "PIG"; expected SELF, PIX`},
		{"PCIe one way", "[[SELF, PIX], [PIX, SELF]]", "[[SELF, PIX], [SYS, SELF]]", `nodes[0].gpus.pcie[0][1]: is PIX, but [1][0] is SYS`},
		{"lengths", "numa: [0, 0]", "numa: [0, 0, 1]", `13: nodes[0].gpus.numa: is of 3 GPUs; expected 2, as the other fields say`},
		{"more allocatable than described", "nvidia.com/gpu: 2,", "nvidia.com/gpu: 4,", `8: nodes[0].gpus: describes 2 GPUs, but 4 are allocatable`},
		{"share over one", "milli: [1000, 600]", "milli: [1000, 1600]", `14: nodes[0].gpus.milli[1]: is 1600; expected 0 to 1000`},
		{"used out of range", "used: [0, 1]", "used: [0, 8]", `21: nodes[1].gpus.used[1]: is 8; expected a GPU from 0 to 7`},
		{"used twice", "used: [0, 1]", "used: [1, 1]", `nodes[1].gpus.used[1]: names GPU 1 for a second time`},
		{"MIG start", "start: 6}", "start: 7}", `22: nodes[1].gpus.mig[0].start: is 7; expected 0, 1, 2, 3, 4, 5 or 6, where 1g.10gb may start`},
		{"MIG overlap", "start: 6}", "start: 2}", `nodes[1].gpus.mig[1]: overlaps mig[0] at slice 2 of GPU 2`},
		{"MIG profile", "profile: 1g.10gb", "profile: 5g.10gb", `nodes[1].gpus.mig[0].profile: "5g.10gb" is no profile of this GPU; expected one of 1g.10gb`},
		{"MIG on a used GPU", "mig: [{gpu: 2, profile: 1g", "mig: [{gpu: 1, profile: 1g", `nodes[1].gpus.mig[0]: is in use on GPU 1, which is in use otherwise, too`},
		{"MIG of an unknown product", "    product: NVIDIA-H100-80GB-HBM3\n    memoryMiB: 81559\n    used", "    product: TNT2\n    used", `nodes[1].gpus.mig: has instances of a GPU whose MIG profiles are not known`},
		{"uplink's level", "level: rack, domain: r1", "level: row, domain: r1", `24: uplinks[0].level: "row" is none of the levels; expected one of rack, kubernetes.io/hostname`},
		{"uplink's domain", "domain: r1", "domain: r9", `uplinks[0].domain: "r9" has no node`},
		{"uplink's path", "domain: r1", "domain: s1/r1", `uplinks[0].domain: "s1/r1" has 2 values; expected 1`},
		{"running on an unknown node", "workload: w, node: a", "workload: w, node: x", `26: running[0].node: "x" is not there`},
		{"running GPU out of range", "gpus: [0]}", "gpus: [2]}", `running[0].gpus[0]: is 2; expected a GPU from 0 to 1`},
		{"running GPU taken", "gpus: [0]}", "gpus: [1]}", `running[0].gpus: takes 1000 thousandths of GPU 1 of node a, of which 600 are free`},
		{"running more GPUs than there are", "nvidia.com/gpu: 1}, gpus: [0]}", "nvidia.com/gpu: 3}}", `running[0].requests["nvidia.com/gpu"]: makes 3 of nvidia.com/gpu on node a, which has 2`},
		{"running a share of nothing", ", gpus: [0]}", ", gpuMilli: 500}", `running[0].gpuMilli: does not say of which GPU`},
		{"running's phase", `node: "",`, `node: "", phase: Done,`, `27: running[1].phase: is "Done"; expected one of Pending, Running`},
		{"running's group", "group: workers, node", "group: none, node", `28: running[2].group: "none" is no group of the request`},
		{"pod twice", "name: w-1", "name: w-0", `27: running[1].name: "w-0" is the name of an earlier pod, too`},
		{"unknown strategy", "strategy: topologyAware", "strategy: best", `31: request.strategy: is "best"; expected one of`},
		{"unknown level", "required: rack", "required: row", `37: request.groups[0].topology.required: "row" is none of the levels`},
		{"count missing", "    count: 4\n", "", `38: request.groups[1].count: is missing; expected how many pods there are to be, at least 1`},
		{"minCount above count", "minCount: 2", "minCount: 5", `request.groups[1].minCount: is 5, but count is 4`},
		{"too much in all", `cpu: "1", nvidia`, `cpu: "1000000000000", nvidia`, ``},
		{"share beside whole GPUs", "gpusInclude", "gpuMilli: 100\n    gpusInclude", `request.groups[1].gpuMilli: stands beside 1 whole GPU `},
		{"MIG beside whole GPUs", "gpusInclude", "mig: [1g.10gb]\n    gpusInclude", `request.groups[1].mig: stands beside whole GPUs`},
		{"include more than asked", "gpusInclude: [1]", "gpusInclude: [0, 1]", `request.groups[1].gpusInclude: names 2 GPUs, but the pod asks for 1`},
		{"operator", "operator: In", "operator: Within", `request.groups[1].affinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator: is "Within"`},
		{"values", "operator: In, values: [r2]", "operator: In", `matchExpressions[0].values: is empty; expected at least one value for In`},
		{"toleration", "{key: gpu, operator: Exists}", "{key: gpu, operator: Exists, value: x}", `request.groups[1].tolerations[0].value: is "x" beside the operator Exists`},
		{"slice without size", "slice: {size: 2, level", "slice: {level", `request.groups[1].slice.size: is missing`},
		{"slice of nothing", "slice: {size: 2, level", "slice: {size: 0, level", `request.groups[1].slice.size: is 0; expected at least 1`},
		{"too much memory", "cpu: 8,", "memory: 5e20,", `nodes[1].allocatable.memory: is 5e20; expected up to 1Pi`},
		{"unknown MIG profile", `requests: {cpu: "1", nvidia.com/gpu: 1}`, "mig: [9g.99gb]", `request.groups[1].mig[0]: "9g.99gb" is a profile of no GPU that is known`},
		{"preferred wider than required", "topology: {required: rack}", "topology: {required: kubernetes.io/hostname, preferred: rack}", `topology.preferred: rack is wider than the required level, kubernetes.io/hostname`},
		{"preferred wider than required in a set", "{groups: [workers], preferred: rack}", "{groups: [workers], required: kubernetes.io/hostname, preferred: rack}", `request.sets[0].preferred: rack is wider than the required level`},
		{"preferred wider than what is required together", "rack}\n  - name: workers\n", "kubernetes.io/hostname}\n  - name: workers\n    topology: {preferred: rack}\n", `request.groups[1].topology: rack is wider than the required level`},
		{"a line in a name", "- name: b\n", "- name: \"b\\nx\"\n", `15: nodes[1].name: is the text "b\nx"; expected a text without control characters`},
		{"a colour in a group's name", "name: workers", `name: "\e[31mworkers"`, `is the text "\x1b[31mworkers"; expected a text without control characters`},
		{"a line in a domain", "rack: r2", `rack: "r\u2028"`, `labels.rack: is the text "r\u2028"; expected a text without`},
		{"a colour in a resource", "cpu: 8,", `"\ecpu": 8,`, `nodes[1].allocatable["\x1bcpu"]: is a name with control characters`},
		{"an anchor that is not there", "cpu: 8,", "cpu: *nope,", "broken.yaml:17:22: unknown anchor 'nope' referenced"},
		{"a NUL", "cpu: 8,", "cpu: \x00,", "broken.yaml:17:22: the control character U+0000 is not allowed"},
		{"half a rune", "cpu: 8,", "cpu: \xc3(,", "broken.yaml:17:22: "},
		{"slice without level", "slice: {size: 2, level: kubernetes.io/hostname}", "slice: {size: 2}", `request.groups[1].slice.level: is missing`},
		{"slices that do not divide", "slice: {size: 2, level: kubernetes.io/hostname}", "slice: [{size: 4, level: rack}, {size: 3, level: kubernetes.io/hostname}]", `request.groups[1].slice[1].size: is 3 inside slices of 4`},
		{"slices inside out", "slice: {size: 2, level: kubernetes.io/hostname}", "slice: [{size: 4, level: kubernetes.io/hostname}, {size: 2, level: rack}]", `request.groups[1].slice[1].level: rack is not inside the level of the slices around it, kubernetes.io/hostname`},
		{"together in two ways", "    slice:", "    topology: {required: kubernetes.io/hostname}\n    slice:", `request.groups[1].topology.required: is kubernetes.io/hostname, but group leader, which keeps together with it, has rack`},
		{"slice above the required level", "    together: lws\n    nodeSelector", "    topology: {required: kubernetes.io/hostname}\n    nodeSelector", ``},
		{"set of unknown groups", "{groups: [workers], preferred", "{groups: [others], preferred", `request.sets[0].groups[0]: "others" is no group of the request`},
		{"set without a level", "{groups: [workers], preferred: rack}", "{groups: [workers]}", `request.sets[0]: asks for no level`},
		{"sets that overlap", "  sets:\n", "  - {name: third, count: 1}\n  sets:\n  - {groups: [workers, third], required: rack}\n", `request.sets[0].groups: shares some groups with the groups that are together as lws, but neither holds the other`},
		{"replacing an unknown pod", "replaces: [job-0]", "replaces: [job-9]", `request.replaces[0]: "job-9" is no pod under running`},
		{"replacing another's pod", "replaces: [job-0]", "replaces: [w-0]", `request.replaces[0]: "w-0" is a pod of workload w; expected one of job`},
		{"weights", "resources: 35", "resources: -35", `scoring.node: has the weight -35; expected 0 to 1e+06`},
		{"hint", "hint: {a: 70}", "hint: {a: 170}", `scoring.hint.a: is 170; expected 0 to 100`},
		{"expecting an unknown group", "placement: {workers", "placement: {worker", `expect.placement.worker: is no group of the request`},
		{"expecting an unknown node", "workers: {b: 4}", "workers: {c: 4}", `expect.placement.workers.c: is not there`},
		{"syntax", "name: sound", "name: [", `expected YAML or JSON`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if strings.Count(sound, tc.old) == 0 {
				t.Fatalf("nothing to break: %q is not there", tc.old)
			}
			broken := strings.Replace(sound, tc.old, tc.new, 1)
			scenarios, err := Read(Input{Name: "broken.yaml", Data: []byte(broken)})
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want == "":
			case err == nil:
				t.Errorf("read without a word: %+v", scenarios[0])
			case !strings.Contains(err.Error(), tc.want):
				t.Errorf("says\n  %v\nwant\n  %s", err, tc.want)
			case !strings.HasPrefix(err.Error(), "broken.yaml:"):
				t.Errorf("does not say where: %v", err)
			}
		})
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	var file strings.Builder
	file.WriteString("scenarios:\n")
	for i := range 25 {
		fmt.Fprintf(&file, "- {name: s%d, nodes: [], request: {name: job, groups: [{name: g, count: 0}]}}\n", i)
	}
	_, err := Read(
		Input{Name: "many.yaml", Data: []byte(file.String())},
		Input{Name: "other.json", Data: []byte("{\n\t\"name\": \"a\",\n\t\"bogus\": 1}")},
	)
	if err == nil {
		t.Fatal("read")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 24 {
		t.Errorf("%d lines, want 20 problems, what was left out, and three of the other file:\n%v", len(lines), err)
	}
	if want := "many.yaml:2: scenarios[0].request.groups[0].count: is 0"; !strings.HasPrefix(lines[0], want) {
		t.Errorf("starts with %q, want %q", lines[0], want)
	}
	if lines[20] != "many.yaml: and 5 more" {
		t.Errorf("line 21 is %q", lines[20])
	}
	if want := "other.json:3: bogus: there is no such field"; !strings.HasPrefix(lines[23], want) {
		t.Errorf("line 24 is %q, want %q", lines[23], want)
	}
}

func TestSameNameTwice(t *testing.T) {
	one := []byte("name: a\nnodes: []\nrequest: {name: job, groups: [{name: g, count: 1}]}\n")
	_, err := Read(Input{Name: "1.yaml", Data: one}, Input{Name: "2.yaml", Data: one})
	if err == nil || !strings.Contains(err.Error(), `2.yaml:1: name: "a" is also the name of a scenario at 1.yaml:1`) {
		t.Errorf("says %v", err)
	}
}

// TestSyntaxProblems holds messages to the place where the reader stopped, and to one a file.
func TestSyntaxProblems(t *testing.T) {
	for file, want := range map[string]string{
		"{\"name\": \"x\",\n \"levels\": [}":      "bad.yaml:2:13: invalid character '}' looking for beginning of value; expected YAML or JSON",
		"{\"name\": \"x\"} trailing17":            "bad.yaml:1:15: invalid character 't' after top-level value; expected YAML or JSON",
		"name: x\nlevels: [rack: {, host]\n":      "bad.yaml:2: did not find expected node content; expected YAML or JSON",
		"name: x\n\nrequest:\n\tname: t\n":        "bad.yaml:4: found character that cannot start any token; expected YAML or JSON",
		"name: x\nlevels: [rack, é, *nope]\n":     "bad.yaml:2:19: unknown anchor 'nope' referenced; expected YAML or JSON",
		"name: x\nsource: \"é\x07\"\n":            "bad.yaml:2:11: the control character U+0007 is not allowed; expected YAML or JSON",
		"name: a\n---\nname: b\n---\nc: [\n---\n": "bad.yaml:6: did not find expected node content; expected YAML or JSON",
	} {
		_, err := Read(Input{Name: "bad.yaml", Data: []byte(file)})
		if err == nil || err.Error() != want {
			t.Errorf("of %q says\n  %v\nwant\n  %s", file, err, want)
		}
	}
}

func TestOddButRight(t *testing.T) {
	cases := map[string]string{
		"documents":                         "name: a\nnodes: []\nrequest: {name: j, groups: [{name: g, count: 1}]}\n---\nname: b\nnodes: []\nrequest: {name: j, groups: [{name: g, count: 1}]}\n",
		"aliases":                           "scenarios:\n- name: a\n  nodes:\n  - &n {name: x, allocatable: {cpu: 1}}\n  - {<<: *n, name: y}\n  request: {name: j, groups: [{name: g, count: 1}]}\n",
		"nulls":                             "name: a\nlevels:\nnodes:\nrunning:\nrequest: {name: j, groups: [{name: g, count: 1, requests: }]}\nexpect:\n",
		"no levels":                         "name: a\nnodes: [{name: x, labels: {rack: r}}]\nrequest: {name: j, groups: [{name: g, count: 1}]}\n",
		"free text":                         "name: a\nsource: |\n  two\n  lines\nnodes: []\nrequest: {name: j, groups: [{name: g, count: 1}]}\nexpect: {reason: \"a\\nb\"}\n",
		"a profile that a node describes":   "name: a\nnodes: [{name: x, gpus: {numa: [0], migProfiles: {9g.99gb: {starts: [0], size: 1}}}}]\nrequest: {name: j, groups: [{name: g, count: 1, mig: [9g.99gb]}]}\n",
		"a profile that no node has":        "name: a\nnodes: [{name: x}]\nrequest: {name: j, groups: [{name: g, count: 1, mig: [1g.5gb, 7g.141gb, 2g.48gb-me]}]}\n",
		"an overfull":                       "name: a\nnodes: [{name: x, allocatable: {cpu: 1}}]\nrunning: [{name: p, node: x, requests: {cpu: 2}}]\nrequest: {name: j, groups: [{name: g, count: 1}]}\n",
		"a lost pod on a node that is gone": "name: a\nnodes: []\nrunning: [{name: p, workload: j, node: x, requests: {cpu: 2}}]\nrequest: {name: j, replaces: [p], groups: [{name: g, count: 1}]}\n",
		"a skipped one that is wrong":       "scenarios:\n- {name: a, skip: why, nope: 1}\n- name: b\n  nodes: []\n  request: {name: j, groups: [{name: g, count: 1}]}\n",
	}
	for name, file := range cases {
		t.Run(name, func(t *testing.T) {
			scenarios, err := Read(Input{Name: name, Data: []byte(file)})
			if err != nil {
				t.Fatal(err)
			}
			if len(scenarios) == 0 {
				t.Fatal("nothing read")
			}
			if name == "aliases" && (scenarios[0].Nodes[1].Name != "y" || scenarios[0].Nodes[1].Allocatable["cpu"] != 1000) {
				t.Errorf("the merged node is %+v", scenarios[0].Nodes[1])
			}
		})
	}
}

func TestContradictionIsAnAnswer(t *testing.T) {
	file := "name: a\nlevels: [rack]\nnodes: []\nrequest: {name: j, groups: [{name: g, count: 1, topology: {required: row}}]}\nexpect: {invalid: true, feasible: false}\n"
	scenarios, err := Read(Input{Name: "a.yaml", Data: []byte(file)})
	if err != nil {
		t.Fatal(err)
	}
	if want := `request.groups[0].topology.required: "row" is none of the levels`; !strings.HasPrefix(scenarios[0].Contradiction, want) {
		t.Errorf("the contradiction is %q", scenarios[0].Contradiction)
	}
	// Only of the request: facts that cannot be are refused nonetheless.
	file = strings.Replace(file, "nodes: []", "nodes: [{name: x}, {name: x}]", 1)
	if _, err = Read(Input{Name: "a.yaml", Data: []byte(file)}); err == nil {
		t.Error("two nodes of one name are read")
	}
}

func TestFilesThatFillTheMemory(t *testing.T) {
	bomb := "name: &a [x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("l%d: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", i, 'b'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i)
	}
	for name, file := range map[string]string{
		"aliases of aliases":       bomb,
		"a merge of itself":        "name: a\nnodes:\n- &n {<<: *n, name: x}\n",
		"a list that holds itself": "nodes: &n [*n]\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Read(Input{Name: "bomb.yaml", Data: []byte(file)}); err == nil {
				t.Error("read without a word")
			}
		})
	}
}

// FuzzReadScenario looks for files that make the reader panic or hang, and for errors that do
// not say where.
func FuzzReadScenario(f *testing.F) {
	f.Add([]byte(sound))
	files, err := filepath.Glob("../../examples/scenarios/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		scenarios, err := Read(Input{Name: "fuzz.yaml", Data: data})
		if err == nil {
			for _, s := range scenarios {
				if s.Name == "" || s.Request.Name == "" || s.Contradiction == "" && len(s.Request.Groups) == 0 {
					t.Errorf("read without its names or its groups: %+v", s)
				}
			}
			return
		}
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if !strings.HasPrefix(line, "fuzz.yaml:") {
				t.Errorf("does not say where: %q", line)
			}
		}
	})
}
