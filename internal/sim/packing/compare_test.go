package packing

import (
	"strings"
	"testing"
)

const summaryHeader = "metric,workload,policy,arrive_pct,mean,sd,n\n"

func found(values map[string]float64) *Results {
	r := &Results{Judged: 100, End: 130, Seeds: []int64{1, 2}, Workloads: []WorkloadSize{{Name: "a"}, {Name: "b"}}}
	for _, w := range r.Workloads {
		for _, p := range Policies() {
			if v, ok := values[w.Name+" "+p]; ok {
				r.Summary = append(r.Summary, Summary{Workload: w.Name, Policy: p, Unallocated: Spread{Mean: v}})
			}
		}
	}
	return r
}

func TestCompare(t *testing.T) {
	reference, err := ReadReference("s.csv", strings.NewReader(summaryHeader+
		"allo,openb_pod_list_a,06-FGD,100,95,0.1,10\nallo,openb_pod_list_a,06-FGD,99,90,0.1,10\nfrag,openb_pod_list_a,06-FGD,100,1,0.1,10\n"+
		"allo,openb_pod_list_a,05-BestFit,100,92,0.5,10\nallo,openb_pod_list_b,06-FGD,100,94,0.1,10\nallo,openb_pod_list_c,06-FGD,100,94,0.1,10\n"))
	if err != nil {
		t.Fatal(err)
	}
	r := found(map[string]float64{
		"a fgd": 5.2, "a bestFit": 9.1, "b fgd": 6, "a dotProd": 1, "a fragmentationAware": 4, "b fragmentationAware": 6.5, "b binPack": 3,
	})
	r.Published = reference.compare(r)
	c := r.Published
	if len(c.Reproduced) != 3 || c.Missed != 1 || len(c.Margins) != 2 || c.Worse != 1 || c.Average < 0.249 || c.Average > 0.251 {
		t.Errorf("got %+v", c)
	}
	text := r.Text()
	for _, want := range []string{
		"WORKLOAD     bestFit         fgd\n", "a         9.10 ≠8.00  5.20  5.00\n", "b                     6.00  6.00\n", "2 of 3 are within two standard deviations.\n",
		"a                   5.00                4.00   1.00\n", "b                   6.00                6.50  -0.50\n",
		"0.25 % of the GPUs fewer in the mean; as few or fewer on 1 of 2 workloads.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestBadReference(t *testing.T) {
	for text, want := range map[string]string{
		"": "s.csv: is empty; expected a header with the names of the columns",
		"metric,workload,policy,arrive_pct,mean\na,b,c,1,2\n": "s.csv:1: there is no column sd; expected a header with metric, workload, policy, arrive_pct, mean, sd, and read metric,workload,policy,arrive_pct,mean",
		summaryHeader + "allo,a,b,100,x,0.1,10\n":             `s.csv:2:14: mean: is "x"; expected a number`,
		summaryHeader + "allo,a,b,100,1,NaN,10\n":             `s.csv:2:16: sd: is "NaN"; expected a number`,
		summaryHeader + "allo,a,b,-1,1,1,10\n":                "s.csv:2:10: arrive_pct: is -1; expected 0 to 1000",
	} {
		if _, err := ReadReference("s.csv", strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
	reference, err := ReadReference("s.csv", strings.NewReader(summaryHeader+"allo,test,06-FGD,100,95,0.1,10\n"))
	if err != nil {
		t.Fatal(err)
	}
	c, w := drawn(t, 1, 3, 3)
	for tune, names := range map[float64][]string{1.3: {"binPack", "dotProd"}, 0.9: {"fgd"}} {
		_, err := NewExperiment(c, []*Workload{w}, Options{Policies: names, Seeds: []int64{1}, Tune: tune, Published: reference})
		if err == nil || !strings.HasPrefix(err.Error(), "s.csv: has nothing at ") {
			t.Errorf("%v: got %v", names, err)
		}
	}
	if _, err := NewExperiment(c, []*Workload{w}, Options{Policies: []string{ours}, Seeds: []int64{1}, Tune: 1.3, Published: reference}); err != nil {
		t.Error(err)
	}
}
