package trace

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/reyisjones/gpu-orchestrator/internal/problem"
)

const jobsHeader = "job_id,submission_time,duration,num_gpu"

func readJobs(text string, o JobsOptions) ([]Job, error) {
	jobs := NewJobs("jobs.csv", strings.NewReader(text), o)
	var all []Job
	for {
		j, ok := jobs.Next()
		if !ok {
			return all, jobs.Err()
		}
		all = append(all, j)
	}
}

// TestJobs reads each layout.
func TestJobs(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		o    JobsOptions
		want []Job
	}{
		"plain": {
			text: jobsHeader + "\na,0,10.5,8\nb,3,4,1\n",
			want: []Job{{ID: "a", Duration: 10500 * time.Millisecond, GPUs: 8, Line: 2}, {ID: "b", Submit: 3 * time.Second, Duration: 4 * time.Second, GPUs: 1, Line: 3}},
		},
		"optional columns in another order, with a mark at the beginning": {
			text: "\ufeffnum_gpu,num_pods,gpu_model,queue,priority,duration,submission_time,job_id\r\n16,4,H100,ml,-5,60,1e3,x\r\n",
			want: []Job{{ID: "x", Submit: 1000 * time.Second, Duration: time.Minute, GPUs: 16, Pods: 4, Model: "H100", Queue: "ml", Priority: -5, Line: 2}},
		},
		"one queue": {
			text: jobsHeader + ",queue\na,0,1,1,q\nb,1,1,1,r\nc,2,1,1,q\n",
			o:    JobsOptions{Queue: "r"},
			want: []Job{{ID: "b", Submit: time.Second, Duration: time.Second, GPUs: 1, Queue: "r", Line: 3}},
		},
		"Philly is put in order": {
			text: "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,11cb48\n2017-10-09 06:13:03,2951.0,2,2951.0,6214e9\n",
			want: []Job{
				{ID: "philly-3", Duration: 2951 * time.Second, GPUs: 2, Queue: "6214e9", Line: 3},
				{ID: "philly-2", Submit: 2932 * time.Second, Duration: 66 * time.Second, GPUs: 1, Queue: "11cb48", Line: 2},
			},
		},
		"Kalos": {
			text: "job_id,arrival_time,num_iteration,iteration_computing_time,iteration_networking_time,gpu_workers,ps,gpu_per_worker\n0,2.0,208,0.5,0.25,4,0,8.0\n",
			want: []Job{{ID: "0", Submit: 2 * time.Second, Duration: 104 * time.Second, GPUs: 32, Pods: 4, Line: 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readJobs(c.text, c.o)
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, %v\nwant %+v", got, err, c.want)
			}
		})
	}
}

// TestBadJobs says where and what.
func TestBadJobs(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "jobs.csv: is empty; expected a header with the names of the columns"},
		{jobsHeader + "\n", "jobs.csv: has a header and no rows; expected at least one"},
		{"job_id,submission_time,num_gpu\na,0,1\n", "jobs.csv:1: there is no column duration; expected a header with job_id, submission_time, duration, num_gpu, and read job_id,submission_time,num_gpu"},
		{jobsHeader + ",num_gpu\na,0,1,1,1\n", `jobs.csv:1:41: column "num_gpu" is there twice; expected each once`},
		{jobsHeader + "\na,5,1,1\nb,4.5,1,1\n", "jobs.csv:3:3: submission_time: is 500ms before the job of the row above; expected rows in the order of their submission"},
		{jobsHeader + "\na,-1,1,1\n", "jobs.csv:2:3: submission_time: is -1; expected seconds, not negative"},
		{jobsHeader + "\na,0,1e99,1\n", "jobs.csv:2:5: duration: is 1e99; expected seconds, at most 3153600000 (a hundred years)"},
		{jobsHeader + "\na,0,NaN,1\n", `jobs.csv:2:5: duration: is "NaN"; expected a number of seconds`},
		{jobsHeader + "\na,0,1,\n", "jobs.csv:2:7: num_gpu: is empty; expected a whole number"},
		{jobsHeader + "\na,0,1,0\n", "jobs.csv:2:7: num_gpu: is 0; expected 1 to 1048576"},
		{jobsHeader + "\n,0,1,1\n", "jobs.csv:2:1: job_id: is empty; expected the name of the job"},
		{jobsHeader + "\na,0,1\nb,0,1,1\n", "jobs.csv:2: has 3 values; expected 4, as the header has"},
		{jobsHeader + "\n\"a,0,1,1\n", `jobs.csv:2:10: is no CSV: extraneous or missing " in quoted-field`},
		{jobsHeader + ",num_pods\na,0,1,8,3\n", "jobs.csv:2:9: num_pods: is 3 with num_gpu 8; expected a divisor, since pods are equal"},
		{jobsHeader + ",gpu_model\na,0,1,8,B200\n", `jobs.csv:2:9: gpu_model: "B200" is no GPU model of the cluster; it has A100, H100`},
		{jobsHeader + "\na,0,1,999\n", "jobs.csv:2:7: num_gpu: is too much"},
		{"timestamp,duration,num_gpus\nmonday,1,1\n", `jobs.csv:2:1: timestamp: is "monday"; expected a time such as 2017-10-09 07:01:55`},
	} {
		o := JobsOptions{Models: map[string]bool{"H100": true, "A100": true}, Refuse: func(j Job) string {
			if j.GPUs == 999 {
				return "is too much"
			}
			return ""
		}}
		if _, err := readJobs(c.text, o); err == nil || err.Error() != c.want {
			t.Errorf("%q:\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
}

// TestAllThatIsWrong is said at once, and reading ends where there is too much of it.
func TestAllThatIsWrong(t *testing.T) {
	var text strings.Builder
	text.WriteString(jobsHeader + "\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "a,%d,x,y\n", i)
	}
	_, err := readJobs(text.String(), JobsOptions{})
	var problems problem.Problems
	if !errors.As(err, &problems) || len(problems) != maxProblems || problems[1].Path != "num_gpu" || problems[1].Line != 2 {
		t.Errorf("got %d problems: %v", len(problems), err)
	}
}

// broken fails after its text.
type broken struct{ text io.Reader }

func (b broken) Read(p []byte) (int, error) {
	if n, err := b.text.Read(p); err == nil {
		return n, nil
	}
	return 0, errors.New("the disk is gone")
}

// TestAnErrorOfReading is not the file's fault.
func TestAnErrorOfReading(t *testing.T) {
	jobs := NewJobs("jobs.csv", broken{strings.NewReader(jobsHeader + "\na,0,1,1\n")}, JobsOptions{})
	for {
		if _, ok := jobs.Next(); !ok {
			break
		}
	}
	var problems problem.Problems
	if err := jobs.Err(); err == nil || errors.As(err, &problems) || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("got %v", err)
	}
}

func TestNodesAndPods(t *testing.T) {
	nodes, err := ReadNodes("nodes.csv", strings.NewReader("sn,cpu_milli,memory_mib,gpu,model,leaf\nn1,64000,262144,2,P100,a\nn2,96000,1024,0,,b\n"))
	want := []Node{{Name: "n1", CPUMilli: 64000, MemoryMiB: 262144, GPUs: 2, Model: "P100", Leaf: "a"}, {Name: "n2", CPUMilli: 96000, MemoryMiB: 1024, Leaf: "b"}}
	if err != nil || !reflect.DeepEqual(nodes, want) {
		t.Errorf("got %+v, %v", nodes, err)
	}
	pods, err := ReadPods("pods.csv", strings.NewReader("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np1,100,5,1,460,T4|P100\np2,1,2,0,0,\np3,1,2,8,1000,\n"), map[string]bool{"P100": true, "T4": true})
	wantPods := []Pod{{Name: "p1", CPUMilli: 100, MemoryMiB: 5, GPUs: 1, Milli: 460, Models: []string{"P100", "T4"}, Spec: "T4|P100"}, {Name: "p2", CPUMilli: 1, MemoryMiB: 2}, {Name: "p3", CPUMilli: 1, MemoryMiB: 2, GPUs: 8, Milli: 1000}}
	if err != nil || !reflect.DeepEqual(pods, wantPods) {
		t.Errorf("got %+v, %v", pods, err)
	}
}

func TestBadNodesAndPods(t *testing.T) {
	const nodesHeader, podsHeader = "name,cpu_milli,memory_mib,gpu", "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec"
	for _, c := range []struct{ text, want string }{
		{"sn,cpu_milli,gpu\nn,1,1\n", "f.csv:1: there is no column memory_mib; expected a header with sn or name, cpu_milli, memory_mib, gpu, and read sn,cpu_milli,gpu"},
		{"cpu_milli,memory_mib,gpu\n1,1,1\n", "f.csv:1: there is no column sn or name; expected a header with sn or name, cpu_milli, memory_mib, gpu, and read cpu_milli,memory_mib,gpu"},
		{nodesHeader + "\nn,1,1,1\nn,1,1,1\n", `f.csv:3:1: name: "n" is also the node of line 2; expected a name of its own`},
		{nodesHeader + "\nn,1,1,65\n", "f.csv:2:7: gpu: is 65; expected 0 to 64"},
		{podsHeader + "\np,1,1,2,500,\n", "f.csv:2:9: gpu_milli: is 500 with num_gpu 2; expected 1000: parts of several GPUs cannot be asked for"},
		{podsHeader + "\np,1,1,1,0,\n", "f.csv:2:9: gpu_milli: is 0 with num_gpu 1; expected 1 to 1000 thousandths of each GPU"},
		{podsHeader + "\np,1,1,1,5,X|T4\n", `f.csv:2:11: gpu_spec: "X" is no GPU model of the nodes; expected one of T4`},
		{podsHeader + "\np,-1,1,1,5,\n", "f.csv:2:3: cpu_milli: is -1; expected 0 or more"},
	} {
		var err error
		if strings.Contains(c.text, "num_gpu") {
			_, err = ReadPods("f.csv", strings.NewReader(c.text), map[string]bool{"T4": true})
		} else {
			_, err = ReadNodes("f.csv", strings.NewReader(c.text))
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%q:\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
}
